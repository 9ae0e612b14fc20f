//! Copies of plan nodes that share no state with the original.
//!
//! DataFusion's nodes hold state: a hash join the future of its build side, an aggregate the bounds it has seen, a TopK its
//! filter; `replace_children` hands it on. A copy that shares it gives rows of the other copy. So every node that is used
//! again is one that this file knows how to make anew; with any other, there is no copy.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

use crate::node::{DerivedTableExec, ExtentScanExec};

/// A whole plan, new; `None` if it is not known how to make a part of it.
fn copied(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        return Ok(Some(Arc::new(scan.clone())));
    }
    let mut children = vec![];
    for child in plan.children() {
        let Some(child) = copied(child)? else { return Ok(None) };
        children.push(child);
    }
    fresh(plan, children)
}

/// The same operator, new, over other inputs; `None` if it is not known how to make it.
pub(super) fn fresh(
    node: &Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let [input] = children.as_slice() else { return Ok(None) };
        let copy = AggregateExec::try_new(
            *aggregate.mode(),
            aggregate.group_expr().clone(),
            aggregate.aggr_expr().to_vec(),
            aggregate.filter_expr().to_vec(),
            Arc::clone(input),
            aggregate.input_schema(),
        )?;
        // A limit is no part of what `try_new` makes.
        return Ok(aggregate.limit_options().is_none().then(|| Arc::new(copy) as Arc<dyn ExecutionPlan>));
    }
    let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    if node.is::<HashJoinExec>() || node.is::<CrossJoinExec>() || node.is::<SortExec>() {
        let moved = Arc::clone(node).replace_children(children, recompute)?;
        return moved.reset_state().map(Some);
    }
    let is_stateless = node.is::<FilterExec>()
        || node.is::<ProjectionExec>()
        || node.is::<UnionExec>()
        || node.is::<UnnestExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>();
    if is_stateless {
        return Arc::clone(node).replace_children(children, recompute).map(Some);
    }
    if let Some(derived) = node.downcast_ref::<DerivedTableExec>() {
        let program = copied(derived.program())?;
        return Ok(program.map(|program| Arc::new(derived.with_program(program)) as Arc<dyn ExecutionPlan>));
    }
    if node.is::<EmptyExec>() {
        return Ok(Some(Arc::new(EmptyExec::new(node.schema()))));
    }
    if node.is::<PlaceholderRowExec>() {
        return Ok(Some(Arc::new(PlaceholderRowExec::new(node.schema()))));
    }
    Ok(None)
}
