//! `system.queries`: the newest statements of all processes on this home, the running ones included.
//!
//! A process that was killed cannot write down how its statements ended: those that would run in a process that is gone
//! are `lost`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{decimal, number, table_of, text, time};
use crate::access::Rights;
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("query_id"),
        time("started_at"),
        text("user_name"),
        text("sql"),
        text("state"),
        text("error"),
        decimal("elapsed_ms"),
        decimal("cpu_ms"),
        number("rows_returned"),
        number("bytes_scanned"),
        decimal("planning_ms"),
        text("reuse"),
        number("entries_used"),
        decimal("saved_ms"),
        number("extents_total"),
        number("extents_reused"),
    ])
}

/// All statements; those of others, and of whoever has the home, only for administrators.
pub(super) async fn rows(catalog: &StatementCatalog, rights: &Rights) -> Result<RecordBatch> {
    catalog.shared.log.flush().await;
    let mut queries = catalog.shared.store.queries(usize::MAX >> 1).await.map_err(wrap)?;
    queries.reverse();
    if !rights.is_admin() {
        queries.retain(|query| rights.user() == query.login.as_deref());
    }
    let mut alive: HashMap<String, bool> = HashMap::new();
    for query in queries.iter_mut().filter(|query| query.state == "running") {
        let process = query.process.clone().unwrap_or_default();
        let home = &catalog.shared.home;
        let is_alive = *alive.entry(process).or_insert_with_key(|process| home.is_alive(process));
        if !is_alive {
            query.state = "lost".to_owned();
            query.error = Some("the process that ran the statement ended before it did".to_owned());
        }
    }
    let started = queries.iter().map(|query| query.started_at);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(queries.iter().map(|query| query.query_id.to_string()))),
            Arc::new(TimestampMicrosecondArray::from_iter_values(started).with_timezone("UTC")),
            Arc::new(StringArray::from_iter_values(queries.iter().map(|query| &query.user_name))),
            Arc::new(StringArray::from_iter_values(queries.iter().map(|query| &query.sql))),
            Arc::new(StringArray::from_iter_values(queries.iter().map(|query| &query.state))),
            Arc::new(queries.iter().map(|query| query.error.as_deref()).collect::<StringArray>()),
            Arc::new(queries.iter().map(|query| query.elapsed_ms).collect::<Float64Array>()),
            Arc::new(queries.iter().map(|query| query.cpu_ms).collect::<Float64Array>()),
            Arc::new(queries.iter().map(|query| query.rows_returned).collect::<Int64Array>()),
            Arc::new(queries.iter().map(|query| query.bytes_scanned).collect::<Int64Array>()),
            Arc::new(queries.iter().map(|query| query.planning_ms).collect::<Float64Array>()),
            Arc::new(queries.iter().map(|query| query.reuse.as_deref()).collect::<StringArray>()),
            Arc::new(queries.iter().map(|query| query.entries_used).collect::<Int64Array>()),
            Arc::new(queries.iter().map(|query| query.saved_ms).collect::<Float64Array>()),
            Arc::new(queries.iter().map(|query| query.extents_total).collect::<Int64Array>()),
            Arc::new(queries.iter().map(|query| query.extents_reused).collect::<Int64Array>()),
        ],
    )?)
}
