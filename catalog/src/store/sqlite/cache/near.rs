//! Entries that a query may be like: those over the same lists of extents, and the youngest of all.
//!
//! For explanations only. Whatever is there, at most a few hundred entries are read, and none is sorted to find them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::add::list_name;
use super::read::whole;
use super::sources::encoding;
use super::{BATCH, among, among_values, is_common};
use crate::Fingerprint;
use crate::cache::{CacheEntry, ProgramRecord};

pub(in super::super) async fn neighbours(
    lane: &mut Lane,
    inputs: &[Arc<[Fingerprint]>],
    limit: usize,
) -> Result<Vec<(CacheEntry, ProgramRecord)>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut ids: BTreeSet<i64> = BTreeSet::new();
    for list in inputs {
        let over_it = sqlx::query_scalar(
            "SELECT DISTINCT entry_id FROM cache_entry_inputs WHERE input = $1 ORDER BY entry_id DESC LIMIT $2",
        );
        let found: Vec<i64> =
            over_it.bind(list_name(list).as_bytes().to_vec()).bind(limit).fetch_all(&mut *snapshot).await?;
        ids.extend(found);
    }
    let youngest = sqlx::query_scalar("SELECT id FROM cache_entries ORDER BY id DESC LIMIT $1");
    let youngest: Vec<i64> = youngest.bind(limit).fetch_all(&mut *snapshot).await?;
    ids.extend(youngest);

    let ids: Vec<i64> = ids.into_iter().rev().collect();
    let mut entries = Vec::with_capacity(ids.len());
    for batch in ids.chunks(BATCH) {
        let mut select = among_values(
            "SELECT entry_key, summary, description, id FROM cache_entries WHERE id",
            batch.iter().copied(),
        );
        select.push(" ORDER BY id DESC");
        let rows = select.build().persistent(is_common(batch.len())).fetch_all(&mut *snapshot).await?;
        for entry in whole(&mut snapshot, &rows).await? {
            match entry {
                Ok(entry) => entries.push(entry),
                Err(Fault::Catalog(error)) => tracing::debug!(%error, "a cache entry is left out"),
                Err(fault) => return Err(fault),
            }
        }
    }
    let programs = programs(&mut snapshot, &entries).await?;
    snapshot.rollback().await?;
    let with_program = |entry: CacheEntry| {
        let program = programs.get(&entry.program)?.clone();
        Some((entry, program))
    };
    Ok(entries.into_iter().filter_map(with_program).collect())
}

async fn programs(
    connection: &mut SqliteConnection,
    entries: &[CacheEntry],
) -> Result<BTreeMap<Fingerprint, ProgramRecord>, Fault> {
    let names: BTreeSet<Fingerprint> = entries.iter().map(|entry| entry.program).collect();
    let names: Vec<Fingerprint> = names.into_iter().collect();
    let mut programs = BTreeMap::new();
    for batch in names.chunks(BATCH) {
        let mut select =
            among("SELECT program, encoding, packing, description FROM cache_programs WHERE program", batch);
        let rows = select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        programs.extend(rows.iter().filter_map(read).map(|record| (record.program, record)));
    }
    Ok(programs)
}

fn read(row: &SqliteRow) -> Option<ProgramRecord> {
    Some(ProgramRecord {
        program: Fingerprint::from_slice(row.try_get(0).ok()?)?,
        encoding: encoding(row, 1, 2)?.into(),
        description: row.try_get(3).ok()?,
    })
}
