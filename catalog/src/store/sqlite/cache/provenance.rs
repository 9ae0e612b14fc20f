//! What entries were made of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Connection, Row};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::summary::Summary;
use super::{BATCH, among, among_values, is_common, origins, places, read};
use crate::cache::{EntryProvenance, ExtentPlace, InputProvenance};
use crate::{Fingerprint, TableId};

pub(in super::super) async fn provenance(lane: &mut Lane, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let mut found = vec![];
    for batch in keys.chunks(BATCH) {
        found.extend(of_batch(&mut snapshot, batch).await?);
    }
    snapshot.rollback().await?;
    Ok(found)
}

/// A row of an entry's inputs.
struct Link {
    input: Fingerprint,
    table: Option<String>,
    table_id: Option<TableId>,
    reused: Option<Vec<u8>>,
}

async fn of_batch(connection: &mut SqliteConnection, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>, Fault> {
    let mut select = among("SELECT id, summary FROM cache_entries WHERE entry_key", keys);
    let rows = select.build().persistent(is_common(keys.len())).fetch_all(&mut *connection).await?;
    let head = |row: &SqliteRow| Some((row.try_get(0).ok()?, Summary::unpack(row.try_get(1).ok()?)?.entry));
    let entries: Vec<(i64, crate::EntrySummary)> = rows.iter().filter_map(head).collect();
    let ids: Vec<i64> = entries.iter().map(|(id, _)| *id).collect();

    let mut links = links(connection, &ids).await?;
    let names: BTreeSet<Fingerprint> = links.values().flatten().map(|link| link.input).collect();
    let lists = read::lists(connection, &names).await?;
    let places = places::of_lists(connection, &names).await?;
    let mut made_from = keys_of(
        connection,
        "SELECT entry_id, origin FROM cache_entry_origins WHERE entry_id",
        " ORDER BY entry_id, position",
        &ids,
    )
    .await?;
    let mut sources = keys_of(
        connection,
        "SELECT e.entry_id, s.source FROM cache_entry_sources AS e JOIN program_sources AS s ON s.id = e.source_id
         WHERE e.entry_id",
        "",
        &ids,
    )
    .await?;

    let mut found: BTreeMap<Fingerprint, EntryProvenance> = BTreeMap::new();
    for (id, entry) in entries {
        let input = |link: Link| {
            let list = lists.get(&link.input).cloned().unwrap_or_default();
            // As many as the list has, or they are not its own.
            let places = places.get(&link.input).filter(|places| places.len() == list.len());
            let extent = |(at, fingerprint): (usize, &Fingerprint)| {
                let place = places.and_then(|places| places.get(at));
                ExtentPlace {
                    fingerprint: *fingerprint,
                    location: place.map(|(location, _)| Arc::clone(location)),
                    range: place.and_then(|(_, range)| *range),
                    is_reused: origins::bit(link.reused.as_deref(), at),
                }
            };
            let extents = list.iter().enumerate().map(extent).collect();
            InputProvenance { table: link.table, table_id: link.table_id, extents }
        };
        let provenance = EntryProvenance {
            key: entry.key,
            program: entry.program,
            source: sources.remove(&id).and_then(|mut source| source.pop()),
            inputs: links.remove(&id).unwrap_or_default().into_iter().map(input).collect(),
            origins: made_from.remove(&id).unwrap_or_default(),
        };
        found.insert(entry.key, provenance);
    }
    Ok(keys.iter().filter_map(|key| found.get(key).cloned()).collect())
}

async fn links(connection: &mut SqliteConnection, ids: &[i64]) -> Result<BTreeMap<i64, Vec<Link>>, Fault> {
    let mut select = among_values(
        "SELECT entry_id, input, table_name, table_id, reused FROM cache_entry_inputs WHERE entry_id",
        ids.iter().copied(),
    );
    select.push(" ORDER BY entry_id, position");
    let rows = select.build().persistent(is_common(ids.len())).fetch_all(connection).await?;
    let mut links: BTreeMap<i64, Vec<Link>> = BTreeMap::new();
    for row in rows {
        let link = |row: &SqliteRow| {
            Some(Link {
                input: Fingerprint::from_slice(row.try_get(1).ok()?)?,
                table: row.try_get(2).ok()?,
                table_id: row.try_get::<Option<&str>, _>(3).ok()?.and_then(TableId::parse),
                reused: row.try_get(4).ok()?,
            })
        };
        if let Some(link) = link(&row) {
            links.entry(row.try_get(0)?).or_default().push(link);
        }
    }
    Ok(links)
}

/// Fingerprints by the id of their entry.
async fn keys_of(
    connection: &mut SqliteConnection,
    select: &str,
    order: &str,
    ids: &[i64],
) -> Result<BTreeMap<i64, Vec<Fingerprint>>, Fault> {
    let mut select = among_values(select, ids.iter().copied());
    select.push(order);
    let mut keys: BTreeMap<i64, Vec<Fingerprint>> = BTreeMap::new();
    for row in select.build().persistent(is_common(ids.len())).fetch_all(connection).await? {
        if let Some(key) = row.try_get(1).ok().and_then(Fingerprint::from_slice) {
            keys.entry(row.try_get(0)?).or_default().push(key);
        }
    }
    Ok(keys)
}
