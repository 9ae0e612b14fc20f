//! Pins: results that are never evicted to make room. There are few, so all of them are read whenever one matters.

use std::collections::BTreeSet;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row, Sqlite, Transaction};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::super::tables;
use super::read;
use crate::cache::{Pin, PinMoves, PinOutcome, PinSubject, bytes_besides};
use crate::{EntrySummary, Fingerprint, TableId, fail_point};

pub(in super::super) async fn pins(lane: &mut Lane) -> Result<Vec<Pin>, Fault> {
    all(lane.read()?).await
}

pub(in super::super) async fn pin(lane: &mut Lane, pin: &Pin, bytes_max: u64) -> Result<PinOutcome, Fault> {
    let mut change = lane.change().await?;
    if let PinSubject::View(table) = pin.subject {
        tables::require(&mut change, table).await?;
    }
    let Some(entry) = entry(&mut change, &pin.key).await? else { return refused(change, PinOutcome::NoEntry).await };
    let besides = bytes_besides(&all(&mut change).await?, &pin.subject, &pin.key);
    let bytes = besides.saturating_add(entry.bytes);
    if bytes > bytes_max {
        return refused(change, PinOutcome::TooMuch { bytes }).await;
    }
    let table_id = match pin.subject {
        PinSubject::View(table) => Some(table.to_string()),
        PinSubject::Entry(_) | PinSubject::Query(_) => None,
    };
    sqlx::query(
        "INSERT INTO pins (kind, subject, table_id, what, program, entry_key, entry_bytes, pinned_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (kind, subject) DO UPDATE SET what = excluded.what, program = excluded.program,
         entry_key = excluded.entry_key, entry_bytes = excluded.entry_bytes, pinned_at = excluded.pinned_at",
    )
    .bind(pin.subject.kind())
    .bind(bytes_of(&pin.subject))
    .bind(table_id)
    .bind(&pin.what)
    .bind(pin.program.as_bytes().to_vec())
    .bind(pin.key.as_bytes().to_vec())
    .bind(entry.bytes.cast_signed())
    .bind(pin.pinned_at)
    .execute(&mut *change)
    .await?;
    fail_point("pin_begun");
    change.commit().await?;
    fail_point("pin_done");
    Ok(PinOutcome::Pinned { bytes: entry.bytes })
}

pub(in super::super) async fn unpin(lane: &mut Lane, subject: &PinSubject) -> Result<Option<Pin>, Fault> {
    let mut change = lane.change().await?;
    let pins = all(&mut change).await?;
    let Some(pin) = pins.into_iter().find(|pin| pin.subject == *subject) else {
        change.rollback().await?;
        return Ok(None);
    };
    let delete = sqlx::query("DELETE FROM pins WHERE kind = $1 AND subject = $2");
    delete.bind(subject.kind()).bind(bytes_of(subject)).execute(&mut *change).await?;
    change.commit().await?;
    Ok(Some(pin))
}

pub(in super::super) async fn move_pins(lane: &mut Lane, moves: &PinMoves) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    move_in(&mut note, moves).await?;
    Ok(note.commit().await?)
}

/// Moves pins within a transaction, to entries that are there in it.
pub(super) async fn move_in(connection: &mut SqliteConnection, moves: &PinMoves) -> Result<(), Fault> {
    for moved in &moves.moves {
        let subject = PinSubject::View(moved.view);
        let pins = all(connection).await?;
        let is_meant = |pin: &Pin| pin.subject == subject && pin.program == moved.program && pin.key != moved.key;
        if !pins.iter().any(is_meant) {
            continue;
        }
        let Some(entry) = entry(connection, &moved.key).await? else { continue };
        if bytes_besides(&pins, &subject, &moved.key).saturating_add(entry.bytes) > moves.bytes_max {
            continue;
        }
        let update = sqlx::query("UPDATE pins SET entry_key = $1, entry_bytes = $2 WHERE kind = $3 AND subject = $4");
        let update = update.bind(moved.key.as_bytes().to_vec()).bind(entry.bytes.cast_signed());
        update.bind(subject.kind()).bind(bytes_of(&subject)).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Those of the keys that no pin has.
pub(super) async fn unpinned(
    connection: &mut SqliteConnection,
    keys: &[Fingerprint],
) -> Result<Vec<Fingerprint>, Fault> {
    let pinned: BTreeSet<Fingerprint> = all(connection).await?.into_iter().map(|pin| pin.key).collect();
    Ok(keys.iter().copied().filter(|key| !pinned.contains(key)).collect())
}

async fn refused(change: Transaction<'_, Sqlite>, outcome: PinOutcome) -> Result<PinOutcome, Fault> {
    change.rollback().await?;
    Ok(outcome)
}

async fn entry(connection: &mut SqliteConnection, key: &Fingerprint) -> Result<Option<EntrySummary>, Fault> {
    let mut found = read::summaries(connection, std::slice::from_ref(key)).await?;
    Ok(found.pop().map(|(entry, _)| entry))
}

/// All pins, the oldest first; what cannot be read pins nothing.
async fn all(connection: &mut SqliteConnection) -> Result<Vec<Pin>, Fault> {
    let select = sqlx::query(
        "SELECT kind, subject, what, program, entry_key, entry_bytes, pinned_at FROM pins ORDER BY pinned_at, kind, subject",
    );
    let rows = select.fetch_all(connection).await?;
    let read = |row: &SqliteRow| {
        let (kind, subject): (String, Vec<u8>) = (row.try_get(0).ok()?, row.try_get(1).ok()?);
        Some(Pin {
            subject: subject_of(&kind, &subject)?,
            what: row.try_get(2).ok()?,
            program: Fingerprint::from_slice(row.try_get(3).ok()?)?,
            key: Fingerprint::from_slice(row.try_get(4).ok()?)?,
            bytes: row.try_get::<i64, _>(5).ok()?.cast_unsigned(),
            pinned_at: row.try_get(6).ok()?,
        })
    };
    Ok(rows.iter().filter_map(read).collect())
}

fn bytes_of(subject: &PinSubject) -> Vec<u8> {
    match subject {
        PinSubject::Entry(name) | PinSubject::Query(name) => name.as_bytes().to_vec(),
        PinSubject::View(table) => table.to_string().into_bytes(),
    }
}

fn subject_of(kind: &str, bytes: &[u8]) -> Option<PinSubject> {
    match kind {
        "entry" => Fingerprint::from_slice(bytes).map(PinSubject::Entry),
        "query" => Fingerprint::from_slice(bytes).map(PinSubject::Query),
        "materialized view" => TableId::parse(std::str::from_utf8(bytes).ok()?).map(PinSubject::View),
        _ => None,
    }
}
