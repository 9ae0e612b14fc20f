//! [`PlainAntiJoins`]: `NOT IN` over columns without NULLs is planned as the anti join that it then is.
//!
//! ```text
//!   before                                      after
//!   HashJoinExec: LeftAnti, null_aware          HashJoinExec: LeftAnti
//!     ExtentScanExec: ps_suppkey                  ExtentScanExec: ps_suppkey
//!     ExtentScanExec: s_suppkey                   ExtentScanExec: s_suppkey
//! ```
//!
//! Columns of files may hold NULL unless the table says otherwise, so DataFusion must plan a `NOT IN` that minds them: it
//! builds its table from the larger side, and on one core. Statistics of today's extents often prove that there is none.
//!
//! Fires when   both keys are columns of streams whose every extent counted its NULLs and found none.
//! Runs         after [`ReusePrefixes`](crate::reuse::ReusePrefixes), so that a program is the same whatever its data.
//! Keeps true   the plan's schema and rows.

use std::sync::Arc;

use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{JoinSide, JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::utils::build_join_schema;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;

use crate::node::{AddEntryExec, ExtentScanExec};

/// The rule.
#[derive(Debug, Default)]
pub struct PlainAntiJoins;

impl PhysicalOptimizerRule for PlainAntiJoins {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<HashJoinExec>() {
            Some(join) if join.null_aware && keys_have_no_null(join) => plain(join, config).map(Transformed::yes),
            _ => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "plain_anti_joins"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The join as DataFusion's planner makes it where it knows of no NULL.
fn plain(join: &HashJoinExec, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
    let optimizer = &config.optimizer;
    let any_side = config.execution.target_partitions > 1 && optimizer.repartition_joins && optimizer.prefer_hash_join;
    let mode = if any_side { PartitionMode::Auto } else { *join.partition_mode() };
    join.builder().with_null_aware(false).with_partition_mode(mode).build_exec()
}

fn keys_have_no_null(join: &HashJoinExec) -> bool {
    join.on().iter().all(|(left, right)| key_has_no_null(left, join.left()) && key_has_no_null(right, join.right()))
}

fn key_has_no_null(key: &Arc<dyn PhysicalExpr>, input: &Arc<dyn ExecutionPlan>) -> bool {
    key.downcast_ref::<Column>().is_some_and(|column| has_no_null(input, column.index()))
}

/// Whether a column is one of a stream without NULLs, and nothing on its way up brings any.
fn has_no_null(plan: &Arc<dyn ExecutionPlan>, column: usize) -> bool {
    if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        let ordinal = match scan.projection() {
            Some(projection) => projection.get(column).copied(),
            None => Some(column),
        };
        let known = ordinal.and_then(|ordinal| scan.table_statistics().column_statistics.get(ordinal));
        return known.is_some_and(|known| known.null_count == Precision::Exact(0));
    }
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return below(filter.projection().as_deref(), column).is_some_and(|column| has_no_null(filter.input(), column));
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return projection.expr().get(column).is_some_and(|shown| key_has_no_null(&shown.expr, projection.input()));
    }
    if let Some(entry) = plan.downcast_ref::<AddEntryExec>() {
        return entry.children().first().is_some_and(|input| has_no_null(input, column));
    }
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return of_join(join, column);
    }
    false
}

/// A join that leaves no side without a partner shows the values that its inputs have.
fn of_join(join: &HashJoinExec, column: usize) -> bool {
    let padded_with_nulls = match join.join_type() {
        JoinType::Inner | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::RightSemi | JoinType::RightAnti => false,
        JoinType::Left | JoinType::Right | JoinType::Full | JoinType::LeftMark | JoinType::RightMark => true,
    };
    if padded_with_nulls {
        return false;
    }
    let (_, origins) = build_join_schema(&join.left().schema(), &join.right().schema(), join.join_type());
    let origin = below(join.projection.as_deref(), column).and_then(|column| origins.get(column).cloned());
    match origin {
        Some(origin) if origin.side == JoinSide::Left => has_no_null(join.left(), origin.index),
        Some(origin) if origin.side == JoinSide::Right => has_no_null(join.right(), origin.index),
        _ => false,
    }
}

fn below(projection: Option<&[usize]>, column: usize) -> Option<usize> {
    match projection {
        Some(projection) => projection.get(column).copied(),
        None => Some(column),
    }
}
