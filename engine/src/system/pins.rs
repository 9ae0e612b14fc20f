//! `system.pins`: results that are never evicted to make room.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{Pin, PinSubject};

use super::{number, table_of, text, time};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![text("what"), text("kind"), text("fingerprint"), time("pinned_at"), number("bytes")])
}

/// `bytes` is NULL while the result is not there: it is kept, and pinned, when it is computed again.
pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let reuse = &catalog.shared.reuse;
    reuse.refresh().await;
    let pins = reuse.pins.all().await.map_err(wrap)?;
    let bytes = |pin: &Pin| reuse.cache.lookup(&pin.key).map(|entry| entry.bytes.cast_signed());
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(pins.iter().map(|pin| what(catalog, pin)))),
            Arc::new(StringArray::from_iter_values(pins.iter().map(|pin| pin.subject.kind()))),
            Arc::new(StringArray::from_iter_values(pins.iter().map(|pin| pin.key.to_string()))),
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(pins.iter().map(|pin| pin.pinned_at)).with_timezone("UTC"),
            ),
            Arc::new(pins.iter().map(bytes).collect::<Int64Array>()),
        ],
    )?)
}

/// A view by the name that it has now.
fn what(catalog: &StatementCatalog, pin: &Pin) -> String {
    let named = match pin.subject {
        PinSubject::View(id) => catalog.view.tables.values().find(|table| table.id == id),
        PinSubject::Entry(_) | PinSubject::Query(_) => None,
    };
    named.map_or_else(|| pin.what.clone(), |table| table.name.to_string())
}
