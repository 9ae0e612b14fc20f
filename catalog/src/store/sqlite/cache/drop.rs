//! Dropping entries, remembering that, and finding out what nobody references any more.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::{BATCH, among, among_values, evictions, is_common, next_version, pins, places, read};
use crate::cache::{DroppedEntries, EntryPart, EvictionNote};
use crate::{Fingerprint, fail_point};

pub(in super::super) async fn drop(
    lane: &mut Lane,
    keys: &[Fingerprint],
    remember: usize,
    why: Option<&EvictionNote<'_>>,
) -> Result<DroppedEntries, Fault> {
    let mut note = lane.note().await?;
    let outcome = drop_in(&mut note, keys, remember, why).await?;
    if outcome.version.is_none() {
        note.rollback().await?;
        return Ok(outcome);
    }
    fail_point("drop_begun");
    note.commit().await?;
    fail_point("drop_done");
    Ok(outcome)
}

/// Drops within a transaction.
pub(super) async fn drop_in(
    note: &mut SqliteConnection,
    keys: &[Fingerprint],
    remember: usize,
    why: Option<&EvictionNote<'_>>,
) -> Result<DroppedEntries, Fault> {
    let version = next_version(note).await?;
    // Looked at in the transaction that drops: who pins meanwhile waits, and then finds nothing to pin.
    let unpinned = match why.is_some_and(|why| why.spares_pinned) {
        true => Some(pins::unpinned(note, keys).await?),
        false => None,
    };
    let keys = unpinned.as_deref().unwrap_or(keys);
    if let Some(why) = why {
        evictions::record(note, keys, why).await?;
    }
    let mut dropped = Vec::new();
    let mut parts: BTreeMap<String, EntryPart> = BTreeMap::new();
    let mut inputs = BTreeSet::new();
    for batch in keys.chunks(BATCH) {
        let (ids, there): (Vec<_>, Vec<_>) = there(note, batch).await?.into_iter().unzip();
        if there.is_empty() {
            continue;
        }
        for part in read::good_parts(note, &ids).await? {
            parts.insert(part.location.clone(), part);
        }
        inputs.extend(read::inputs(note, &ids).await?);
        delete(note, &ids).await?;
        remember_dropped(&there, version).build().persistent(is_common(there.len())).execute(&mut *note).await?;
        dropped.extend(there);
    }
    if dropped.is_empty() {
        return Ok(DroppedEntries { version: None, keys: vec![], parts: vec![] });
    }
    let locations: Vec<_> = parts.keys().cloned().collect();
    let referenced = read::referenced(note, &locations).await?;
    parts.retain(|location, _| !referenced.contains(location));
    delete_unused_inputs(note, &inputs.into_iter().collect::<Vec<_>>()).await?;
    forget(note, remember).await?;
    Ok(DroppedEntries { version: Some(version), keys: dropped, parts: parts.into_values().collect() })
}

/// Takes entries away with all that hangs on them.
pub(super) async fn delete(connection: &mut SqliteConnection, ids: &[i64]) -> Result<(), Fault> {
    let mut delete = among_values("DELETE FROM cache_entries WHERE id", ids);
    delete.build().persistent(is_common(ids.len())).execute(connection).await?;
    Ok(())
}

async fn there(connection: &mut SqliteConnection, keys: &[Fingerprint]) -> Result<Vec<(i64, Fingerprint)>, Fault> {
    let mut select = among("SELECT id, entry_key FROM cache_entries WHERE entry_key", keys);
    let rows = select.build().persistent(is_common(keys.len())).fetch_all(connection).await?;
    let read = |row: &SqliteRow| Some((row.try_get(0).ok()?, Fingerprint::from_slice(row.try_get(1).ok()?)?));
    Ok(rows.iter().filter_map(read).collect())
}

fn remember_dropped(keys: &[Fingerprint], version: i64) -> QueryBuilder<Sqlite> {
    let mut upsert = QueryBuilder::new("INSERT INTO cache_dropped (entry_key, version) ");
    upsert.push_values(keys, |mut row, key| {
        row.push_bind(key.as_bytes().to_vec()).push_bind(version);
    });
    upsert.push(" ON CONFLICT (entry_key) DO UPDATE SET version = excluded.version");
    upsert
}

/// Deletes those of the lists that no entry has, with where their extents were; how many.
pub(super) async fn delete_unused_inputs(
    connection: &mut SqliteConnection,
    inputs: &[Fingerprint],
) -> Result<usize, Fault> {
    let mut n_deleted = 0;
    for batch in inputs.chunks(BATCH) {
        let groups = places::groups_of_lists(connection, batch).await?;
        let mut delete = among("DELETE FROM cache_inputs WHERE input", batch);
        delete.push(
            " AND NOT EXISTS (SELECT 1 FROM cache_entry_inputs WHERE cache_entry_inputs.input = cache_inputs.input)",
        );
        let deleted = delete.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
        n_deleted += usize::try_from(deleted.rows_affected()).unwrap_or(usize::MAX);
        places::delete_unused(connection, &groups).await?;
    }
    Ok(n_deleted)
}

/// Forgets all but the newest drops. Those of one transaction go together: a reader either finds all of them, or is told
/// that it has to read everything.
async fn forget(connection: &mut SqliteConnection, remember: usize) -> Result<(), Fault> {
    let newest_too_old: Option<i64> =
        sqlx::query_scalar("SELECT version FROM cache_dropped ORDER BY version DESC LIMIT 1 OFFSET $1")
            .bind(i64::try_from(remember).unwrap_or(i64::MAX))
            .fetch_optional(&mut *connection)
            .await?;
    let Some(version) = newest_too_old else { return Ok(()) };
    sqlx::query("DELETE FROM cache_dropped WHERE version <= $1").bind(version).execute(&mut *connection).await?;
    sqlx::query("UPDATE cache_state SET forgotten_to = $1").bind(version).execute(connection).await?;
    Ok(())
}
