//! What happened to entries since a version, or all of them; what an index is built of and kept up with.

use futures::{Stream, TryStreamExt};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{Connection, Row, Sqlite};

use super::super::fault::{Fault, is_damage};
use super::super::lane::Lane;
use super::summary::{N_BYTES, Summary};
use crate::Fingerprint;
use crate::cache::{CacheChange, CacheChanges};

/// Entries per block.
const BLOCK: i64 = 4096;

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
    match since {
        Some(since) => {
            let news = sqlx::query("SELECT summary FROM cache_entries WHERE version > $1").bind(since);
            entries(&mut snapshot, news, visit, &mut n_damaged).await?;
        }
        None => all_entries(&mut snapshot, visit, &mut n_damaged).await?,
    }
    drops(&mut snapshot, since, visit, &mut n_damaged).await?;
    snapshot.rollback().await?;
    Ok(CacheChanges { version, n_damaged })
}

/// All entries, in blocks that the database glues together: the driver takes a microsecond and more for a row, and much
/// less for the bytes in it.
async fn all_entries(
    connection: &mut SqliteConnection,
    visit: &mut (dyn FnMut(CacheChange) + Send),
    n_damaged: &mut usize,
) -> Result<(), Fault> {
    let mut after = i64::MIN;
    loop {
        let select = sqlx::query(
            "SELECT COUNT(*), MAX(id), string_agg(summary, '')
             FROM (SELECT id, summary FROM cache_entries WHERE id > $1 ORDER BY id LIMIT $2) AS block",
        );
        let block = select.bind(after).bind(BLOCK).fetch_one(&mut *connection).await;
        let (n_rows, last, glued): (i64, Option<i64>, Option<Vec<u8>>) = match block {
            Ok(row) => (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?),
            Err(error) if is_damage(&error) => (BLOCK, None, None),
            Err(error) => return Err(error.into()),
        };
        if n_rows == 0 {
            return Ok(());
        }
        match (last, glued.and_then(|glued| unglue(&glued, n_rows))) {
            (Some(_), Some(block)) => block.into_iter().for_each(|summary| visit(change(summary))),
            // Something in it is damaged: one by one.
            _ => {
                let rows = sqlx::query("SELECT summary FROM cache_entries WHERE id > $1 ORDER BY id LIMIT $2");
                entries(connection, rows.bind(after).bind(BLOCK), visit, n_damaged).await?;
            }
        }
        // None where the block could not be read to its end, and nothing behind it can.
        let Some(last) = last else { return Ok(()) };
        after = last;
    }
}

/// The records of a block; `None` unless all of them are good.
fn unglue(glued: &[u8], n_rows: i64) -> Option<Vec<Summary>> {
    let block: Vec<_> = glued.chunks(N_BYTES).map(Summary::unpack).collect::<Option<_>>()?;
    (i64::try_from(block.len()) == Ok(n_rows)).then_some(block)
}

fn change(Summary { entry: summary, version, .. }: Summary) -> CacheChange {
    CacheChange::Entry { summary, version }
}

/// The entries of a question for summaries.
async fn entries(
    connection: &mut SqliteConnection,
    select: Query<'_, Sqlite, SqliteArguments>,
    visit: &mut (dyn FnMut(CacheChange) + Send),
    n_damaged: &mut usize,
) -> Result<(), Fault> {
    let mut rows = select.fetch(connection);
    while let Some(row) = next(&mut rows, n_damaged).await? {
        match row.try_get(0).ok().and_then(Summary::unpack) {
            Some(summary) => visit(change(summary)),
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
