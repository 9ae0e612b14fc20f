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
//! Neither does it mind that a cast may put values into another order (casts.rs): of its statistics nothing is left then either.
//!
//! Runs after   entries were looked up: what a plan means does not change. Runs before the other rules, which decide by it.
//! Keeps true   schema, rows, partitions.
//!
//! A sort-merge join (`prefer_hash_join = false`) has to know how its inputs are sorted, or they would be sorted again. There
//! `PlainRowsExec` stands above the join, and forgets what was known of the padded columns alone.

mod casts;
mod estimates;
mod keys;
mod uneven;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Constraints, JoinType, Result, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::equivalence::{EquivalenceClass, EquivalenceGroup};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{ConstExpr, EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterDescription, FilterPushdownPhase, FilterPushdownPropagation,
};
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, PiecewiseMergeJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

pub(crate) use estimates::with_children;
pub use keys::ForgetKeys;
pub use uneven::ForgetUneven;

/// See the module.
#[derive(Debug)]
pub struct ForgetPadded;

impl PhysicalOptimizerRule for ForgetPadded {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let gives_bounds = plan.exists(|node| Ok(is_ungrouped(node)))?;
        plan.transform_up(|node| {
            if gives_bounds && casts::disorders(&node) {
                return Ok(Transformed::yes(PlainRows::over(node, Forgets::Bounds)?));
            }
            if let Some(groups) = node.downcast_ref::<AggregateExec>()
                && groups.group_expr().has_grouping_set()
            {
                return Ok(Transformed::yes(PlainRows::over(node, Forgets::All)?));
            }
            if let Some(forgets) = forgotten_above(&node) {
                return Ok(Transformed::yes(PlainRows::over(node, forgets)?));
            }
            let padded = padded_sides(&node);
            let children = node.children();
            let is_wrong = |(child, padded): (&&Arc<dyn ExecutionPlan>, &bool)| *padded && claims(child);
            if !children.iter().zip(&padded).any(is_wrong) {
                return Ok(Transformed::no(node));
            }
            let honest = children.into_iter().zip(padded).map(|(child, padded)| match padded && claims(child) {
                true => PlainRows::over(Arc::clone(child), Forgets::All),
                false => Ok(Arc::clone(child)),
            });
            let honest = honest.collect::<Result<_>>()?;
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

/// An aggregate over all rows, which DataFusion may answer from statistics alone.
fn is_ungrouped(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.downcast_ref::<AggregateExec>().is_some_and(|groups| groups.group_expr().is_empty())
}

/// Whether something is known of all rows that need not hold for a row of NULLs.
fn claims(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let known = plan.equivalence_properties();
    !known.oeq_class().is_empty() || fixes_values(known)
}

/// Whether a value is known, or equal to more than a mere column (`coalesce(x, 0) = y`).
fn fixes_values(known: &EquivalenceProperties) -> bool {
    let is_column = |expr: &Arc<dyn PhysicalExpr>| expr.is::<Column>();
    !known.constants().is_empty() || known.eq_group().iter().any(|class| !class.iter().all(is_column))
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

/// What has to be forgotten above a join that needs its inputs sorted, if anything.
fn forgotten_above(node: &Arc<dyn ExecutionPlan>) -> Option<Forgets> {
    let fixed: Vec<bool> = node.children().iter().map(|side| fixes_values(side.equivalence_properties())).collect();
    let [left_fixed, right_fixed] = fixed[..] else { return None };
    if let Some(join) = node.downcast_ref::<PiecewiseMergeJoinExec>() {
        let pads = matches!(join.join_type(), JoinType::Left | JoinType::Right | JoinType::Full);
        return (pads && (left_fixed || right_fixed)).then_some(Forgets::All);
    }
    let join = node.downcast_ref::<SortMergeJoinExec>()?;
    let left = join.left.schema().fields().len();
    match join.join_type {
        JoinType::Left if right_fixed => Some(Forgets::Columns(left..join.schema().fields().len())),
        JoinType::Right if left_fixed => Some(Forgets::Columns(0..left)),
        JoinType::Full if left_fixed || right_fixed => Some(Forgets::All),
        _ => None,
    }
}

/// The rows of its input, of which less is known.
#[derive(Debug)]
struct PlainRows {
    input: Arc<dyn ExecutionPlan>,
    forgets: Forgets,
    properties: Arc<PlanProperties>,
}

#[derive(Clone, Debug)]
enum Forgets {
    /// The least and the greatest value of each column.
    Bounds,
    /// Which columns tell rows apart.
    Keys,
    /// All but those, and the number of rows.
    All,
    /// Whatever speaks of these columns.
    Columns(Range<usize>),
    /// What is one value in each partition but perhaps not the same one in all; and all orders.
    Uneven,
}

impl Forgets {
    fn speaks_of(&self, expr: &Arc<dyn PhysicalExpr>) -> bool {
        match self {
            Self::Bounds | Self::Keys | Self::Uneven => false,
            Self::All => true,
            Self::Columns(columns) => collect_columns(expr).iter().any(|column| columns.contains(&column.index())),
        }
    }

    /// What is left of what is known of the rows of `input`.
    fn rest(&self, input: &Arc<dyn ExecutionPlan>) -> Result<EquivalenceProperties> {
        let known = input.equivalence_properties();
        let mut rest = EquivalenceProperties::new(input.schema());
        match self {
            Self::Bounds => return Ok(known.clone()),
            Self::Keys => return Ok(known.clone().with_constraints(Constraints::default())),
            Self::All => return Ok(rest),
            Self::Uneven => {
                let even = known.constants().into_iter().filter(|constant| !uneven::is_uneven(constant));
                rest.add_constants(even)?;
                return Ok(rest);
            }
            Self::Columns(_) => {}
        }
        let kept = |expr: &&Arc<dyn PhysicalExpr>| !self.speaks_of(expr);
        let classes = known.eq_group().iter().map(|class| EquivalenceClass::new(class.iter().filter(kept).cloned()));
        rest.add_equivalence_group(EquivalenceGroup::new(classes.filter(|class| !class.is_trivial())))?;
        let constants = known.constants().into_iter().filter(|constant| !self.speaks_of(&constant.expr));
        rest.add_constants(constants.collect::<Vec<ConstExpr>>())?;
        // What comes after a forgotten column is sorted only where that column stays the same.
        let sorted = |ordering: &LexOrdering| -> Vec<PhysicalSortExpr> {
            ordering.iter().take_while(|by| !self.speaks_of(&by.expr)).cloned().collect()
        };
        rest.add_orderings(known.oeq_class().iter().map(sorted));
        Ok(rest)
    }
}

impl PlainRows {
    fn over(input: Arc<dyn ExecutionPlan>, forgets: Forgets) -> Result<Arc<dyn ExecutionPlan>> {
        let properties = PlanProperties::new(
            forgets.rest(&input)?,
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Ok(Arc::new(Self { input, forgets, properties: Arc::new(properties) }))
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

    fn maintains_input_order(&self) -> Vec<bool> {
        // A sort that is moved below is left with the columns that vary there, and its order would not do above.
        vec![!matches!(self.forgets, Forgets::All | Forgets::Uneven)]
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
            (Some(input), true) => Self::over(input, self.forgets.clone()),
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
            [input] if matches!(self.forgets, Forgets::Bounds) => Ok(Arc::new(casts::without_bounds(input))),
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("PlainRowsExec has one child"),
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        match self.forgets {
            // Which rows are wanted is another matter than what is known of them.
            Forgets::Bounds | Forgets::Uneven => FilterDescription::from_children(parent_filters, &self.children()),
            _ => Ok(FilterDescription::all_unsupported(&parent_filters, &self.children())),
        }
    }

    fn handle_child_pushdown_result(
        &self,
        _phase: FilterPushdownPhase,
        child_pushdown_result: ChildPushdownResult,
        _config: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        Ok(FilterPushdownPropagation::if_all(child_pushdown_result))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
