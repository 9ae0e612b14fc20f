//! `system.lookups`: what the statements of `system.queries` asked the view cache for, of all processes on this home.
//!
//! A statement's rows are there when it has ended, and go when its row in `system.queries` goes.

use std::sync::Arc;

use arrow::array::{StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{table_of, text, time};
use crate::statement::{StatementCatalog, wrap};

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("query_id"),
        text("prefix"),
        text("outcome"),
        text("reason"),
        text("detail"),
        text("node"),
        text("program"),
        time("asked_at"),
    ])
}

pub(super) async fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    catalog.shared.log.flush().await;
    let mut statements = catalog.shared.store.lookups(usize::MAX >> 1).await.map_err(wrap)?;
    statements.reverse();
    let lookups: Vec<_> = statements
        .iter()
        .flat_map(|(query_id, lookups)| lookups.iter().map(move |lookup| (query_id, lookup)))
        .collect();
    let texts = |of: Vec<Option<String>>| Arc::new(of.into_iter().collect::<StringArray>());
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(lookups.iter().map(|(query_id, _)| query_id.to_string()))),
            texts(lookups.iter().map(|(_, lookup)| lookup.prefix.map(|prefix| prefix.to_string())).collect()),
            Arc::new(StringArray::from_iter_values(
                lookups.iter().map(|(_, lookup)| if lookup.is_hit { "hit" } else { "miss" }),
            )),
            Arc::new(lookups.iter().map(|(_, lookup)| lookup.reason.as_deref()).collect::<StringArray>()),
            Arc::new(lookups.iter().map(|(_, lookup)| lookup.detail.as_deref()).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(lookups.iter().map(|(_, lookup)| &lookup.node))),
            texts(lookups.iter().map(|(_, lookup)| lookup.program.map(|program| program.to_string())).collect()),
            Arc::new(
                TimestampMicrosecondArray::from_iter_values(lookups.iter().map(|(_, lookup)| lookup.asked_at))
                    .with_timezone("UTC"),
            ),
        ],
    )?)
}
