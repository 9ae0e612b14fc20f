//! Entries that were made of something, found by index; and purging them.
//!
//! ```text
//!   table --> inputs of entries --> where their extents were --> all entries over those places, by whatever table
//!   file  ------------------------------^                        --> entries made from those entries, and so on
//!         what leads there through links ^
//! ```

use std::collections::BTreeSet;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Encode, Row, Sqlite, Type};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::super::{known_files, purges};
use super::{BATCH, among, among_values, drop, is_common};
use crate::cache::{DataScope, DroppedEntries, EvictionNote};
use crate::store::KnownFile;
use crate::{Fingerprint, fail_point, plain_location};

pub(in super::super) async fn dependants(lane: &mut Lane, scope: &DataScope) -> Result<Vec<Fingerprint>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let found = find(&mut snapshot, scope).await?;
    snapshot.rollback().await?;
    Ok(found)
}

pub(in super::super) async fn purge(
    lane: &mut Lane,
    scope: &DataScope,
    remember: usize,
    why: &EvictionNote<'_>,
) -> Result<DroppedEntries, Fault> {
    lane.overwrite_deleted().await?;
    let mut note = lane.note().await?;
    // First, because it takes the lock on PostgreSQL: nobody publishes between the look and the drop.
    sqlx::query("UPDATE cache_state SET purges = purges + 1").execute(&mut *note).await?;
    let keys = find(&mut note, scope).await?;
    let outcome = drop::drop_in(&mut note, &keys, remember, Some(why)).await?;
    purges::remember_parts(&mut note, &outcome.parts).await?;
    fail_point("drop_begun");
    // Also if nothing was dropped: what is being computed now must not come.
    note.commit().await?;
    fail_point("drop_done");
    Ok(outcome)
}

pub(in super::super) async fn local_folders(lane: &mut Lane) -> Result<Vec<String>, Fault> {
    // Without all letters that are no slash at its end.
    let select = sqlx::query_scalar(
        "SELECT DISTINCT rtrim(location, replace(location, '/', '')) FROM extent_places
         WHERE location >= 'file:///' AND location < 'file:///\u{10ffff}'",
    );
    let mut folders: Vec<String> = select.fetch_all(lane.read()?).await?;
    folders.sort();
    Ok(folders)
}

/// What is known of the scope's files.
pub(in super::super) async fn known_files_of(
    lane: &mut Lane,
    scope: &DataScope,
) -> Result<Vec<(String, KnownFile)>, Fault> {
    let mut snapshot = lane.read()?.begin().await?;
    let (_, locations) = reach(&mut snapshot, scope).await?;
    let is_meant = |location: &str| {
        let url = plain_location(location);
        locations.contains(&*url)
            || scope.names_file(&url)
            || scope.without_links(&url).is_some_and(|real| locations.contains(&real))
    };
    let known = known_files::at(&mut snapshot, is_meant).await?;
    snapshot.rollback().await?;
    Ok(known)
}

/// Entries over tables of the scope, and all files that are known to belong to it.
async fn reach(
    connection: &mut SqliteConnection,
    scope: &DataScope,
) -> Result<(BTreeSet<i64>, BTreeSet<String>), Fault> {
    let mut entries: BTreeSet<i64> = BTreeSet::new();
    let mut locations: BTreeSet<String> = BTreeSet::new();

    let mut lists: BTreeSet<Vec<u8>> = BTreeSet::new();
    let ids: Vec<String> = scope.tables.iter().map(ToString::to_string).collect();
    for (column, values) in [("table_id", &ids), ("table_name", &scope.table_names)] {
        let select = format!("SELECT entry_id, input FROM cache_entry_inputs WHERE {column}");
        for batch in values.chunks(BATCH) {
            let mut select = among_values(&select, batch);
            for row in select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await? {
                entries.insert(row.try_get(0)?);
                lists.insert(row.try_get(1)?);
            }
        }
    }
    let lists: Vec<Vec<u8>> = lists.into_iter().collect();
    let of_lists = "SELECT DISTINCT places.location FROM cache_input_groups AS links
        JOIN extent_places AS places ON places.group_id = links.group_id WHERE links.input";
    locations.extend(values::<String, _>(connection, of_lists, &lists).await?);
    locations.extend(scope.files.iter().cloned());
    for location in &scope.locations {
        let known = beginning_with(connection, &location.url_beginning()).await?;
        locations.extend(known.into_iter().filter(|url| location.names_file(url)));
    }
    for beginning in &scope.file_beginnings {
        locations.extend(beginning_with(connection, beginning).await?);
    }
    // A file is the same by whatever links it is reached.
    let real: Vec<String> = locations.iter().filter_map(|url| scope.without_links(url)).collect();
    locations.extend(real);
    for folder in scope.links.keys() {
        for url in beginning_with(connection, folder).await? {
            if scope.without_links(&url).is_some_and(|real| locations.contains(&real)) || scope.names_file(&url) {
                locations.insert(url);
            }
        }
    }
    Ok((entries, locations))
}

