//! `ALTER DERIVED TABLE .. SET PINNED`: the rows become files of the table's own, which nobody drops.
//!
//! Keeps true   what happens to the table while its rows are copied stays: another name, another owner. One that is gone stays
//!              gone, whatever has its name.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, not_impl_err};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_datasource::sink::DataSinkExec;
use nectarine_catalog::{CatalogError, DerivedTable, Extent, FileFormatKind, TableDef, TableKind};
use nectarine_executor::{Commit, ExtentSink};

use crate::engine::Shared;
use crate::managed::{self, Sources};
use crate::named::NamedTable;
use crate::statement::{StatementCatalog, wrap};

/// The plan that copies the rows.
pub(crate) fn pin(
    catalog: &Arc<StatementCatalog>,
    table: &Arc<TableDef>,
    derived: &DerivedTable,
    rows: NamedTable,
) -> Result<LogicalPlan> {
    let schema = TableProvider::schema(&rows);
    let format = managed::format_for(&schema);
    let kind = TableKind::Derived(Box::new(DerivedTable { pinned: Some(format), ..derived.clone() }));
    let pinned = Arc::new(TableDef { kind, schema, ..table.as_ref().clone() });
    let target = PinTarget { shared: Arc::clone(&catalog.shared), table: pinned, sources: catalog.sources() };
    let name = table.name.name.as_str();
    let rows = LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(rows)), None)?.build()?;
    let target = provider_as_source(Arc::new(target));
    LogicalPlanBuilder::insert_into(rows, name, target, InsertOp::Append)?.build()
}

/// Takes the rows.
struct PinTarget {
    shared: Arc<Shared>,
    table: Arc<TableDef>,
    sources: Sources,
}

impl fmt::Debug for PinTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinTarget").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl TableProvider for PinTarget {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.table.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        not_impl_err!("a copy that is being made is not read")
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        _op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(format) = self.table.kind.own_files() else { return not_impl_err!("a copy without a format") };
        let target = managed::target(&self.shared, self.table.id, format, &self.table.schema, state.config_options())?;
        let commit = PinCommit {
            shared: Arc::clone(&self.shared),
            table: Arc::clone(&self.table),
            format,
            sources: self.sources.clone(),
        };
        let sink = ExtentSink::new(self.table.name.to_string(), target, Arc::new(commit));
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
    }
}

/// Puts the copy in the place of the program.
struct PinCommit {
    shared: Arc<Shared>,
    /// As it was when the statement was planned, with its copy.
    table: Arc<TableDef>,
    format: FileFormatKind,
    sources: Sources,
}

impl fmt::Debug for PinCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinCommit").field("table", &self.table.name).finish()
    }
}

#[async_trait]
impl Commit for PinCommit {
    async fn commit(&self, extents: Vec<Extent>) -> Result<()> {
        self.sources.look_again().await?;
        let table = &self.table;
        match self.shared.store.pin_derived_table(table.id, self.format, &table.schema, &extents).await {
            // One that is pinned by now has the same rows.
            Ok(_) => Ok(()),
            // The store knows it by its identifier, people by its name.
            Err(CatalogError::TableNotFound { .. }) => {
                Err(wrap(CatalogError::TableNotFound { name: table.name.clone() }))
            }
            Err(error) => Err(wrap(error)),
        }
    }
}
