//! [`ExtentScanExec`]: exactly the rows of these extents, exactly these columns.
//!
//! ```text
//!   ExtentScanExec: table=public.clicks, extents=14, bytes=3.1 MB, projection=[ts, page]
//! ```
//!
//! The leaf of every plan over a stream. One partition, no order, no limit, no filter: nothing about it depends on the
//! session, so what lies above it can be recognised whatever the session was.
//! Does not run: the executor lowers it to a stock scan before DataFusion's other physical rules see the plan.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::{Extent, FileFormatKind, TableName, stats};

/// How the bytes of a stream's extents become rows.
#[derive(Debug, Clone)]
pub struct Reading {
    /// File format.
    pub format: FileFormatKind,
    /// Columns in the files.
    pub file_schema: SchemaRef,
    /// Columns in the paths, after those of the files.
    pub partition_fields: Vec<FieldRef>,
    /// Reader options, `format.delimiter` and the like.
    pub options: Arc<BTreeMap<String, String>>,
    /// Whether the files are known to be ours: written whole, never touched again.
    pub managed: bool,
}

/// The rows of some extents of one stream.
#[derive(Debug, Clone)]
pub struct ExtentScanExec {
    table: TableName,
    reading: Arc<Reading>,
    table_schema: SchemaRef,
    extents: Arc<[Arc<Extent>]>,
    projection: Option<Vec<usize>>,
    statistics: Arc<Statistics>,
    /// Settings to read with, where they are not those of the statement.
    config: Option<Arc<ConfigOptions>>,
    properties: Arc<PlanProperties>,
}

impl ExtentScanExec {
    /// A scan of `extents` with the columns of `projection` (ordinals of the table's schema; `None` for all).
    /// `statistics` are of the whole table schema.
    pub fn try_new(
        table: TableName,
        reading: Arc<Reading>,
        table_schema: SchemaRef,
        extents: Arc<[Arc<Extent>]>,
        projection: Option<Vec<usize>>,
        statistics: Statistics,
    ) -> Result<Self> {
        let schema = match &projection {
            Some(columns) => Arc::new(table_schema.project(columns)?),
            None => Arc::clone(&table_schema),
        };
        let properties = Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        let statistics = Arc::new(statistics);
        Ok(Self { table, reading, table_schema, extents, projection, statistics, config: None, properties })
    }

    /// The same over other extents.
    pub(crate) fn with_extents(&self, extents: Arc<[Arc<Extent>]>) -> Self {
        let statistics = stats::merge_total_wide(&extents, &self.table_schema, self.projection.as_deref());
        Self { extents, statistics: Arc::new(statistics), ..self.clone() }
    }

    /// The same, read with settings of its own.
    pub(crate) fn with_config(&self, config: Arc<ConfigOptions>) -> Self {
        Self { config: Some(config), ..self.clone() }
    }

    /// Settings to read with, where they are not those of the statement.
    pub fn config(&self) -> Option<&Arc<ConfigOptions>> {
        self.config.as_ref()
    }

    /// The stream's name, for people.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// How to read the extents.
    pub fn reading(&self) -> &Arc<Reading> {
        &self.reading
    }

    /// All columns of the stream.
    pub fn table_schema(&self) -> &SchemaRef {
        &self.table_schema
    }

    /// What is read.
    pub fn extents(&self) -> &Arc<[Arc<Extent>]> {
        &self.extents
    }

    /// Which columns are read.
    pub fn projection(&self) -> Option<&Vec<usize>> {
        self.projection.as_ref()
    }

    /// Statistics of all columns over all extents.
    pub fn table_statistics(&self) -> &Statistics {
        &self.statistics
    }
}

impl DisplayAs for ExtentScanExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.properties.eq_properties.schema();
        let columns: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        match format {
            DisplayFormatType::TreeRender => write!(f, "table={}\nextents={}", self.table, self.extents.len()),
            _ => write!(
                f,
                "ExtentScanExec: table={}, extents={}, projection=[{}]",
                self.table,
                self.extents.len(),
                columns.join(", ")
            ),
        }
    }
}

impl ExecutionPlan for ExtentScanExec {
    fn name(&self) -> &str {
        "ExtentScanExec"
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
        internal_err!("a scan of \"{}\" reached execution without being lowered", self.table)
    }
}
