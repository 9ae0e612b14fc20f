//! Known files: what was learnt of external locations' files, kept so that nobody has to read them again.

use std::sync::Arc;

use futures::TryStreamExt;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::extents::{self, BATCH, N_COLUMNS};
use super::fault::Fault;
use super::lane::Lane;
use crate::store::{GoneFile, KnownFile};

pub(super) async fn list(lane: &mut Lane, key: &str) -> Result<Vec<KnownFile>, Fault> {
    let select = sqlx::query(concat!(
        "SELECT ",
        extents::columns!(),
        ", identity, racy, position FROM known_files WHERE location_key = $1 ORDER BY location, byte_start"
    ));
    let mut files = Vec::new();
    let mut rows = select.bind(key).fetch(lane.read()?);
    while let Some(row) = rows.try_next().await? {
        files.push(read(&row)?);
    }
    // Here rather than there: the primary key gives the other order for nothing, and this sort is stable.
    files.sort_by_key(|file| file.position);
    Ok(files)
}

/// The records at some locations, whoever saved them, each with its key.
pub(super) async fn at(
    connection: &mut SqliteConnection,
    is_meant: impl Fn(&str) -> bool,
) -> Result<Vec<(String, KnownFile)>, Fault> {
    let select = sqlx::query(concat!(
        "SELECT ",
        extents::columns!(),
        ", identity, racy, position, location_key FROM known_files"
    ));
    let mut files = Vec::new();
    let mut rows = select.fetch(connection);
    while let Some(row) = rows.try_next().await? {
        if is_meant(row.try_get(0)?) {
            files.push((row.try_get(N_COLUMNS + 3)?, read(&row)?));
        }
    }
    Ok(files)
}

pub(super) async fn save(lane: &mut Lane, key: &str, learnt: &[KnownFile], gone: &[GoneFile]) -> Result<(), Fault> {
    let key: Arc<str> = key.into();
    let mut note = lane.note().await?;
    for batch in gone.chunks(BATCH) {
        delete(&key, batch).build().persistent(extents::is_common(batch.len())).execute(&mut *note).await?;
    }
    for batch in learnt.chunks(BATCH) {
        upsert(&key, batch).build().persistent(extents::is_common(batch.len())).execute(&mut *note).await?;
    }
    Ok(note.commit().await?)
}

fn delete(key: &Arc<str>, gone: &[GoneFile]) -> QueryBuilder<Sqlite> {
    let mut delete = QueryBuilder::new("DELETE FROM known_files WHERE location_key = ");
    delete.push_bind(Arc::clone(key)).push(" AND (location, byte_start) IN (");
    delete.push_values(gone, |mut row, file| {
        row.push_bind(&file.location).push_bind(file.byte_start.cast_signed());
    });
    delete.push(")");
    delete
}

fn upsert(key: &Arc<str>, learnt: &[KnownFile]) -> QueryBuilder<Sqlite> {
    let mut insert = QueryBuilder::new(concat!(
        "INSERT INTO known_files (location_key, identity, racy, position, ",
        extents::columns!(),
        ") "
    ));
    insert.push_values(learnt, |mut row, file| {
        row.push_bind(Arc::clone(key))
            .push_bind(file.identity.as_slice())
            .push_bind(i64::from(file.racy))
            .push_bind(i64::from(file.position));
        extents::bind(&mut row, &file.extent);
    });
    insert.push(
        " ON CONFLICT (location_key, location, byte_start) DO UPDATE SET identity = excluded.identity,
          racy = excluded.racy, position = excluded.position, byte_end = excluded.byte_end,
          file_bytes = excluded.file_bytes, modified_at = excluded.modified_at, etag = excluded.etag,
          fingerprint = excluded.fingerprint, row_count = excluded.row_count, stats = excluded.stats,
          partition_values = excluded.partition_values, first_seen_at = excluded.first_seen_at",
    );
    insert
}

fn read(row: &SqliteRow) -> Result<KnownFile, Fault> {
    let extent = extents::read(row)?;
    let position: i64 = row.try_get(N_COLUMNS + 2)?;
    let position = u32::try_from(position)
        .map_err(|error| Fault::damaged(format!("known file \"{}\"", extent.location), error))?;
    Ok(KnownFile {
        identity: row.try_get(N_COLUMNS)?,
        racy: row.try_get::<i64, _>(N_COLUMNS + 1)? != 0,
        position,
        extent,
    })
}
