//! Leases: who works in the derived store, and how much room is set aside.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::super::purges;
use crate::cache::{CacheLease, SpaceOutcome, SpaceRequest};

const UPSERT: &str = "INSERT INTO cache_leases (holder, reserved, expires_at) VALUES ($1, $2, $3)
    ON CONFLICT (holder) DO UPDATE SET reserved = excluded.reserved, expires_at = excluded.expires_at";

pub(in super::super) async fn reserve(lane: &mut Lane, request: &SpaceRequest) -> Result<SpaceOutcome, Fault> {
    let mut note = lane.note().await?;
    let version: i64 = sqlx::query_scalar("SELECT version FROM cache_state").fetch_one(&mut *note).await?;
    if version != request.version {
        note.rollback().await?;
        return Ok(SpaceOutcome::Stale);
    }
    let select = sqlx::query_scalar("SELECT reserved FROM cache_leases WHERE holder <> $1");
    let others: Vec<i64> = select.bind(&request.holder).fetch_all(&mut *note).await?;
    let others = others.into_iter().fold(0, |sum: u64, one| sum.saturating_add(one.max(0).cast_unsigned()));
    let others = others.saturating_add(purges::bytes_in(&mut note).await?);
    let room = request.budget.saturating_sub(request.used).saturating_sub(others);
    if room < request.least {
        note.rollback().await?;
        return Ok(SpaceOutcome::Refused { others });
    }
    let granted = request.most.min(room).max(request.least);
    let upsert = sqlx::query(UPSERT).bind(&request.holder).bind(stored(granted)).bind(request.expires_at);
    upsert.execute(&mut *note).await?;
    note.commit().await?;
    Ok(SpaceOutcome::Granted(granted))
}

pub(in super::super) async fn save_lease(lane: &mut Lane, lease: &CacheLease) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    let upsert = sqlx::query(UPSERT).bind(&lease.holder).bind(stored(lease.reserved)).bind(lease.expires_at);
    upsert.execute(&mut *note).await?;
    note.commit().await?;
    Ok(())
}

pub(in super::super) async fn drop_lease(lane: &mut Lane, holder: &str) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    sqlx::query("DELETE FROM cache_leases WHERE holder = $1").bind(holder).execute(&mut *note).await?;
    note.commit().await?;
    Ok(())
}

pub(in super::super) async fn leases(lane: &mut Lane) -> Result<Vec<CacheLease>, Fault> {
    let select = sqlx::query("SELECT holder, reserved, expires_at FROM cache_leases ORDER BY holder");
    let rows = select.fetch_all(lane.read()?).await?;
    let read = |row: &SqliteRow| {
        let reserved = row.try_get::<i64, _>(1)?.max(0).cast_unsigned();
        Ok(CacheLease { holder: row.try_get(0)?, reserved, expires_at: row.try_get(2)? })
    };
    rows.iter().map(read).collect()
}

/// No disk has more.
fn stored(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
