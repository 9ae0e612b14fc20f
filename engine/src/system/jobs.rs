//! `system.jobs`: what was left to the servers of the home, and what became of it; the oldest first.
//!
//! A job whose process died shows as running until somebody goes on with it.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::JobQuery;

use crate::access::Rights;
use crate::job::{jobs_batch, jobs_schema, may_see};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    jobs_schema()
}

pub(super) async fn rows(catalog: &StatementCatalog, rights: &Rights) -> Result<RecordBatch> {
    let mut jobs = catalog.shared.store.jobs(&JobQuery::default()).await.map_err(wrap)?;
    jobs.retain(|job| may_see(rights, job));
    jobs_batch(&jobs).map_err(wrap)
}
