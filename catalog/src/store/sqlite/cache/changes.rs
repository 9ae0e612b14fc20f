//! What happened to entries since a version, or all of them; what an index is built of and kept up with.

use futures::{Stream, TryStreamExt};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::super::fault::{Fault, is_damage};
use super::super::lane::Lane;
use super::summary::Summary;
use crate::Fingerprint;
use crate::cache::{CacheChange, CacheChanges};

pub(in super::super) async fn changes(
    lane: &mut Lane,
    since: Option<i64>,
    visit: &mut (dyn FnMut(CacheChange) + Send),
) -> Result<CacheChanges, Fault> {
    // One snapshot, or an entry could move from one table to the other between the questions.
    let mut snapshot = lane.read()?.begin().await?;
    let state = sqlx::query_as("SELECT version, forgotten_to FROM cache_state");
    let (version, forgotten_to): (i64, i64) = state.fetch_one(&mut *snapshot).await?;
    let since = since.filter(|since| *since >= forgotten_to);
    if since.is_none() {
        visit(CacheChange::Everything);
    }
    let mut n_damaged = 0;
    entries(&mut snapshot, since, visit, &mut n_damaged).await?;
    drops(&mut snapshot, since, visit, &mut n_damaged).await?;
    snapshot.rollback().await?;
    Ok(CacheChanges { version, n_damaged })
}

async fn entries(
    connection: &mut SqliteConnection,
    since: Option<i64>,
    visit: &mut (dyn FnMut(CacheChange) + Send),
    n_damaged: &mut usize,
) -> Result<(), Fault> {
    let select = match since {
        Some(since) => sqlx::query("SELECT summary FROM cache_entries WHERE version > $1").bind(since),
        None => sqlx::query("SELECT summary FROM cache_entries"),
    };
    let mut rows = select.fetch(connection);
    while let Some(row) = next(&mut rows, n_damaged).await? {
        match row.try_get(0).ok().and_then(Summary::unpack) {
            Some(Summary { entry: summary, version, .. }) => visit(CacheChange::Entry { summary, version }),
            None => *n_damaged += 1,
        }
    }
    Ok(())
}

async fn drops(
    connection: &mut SqliteConnection,
    since: Option<i64>,
    visit: &mut (dyn FnMut(CacheChange) + Send),
    n_damaged: &mut usize,
) -> Result<(), Fault> {
    let select = match since {
        Some(since) => sqlx::query("SELECT entry_key, version FROM cache_dropped WHERE version > $1").bind(since),
        None => sqlx::query("SELECT entry_key, version FROM cache_dropped"),
    };
    let mut rows = select.fetch(connection);
    while let Some(row) = next(&mut rows, n_damaged).await? {
        match (row.try_get(0).ok().and_then(Fingerprint::from_slice), row.try_get(1).ok()) {
            (Some(key), Some(version)) => visit(CacheChange::Dropped { key, version }),
            _ => *n_damaged += 1,
        }
    }
    Ok(())
}

/// The next row. Where a page of the file is damaged the rows end: what was read is good, and what is missing will be
/// computed again.
pub(super) async fn next<S>(rows: &mut S, n_damaged: &mut usize) -> Result<Option<SqliteRow>, Fault>
where
    S: Stream<Item = Result<SqliteRow, sqlx::Error>> + Unpin,
{
    match rows.try_next().await {
        Err(error) if is_damage(&error) => {
            tracing::warn!(%error, "a part of the view cache's metadata cannot be read");
            *n_damaged += 1;
            Ok(None)
        }
        row => Ok(row?),
    }
}
