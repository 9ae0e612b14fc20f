//! `system.stages`: the stages of the jobs in `system.cluster_jobs`, as they were when each was last looked at.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_executor::{Cluster, StageSummary};

use super::{number, table_of, text};
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("job_id"),
        number("stage"),
        text("reads_stages"),
        text("state"),
        number("begun_again"),
        number("tasks"),
        number("tasks_done"),
        number("rows_written"),
        number("bytes_written"),
        number("elapsed_ms"),
        number("longest_task_ms"),
    ])
}

pub(super) fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let jobs = catalog.shared.cluster.get().map(Cluster::jobs).unwrap_or_default();
    let stages: Vec<(&str, &StageSummary)> =
        jobs.iter().flat_map(|job| job.stages.iter().map(|stage| (job.id.as_str(), stage))).collect();
    let numbers = |of: fn(&StageSummary) -> u64| {
        let values = stages.iter().map(|(_, stage)| i64::try_from(of(stage)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(stages.iter().map(|(job, _)| job))),
            numbers(|stage| stage.id as u64),
            Arc::new(StringArray::from_iter_values(stages.iter().map(|(_, stage)| list(&stage.reads)))),
            Arc::new(StringArray::from_iter_values(stages.iter().map(|(_, stage)| stage.state))),
            numbers(|stage| stage.attempt as u64),
            numbers(|stage| stage.tasks as u64),
            numbers(|stage| stage.tasks_done as u64),
            numbers(|stage| stage.rows),
            numbers(|stage| stage.bytes),
            numbers(|stage| stage.elapsed_ms),
            numbers(|stage| stage.longest_ms),
        ],
    )?)
}

/// `1, 2`.
pub(crate) fn list(stages: &[usize]) -> String {
    stages.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
