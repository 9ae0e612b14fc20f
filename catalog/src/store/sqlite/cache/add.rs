//! Publishing entries: programs, entries, parts, inputs and what they were made of in one transaction, many rows a statement.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::summary::Summary;
use super::{BATCH, among, drop, evictions, is_common, next_version, origins, pins, places, read, sources};
use crate::cache::{AddedEntries, NewEntry, Publication};
use crate::{Fingerprint, FingerprintBuilder, fail_point};

pub(in super::super) async fn publish(lane: &mut Lane, publication: &Publication) -> Result<AddedEntries, Fault> {
    let entries = &publication.entries;
    let mut note = lane.note().await?;
    let version = next_version(&mut note).await?;
    if let Some(purges) = publication.purges {
        let now: i64 = sqlx::query_scalar("SELECT purges FROM cache_state").fetch_one(&mut *note).await?;
        // What the statement read may have been purged since, and so must what it made of it be.
        if now != purges {
            note.rollback().await?;
            return Ok(AddedEntries { version: None, added: vec![false; entries.len()] });
        }
    }
    let source_id = match &publication.run {
        Some(run) => sources::save(&mut note, std::slice::from_ref(run)).await?.pop().flatten(),
        None => None,
    };
    let mut next_id: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM cache_entries").fetch_one(&mut *note).await?;
    let (mut added, mut seen) = (Vec::with_capacity(entries.len()), BTreeSet::new());
    for batch in entries.chunks(BATCH) {
        let keys: BTreeSet<&Fingerprint> = batch.iter().map(|new| &new.entry.key).collect();
        let there = there(&mut note, &keys).await?;
        let is_new = |new: &NewEntry| !there.contains(&new.entry.key) && seen.insert(new.entry.key);
        let first = added.len();
        added.extend(batch.iter().map(is_new));
        let new: Vec<_> = batch.iter().zip(&added[first..]).filter(|(_, new)| **new).map(|(entry, _)| entry).collect();
        insert(&mut note, &new, next_id, version, source_id).await?;
        next_id += new.len() as i64;
    }
    if !added.contains(&true) {
        note.rollback().await?;
        return Ok(AddedEntries { version: None, added });
    }
    pins::move_in(&mut note, &publication.pins).await?;
    fail_point("commit_begun");
    note.commit().await?;
    fail_point("commit_done");
    Ok(AddedEntries { version: Some(version), added })
}

/// Which of the keys have a good entry. Bad ones are dropped: an index left them out, so nobody uses them.
async fn there(
    connection: &mut SqliteConnection,
    keys: &BTreeSet<&Fingerprint>,
) -> Result<BTreeSet<Fingerprint>, Fault> {
    let mut select = among("SELECT entry_key, summary, id FROM cache_entries WHERE entry_key", keys.iter().copied());
    let rows = select.build().persistent(is_common(keys.len())).fetch_all(&mut *connection).await?;
    let (mut good, mut bad) = (BTreeSet::new(), Vec::new());
    for row in rows {
        // These are the keys that were asked for, so they have the right length.
        let Some(key) = row.try_get(0).ok().and_then(Fingerprint::from_slice) else { continue };
        match row.try_get(1).ok().and_then(Summary::unpack) {
            Some(summary) if summary.entry.key == key => _ = good.insert(key),
            _ => bad.push(row.try_get(2)?),
        }
    }
    if !bad.is_empty() {
        tracing::warn!(n_damaged = bad.len(), "damaged cache entries make room for new ones");
        // Their files are not looked for: what no entry names is swept.
        drop::delete(connection, &bad).await?;
    }
    Ok(good)
}

/// Adds a batch whose keys are free, from an id on.
async fn insert(
    connection: &mut SqliteConnection,
    new: &[&NewEntry],
    id: i64,
    version: i64,
    source_id: Option<i64>,
) -> Result<(), Fault> {
    if new.is_empty() {
        return Ok(());
    }
    let is_common = is_common(new.len());
    let programs: BTreeMap<_, _> = new.iter().map(|new| (new.program.program, &new.program)).collect();
    sources::save_programs(connection, &programs).await?;
    let told = read::descriptions(connection, &programs.keys().copied().collect()).await?;
    insert_entries(new, id, version, &told).build().persistent(is_common).execute(&mut *connection).await?;
    let mut delete = among("DELETE FROM cache_dropped WHERE entry_key", new.iter().map(|new| &new.entry.key));
    delete.build().persistent(is_common).execute(&mut *connection).await?;
    evictions::remade(connection, new).await?;
    insert_parts(connection, new, id).await?;
    insert_inputs(connection, new, id).await?;
    origins::insert(connection, new, id, source_id).await
}

