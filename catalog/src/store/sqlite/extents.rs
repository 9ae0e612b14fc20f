//! Extents: a row each, ordered by position within their table.
//!
//! Unsigned numbers are stored bit for bit as signed ones: the database only compares them for equality.
//! [`COLUMNS`], [`bind`] and [`read`] belong together; `known_files` shares them.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::query_builder::Separated;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::fault::Fault;
use super::lane::Lane;
use super::tables;
use crate::{ByteRange, Extent, Fingerprint, TableId};

/// Rows per INSERT: enough that the trips to the driver's thread do not count, and with fifteen values each far below
/// the 32,766 that SQLite and the 65,535 that PostgreSQL let one statement bind.
pub(super) const BATCH: usize = 256;

/// The columns of an extent as text that can be put into a statement.
macro_rules! columns {
    () => {
        "location, byte_start, byte_end, file_bytes, modified_at, etag, fingerprint, row_count, stats, partition_values, \
         first_seen_at"
    };
}
pub(super) use columns;

pub(super) async fn list(lane: &mut Lane, id: TableId) -> Result<Vec<Extent>, Fault> {
    let connection = lane.read()?;
    let mut extents = Vec::new();
    let select = sqlx::query(concat!("SELECT ", columns!(), " FROM extents WHERE table_id = $1 ORDER BY position"));
    let mut rows = select.bind(id.to_string()).fetch(&mut *connection);
    while let Some(row) = rows.try_next().await? {
        extents.push(read(&row)?);
    }
    drop(rows);
    if extents.is_empty() {
        // Identifiers are never used again, so that asking later than the first question cannot mislead.
        tables::require(connection, id).await?;
    }
    Ok(extents)
}

pub(super) async fn append(lane: &mut Lane, id: TableId, extents: &[Extent]) -> Result<(), Fault> {
    let mut change = lane.change().await?;
    tables::require(&mut change, id).await?;
    append_in(&mut change, id, extents).await?;
    Ok(change.commit().await?)
}

/// Adds extents at the end of a table that is there, inside of a change.
pub(super) async fn append_in(connection: &mut SqliteConnection, id: TableId, extents: &[Extent]) -> Result<(), Fault> {
    let position: i64 = sqlx::query_scalar("SELECT COALESCE(MAX(position) + 1, 0) FROM extents WHERE table_id = $1")
        .bind(id.to_string())
        .fetch_one(&mut *connection)
        .await?;
    insert(connection, id, position, extents).await
}

/// How many extents a table has.
pub(super) async fn count(connection: &mut SqliteConnection, id: TableId) -> Result<usize, Fault> {
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM extents WHERE table_id = $1").bind(id.to_string());
    let count: i64 = count.fetch_one(connection).await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Adds extents from a position on.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    id: TableId,
    position: i64,
    extents: &[Extent],
) -> Result<(), Fault> {
    let id: Arc<str> = id.to_string().into();
    let mut numbered = (position..).zip(extents);
    for batch in extents.chunks(BATCH) {
        let mut insert =
            QueryBuilder::<Sqlite>::new(concat!("INSERT INTO extents (table_id, position, ", columns!(), ") "));
        insert.push_values(numbered.by_ref().take(batch.len()), |mut row, (position, extent)| {
            row.push_bind(Arc::clone(&id)).push_bind(position);
            bind(&mut row, extent);
        });
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Whether a statement for so many rows comes again, so that it is worth keeping prepared.
pub(super) fn is_common(n_rows: usize) -> bool {
    n_rows == 1 || n_rows == BATCH
}

/// Binds the values of [`columns`].
pub(super) fn bind(row: &mut Separated<'_, Sqlite, &'static str>, extent: &Extent) {
    row.push_bind(Arc::clone(&extent.location))
        .push_bind(extent.range.map_or(0, |range| range.start).cast_signed())
        .push_bind(extent.range.map(|range| range.end.cast_signed()))
        .push_bind(extent.file_bytes.cast_signed())
        .push_bind(extent.modified_at)
        .push_bind(extent.etag.clone())
        .push_bind(extent.fingerprint.as_bytes().to_vec())
        .push_bind(extent.rows.map(u64::cast_signed))
        .push_bind(extent.stats.to_vec())
        .push_bind(encode_partition_values(&extent.partition_values))
        .push_bind(extent.first_seen_at);
}

/// Reads the values of [`columns`], which come first in the row.
pub(super) fn read(row: &SqliteRow) -> Result<Extent, Fault> {
    let location: &str = row.try_get(0)?;
    let byte_end: Option<i64> = row.try_get(2)?;
    let range = match byte_end {
        Some(end) => Some(ByteRange { start: row.try_get::<i64, _>(1)?.cast_unsigned(), end: end.cast_unsigned() }),
        None => None,
    };
    let damaged = |detail: String| Fault::damaged(format!("extent \"{location}\""), detail);
    Ok(Extent {
        location: location.into(),
        range,
        // Kept with what is known of a table's files.
        lines: false,
        file_bytes: row.try_get::<i64, _>(3)?.cast_unsigned(),
        modified_at: row.try_get(4)?,
        etag: row.try_get::<Option<&str>, _>(5)?.map(Into::into),
        fingerprint: Fingerprint::from_slice(row.try_get(6)?)
            .ok_or_else(|| damaged("its fingerprint is not 32 bytes long".to_owned()))?,
        rows: row.try_get::<Option<i64>, _>(7)?.map(i64::cast_unsigned),
        stats: row.try_get::<&[u8], _>(8)?.into(),
        partition_values: decode_partition_values(row.try_get(9)?).map_err(|error| damaged(error.to_string()))?,
        first_seen_at: row.try_get(10)?,
    })
}

/// Number of columns in [`columns`].
pub(super) const N_COLUMNS: usize = 11;

fn encode_partition_values(values: &[Option<Arc<str>>]) -> String {
    serde_json::Value::from_iter(values.iter().map(|value| value.as_deref())).to_string()
}

fn decode_partition_values(text: &str) -> Result<Arc<[Option<Arc<str>>]>, serde_json::Error> {
    if text == "[]" {
        return Ok(Arc::from([]));
    }
    let values: Vec<Option<String>> = serde_json::from_str(text)?;
    Ok(values.into_iter().map(|value| value.map(Into::into)).collect())
}
