//! [`StreamTable`]: a stream of extents as DataFusion sees a table.
//!
//! Fires when   a statement names a managed or external table.
//! Keeps true   all scans of one table in one statement read the same extents: the snapshot comes from [`Streams`],
//!              which pins it once per statement. Filters only prune extents; they stay in the plan (inexact), so a scan
//!              is "the rows of these extents" and nothing else. A limit is ignored for the same reason.
//!              Declared keys are not told: nobody checks them, and DataFusion would leave out a DISTINCT because of them.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, SchemaExt, plan_err};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, FileFormatKind, TableDef, TableKind, stats};

use crate::node::{ExtentScanExec, Reading};
use crate::prune::prune_extents;

/// Where a statement's snapshots come from and where its rows go.
#[async_trait]
pub trait Streams: fmt::Debug + Send + Sync {
    /// The extents of a table, pinned at the first call of a statement.
    async fn extents(&self, table: &TableDef) -> Result<Arc<[Arc<Extent>]>>;

    /// Fails if the statement may not read the table's rows.
    fn check_read(&self, _table: &TableDef) -> Result<()> {
        Ok(())
    }

    /// Told which of a table's extents a scan reads: what is pruned is not read, and need not stay as it was.
    fn scans(&self, _table: &TableDef, _extents: &Arc<[Arc<Extent>]>) {}

    /// The plan that appends the rows of `input` to a table and returns their count.
    async fn insert(
        &self,
        state: &dyn Session,
        table: &Arc<TableDef>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>>;
}

/// A stream as a table.
#[derive(Debug)]
pub struct StreamTable {
    table: Arc<TableDef>,
    reading: Arc<Reading>,
    streams: Arc<dyn Streams>,
    defaults: Vec<(String, Expr)>,
}

impl StreamTable {
    /// Wraps a table that is no view. `defaults` are the planned column defaults.
    pub fn new(table: Arc<TableDef>, streams: Arc<dyn Streams>, defaults: Vec<(String, Expr)>) -> Self {
        let reading = Arc::new(reading_of(&table));
        Self { table, reading, streams, defaults }
    }

    /// What is known of the table.
    pub fn table(&self) -> &Arc<TableDef> {
        &self.table
    }

    /// Fails if the statement may not read its rows.
    pub fn check_read(&self) -> Result<()> {
        self.streams.check_read(&self.table)
    }

    /// How its extents are read.
    pub fn reading(&self) -> &Arc<Reading> {
        &self.reading
    }
}

/// How the extents of a table are read.
pub fn reading_of(table: &TableDef) -> Reading {
    match &table.kind {
        TableKind::External(source) => {
            let is_partition = |field: &&FieldRef| source.partition_columns.contains(field.name());
            let partition_fields = table.schema.fields().iter().filter(is_partition).cloned().collect();
            let file_fields: Vec<FieldRef> =
                table.schema.fields().iter().filter(|field| !is_partition(field)).cloned().collect();
            Reading {
                format: source.format,
                file_schema: Arc::new(Schema::new_with_metadata(file_fields, table.schema.metadata().clone())),
                partition_fields,
                options: Arc::new(source.options.clone()),
                managed: false,
            }
        }
        // A view has no extents; nobody scans it.
        kind => Reading {
            format: kind.own_files().unwrap_or(FileFormatKind::Parquet),
            file_schema: Arc::clone(&table.schema),
            partition_fields: vec![],
            options: Arc::default(),
            managed: true,
        },
    }
}

#[async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.iter().find(|(name, _)| name == column).map(|(_, expr)| expr)
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.check_read()?;
        let extents = self.streams.extents(&self.table).await?;
        let extents = prune_extents(state, &self.table.schema, extents, filters)?;
        self.streams.scans(&self.table, &extents);
        let statistics = stats::merge_total_wide(&extents, &self.table.schema, projection.map(Vec::as_slice));
        let scan = ExtentScanExec::try_new(
            self.table.name.clone(),
            Arc::clone(&self.reading),
            Arc::clone(&self.table.schema),
            extents,
            projection.cloned(),
            statistics,
        )?;
        Ok(Arc::new(scan))
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if op != InsertOp::Append {
            return plan_err!("tables are append-only: INSERT OVERWRITE and REPLACE INTO are not offered");
        }
        self.table.schema.logically_equivalent_names_and_types(&input.schema())?;
        self.streams.insert(state, &self.table, input).await
    }
}
