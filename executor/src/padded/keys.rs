//! [`ForgetKeys`]: what tells groups apart is not believed of another column that a projection puts in its place.
//!
//! ```text
//!   ProjectionExec: c@1, g@0              DataFusion 55: the first column tells rows apart, here as below
//!     BoundedWindowAggExec: ORDER BY c
//!       ProjectionExec: a as g, count(x) as c
//!         AggregateExec: gby=[a]          the first column tells rows apart
//!
//!   before              after
//!   ProjectionExec      ProjectionExec
//!     BoundedWindow..     PlainRowsExec
//!                           BoundedWindow..
//! ```
//!
//! It keeps the number of a key's column where columns are put into another order. Rows that are sorted by such a column are then
//! taken to be sorted by whatever else is asked for after it, and the sort that was to do so is dropped.
//!
//! Fires when   more than one node has to do with orders: with one alone there is none that could be taken for another.
//! Keeps true   schema, rows, partitions, and what is known of them but for keys.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Constraint, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::{Forgets, PlainRows};

/// See the module.
#[derive(Debug)]
pub struct ForgetKeys;

impl PhysicalOptimizerRule for ForgetKeys {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut orders = 0;
        plan.apply(|node| {
            orders += usize::from(has_order(node));
            Ok(TreeNodeRecursion::Continue)
        })?;
        if orders < 2 {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            if !misplaces_keys(&node) {
                return Ok(Transformed::no(node));
            }
            let honest = node.children().into_iter().map(|child| PlainRows::over(Arc::clone(child), Forgets::Keys));
            let honest = honest.collect::<Result<_>>()?;
            let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(honest, anew)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "forget_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether rows are put into an order here, come in one, or are wanted in one.
fn has_order(node: &Arc<dyn ExecutionPlan>) -> bool {
    // A window function may count upwards, whatever the order of its rows.
    let counts = node.is::<BoundedWindowAggExec>() || node.is::<WindowAggExec>();
    let comes = node.children().is_empty() && node.output_ordering().is_some();
    counts || comes || node.is::<SortExec>() || node.required_input_ordering().iter().any(Option::is_some)
}

/// Whether a key is claimed that is none.
fn misplaces_keys(node: &Arc<dyn ExecutionPlan>) -> bool {
    let [child] = node.children()[..] else { return false };
    let known = child.equivalence_properties().constraints();
    if known.is_empty() {
        return false;
    }
    let Some(sources) = sources(node) else { return false };
    // Groups differ in all of their columns taken together.
    let groups = node.is::<AggregateExec>().then_some(sources.len());
    let holds = |claimed: &Constraint| {
        let claimed = columns(claimed);
        let told = |column: &usize| claimed.iter().any(|claimed| sources.get(*claimed) == Some(&Some(*column)));
        let all_groups = groups.is_some_and(|groups| (0..groups).all(|column| claimed.contains(&column)));
        all_groups || known.iter().any(|known| columns(known).iter().all(told))
    };
    !node.equivalence_properties().constraints().iter().all(holds)
}

fn columns(key: &Constraint) -> &[usize] {
    match key {
        Constraint::PrimaryKey(columns) | Constraint::Unique(columns) => columns,
    }
}

/// Which column of its input each of a node's is, if any; of groups, those that they are made by. `None` if the node moves none.
fn sources(node: &Arc<dyn ExecutionPlan>) -> Option<Vec<Option<usize>>> {
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(Column::index);
    if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        return Some(projection.expr().iter().map(|projected| column(&projected.expr)).collect());
    }
    if let Some(groups) = node.downcast_ref::<AggregateExec>() {
        return Some(groups.group_expr().expr().iter().map(|(by, _)| column(by)).collect());
    }
    let filter = node.downcast_ref::<FilterExec>()?;
    Some(filter.projection().as_ref()?.iter().copied().map(Some).collect())
}
