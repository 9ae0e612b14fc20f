//! [`AddEntryOperator`]: passes its input on and shows it to a recording.
//!
//! A wall for everything that optimizers push down, because what is recorded must be all rows of its input and not those
//! that this one statement needs:
//! - filters, also the dynamic ones of joins, TopK and min/max: `gather_filters_for_pushdown` supports none. Only what nobody
//!   asked for yet gives way to the dynamic filter of a join, and is then not recorded at all;
//! - limits: no `supports_limit_pushdown`, no `with_fetch` (the defaults);
//! - projections and sorts: no swapping, no pushdown (the defaults);
//! - TopK aggregation walks through nodes that keep the number of rows, so that is `Unknown` (the default).
//!
//! Most of these are defaults of DataFusion 55; tests below this crate's `derived` fail if one of them changes.
//!
//! Order        where the input is sorted in one partition, it is required to stay so: a sort that no one above needs would
//!              be dropped, and the entry of "these rows, sorted" would hold them unsorted.
//! Executed     once. `reset_state` and `replace_children` keep the recording, which notices a second run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, LexOrdering, OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{
    FilterDescription, FilterPushdownPhase, PushedDown, PushedDownPredicate,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, InputDistributionRequirements, PlanProperties,
};
use nectarine_planner::node::{Worth, short};

use crate::derived::{NotRecorded, Recording};

/// Records what its input gives.
#[derive(Debug, Clone)]
pub struct AddEntryOperator {
    input: Arc<dyn ExecutionPlan>,
    recording: Arc<Recording>,
    ordering: Option<LexOrdering>,
}

impl AddEntryOperator {
    /// Shows the rows of `input` to `recording`.
    pub fn new(input: Arc<dyn ExecutionPlan>, recording: Arc<Recording>) -> Self {
        let one_partition = input.output_partitioning().partition_count() == 1;
        let ordering = input.output_ordering().filter(|_| one_partition).cloned();
        Self { input, recording, ordering }
    }

    /// Where the rows go.
    pub fn recording(&self) -> &Arc<Recording> {
        &self.recording
    }
}

impl DisplayAs for AddEntryOperator {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = short(&self.recording.prefix().key);
        match format {
            DisplayFormatType::TreeRender => write!(f, "entry={entry}"),
            _ => write!(f, "AddEntryExec: entry={entry}"),
        }
    }
}

impl ExecutionPlan for AddEntryOperator {
    fn name(&self) -> &str {
        "AddEntryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.ordering {
            Some(_) => Distribution::SinglePartition,
            None => Distribution::UnspecifiedDistribution,
        }])
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        // Soft: a hard one would hide the statement's own ORDER BY below it from OutputRequirements.
        vec![self.ordering.clone().map(|ordering| OrderingRequirements::new_soft(ordering.into()))]
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
            // What was required at first stays required, whatever the input has become.
            (Some(input), true) => Ok(Arc::new(Self { input, ..self.as_ref().clone() })),
            _ => internal_err!("AddEntryExec has one child"),
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
            _ => internal_err!("AddEntryExec has one child"),
        }
    }

    fn gather_filters_for_pushdown(
        &self,
        phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let is_dynamic = phase == FilterPushdownPhase::Post && !parent_filters.is_empty();
        // Asked first: a filter that stops right below is no reason to give anything up.
        if is_dynamic && self.recording.prefix().worth == Worth::GivesWay {
            let below = self.input.gather_filters_for_pushdown(phase, parent_filters.clone(), config)?;
            let passes = |filter: &PushedDownPredicate| matches!(filter.discriminant, PushedDown::Yes);
            if below.parent_filters().iter().flatten().any(passes) && self.recording.give_way() {
                return FilterDescription::from_children(parent_filters, &self.children());
            }
        }
        Ok(FilterDescription::all_unsupported(&parent_filters, &self.children()))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.recording.observe(&self.input);
        match self.input.execute(partition, context) {
            Ok(stream) => Ok(self.recording.tee(partition, self.input.output_partitioning().partition_count(), stream)),
            Err(error) => {
                self.recording.abandon(NotRecorded::Failed);
                Err(error)
            }
        }
    }
}