async fn find(connection: &mut SqliteConnection, scope: &DataScope) -> Result<Vec<Fingerprint>, Fault> {
    let (mut entries, locations) = reach(connection, scope).await?;
    let locations: Vec<String> = locations.into_iter().collect();
    let over_them = "SELECT DISTINCT inputs.entry_id FROM extent_places AS places
        JOIN cache_input_groups AS links ON links.group_id = places.group_id
        JOIN cache_entry_inputs AS inputs ON inputs.input = links.input WHERE places.location";
    entries.extend(values::<i64, _>(connection, over_them, &locations).await?);
    if scope.unknown {
        let unknown = sqlx::query_scalar("SELECT DISTINCT entry_id FROM cache_entry_inputs WHERE table_name IS NULL");
        let unknown: Vec<i64> = unknown.fetch_all(&mut *connection).await?;
        entries.extend(unknown);
    }

    let mut keys: BTreeSet<Fingerprint> = BTreeSet::new();
    let ids: Vec<i64> = entries.into_iter().collect();
    let keys_of = "SELECT entry_key FROM cache_entries WHERE id";
    let found = values::<Vec<u8>, _>(connection, keys_of, &ids).await?;
    keys.extend(found.iter().filter_map(|key| Fingerprint::from_slice(key)));
    let mut last: Vec<Fingerprint> = keys.iter().chain(&scope.entries).copied().collect();
    while !last.is_empty() {
        let mut next = vec![];
        for batch in last.chunks(BATCH) {
            let mut select = among(
                "SELECT DISTINCT entries.entry_key FROM cache_entry_origins AS origins
                 JOIN cache_entries AS entries ON entries.id = origins.entry_id WHERE origins.origin",
                batch,
            );
            let made: Vec<Vec<u8>> =
                select.build_query_scalar().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
            next.extend(made.iter().filter_map(|key| Fingerprint::from_slice(key)).filter(|key| keys.insert(*key)));
        }
        last = next;
    }
    Ok(keys.into_iter().collect())
}

/// Files that are known, and whose URLs begin like this.
async fn beginning_with(connection: &mut SqliteConnection, beginning: &str) -> Result<Vec<String>, Fault> {
    let select =
        sqlx::query_scalar("SELECT DISTINCT location FROM extent_places WHERE location >= $1 AND location < $2");
    // Behind all of them: URLs are ASCII.
    Ok(select.bind(beginning).bind(format!("{beginning}\u{10ffff}")).fetch_all(connection).await?)
}

/// The first column of a question about many values.
async fn values<T, V>(connection: &mut SqliteConnection, select: &str, keys: &[V]) -> Result<Vec<T>, Fault>
where
    T: for<'r> sqlx::Decode<'r, Sqlite> + Type<Sqlite> + Send + Unpin,
    V: for<'q> Encode<'q, Sqlite> + Type<Sqlite> + Clone + Send,
{
    let mut found = vec![];
    for batch in keys.chunks(BATCH) {
        let mut select = among_values(select, batch.iter().cloned());
        let rows: Vec<T> =
            select.build_query_scalar().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        found.extend(rows);
    }
    Ok(found)
}
