//! `system.cache_entries`: results that exist, of all processes on this home.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{BooleanArray, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::CacheEntry;

use super::{decimal, flag, number, table_of, text, time};
use crate::statement::{StatementCatalog, wrap};

/// Entries that are read at a time.
const PAGE: usize = 1000;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("fingerprint"),
        text("program"),
        text("kind"),
        number("bytes"),
        number("rows"),
        decimal("cost_ms"),
        number("uses"),
        decimal("saved_ms"),
        time("created_at"),
        time("last_used_at"),
        text("location"),
        number("parts"),
        number("extents"),
        text("sql"),
        flag("pinned"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let cache = &catalog.shared.reuse.cache;
    catalog.shared.reuse.refresh().await;
    let mut entries: Vec<CacheEntry> = vec![];
    loop {
        let page = cache.page(entries.last().map(|entry| &entry.key), PAGE).await.map_err(wrap)?;
        if page.is_empty() {
            break;
        }
        entries.extend(page);
    }
    entries.sort_by_key(|entry| entry.created_at);
    let pins = catalog.shared.reuse.pins.all().await.map_err(wrap)?;
    let pinned: HashSet<_> = pins.into_iter().map(|pin| pin.key).collect();
    let known: Vec<_> =
        entries.iter().map(|entry| cache.lookup(&entry.key).unwrap_or_else(|| entry.summary())).collect();
    let milliseconds = |us: u64| us as f64 / 1000.0;
    let times = |values: Vec<i64>| Arc::new(TimestampMicrosecondArray::from(values).with_timezone("UTC"));
    let numbers =
        |values: Vec<u64>| Arc::new(Int64Array::from_iter_values(values.into_iter().map(|value| value as i64)));
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| entry.key.to_string()))),
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| entry.program.to_string()))),
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| entry.kind.as_str()))),
            numbers(entries.iter().map(|entry| entry.bytes).collect()),
            numbers(entries.iter().map(|entry| entry.rows).collect()),
            Arc::new(Float64Array::from_iter_values(entries.iter().map(|entry| milliseconds(entry.cost_us)))),
            numbers(known.iter().map(|entry| entry.uses).collect()),
            Arc::new(Float64Array::from_iter_values(known.iter().map(|entry| milliseconds(entry.saved_us)))),
            times(entries.iter().map(|entry| entry.created_at).collect()),
            times(known.iter().map(|entry| entry.last_used_at).collect()),
            Arc::new(
                entries
                    .iter()
                    .map(|entry| entry.parts.first().map(|part| part.location.as_str()))
                    .collect::<StringArray>(),
            ),
            numbers(entries.iter().map(|entry| entry.parts.len() as u64).collect()),
            numbers(entries.iter().map(|entry| entry.inputs.iter().map(|input| input.len() as u64).sum()).collect()),
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| &entry.description))),
            Arc::new(entries.iter().map(|entry| Some(pinned.contains(&entry.key))).collect::<BooleanArray>()),
        ],
    )?)
}
