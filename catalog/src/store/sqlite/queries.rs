//! The query log: the newest statements, at most as many as the caller wants kept, each with what it asked the view cache
//! for.

use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite};

use super::fault::Fault;
use super::lane::Lane;
use super::lookups::{pack, unpack};
use crate::QueryId;
use crate::store::{LookupRecord, QueryRecord};

/// Statements per INSERT; sixteen values each stay far below what SQLite and PostgreSQL let one statement bind.
const BATCH: usize = 128;

pub(super) async fn log(lane: &mut Lane, queries: &[QueryRecord], keep: usize) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    for batch in queries.chunks(BATCH) {
        upsert(batch).build().persistent(batch.len() == 1).execute(&mut *note).await?;
    }
    // The newest record that is too old, if there are so many; then it and all before it go.
    let first_too_old: Option<(i64, String)> = sqlx::query_as(
        "SELECT started_at, query_id FROM queries ORDER BY started_at DESC, query_id DESC LIMIT 1 OFFSET $1",
    )
    .bind(i64::try_from(keep).unwrap_or(i64::MAX))
    .fetch_optional(&mut *note)
    .await?;
    if let Some((started_at, query_id)) = first_too_old {
        sqlx::query("DELETE FROM queries WHERE (started_at, query_id) <= ($1, $2)")
            .bind(started_at)
            .bind(query_id)
            .execute(&mut *note)
            .await?;
    }
    Ok(note.commit().await?)
}

pub(super) async fn list(lane: &mut Lane, limit: usize) -> Result<Vec<QueryRecord>, Fault> {
    let rows = sqlx::query(
        "SELECT query_id, started_at, user_name, sql_text, state, error, elapsed_ms, cpu_ms, rows_returned, bytes_scanned,
                planning_ms, reuse, entries_used, saved_ms, process, extents_total, extents_reused, login
         FROM queries ORDER BY started_at DESC, query_id DESC LIMIT $1",
    )
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(lane.read()?)
    .await?;
    rows.iter().map(read).collect()
}

pub(super) async fn lookups(lane: &mut Lane, limit: usize) -> Result<Vec<(QueryId, Vec<LookupRecord>)>, Fault> {
    let rows = sqlx::query(
        "SELECT query_id, lookups FROM queries WHERE lookups IS NOT NULL
         ORDER BY started_at DESC, query_id DESC LIMIT $1",
    )
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all(lane.read()?)
    .await?;
    let read = |row: &SqliteRow| Some((QueryId::parse(row.try_get(0).ok()?)?, unpack(row.try_get(1).ok()?)?));
    Ok(rows.iter().filter_map(read).collect())
}

fn upsert(queries: &[QueryRecord]) -> QueryBuilder<Sqlite> {
    let mut insert = QueryBuilder::new(
        "INSERT INTO queries (query_id, started_at, user_name, sql_text, state, error, elapsed_ms, cpu_ms, rows_returned,
                              bytes_scanned, planning_ms, reuse, entries_used, saved_ms, process, lookups,
                              extents_total, extents_reused, login) ",
    );
    insert.push_values(queries, |mut row, query| {
        row.push_bind(query.query_id.to_string())
            .push_bind(query.started_at)
            .push_bind(&query.user_name)
            .push_bind(&query.sql)
            .push_bind(&query.state)
            .push_bind(&query.error)
            .push_bind(query.elapsed_ms)
            .push_bind(query.cpu_ms)
            .push_bind(query.rows_returned)
            .push_bind(query.bytes_scanned)
            .push_bind(query.planning_ms)
            .push_bind(&query.reuse)
            .push_bind(query.entries_used)
            .push_bind(query.saved_ms)
            .push_bind(&query.process)
            .push_bind(pack(&query.lookups))
            .push_bind(query.extents_total)
            .push_bind(query.extents_reused)
            .push_bind(&query.login);
    });
    insert.push(
        " ON CONFLICT (query_id) DO UPDATE SET started_at = excluded.started_at, user_name = excluded.user_name,
          sql_text = excluded.sql_text, state = excluded.state, error = excluded.error, elapsed_ms = excluded.elapsed_ms,
          cpu_ms = excluded.cpu_ms, rows_returned = excluded.rows_returned, bytes_scanned = excluded.bytes_scanned,
          planning_ms = excluded.planning_ms, reuse = excluded.reuse, entries_used = excluded.entries_used,
          saved_ms = excluded.saved_ms, process = excluded.process, lookups = excluded.lookups,
          extents_total = excluded.extents_total, extents_reused = excluded.extents_reused, login = excluded.login",
    );
    insert
}

fn read(row: &SqliteRow) -> Result<QueryRecord, Fault> {
    let id: &str = row.try_get(0)?;
    Ok(QueryRecord {
        query_id: QueryId::parse(id).ok_or_else(|| Fault::damaged(format!("query \"{id}\""), "not an identifier"))?,
        started_at: row.try_get(1)?,
        user_name: row.try_get(2)?,
        sql: row.try_get(3)?,
        state: row.try_get(4)?,
        error: row.try_get(5)?,
        elapsed_ms: row.try_get(6)?,
        cpu_ms: row.try_get(7)?,
        rows_returned: row.try_get(8)?,
        bytes_scanned: row.try_get(9)?,
        planning_ms: row.try_get(10)?,
        reuse: row.try_get(11)?,
        entries_used: row.try_get(12)?,
        saved_ms: row.try_get(13)?,
        process: row.try_get(14)?,
        extents_total: row.try_get(15)?,
        extents_reused: row.try_get(16)?,
        login: row.try_get(17)?,
        lookups: vec![],
    })
}
