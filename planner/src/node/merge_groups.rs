//! [`MergeGroupsExec`]: states of the same groups, from entries and from new extents, become one state each.
//!
//! ```text
//!   MergeGroupsExec: keys=2, aggregates=3
//! ```
//!
//! Does not run: the executor lowers it to DataFusion's own merging of states.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};

/// Merges states.
#[derive(Debug, Clone)]
pub struct MergeGroupsExec {
    input: Arc<dyn ExecutionPlan>,
    group_by: PhysicalGroupBy,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    filters: Vec<Option<Arc<dyn PhysicalExpr>>>,
    input_schema: SchemaRef,
    of_few: bool,
}

impl MergeGroupsExec {
    /// Merges what `input` gives: states as the first half `partial` of an aggregate makes them.
    pub fn new(partial: &AggregateExec, input: Arc<dyn ExecutionPlan>) -> Self {
        Self {
            input,
            group_by: partial.group_expr().as_final(),
            aggregates: partial.aggr_expr().to_vec(),
            filters: partial.filter_expr().to_vec(),
            input_schema: partial.input_schema(),
            of_few: false,
        }
    }

    /// The same for states that are few: bringing them together by their keys would take longer than merging them.
    #[must_use]
    pub fn of_few(self) -> Self {
        Self { of_few: true, ..self }
    }

    /// Whether they are few.
    pub fn is_of_few(&self) -> bool {
        self.of_few
    }

    /// What is merged.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// The keys, as columns of the states.
    pub fn group_by(&self) -> &PhysicalGroupBy {
        &self.group_by
    }

    /// The functions whose states they are.
    pub fn aggregates(&self) -> &[Arc<AggregateFunctionExpr>] {
        &self.aggregates
    }

    /// Which rows the functions looked at; of no more use, but the merging wants as many.
    pub fn filters(&self) -> &[Option<Arc<dyn PhysicalExpr>>] {
        &self.filters
    }

    /// The columns of the rows that the states were made of.
    pub fn input_schema(&self) -> &SchemaRef {
        &self.input_schema
    }
}

impl DisplayAs for MergeGroupsExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MergeGroupsExec: keys={}, aggregates={}", self.group_by.expr().len(), self.aggregates.len())
    }
}

impl ExecutionPlan for MergeGroupsExec {
    fn name(&self) -> &str {
        "MergeGroupsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
            (Some(input), true) => Ok(Arc::new(Self { input, ..self.as_ref().clone() })),
            _ => internal_err!("MergeGroupsExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a merge of groups reached execution without being lowered")
    }
}
