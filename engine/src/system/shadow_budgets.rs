//! `system.shadow_budgets`: what twice the budget for cached results would have saved at least, and what half of it would have cost
//! at most. Rough; `eviction::shadow` says how.

use std::sync::Arc;

use arrow::array::{Float64Array, Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{decimal, number, table_of, text, time};
use crate::eviction::{Gone, Kept, Shadow, Why, half, twice};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("budget"),
        number("bytes"),
        number("entries"),
        number("entry_bytes"),
        decimal("saved_ms"),
        time("since"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let reuse = &catalog.shared.reuse;
    reuse.refresh().await;
    let (_, levels) = reuse.caretaker.ledger.usage();
    let known = reuse.caretaker.evictor.candidates().await.map_err(wrap)?.into_iter();
    // One that went since the candidates were listed saved nothing any more.
    let kept = known.filter_map(|candidate| {
        let entry = reuse.cache.lookup(&candidate.key)?;
        Some((entry.created_at, Kept { candidate, saved_us: entry.saved_us }))
    });
    let (made, kept): (Vec<i64>, Vec<_>) = kept.unzip();
    let mut evictions = catalog.shared.store.evictions(usize::MAX).await.map_err(wrap)?;
    evictions.reverse();
    evictions.retain(|one| one.reason == Why::Space.as_str());
    let gone: Vec<Gone> =
        evictions.iter().map(|one| Gone { bytes: one.bytes, evicted_at: one.evicted_at, remade: one.remade }).collect();
    let (half, twice) = (half(levels, &kept), twice(levels, &gone));
    let shadows: [(&str, Shadow, f64, Option<i64>); 2] = [
        ("half", half, 0.0 - milliseconds(half.us), made.into_iter().min()),
        ("twice", twice, milliseconds(twice.us), gone.first().map(|first| first.evicted_at)),
    ];
    let numbers = |of: fn(&Shadow) -> u64| {
        let values = shadows.iter().map(|(_, shadow, ..)| i64::try_from(of(shadow)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    let since: TimestampMicrosecondArray = shadows.iter().map(|(.., since)| *since).collect();
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(shadows.iter().map(|(name, ..)| name))),
            numbers(|shadow| shadow.budget),
            numbers(|shadow| shadow.entries),
            numbers(|shadow| shadow.bytes),
            Arc::new(Float64Array::from_iter_values(shadows.iter().map(|(_, _, saved, _)| *saved))),
            Arc::new(since.with_timezone("UTC")),
        ],
    )?)
}

fn milliseconds(us: u64) -> f64 {
    us as f64 / 1000.0
}