/// `told` is what their programs are called, which need not be said again.
fn insert_entries(
    new: &[&NewEntry],
    id: i64,
    version: i64,
    told: &BTreeMap<Fingerprint, String>,
) -> QueryBuilder<Sqlite> {
    let mut insert = QueryBuilder::new("INSERT INTO cache_entries (id, entry_key, version, summary, description) ");
    insert.push_values((id..).zip(new), |mut row, (id, NewEntry { entry, .. })| {
        let summary = Summary {
            entry: entry.summary(),
            version,
            n_parts: count(entry.parts.len()),
            n_inputs: count(entry.inputs.len()),
        };
        let is_told = told.get(&entry.program) == Some(&entry.description);
        let description = (!is_told).then_some(&entry.description);
        row.push_bind(id)
            .push_bind(entry.key.as_bytes().to_vec())
            .push_bind(version)
            .push_bind(summary.pack())
            .push_bind(description);
    });
    insert
}

async fn insert_parts(connection: &mut SqliteConnection, new: &[&NewEntry], id: i64) -> Result<(), Fault> {
    let parts: Vec<_> = (id..)
        .zip(new)
        .flat_map(|(id, new)| (0_i64..).zip(&new.entry.parts).map(move |(position, part)| (id, position, part)))
        .collect();
    for batch in parts.chunks(BATCH) {
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO cache_parts (entry_id, position, location, file_bytes, row_count, checksum) ",
        );
        insert.push_values(batch, |mut row, (id, position, part)| {
            row.push_bind(*id)
                .push_bind(*position)
                .push_bind(&part.location)
                .push_bind(part.bytes.cast_signed())
                .push_bind(part.rows.cast_signed())
                .push_bind(part.checksum.as_bytes().to_vec());
        });
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn insert_inputs(connection: &mut SqliteConnection, new: &[&NewEntry], id: i64) -> Result<(), Fault> {
    let (mut lists, mut links, mut placed) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
    for (id, NewEntry { entry, lineage, .. }) in (id..).zip(new) {
        let mut lineages = lineage.iter().flat_map(|lineage| &lineage.inputs);
        for (position, extents) in (0_i64..).zip(&entry.inputs) {
            let packed = pack_extents(extents);
            let input = input_of(&packed);
            lists.insert(input, packed);
            let lineage = lineages.next().filter(|lineage| lineage.extents.len() == extents.len());
            if let Some(lineage) = lineage {
                placed.insert(input, (extents, &lineage.extents));
            }
            links.push((id, position, input, lineage));
        }
    }
    let lists: Vec<_> = lists.into_iter().collect();
    for batch in lists.chunks(BATCH) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO cache_inputs (input, extents) ");
        insert.push_values(batch, |mut row, (input, extents)| {
            row.push_bind(input.as_bytes().to_vec()).push_bind(extents.clone());
        });
        // The same list is the same row; one that was damaged is mended.
        insert.push(
            " ON CONFLICT (input) DO UPDATE SET extents = excluded.extents WHERE cache_inputs.extents <> excluded.extents",
        );
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    for batch in links.chunks(BATCH) {
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO cache_entry_inputs (entry_id, position, input, table_name, table_id, reused) ",
        );
        insert.push_values(batch, |mut row, (id, position, input, lineage)| {
            row.push_bind(*id)
                .push_bind(*position)
                .push_bind(input.as_bytes().to_vec())
                .push_bind(lineage.map(|lineage| lineage.table.clone()))
                .push_bind(lineage.and_then(|lineage| lineage.table_id).map(|id| id.to_string()))
                .push_bind(lineage.and_then(|lineage| origins::pack_bits(&lineage.reused)));
        });
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    places::insert(connection, &placed).await
}

/// More than four billion would not fit into memory either.
fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// The name that a list of extents is stored under.
pub(super) fn list_name(extents: &[Fingerprint]) -> Fingerprint {
    input_of(&pack_extents(extents))
}

fn pack_extents(extents: &[Fingerprint]) -> Vec<u8> {
    extents.iter().flat_map(|extent| extent.as_bytes()).copied().collect()
}

/// The name of a list of extents.
fn input_of(packed: &[u8]) -> Fingerprint {
    FingerprintBuilder::new("extents").field("fingerprints", packed).finish()
}

/// The extents of a stored list; `None` if it is not the list of that name. Reuse over some of the extents rests on this
/// list, so it is never taken on trust.
pub(super) fn unpack_extents(input: &Fingerprint, packed: &[u8]) -> Option<Arc<[Fingerprint]>> {
    if input_of(packed) != *input {
        return None;
    }
    packed.chunks(32).map(Fingerprint::from_slice).collect()
}
