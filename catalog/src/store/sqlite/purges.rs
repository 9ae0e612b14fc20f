//! What a purge has to remember: files that are still to be deleted (and with them those that an eviction could not delete), and
//! what derived tables that are gone were made of.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::extents::BATCH;
use super::fault::Fault;
use super::lane::Lane;
use crate::cache::EntryPart;
use crate::{DerivedSources, Fingerprint, TableDef, TableId};

/// In the transaction that drops their entries: a process that is killed before it deletes them leaves a trace.
pub(super) async fn remember_parts(connection: &mut SqliteConnection, parts: &[EntryPart]) -> Result<(), Fault> {
    for batch in parts.chunks(BATCH) {
        let mut insert =
            QueryBuilder::<Sqlite>::new("INSERT INTO purged_parts (location, bytes, row_count, checksum) ");
        insert.push_values(batch, |mut row, part| {
            row.push_bind(&part.location)
                .push_bind(part.bytes.cast_signed())
                .push_bind(part.rows.cast_signed())
                .push_bind(part.checksum.as_bytes().to_vec());
        });
        insert.push(" ON CONFLICT (location) DO NOTHING");
        insert.build().persistent(false).execute(&mut *connection).await?;
    }
    Ok(())
}

pub(super) async fn add_parts(lane: &mut Lane, parts: &[EntryPart]) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    remember_parts(&mut note, parts).await?;
    Ok(note.commit().await?)
}

pub(super) async fn parts_bytes(lane: &mut Lane) -> Result<u64, Fault> {
    bytes_in(lane.read()?).await
}

/// What all files take that are still to be deleted.
pub(super) async fn bytes_in(connection: &mut SqliteConnection) -> Result<u64, Fault> {
    let select = sqlx::query_scalar("SELECT coalesce(sum(bytes), 0) FROM purged_parts");
    let bytes: i64 = select.fetch_one(connection).await?;
    Ok(bytes.max(0).cast_unsigned())
}

pub(super) async fn parts(lane: &mut Lane) -> Result<Vec<EntryPart>, Fault> {
    let select = sqlx::query("SELECT location, bytes, row_count, checksum FROM purged_parts ORDER BY location");
    select.fetch_all(lane.read()?).await?.iter().map(part).collect()
}

fn part(row: &SqliteRow) -> Result<EntryPart, Fault> {
    let location: String = row.try_get(0)?;
    let checksum = Fingerprint::from_slice(row.try_get(3)?);
    let damaged = || Fault::damaged(format!("purged file \"{location}\""), "its checksum is not 32 bytes long");
    Ok(EntryPart {
        bytes: row.try_get::<i64, _>(1)?.cast_unsigned(),
        rows: row.try_get::<i64, _>(2)?.cast_unsigned(),
        checksum: checksum.ok_or_else(damaged)?,
        location,
    })
}

pub(super) async fn forget_parts(lane: &mut Lane, locations: &[String]) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    for batch in locations.chunks(BATCH) {
        let mut delete = QueryBuilder::<Sqlite>::new("DELETE FROM purged_parts WHERE location IN (");
        let mut values = delete.separated(", ");
        for location in batch {
            values.push_bind(location);
        }
        delete.push(")");
        delete.build().persistent(false).execute(&mut *note).await?;
    }
    Ok(note.commit().await?)
}

/// A derived table is about to go. Nothing happens for any other.
pub(super) async fn remember_derived(connection: &mut SqliteConnection, table: &TableDef) -> Result<(), Fault> {
    let Some(DerivedSources { id, sources }) = DerivedSources::of(table) else { return Ok(()) };
    let sources = serde_json::to_string(&sources).map_err(|error| Fault::from(sqlx::Error::Encode(error.into())))?;
    let insert = "INSERT INTO dropped_derived (id, sources) VALUES ($1, $2)
        ON CONFLICT (id) DO UPDATE SET sources = excluded.sources";
    sqlx::query(insert).bind(id.to_string()).bind(sources).execute(connection).await?;
    Ok(())
}

pub(super) async fn dropped_derived(lane: &mut Lane) -> Result<Vec<DerivedSources>, Fault> {
    let select = sqlx::query("SELECT id, sources FROM dropped_derived ORDER BY id");
    let read = |row: &SqliteRow| {
        let id: &str = row.try_get(0)?;
        let damaged = |detail: String| Fault::damaged(format!("dropped derived table {id}"), detail);
        Ok(DerivedSources {
            id: TableId::parse(id).ok_or_else(|| damaged("its id is not an identifier".to_owned()))?,
            sources: serde_json::from_str(row.try_get(1)?).map_err(|error| damaged(error.to_string()))?,
        })
    };
    select.fetch_all(lane.read()?).await?.iter().map(read).collect()
}
