//! What the collector asks: which files entries have, and lists of extents that no entry has.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::drop;
use crate::Fingerprint;

/// Locations are compared byte by byte, as SQLite does by itself; PostgreSQL has to be told (`COLLATE "C"`).
pub(in super::super) async fn locations(
    lane: &mut Lane,
    from: &str,
    to: &str,
) -> Result<Vec<(String, Fingerprint)>, Fault> {
    let select = sqlx::query(
        "SELECT cache_parts.location, cache_entries.entry_key FROM cache_parts
         JOIN cache_entries ON cache_entries.id = cache_parts.entry_id
         WHERE cache_parts.location >= $1 AND cache_parts.location < $2",
    );
    let rows = select.bind(from).bind(to).fetch_all(lane.read()?).await?;
    let read = |row: &SqliteRow| Some((row.try_get(0).ok()?, Fingerprint::from_slice(row.try_get(1).ok()?)?));
    Ok(rows.iter().filter_map(read).collect())
}

/// Lists that no entry has, among the first `limit` after one; and the last that was looked at.
pub(in super::super) async fn unused_inputs(
    lane: &mut Lane,
    after: Option<&Fingerprint>,
    limit: usize,
) -> Result<(Option<Fingerprint>, Vec<Fingerprint>), Fault> {
    // No name is shorter than this one, so that all come after it.
    let after = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
    let select = sqlx::query(
        "SELECT input, EXISTS (SELECT 1 FROM cache_entry_inputs WHERE cache_entry_inputs.input = cache_inputs.input)
         FROM cache_inputs WHERE input > $1 ORDER BY input LIMIT $2",
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.bind(after).bind(limit).fetch_all(lane.read()?).await?;
    let name = |row: &SqliteRow| Fingerprint::from_slice(row.try_get(0).ok()?);
    let is_unused = |row: &&SqliteRow| row.try_get::<i64, _>(1).is_ok_and(|is_used| is_used == 0);
    let unused = rows.iter().filter(is_unused).filter_map(name).collect();
    Ok((rows.last().and_then(name), unused))
}

/// Deletes those lists that still no entry has.
pub(in super::super) async fn drop_inputs(lane: &mut Lane, inputs: &[Fingerprint]) -> Result<usize, Fault> {
    let mut note = lane.note().await?;
    let n_deleted = drop::delete_unused_inputs(&mut note, inputs).await?;
    note.commit().await?;
    Ok(n_deleted)
}
