//! [`DerivedTableExec`]: the rows of a derived table, which never change.
//!
//! ```text
//!   DerivedTableExec: table=public.first_week
//! ```
//!
//! A leaf: to the query around it the derived table is a constant. Its program, over the extents of its moment, was planned
//! with settings of its own, and is found or computed by itself; see `reuse::derived`.
//! Does not run.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::TableName;

/// The leaf.
#[derive(Debug, Clone)]
pub struct DerivedTableExec {
    table: TableName,
    program: Arc<dyn ExecutionPlan>,
    config: Arc<ConfigOptions>,
    properties: Arc<PlanProperties>,
}

impl DerivedTableExec {
    /// The rows of `program`, an initial plan that was made with `config`.
    pub fn new(table: TableName, program: Arc<dyn ExecutionPlan>, config: Arc<ConfigOptions>) -> Self {
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(program.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self { table, program, config, properties }
    }

    /// Its name, for people.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// What makes its rows.
    pub fn program(&self) -> &Arc<dyn ExecutionPlan> {
        &self.program
    }

    /// The settings that the program was planned with.
    pub fn config(&self) -> &Arc<ConfigOptions> {
        &self.config
    }

    /// The same with another copy of the program.
    pub(crate) fn with_program(&self, program: Arc<dyn ExecutionPlan>) -> Self {
        Self { program, ..self.clone() }
    }
}

impl DisplayAs for DerivedTableExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "table={}", self.table),
            _ => write!(f, "DerivedTableExec: table={}", self.table),
        }
    }
}

impl ExecutionPlan for DerivedTableExec {
    fn name(&self) -> &str {
        "DerivedTableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("derived table \"{}\" reached execution without being lowered", self.table)
    }
}
