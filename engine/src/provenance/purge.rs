//! PURGE DERIVED FROM: every entry that was made of something goes, with its files and all copies in memory; then it is
//! looked for again.
//!
//! Keeps true   after it has ended no entry is left, and none comes later, that holds anything which was computed before:
//!              what statements that run now would publish is refused (see `MetadataStore::purge`). A statement that begins
//!              later and reads the same data makes new entries, which are none of this one's business.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use nectarine_catalog::{DataScope, EntryPart, Fingerprint};
use nectarine_planner::node::size;
use nectarine_planner::sql::PurgeSource;

use super::copies::pinned_copies;
use super::{answer, scope};
use crate::command::StatementRun;
use crate::eviction::Why;
use crate::reuse::Reuse;
use crate::{Answer, Notice, Result};

/// How often it is looked again. Statements that begin meanwhile may compute what was just purged.
const ROUNDS_MAX: usize = 8;

/// One entry that went.
struct Purged {
    key: Fingerprint,
    rows: u64,
    bytes: u64,
    n_files: usize,
    description: String,
}

/// Everything that went, and what is left.
#[derive(Default)]
struct Outcome {
    purged: Vec<Purged>,
    /// Entries that a last look found.
    n_left: usize,
    /// Files that could not be deleted.
    files_left: Vec<EntryPart>,
}

pub(crate) async fn purge(run: &StatementRun<'_>, source: &PurgeSource) -> Result<Answer> {
    let reuse = &run.session.inner.shared.reuse;
    reuse.settled().await;
    let scope = scope::scope(run, source).await?;
    let outcome = purge_scope(reuse, &scope).await?;
    let (n_entries, bytes) = (outcome.purged.len(), outcome.purged.iter().map(|entry| entry.bytes).sum());
    let n_files: usize = outcome.purged.iter().map(|entry| entry.n_files).sum();
    let left = outcome.n_left;
    let mut notices = vec![Notice {
        message: format!("purged {n_entries} results, {n_files} files, {}; {left} dependants are left", size(bytes)),
        hint: None,
    }];
    if !outcome.files_left.is_empty() {
        notices.push(Notice {
            message: format!("{} files of purged results could not be deleted", outcome.files_left.len()),
            hint: Some("no entry names them any more; run the statement again when their store can be reached".into()),
        });
    }
    let copies: Vec<String> =
        pinned_copies(&run.catalog.view, &scope).iter().map(|name| format!("\"{name}\"")).collect();
    if !copies.is_empty() {
        notices.push(Notice {
            message: format!("pinned copies were made from it and are left: derived table {}", copies.join(", ")),
            hint: Some("they are tables of your own; DROP DERIVED TABLE deletes them".to_string()),
        });
    }
    answer(run, batch(&outcome)?, notices)
}

async fn purge_scope(reuse: &Reuse, scope: &DataScope) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    for _ in 0..ROUNDS_MAX {
        // For the report only: what counts is what the transaction below finds.
        let mut known = BTreeMap::new();
        for key in reuse.cache.dependants(scope).await? {
            if let Ok(Some(entry)) = reuse.cache.entry(&key).await {
                known.insert(key, entry);
            }
        }
        let (keys, parts) = reuse.cache.purge(scope, Why::Purged.as_str()).await?;
        keys.iter().for_each(|key| reuse.store.forget(key));
        reuse.fast_path.clear();
        for part in parts {
            if let Err(error) = reuse.store.delete(std::slice::from_ref(&part)).await {
                tracing::warn!(%error, location = part.location, "cannot delete a part of a purged entry");
                outcome.files_left.push(part);
            }
        }
        for key in keys {
            let entry = known.remove(&key);
            outcome.purged.push(Purged {
                key,
                rows: entry.as_ref().map_or(0, |entry| entry.rows),
                bytes: entry.as_ref().map_or(0, |entry| entry.bytes),
                n_files: entry.as_ref().map_or(0, |entry| entry.parts.len()),
                description: entry.map(|entry| entry.description).unwrap_or_default(),
            });
        }
        // Looked for again, in the store and in memory.
        let left = reuse.cache.dependants(scope).await?;
        let held = outcome.purged.iter().filter(|entry| reuse.store.remembers(&entry.key)).count();
        outcome.n_left = left.len() + held;
        if outcome.n_left == 0 {
            break;
        }
    }
    Ok(outcome)
}

/// One row for each entry that went, and a last one for what is left.
fn batch(outcome: &Outcome) -> Result<RecordBatch> {
    let schema = purge_schema();
    let (purged, left) = (&outcome.purged, &outcome.files_left);
    let left_bytes: u64 = left.iter().map(|part| part.bytes).sum();
    let numbers = |of: &dyn Fn(&Purged) -> u64, last: u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(purged.iter().map(of).chain([last]).map(|number| number as i64)))
    };
    let texts = |of: &dyn Fn(&Purged) -> Option<String>, last: Option<String>| -> ArrayRef {
        Arc::new(purged.iter().map(of).chain([last]).collect::<StringArray>())
    };
    let columns = vec![
        texts(&|_| Some("purged".to_string()), Some("left".to_string())),
        texts(&|entry| Some(entry.key.to_string()), None),
        numbers(&|_| 1, outcome.n_left as u64),
        numbers(&|entry| entry.rows, left.iter().map(|part| part.rows).sum()),
        numbers(&|entry| entry.bytes, left_bytes),
        numbers(&|entry| entry.n_files as u64, left.len() as u64),
        texts(&|entry| Some(entry.description.clone()), None),
    ];
    Ok(RecordBatch::try_new(schema, columns).map_err(DataFusionError::from)?)
}

/// Columns of `PURGE`.
pub(crate) fn purge_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("outcome", DataType::Utf8, false),
        Field::new("entry", DataType::Utf8, true),
        Field::new("entries", DataType::Int64, false),
        Field::new("rows", DataType::Int64, false),
        Field::new("bytes", DataType::Int64, false),
        Field::new("files", DataType::Int64, false),
        Field::new("sql", DataType::Utf8, true),
    ]))
}
