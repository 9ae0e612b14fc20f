//! [`GatherGroups`]: brings the states of one group into one partition, so that merging them leaves one state.
//!
//! Passes its input on. All it does is to ask for a distribution: DataFusion's merging of states does not, because it does
//! not mind to leave several states of a group.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use nectarine_planner::node::MergeGroupsExec;

/// Asks for the states of one group in one partition.
#[derive(Debug, Clone)]
pub(crate) struct GatherGroups {
    input: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
}

/// What a mark becomes.
pub(crate) fn merge_groups(mark: &MergeGroupsExec) -> Result<Arc<dyn ExecutionPlan>> {
    // Without keys, all of them come together.
    let keys = if mark.is_of_few() { vec![] } else { mark.group_by().input_exprs() };
    let gathered = Arc::new(GatherGroups { input: Arc::clone(mark.input()), keys });
    Ok(Arc::new(AggregateExec::try_new(
        AggregateMode::PartialReduce,
        mark.group_by().clone(),
        mark.aggregates().to_vec(),
        mark.filters().to_vec(),
        gathered,
        Arc::clone(mark.input_schema()),
    )?))
}

impl DisplayAs for GatherGroups {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatherGroupsExec: keys={}", self.keys.len())
    }
}

impl ExecutionPlan for GatherGroups {
    fn name(&self) -> &str {
        "GatherGroupsExec"
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

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![match self.keys.is_empty() {
            true => Distribution::SinglePartition,
            false => Distribution::KeyPartitioned(self.keys.clone()),
        }])
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut next = TreeNodeRecursion::Continue;
        for key in &self.keys {
            next = f(key)?;
            if next == TreeNodeRecursion::Stop {
                break;
            }
        }
        Ok(next)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self { input, keys: self.keys.clone() })),
            _ => internal_err!("GatherGroupsExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
