//! `system.evictions`: cached results that went, why, and what it took when one was made again. The newest of them.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{decimal, number, table_of, text, time};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("fingerprint"),
        text("program"),
        text("sql"),
        number("bytes"),
        decimal("cost_ms"),
        number("uses"),
        time("evicted_at"),
        text("reason"),
        time("remade_at"),
        decimal("remade_cost_ms"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let gone = catalog.shared.store.evictions(usize::MAX).await.map_err(wrap)?;
    let milliseconds = |us: u64| us as f64 / 1000.0;
    let time = |values: TimestampMicrosecondArray| Arc::new(values.with_timezone("UTC"));
    let number =
        |of: fn(u64) -> i64, values: Vec<u64>| Arc::new(Int64Array::from_iter_values(values.into_iter().map(of)));
    let stored = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(gone.iter().map(|one| one.key.to_string()))),
            Arc::new(StringArray::from_iter_values(gone.iter().map(|one| one.program.to_string()))),
            Arc::new(StringArray::from_iter_values(gone.iter().map(|one| &one.description))),
            number(stored, gone.iter().map(|one| one.bytes).collect()),
            Arc::new(Float64Array::from_iter_values(gone.iter().map(|one| milliseconds(one.cost_us)))),
            number(stored, gone.iter().map(|one| one.uses).collect()),
            time(gone.iter().map(|one| Some(one.evicted_at)).collect()),
            Arc::new(StringArray::from_iter_values(gone.iter().map(|one| &one.reason))),
            time(gone.iter().map(|one| one.remade.map(|(at, _)| at)).collect()),
            Arc::new(
                gone.iter().map(|one| one.remade.map(|(_, cost_us)| milliseconds(cost_us))).collect::<Float64Array>(),
            ),
        ],
    )?)
}
