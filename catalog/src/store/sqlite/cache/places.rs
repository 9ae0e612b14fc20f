//! Where the extents of lists are, in groups that lists share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::{BATCH, among, among_values, is_common};
use crate::cache::groups_of;
use crate::{ByteRange, Extent, Fingerprint, FingerprintBuilder, plain_location};

/// Lists by their names: their extents by fingerprint, and the extents themselves.
pub(super) type Placed<'a> = BTreeMap<Fingerprint, (&'a Arc<[Fingerprint]>, &'a Arc<[Arc<Extent>]>)>;

/// The places of a list's extents.
pub(super) type Places = Vec<(Arc<str>, Option<ByteRange>)>;

/// Writes down where the extents of lists are, unless that is known.
pub(super) async fn insert(connection: &mut SqliteConnection, lists: &Placed<'_>) -> Result<(), Fault> {
    let names: Vec<&Fingerprint> = lists.keys().collect();
    let mut known = BTreeSet::new();
    for batch in names.chunks(BATCH) {
        let mut select = among("SELECT DISTINCT input FROM cache_input_groups WHERE input", batch.iter().copied());
        let rows = select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        known.extend(rows.iter().filter_map(|row| Fingerprint::from_slice(row.try_get(0).ok()?)));
    }
    for (input, (fingerprints, extents)) in lists.iter().filter(|(input, _)| !known.contains(*input)) {
        let mut at = 0;
        let mut groups = vec![];
        for group in groups_of(fingerprints) {
            groups.push((digest(group), &extents[at..at + group.len()]));
            at += group.len();
        }
        let ids = group_ids(connection, &groups).await?;
        let links: Vec<(i64, i64)> =
            (0_i64..).zip(&groups).filter_map(|(at, (digest, _))| Some((at, *ids.get(digest)?))).collect();
        for batch in links.chunks(BATCH) {
            let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO cache_input_groups (input, position, group_id) ");
            insert.push_values(batch, |mut row, (position, group)| {
                row.push_bind(input.as_bytes().to_vec()).push_bind(*position).push_bind(*group);
            });
            insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

/// The ids of groups; those that are new are written down.
async fn group_ids(
    connection: &mut SqliteConnection,
    groups: &[(Fingerprint, &[Arc<Extent>])],
) -> Result<BTreeMap<Fingerprint, i64>, Fault> {
    let mut ids = BTreeMap::new();
    for batch in groups.chunks(BATCH) {
        let mut select =
            among("SELECT digest, id FROM extent_groups WHERE digest", batch.iter().map(|(digest, _)| digest));
        let rows = select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        for row in rows {
            let digest = row.try_get(0).ok().and_then(Fingerprint::from_slice);
            ids.extend(digest.zip(row.try_get(1).ok()));
        }
    }
    let mut next_id: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM extent_groups").fetch_one(&mut *connection).await?;
    let mut rows = vec![];
    for (digest, extents) in groups {
        if ids.contains_key(digest) {
            continue;
        }
        let insert = sqlx::query("INSERT INTO extent_groups (id, digest) VALUES ($1, $2)");
        insert.bind(next_id).bind(digest.as_bytes().to_vec()).execute(&mut *connection).await?;
        rows.extend((0_i64..).zip(*extents).map(|(position, extent)| (next_id, position, extent)));
        ids.insert(*digest, next_id);
        next_id += 1;
    }
    for batch in rows.chunks(BATCH) {
        let mut insert = QueryBuilder::<Sqlite>::new(
            "INSERT INTO extent_places (group_id, position, location, byte_start, byte_end) ",
        );
        insert.push_values(batch, |mut row, (group, position, extent)| {
            row.push_bind(*group)
                .push_bind(*position)
                .push_bind(plain_location(&extent.location).into_owned())
                .push_bind(extent.range.map_or(0, |range| range.start).cast_signed())
                .push_bind(extent.range.map(|range| range.end.cast_signed()));
        });
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    Ok(ids)
}

/// The groups that lists are cut into.
pub(super) async fn groups_of_lists(
    connection: &mut SqliteConnection,
    inputs: &[Fingerprint],
) -> Result<BTreeSet<i64>, Fault> {
    let mut groups = BTreeSet::new();
    for batch in inputs.chunks(BATCH) {
        let mut select = among("SELECT DISTINCT group_id FROM cache_input_groups WHERE input", batch);
        let found: Vec<i64> =
            select.build_query_scalar().persistent(is_common(batch.len())).fetch_all(&mut *connection).await?;
        groups.extend(found);
    }
    Ok(groups)
}

/// Forgets those groups that no list has any more.
pub(super) async fn delete_unused(connection: &mut SqliteConnection, groups: &BTreeSet<i64>) -> Result<(), Fault> {
    let groups: Vec<i64> = groups.iter().copied().collect();
    for batch in groups.chunks(BATCH) {
        let mut delete = among_values("DELETE FROM extent_groups WHERE id", batch.iter().copied());
        delete.push(
            " AND NOT EXISTS (SELECT 1 FROM cache_input_groups WHERE cache_input_groups.group_id = extent_groups.id)",
        );
        delete.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Where the extents of lists are; lists of which that is not known are left out.
pub(super) async fn of_lists(
    connection: &mut SqliteConnection,
    inputs: &BTreeSet<Fingerprint>,
) -> Result<BTreeMap<Fingerprint, Places>, Fault> {
    let inputs: Vec<&Fingerprint> = inputs.iter().collect();
    let mut places: BTreeMap<Fingerprint, Places> = BTreeMap::new();
    for batch in inputs.chunks(BATCH) {
        let mut select = among(
            "SELECT links.input, places.location, places.byte_start, places.byte_end
             FROM cache_input_groups AS links JOIN extent_places AS places ON places.group_id = links.group_id
             WHERE links.input",
            batch.iter().copied(),
        );
        select.push(" ORDER BY links.input, links.position, places.position");
        for row in select.build().persistent(is_common(batch.len())).fetch_all(&mut *connection).await? {
            if let Some((input, place)) = row.try_get(0).ok().and_then(Fingerprint::from_slice).zip(place(&row)) {
                places.entry(input).or_default().push(place);
            }
        }
    }
    Ok(places)
}

fn place(row: &SqliteRow) -> Option<(Arc<str>, Option<ByteRange>)> {
    let location: &str = row.try_get(1).ok()?;
    let start = row.try_get::<i64, _>(2).ok()?.cast_unsigned();
    let end = row.try_get::<Option<i64>, _>(3).ok()?;
    Some((Arc::from(location), end.map(|end| ByteRange { start, end: end.cast_unsigned() })))
}

fn digest(group: &[Fingerprint]) -> Fingerprint {
    let packed: Vec<u8> = group.iter().flat_map(|extent| extent.as_bytes()).copied().collect();
    FingerprintBuilder::new("extent group").field("fingerprints", &packed).finish()
}
