//! `system.executors`: the processes that compute for this one, as they were last heard.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{number, table_of, text, time};
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("executor_id"),
        text("host"),
        number("port"),
        number("task_port"),
        number("cores"),
        number("running_tasks"),
        time("heard_at"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let mut members = match catalog.shared.cluster.get() {
        Some(cluster) => cluster.members().await,
        None => vec![],
    };
    members.sort_by(|a, b| (&a.host, a.port).cmp(&(&b.host, b.port)));
    let heard =
        members.iter().map(|member| member.heard_at.and_then(|at| i64::try_from(at).ok()).map(|at| at * 1_000_000));
    let heard: TimestampMicrosecondArray = heard.collect();
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(members.iter().map(|member| &member.id))),
            Arc::new(StringArray::from_iter_values(members.iter().map(|member| &member.host))),
            Arc::new(Int64Array::from_iter_values(members.iter().map(|member| i64::from(member.port)))),
            Arc::new(Int64Array::from_iter_values(members.iter().map(|member| i64::from(member.task_port)))),
            Arc::new(Int64Array::from_iter_values(members.iter().map(|member| i64::from(member.cores)))),
            Arc::new(Int64Array::from_iter_values(members.iter().map(|member| member.running as i64))),
            Arc::new(heard.with_timezone("UTC")),
        ],
    )?)
}
