//! `system.cluster_jobs`: tries of statements on the cluster, since this process began to listen for executors; the last few hundred.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_executor::{Cluster, JobSummary};

use super::{number, table_of, text, time};
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("job_id"),
        text("query"),
        number("attempt"),
        text("state"),
        text("detail"),
        time("started_at"),
        time("ended_at"),
        number("stages"),
        number("stages_done"),
        number("tasks"),
        number("tasks_done"),
    ])
}

pub(super) fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let jobs = catalog.shared.cluster.get().map(Cluster::jobs).unwrap_or_default();
    let numbers =
        |of: fn(&JobSummary) -> usize| Arc::new(Int64Array::from_iter_values(jobs.iter().map(|job| of(job) as i64)));
    let started = TimestampMicrosecondArray::from_iter_values(jobs.iter().map(|job| job.started_at));
    let ended: TimestampMicrosecondArray = jobs.iter().map(|job| job.ended_at).collect();
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(jobs.iter().map(|job| &job.id))),
            Arc::new(StringArray::from_iter_values(jobs.iter().map(|job| &job.query))),
            numbers(|job| job.attempt),
            Arc::new(StringArray::from_iter_values(jobs.iter().map(|job| job.state))),
            Arc::new(jobs.iter().map(|job| job.detail.as_deref()).collect::<StringArray>()),
            Arc::new(started.with_timezone("UTC")),
            Arc::new(ended.with_timezone("UTC")),
            numbers(|job| job.counts.stages),
            numbers(|job| job.counts.stages_done),
            numbers(|job| job.counts.tasks),
            numbers(|job| job.counts.tasks_done),
        ],
    )?)
}
