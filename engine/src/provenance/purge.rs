//! PURGE DERIVED FROM: every entry that was made of something goes, with its files and all copies in memory; then it is
//! looked for again.
//!
//! Keeps true   after it has ended no entry is left, and none comes later, that holds anything which was computed before:
//!              what statements that run now would publish is refused (see `MetadataStore::purge`). A statement that begins
//!              later and reads the same data makes new entries, which are none of this one's business.
//! Files        of purged entries are written down with the purge, and struck off when they are deleted: what could not be
//!              deleted is told of, and tried again, by every later purge. So are those of evicted entries that could not be.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::DataFusionError;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use nectarine_catalog::store::KnownFile;
use nectarine_catalog::{DataScope, EntryPart, Fingerprint};
use nectarine_executor::DerivedError;
use nectarine_planner::node::size;
use nectarine_planner::sql::PurgeSource;

use super::copies::pinned_copies;
use super::{answer, scope};
use crate::command::StatementRun;
use crate::engine::Shared;
use crate::eviction::Why;
use crate::{Answer, Notice, Result};

/// How often it is looked again. Statements that begin meanwhile may compute what was just purged.
const ROUNDS_MAX: usize = 8;

/// Files that are deleted at the same time.
const DELETES_AT_ONCE: usize = 16;

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
    /// Files that could not be deleted, of this and of earlier purges, and of evictions.
    files_left: Vec<EntryPart>,
}

pub(crate) async fn purge(run: &StatementRun<'_>, source: &PurgeSource) -> Result<Answer> {
    let shared = &run.session.inner.shared;
    shared.reuse.settled().await;
    let scope = scope::scope(run, source).await?;
    // Before the entries go, which know where files of tables were.
    let known_files = shared.store.known_files_of(&scope).await?;
    let outcome = purge_scope(shared, &scope).await?;
    let forgotten = forget(shared, &known_files).boxed().await;
    let (n_entries, bytes) = (outcome.purged.len(), outcome.purged.iter().map(|entry| entry.bytes).sum());
    let n_files: usize = outcome.purged.iter().map(|entry| entry.n_files).sum();
    let left = outcome.n_left;
    let mut notices = vec![Notice {
        message: format!("purged {n_entries} results, {n_files} files, {}; {left} dependants are left", size(bytes)),
        hint: None,
    }];
    if !outcome.files_left.is_empty() {
        notices.push(Notice {
            message: format!("{} files of dropped results could not be deleted", outcome.files_left.len()),
            hint: Some(
                "no entry names them any more; any PURGE, and nectarine cache collect, deletes them once that is possible".into(),
            ),
        });
    }
    if let Err(error) = forgotten {
        notices.push(Notice {
            message: format!("bounds of columns of files that are gone may be left in the metadata store: {error}"),
            hint: Some("run the statement again".to_string()),
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

/// Forgets what files told of themselves that are gone, or are others now.
async fn forget(shared: &Shared, known_files: &[(String, KnownFile)]) -> Result<()> {
    shared.tracker.forget_gone(known_files).await?;
    Ok(shared.store.wipe().await?)
}

/// Deletes the files of purged entries, also those that were left by earlier purges; those that are left.
async fn delete_parts(shared: &Shared) -> Result<Vec<EntryPart>> {
    let parts = shared.store.undeleted_parts().await?;
    let mut deletes: Vec<BoxFuture<'_, (EntryPart, std::result::Result<(), DerivedError>)>> = vec![];
    for part in parts {
        let delete = async move {
            let outcome = shared.reuse.store.delete(std::slice::from_ref(&part)).await;
            (part, outcome)
        };
        deletes.push(delete.boxed());
    }
    let (mut gone, mut left) = (vec![], vec![]);
    let mut outcomes = stream::iter(deletes).buffer_unordered(DELETES_AT_ONCE);
    while let Some((part, outcome)) = outcomes.next().await {
        match outcome {
            Ok(()) => gone.push(part.location),
            Err(error) => {
                tracing::warn!(%error, location = part.location, "cannot delete a part of a purged entry");
                left.push(part);
            }
        }
    }
    if !gone.is_empty() {
        shared.store.forget_undeleted_parts(&gone).await?;
    }
    Ok(left)
}

async fn purge_scope(shared: &Shared, scope: &DataScope) -> Result<Outcome> {
    let reuse = &shared.reuse;
    let mut outcome = Outcome::default();
    for _ in 0..ROUNDS_MAX {
        // For the report only: what counts is what the transaction below finds.
        let mut known = BTreeMap::new();
        for key in reuse.cache.dependants(scope).await? {
            if let Ok(Some(entry)) = reuse.cache.entry(&key).await {
                known.insert(key, entry);
            }
        }
        let (keys, _) = reuse.cache.purge(scope, Why::Purged.as_str()).await?;
        keys.iter().for_each(|key| reuse.store.forget(key));
        reuse.fast_path.clear();
        outcome.files_left = delete_parts(shared).boxed().await?;
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
