//! Whole entries and programs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::add::unpack_extents;
use super::summary::Summary;
use super::{BATCH, among, among_values, is_common, sources};
use crate::Fingerprint;
use crate::cache::{CacheEntry, EntryPart, EntrySummary, ProgramRecord};

pub(in super::super) async fn entry(lane: &mut Lane, key: &Fingerprint) -> Result<Option<CacheEntry>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let select = sqlx::query("SELECT entry_key, summary, description, id FROM cache_entries WHERE entry_key = $1");
    let row = select.bind(key.as_bytes().to_vec()).fetch_optional(&mut *snapshot).await?;
    let entry = match row {
        Some(row) => whole(&mut snapshot, &[row]).await?.pop(),
        None => None,
    };
    snapshot.rollback().await?;
    entry.transpose()
}

pub(in super::super) async fn page(
    lane: &mut Lane,
    after: Option<&Fingerprint>,
    limit: usize,
) -> Result<Vec<CacheEntry>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let mut page = Vec::new();
    // No key is shorter than this one, so that all come after it.
    let mut after = after.map_or_else(Vec::new, |after| after.as_bytes().to_vec());
    while page.len() < limit {
        let n_rows = BATCH.min(limit - page.len());
        let rows = sqlx::query(
            "SELECT entry_key, summary, description, id FROM cache_entries WHERE entry_key > $1 ORDER BY entry_key LIMIT $2",
        )
        .bind(after)
        .bind(n_rows as i64)
        .fetch_all(&mut *snapshot)
        .await?;
        let Some(last) = rows.last() else { break };
        after = last.try_get(0)?;
        for entry in whole(&mut snapshot, &rows).await? {
            match entry {
                Ok(entry) => page.push(entry),
                Err(Fault::Catalog(error)) => tracing::warn!(%error, "a cache entry is left out"),
                Err(fault) => return Err(fault),
            }
        }
    }
    snapshot.rollback().await?;
    Ok(page)
}

pub(in super::super) async fn program(lane: &mut Lane, program: &Fingerprint) -> Result<Option<ProgramRecord>, Fault> {
    let select = sqlx::query("SELECT encoding, packing, description FROM cache_programs WHERE program = $1");
    let row = select.bind(program.as_bytes().to_vec()).fetch_optional(lane.read()?).await?;
    let Some(row) = row else { return Ok(None) };
    let Some(encoding) = sources::encoding(&row, 0, 1) else {
        return Err(Fault::damaged(format!("program \"{program}\""), "its encoding cannot be read"));
    };
    Ok(Some(ProgramRecord { program: *program, encoding: encoding.into(), description: row.try_get(2)? }))
}

pub(in super::super) async fn files_referenced(lane: &mut Lane, locations: &[String]) -> Result<Vec<bool>, Fault> {
    let referenced = referenced(lane.read()?, locations).await?;
    Ok(locations.iter().map(|location| referenced.contains(location)).collect())
}

/// What is known of some entries, each with its description; those that cannot be read are left out.
pub(super) async fn summaries(
    connection: &mut SqliteConnection,
    keys: &[Fingerprint],
) -> Result<Vec<(EntrySummary, String)>, Fault> {
    let mut select = among("SELECT entry_key, summary, description, id FROM cache_entries WHERE entry_key", keys);
    select.push(" ORDER BY id");
    let rows = select.build().persistent(is_common(keys.len())).fetch_all(&mut *connection).await?;
    let heads: Vec<_> = rows.iter().filter_map(|row| Head::read(row).ok()).collect();
    let programs = heads.iter().map(|head| head.summary.entry.program).collect();
    let descriptions = descriptions(connection, &programs).await?;
    let describe = |head: Head| {
        let entry = head.summary.entry;
        let description = head.description.or_else(|| descriptions.get(&entry.program).cloned());
        (entry, description.unwrap_or_default())
    };
    Ok(heads.into_iter().map(describe).collect())
}

/// Which of the locations some entry has.
pub(super) async fn referenced(
    connection: &mut SqliteConnection,
    locations: &[String],
) -> Result<BTreeSet<String>, Fault> {
    let mut found = BTreeSet::new();
    for batch in locations.chunks(BATCH) {
        let mut select = among_values("SELECT DISTINCT location FROM cache_parts WHERE location", batch);
        let rows: Vec<String> =
            select.build_query_scalar().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        found.extend(rows);
    }
    Ok(found)
}

/// The parts of some entries; damaged ones are left out.
pub(super) async fn good_parts(connection: &mut SqliteConnection, ids: &[i64]) -> Result<Vec<EntryPart>, Fault> {
    let parts = parts(connection, ids).await?;
    Ok(parts.into_values().flatten().flatten().collect())
}

/// The names of the lists of extents of some entries; damaged ones are left out.
pub(super) async fn inputs(connection: &mut SqliteConnection, ids: &[i64]) -> Result<BTreeSet<Fingerprint>, Fault> {
    let links = links(connection, ids).await?;
    Ok(links.into_values().flatten().flatten().collect())
}

