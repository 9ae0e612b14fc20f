//! [`NamedExec`]: here begins a program that is kept by name.
//!
//! ```text
//!   NamedExec: view=public.daily
//!     AggregateExec: Final
//! ```
//!
//! What a materialized view computes, as it is whatever the query around it needs of it. The rule that reuses prefixes takes
//! the mark away and remembers where it was: what lies below is always worth keeping.
//! Does not run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::TableName;

/// The mark.
#[derive(Debug, Clone)]
pub struct NamedExec {
    name: TableName,
    input: Arc<dyn ExecutionPlan>,
}

impl NamedExec {
    /// Marks `input` as what `name` computes.
    pub fn new(name: TableName, input: Arc<dyn ExecutionPlan>) -> Self {
        Self { name, input }
    }

    /// Whose program it is.
    pub fn view(&self) -> &TableName {
        &self.name
    }

    /// What is computed.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }
}

impl DisplayAs for NamedExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "view={}", self.name),
            _ => write!(f, "NamedExec: view={}", self.name),
        }
    }
}

impl ExecutionPlan for NamedExec {
    fn name(&self) -> &str {
        "NamedExec"
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
            _ => internal_err!("NamedExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the mark of view \"{}\" reached execution", self.name)
    }
}
