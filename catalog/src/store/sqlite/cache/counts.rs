//! Uses of entries and look-ups of programs.
//!
//! Uses are part of the packed summary, so they are read, added to and written back; nobody else can in between.

use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::changes::next;
use super::summary::Summary;
use super::{BATCH, among, is_common, next_version};
use crate::Fingerprint;
use crate::cache::{LookupCount, UseCount};

pub(in super::super) async fn save_counts(
    lane: &mut Lane,
    uses: &[UseCount],
    lookups: &[LookupCount],
    keep_lookups: Option<usize>,
) -> Result<Option<i64>, Fault> {
    let mut note = lane.note().await?;
    let mut version = None;
    for batch in uses.chunks(BATCH) {
        // Readers are sent for the rows only if there are some.
        let mut used = used(&mut note, batch).await?;
        if used.is_empty() {
            continue;
        }
        let this = match version {
            Some(version) => version,
            None => *version.insert(next_version(&mut note).await?),
        };
        used.iter_mut().for_each(|(_, summary)| summary.version = this);
        rewrite(&used).build().persistent(is_common(used.len())).execute(&mut *note).await?;
    }
    for batch in lookups.chunks(BATCH) {
        upsert(batch).build().persistent(is_common(batch.len())).execute(&mut *note).await?;
    }
    if let Some(keep) = keep_lookups {
        forget(&mut note, keep).await?;
    }
    note.commit().await?;
    Ok(version)
}

pub(in super::super) async fn lookups(
    lane: &mut Lane,
    visit: &mut (dyn FnMut(LookupCount) + Send),
) -> Result<(), Fault> {
    let mut rows = sqlx::query("SELECT program, lookups, last_lookup_at FROM cache_lookups").fetch(lane.read()?);
    while let Some(row) = next(&mut rows, &mut 0).await? {
        let program = row.try_get(0).ok().and_then(Fingerprint::from_slice);
        if let (Some(program), Ok(lookups), Ok(last_lookup_at)) = (program, row.try_get::<i64, _>(1), row.try_get(2)) {
            visit(LookupCount { program, lookups: lookups.cast_unsigned(), last_lookup_at });
        }
    }
    Ok(())
}

/// The summaries of entries that are there, with their uses added.
async fn used(connection: &mut SqliteConnection, uses: &[UseCount]) -> Result<Vec<(i64, Summary)>, Fault> {
    let mut select = among("SELECT id, summary FROM cache_entries WHERE entry_key", uses.iter().map(|used| &used.key));
    let rows = select.build().persistent(is_common(uses.len())).fetch_all(connection).await?;
    let mut summaries = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(mut summary) = row.try_get(1).ok().and_then(Summary::unpack) else { continue };
        let entry = &mut summary.entry;
        if let Some(used) = uses.iter().find(|used| used.key == entry.key) {
            entry.uses = entry.uses.saturating_add(used.uses);
            entry.saved_us = entry.saved_us.saturating_add(used.saved_us);
            entry.last_used_at = entry.last_used_at.max(used.last_used_at);
            summaries.push((row.try_get(0)?, summary));
        }
    }
    Ok(summaries)
}

fn rewrite(summaries: &[(i64, Summary)]) -> QueryBuilder<Sqlite> {
    let mut upsert = QueryBuilder::new("INSERT INTO cache_entries (id, entry_key, version, summary) ");
    upsert.push_values(summaries, |mut row, (id, summary)| {
        row.push_bind(*id)
            .push_bind(summary.entry.key.as_bytes().to_vec())
            .push_bind(summary.version)
            .push_bind(summary.pack());
    });
    upsert.push(" ON CONFLICT (id) DO UPDATE SET version = excluded.version, summary = excluded.summary");
    upsert
}

fn upsert(lookups: &[LookupCount]) -> QueryBuilder<Sqlite> {
    let mut upsert = QueryBuilder::new("INSERT INTO cache_lookups (program, lookups, last_lookup_at) ");
    upsert.push_values(lookups, |mut row, count| {
        row.push_bind(count.program.as_bytes().to_vec())
            .push_bind(count.lookups.cast_signed())
            .push_bind(count.last_lookup_at);
    });
    upsert.push(
        " ON CONFLICT (program) DO UPDATE SET lookups = cache_lookups.lookups + excluded.lookups,
          last_lookup_at = CASE WHEN excluded.last_lookup_at > cache_lookups.last_lookup_at
                                THEN excluded.last_lookup_at ELSE cache_lookups.last_lookup_at END",
    );
    upsert
}

/// Forgets all but the programs that were looked up last.
async fn forget(connection: &mut SqliteConnection, keep: usize) -> Result<(), Fault> {
    let first_too_old: Option<(i64, Vec<u8>)> = sqlx::query_as(
        "SELECT last_lookup_at, program FROM cache_lookups ORDER BY last_lookup_at DESC, program DESC LIMIT 1 OFFSET $1",
    )
    .bind(i64::try_from(keep).unwrap_or(i64::MAX))
    .fetch_optional(&mut *connection)
    .await?;
    if let Some((last_lookup_at, program)) = first_too_old {
        sqlx::query("DELETE FROM cache_lookups WHERE (last_lookup_at, program) <= ($1, $2)")
            .bind(last_lookup_at)
            .bind(program)
            .execute(connection)
            .await?;
    }
    Ok(())
}