/// Completes rows of entries, each for itself: a damaged one fails alone.
pub(super) async fn whole(
    connection: &mut SqliteConnection,
    rows: &[SqliteRow],
) -> Result<Vec<Result<CacheEntry, Fault>>, Fault> {
    let heads: Vec<_> = rows.iter().map(Head::read).collect();
    let good: Vec<_> = heads.iter().flatten().collect();
    let ids: Vec<_> = good.iter().map(|head| head.id).collect();
    let programs: BTreeSet<_> = good.iter().map(|head| head.summary.entry.program).collect();
    let descriptions = descriptions(connection, &programs).await?;
    let (mut parts, mut links) = (parts(connection, &ids).await?, links(connection, &ids).await?);
    let names: BTreeSet<_> = links.values().flatten().flatten().copied().collect();
    let lists = lists(connection, &names).await?;

    let mut complete = |head: Head| {
        let entry = head.summary.entry;
        let damaged = |detail: &str| Fault::damaged(format!("cache entry \"{}\"", entry.key), detail);
        let parts = parts.remove(&head.id).unwrap_or_default();
        let inputs = links.remove(&head.id).unwrap_or_default();
        // As many as were written: half a result must never pass for one.
        if parts.len() != head.summary.n_parts as usize || inputs.len() != head.summary.n_inputs as usize {
            return Err(damaged("parts or inputs are missing"));
        }
        let parts = parts.into_iter().collect::<Option<_>>().ok_or_else(|| damaged("a part cannot be read"))?;
        let extents = |input: Option<Fingerprint>| lists.get(&input?).cloned();
        let inputs = inputs.into_iter().map(extents).collect::<Option<_>>();
        let description = head.description.or_else(|| descriptions.get(&entry.program).cloned());
        Ok(CacheEntry {
            key: entry.key,
            program: entry.program,
            kind: entry.kind,
            parts,
            rows: entry.rows,
            bytes: entry.bytes,
            cost_us: entry.cost_us,
            inputs: inputs.ok_or_else(|| damaged("the extents of an input cannot be read"))?,
            description: description.unwrap_or_default(),
            created_at: entry.created_at,
        })
    };
    Ok(heads.into_iter().map(|head| head.and_then(&mut complete)).collect())
}

/// What `cache_entries` itself has of an entry.
struct Head {
    id: i64,
    summary: Summary,
    description: Option<String>,
}

impl Head {
    fn read(row: &SqliteRow) -> Result<Self, Fault> {
        let key = row.try_get(0).ok().and_then(Fingerprint::from_slice);
        let summary = row.try_get(1).ok().and_then(Summary::unpack);
        match summary.filter(|summary| Some(summary.entry.key) == key) {
            // A text that cannot be read is no reason to compute again.
            Some(summary) => Ok(Self { id: row.try_get(3)?, summary, description: row.try_get(2).unwrap_or_default() }),
            None => Err(Fault::damaged("a cache entry", "its summary cannot be read")),
        }
    }
}

/// How programs are told to people: in the words of whoever ran them first, over whatever tables.
pub(super) async fn descriptions(
    connection: &mut SqliteConnection,
    programs: &BTreeSet<Fingerprint>,
) -> Result<BTreeMap<Fingerprint, String>, Fault> {
    let mut select = among("SELECT program, description FROM cache_programs WHERE program", programs);
    let rows = select.build().persistent(is_common(programs.len())).fetch_all(connection).await?;
    let read = |row: &SqliteRow| Some((Fingerprint::from_slice(row.try_get(0).ok()?)?, row.try_get(1).ok()?));
    Ok(rows.iter().filter_map(read).collect())
}

/// The parts of each entry, in order; `None` for one that cannot be read.
async fn parts(connection: &mut SqliteConnection, ids: &[i64]) -> Result<BTreeMap<i64, Vec<Option<EntryPart>>>, Fault> {
    let mut select =
        among_values("SELECT entry_id, location, file_bytes, row_count, checksum FROM cache_parts WHERE entry_id", ids);
    select.push(" ORDER BY entry_id, position");
    let rows = select.build().persistent(is_common(ids.len())).fetch_all(connection).await?;
    let read = |row: &SqliteRow| {
        Some(EntryPart {
            location: row.try_get(1).ok()?,
            bytes: row.try_get::<i64, _>(2).ok()?.cast_unsigned(),
            rows: row.try_get::<i64, _>(3).ok()?.cast_unsigned(),
            checksum: Fingerprint::from_slice(row.try_get(4).ok()?)?,
        })
    };
    Ok(by_entry(&rows, read))
}

/// The names of each entry's lists of extents, in order; `None` for one that cannot be read.
async fn links(
    connection: &mut SqliteConnection,
    ids: &[i64],
) -> Result<BTreeMap<i64, Vec<Option<Fingerprint>>>, Fault> {
    let mut select = among_values("SELECT entry_id, input FROM cache_entry_inputs WHERE entry_id", ids);
    select.push(" ORDER BY entry_id, position");
    let rows = select.build().persistent(is_common(ids.len())).fetch_all(connection).await?;
    Ok(by_entry(&rows, |row| Fingerprint::from_slice(row.try_get(1).ok()?)))
}

/// The lists of these names; those that are missing or damaged are not among them.
pub(super) async fn lists(
    connection: &mut SqliteConnection,
    names: &BTreeSet<Fingerprint>,
) -> Result<BTreeMap<Fingerprint, Arc<[Fingerprint]>>, Fault> {
    let names: Vec<_> = names.iter().collect();
    let mut lists = BTreeMap::new();
    for batch in names.chunks(BATCH) {
        let mut select = among("SELECT input, extents FROM cache_inputs WHERE input", batch.iter().copied());
        for row in select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await? {
            let name = row.try_get(0).ok().and_then(Fingerprint::from_slice);
            let list = name.zip(row.try_get(1).ok()).and_then(|(name, packed)| unpack_extents(&name, packed));
            lists.extend(name.zip(list));
        }
    }
    Ok(lists)
}

/// Values of rows that start with an entry's id, in their order.
fn by_entry<T>(rows: &[SqliteRow], read: impl Fn(&SqliteRow) -> Option<T>) -> BTreeMap<i64, Vec<Option<T>>> {
    let mut values: BTreeMap<i64, Vec<Option<T>>> = BTreeMap::new();
    for row in rows {
        if let Ok(id) = row.try_get(0) {
            values.entry(id).or_default().push(read(row));
        }
    }
    values
}
