//! [`ForgetPadded`]: what held for all rows of a join's side does not hold any more where the join pads it with NULLs.
//!
//! ```text
//!   a LEFT JOIN (SELECT k, 1 AS c FROM b) x            c is 1 in x, but 1 or NULL above the join
//!   SELECT k, 7 AS g .. GROUP BY GROUPING SETS ((g), (k))   g is 7 below, but 7 or NULL above the groups
//!
//!   before                            after
//!   HashJoinExec: join_type=Left      HashJoinExec: join_type=Left
//!     a                                 a
//!     ProjectionExec: k, 1 as c         PlainRowsExec
//!                                         ProjectionExec: k, 1 as c
//! ```
//!
//! DataFusion 55 believes such a column to be constant above as well. Then it sorts by it without looking, and gives out groups
//! before they are whole: rows come in the wrong order, are cut wrongly by a LIMIT, or groups come twice.
//!
//! Runs after   entries were looked up: what a plan means does not change. Runs before the other rules, which decide by it.
//! Keeps true   schema, rows, partitions.
//! Leaves out   sort-merge joins (`prefer_hash_join = false`): they need to know how their inputs are sorted, and would sort again. Their
//!              answers can still be wrong; telling it above such a join, for its padded columns alone, is the way.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Result, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

/// See the module.
#[derive(Debug)]
pub struct ForgetPadded;

impl PhysicalOptimizerRule for ForgetPadded {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if let Some(groups) = node.downcast_ref::<AggregateExec>()
                && groups.group_expr().has_grouping_set()
            {
                return Ok(Transformed::yes(PlainRows::over(node)));
            }
            let padded = padded_sides(&node);
            let children = node.children();
            let is_wrong = |(child, padded): (&&Arc<dyn ExecutionPlan>, &bool)| *padded && claims(child);
            if !children.iter().zip(&padded).any(is_wrong) {
                return Ok(Transformed::no(node));
            }
            let honest = children.into_iter().zip(padded).map(|(child, padded)| match padded && claims(child) {
                true => PlainRows::over(Arc::clone(child)),
                false => Arc::clone(child),
            });
            let honest = honest.collect();
            let anew = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            Ok(Transformed::yes(node.replace_children(honest, anew)?))
        })
        .data()
    }

    fn name(&self) -> &str {
        "forget_padded"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether something is known of all rows.
fn claims(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let known = plan.equivalence_properties();
    !known.constants().is_empty() || !known.oeq_class().is_empty()
}

/// Which children of a join come with rows of NULLs; none of other nodes.
fn padded_sides(node: &Arc<dyn ExecutionPlan>) -> Vec<bool> {
    let join_type = node
        .downcast_ref::<HashJoinExec>()
        .map(|join| *join.join_type())
        .or_else(|| node.downcast_ref::<NestedLoopJoinExec>().map(|join| *join.join_type()));
    match join_type {
        Some(JoinType::Left) => vec![false, true],
        Some(JoinType::Right) => vec![true, false],
        Some(JoinType::Full) => vec![true, true],
        _ => vec![],
    }
}

/// The rows of its input, of which nothing is known but their columns.
#[derive(Debug)]
struct PlainRows {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl PlainRows {
    fn over(input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Arc::new(Self { input, properties: Arc::new(properties) })
    }
}

impl DisplayAs for PlainRows {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => f.write_str("PlainRowsExec"),
        }
    }
}

impl ExecutionPlan for PlainRows {
    fn name(&self) -> &str {
        "PlainRowsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Self::over(input)),
            _ => internal_err!("PlainRowsExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("PlainRowsExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
