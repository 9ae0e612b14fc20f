//! `system.report_runs`: every scheduled time of every report that has come, and what became of it.
//!
//! A run whose process died shows as running until somebody takes it over.

use std::collections::HashMap;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{ReportId, RunQuery};

use crate::access::Rights;
use crate::report::{may_see, runs_batch, runs_schema};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    runs_schema()
}

pub(super) async fn rows(catalog: &StatementCatalog, rights: &Rights) -> Result<RecordBatch> {
    let store = &catalog.shared.store;
    let reports = store.reports().await.map_err(wrap)?;
    let names: HashMap<ReportId, String> =
        reports.into_iter().filter(|report| may_see(rights, report)).map(|report| (report.id, report.name)).collect();
    let runs = store.report_runs(&RunQuery::default()).await.map_err(wrap)?;
    let named = runs.into_iter().rev().filter_map(|run| Some((names.get(&run.report)?.clone(), run)));
    runs_batch(&named.collect::<Vec<_>>()).map_err(wrap)
}
