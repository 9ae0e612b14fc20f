//! Rows of a run into a managed table: their extents become part of it in the transaction that ends the run.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result as DataFusionResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion_datasource::sink::DataSink;
use nectarine_catalog::{
    CatalogError, Extent, Privilege, Report, ReportRun, RunState, TableDef, TableKind, TableName, fail_point,
};
use nectarine_executor::{Commit, ExtentSink};

use super::Reports;
use super::compute::Section;
use super::run::lost;
use crate::access::{Rights, Who};
use crate::managed;
use crate::statement::wrap;
use crate::{EngineError, ErrorKind, Result};

/// A query that does not fit its table.
pub(super) fn other_columns(table: &str, expected: usize, found: usize) -> EngineError {
    EngineError::new(ErrorKind::Sql, format!("table \"{table}\" has {expected} columns, the query has {found}"))
}

impl Reports {
    /// Appends the rows of a section and ends the run as `finished`.
    pub(super) async fn append(
        &self,
        report: &Report,
        table: &TableName,
        section: &Section,
        claimed: &ReportRun,
        finished: ReportRun,
    ) -> Result<()> {
        let view = self.shared.catalog.view().await?;
        let Some(found) = view.tables.get(table) else {
            return Err(CatalogError::TableNotFound { name: table.clone() }.into());
        };
        let TableKind::Managed { format } = &found.kind else {
            let message = format!("\"{}\" is a {}, not a table that takes rows", table.name, found.kind.word());
            return Err(EngineError::new(ErrorKind::Sql, message));
        };
        let who = report.owner.as_ref().map_or(Who::Owner, |owner| Who::User(Arc::from(owner.as_str())));
        Rights::new(who, Arc::clone(&view.access)).check(Privilege::Insert, found)?;
        let (expected, n_columns) = (found.schema.fields().len(), section.schema.fields().len());
        if expected != n_columns {
            return Err(other_columns(&table.name, expected, n_columns));
        }
        let config = self.shared.template.config_options();
        let target = managed::target(&self.shared, found.id, *format, &found.schema, config)?;
        let commit = RunCommit {
            reports: self.clone(),
            table: Arc::clone(found),
            was: (claimed.state, claimed.attempt),
            finished,
        };
        let sink = ExtentSink::new(table.to_string(), target, Arc::new(commit));
        let rows = MemoryStream::try_new(section.batches.clone(), Arc::clone(&section.schema), None)?;
        let rows: SendableRecordBatchStream = Box::pin(rows);
        sink.write_all(rows, &self.shared.template.task_ctx()).await?;
        Ok(())
    }
}

/// Ends a run with the rows that it appends.
struct RunCommit {
    reports: Reports,
    table: Arc<TableDef>,
    was: (RunState, i64),
    finished: ReportRun,
}

impl std::fmt::Debug for RunCommit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunCommit").field("table", &self.table.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl Commit for RunCommit {
    async fn commit(&self, extents: Vec<Extent>) -> DataFusionResult<()> {
        fail_point("report_extents");
        let append = (!extents.is_empty()).then_some((self.table.id, extents.as_slice()));
        let store = &self.reports.shared.store;
        let outcome = match store.change_report_run(self.was, &self.finished, append).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost()),
            Err(CatalogError::TableNotFound { .. }) => {
                Err(CatalogError::TableNotFound { name: self.table.name.clone() }.into())
            }
            // A commit whose answer was lost may have happened: only the store knows.
            Err(error) => match self.reports.is_finished(&self.finished).await {
                true => Ok(()),
                false => Err(EngineError::from(error)),
            },
        };
        fail_point("report_appended");
        outcome.map_err(wrap)
    }
}
