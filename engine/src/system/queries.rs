//! `system.queries`: the newest statements of all processes on this home, the running ones included.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{decimal, number, table_of, text, time};
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
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    catalog.shared.log.flush().await;
    let mut queries = catalog.shared.store.queries(usize::MAX >> 1).await.map_err(wrap)?;
    queries.reverse();
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
        ],
    )?)
}
