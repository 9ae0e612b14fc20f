//! What was evicted, and what it took to make it again.

use std::collections::BTreeMap;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::{BATCH, among, is_common, read};
use crate::Fingerprint;
use crate::cache::{EvictionNote, EvictionRecord, EvictionTotals, NewEntry};

/// Writes down entries that are about to be dropped in this transaction. Those that cannot be read are left out.
pub(super) async fn record(
    connection: &mut SqliteConnection,
    keys: &[Fingerprint],
    note: &EvictionNote<'_>,
) -> Result<(), Fault> {
    let mut next_id: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM cache_evictions").fetch_one(&mut *connection).await?;
    let (mut n_entries, mut n_bytes) = (0_i64, 0_i64);
    for batch in keys.chunks(BATCH) {
        let gone = read::summaries(connection, batch).await?;
        if gone.is_empty() {
            continue;
        }
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO cache_evictions
             (id, entry_key, program, description, entry_bytes, cost_us, uses, reason, evicted_at) ",
        );
        insert.push_values((next_id..).zip(&gone), |mut row, (id, (summary, description))| {
            row.push_bind(id)
                .push_bind(summary.key.as_bytes().to_vec())
                .push_bind(summary.program.as_bytes().to_vec())
                .push_bind(description)
                .push_bind(summary.bytes.cast_signed())
                .push_bind(summary.cost_us.cast_signed())
                .push_bind(summary.uses.cast_signed())
                .push_bind(note.reason)
                .push_bind(note.at);
        });
        insert.build().persistent(is_common(gone.len())).execute(&mut *connection).await?;
        next_id += gone.len() as i64;
        n_entries += gone.len() as i64;
        n_bytes = gone.iter().fold(n_bytes, |sum, (summary, _)| sum.saturating_add(summary.bytes.cast_signed()));
    }
    let oldest = next_id.saturating_sub(i64::try_from(note.keep).unwrap_or(i64::MAX));
    sqlx::query("DELETE FROM cache_evictions WHERE id < $1").bind(oldest).execute(&mut *connection).await?;
    let count = sqlx::query("UPDATE cache_state SET evicted = evicted + $1, evicted_bytes = evicted_bytes + $2");
    count.bind(n_entries).bind(n_bytes).execute(connection).await?;
    Ok(())
}

/// Entries that are being added in this transaction may be back.
pub(super) async fn remade(connection: &mut SqliteConnection, new: &[&NewEntry]) -> Result<(), Fault> {
    let mut select =
        among("SELECT DISTINCT entry_key FROM cache_evictions WHERE entry_key", new.iter().map(|new| &new.entry.key));
    select.push(" AND remade_at IS NULL");
    let rows = select.build().persistent(is_common(new.len())).fetch_all(&mut *connection).await?;
    if rows.is_empty() {
        return Ok(());
    }
    let made: BTreeMap<_, _> = new.iter().map(|new| (new.entry.key, &new.entry)).collect();
    let back = rows.iter().filter_map(|row| made.get(&Fingerprint::from_slice(row.try_get(0).ok()?)?));
    for entry in back {
        let update = sqlx::query(
            "UPDATE cache_evictions SET remade_at = $1, remade_cost_us = $2 WHERE entry_key = $3 AND remade_at IS NULL",
        );
        let update = update.bind(entry.created_at).bind(entry.cost_us.cast_signed());
        update.bind(entry.key.as_bytes().to_vec()).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(in super::super) async fn evictions(lane: &mut Lane, limit: usize) -> Result<Vec<EvictionRecord>, Fault> {
    let select = sqlx::query(
        "SELECT entry_key, program, description, entry_bytes, cost_us, uses, reason, evicted_at, remade_at, remade_cost_us
         FROM cache_evictions ORDER BY id DESC LIMIT $1",
    );
    let rows = select.bind(i64::try_from(limit).unwrap_or(i64::MAX)).fetch_all(lane.read()?).await?;
    let number = |row: &SqliteRow, column: usize| Some(row.try_get::<i64, _>(column).ok()?.cast_unsigned());
    let read = |row: &SqliteRow| {
        let remade_at: Option<i64> = row.try_get(8).ok()?;
        let remade_cost: Option<i64> = row.try_get(9).ok()?;
        Some(EvictionRecord {
            key: Fingerprint::from_slice(row.try_get(0).ok()?)?,
            program: Fingerprint::from_slice(row.try_get(1).ok()?)?,
            description: row.try_get(2).ok()?,
            bytes: number(row, 3)?,
            cost_us: number(row, 4)?,
            uses: number(row, 5)?,
            reason: row.try_get(6).ok()?,
            evicted_at: row.try_get(7).ok()?,
            remade: remade_at.zip(remade_cost.map(i64::cast_unsigned)),
        })
    };
    Ok(rows.iter().filter_map(read).collect())
}

pub(in super::super) async fn eviction_totals(lane: &mut Lane) -> Result<EvictionTotals, Fault> {
    let select = sqlx::query_as("SELECT evicted, evicted_bytes FROM cache_state");
    let (entries, bytes): (i64, i64) = select.fetch_one(lane.read()?).await?;
    Ok(EvictionTotals { entries: entries.cast_unsigned(), bytes: bytes.cast_unsigned() })
}
