//! Programs by the rows they give.

use sqlx::{QueryBuilder, Row, Sqlite};

use super::super::fault::Fault;
use super::super::lane::Lane;
use super::super::tables::{decode_schema, encode_schema};
use super::{BATCH, is_common};
use crate::Fingerprint;
use crate::cache::RelativeRecord;

pub(in super::super) async fn save_relatives(
    lane: &mut Lane,
    relatives: &[RelativeRecord],
    keep: usize,
) -> Result<(), Fault> {
    let mut note = lane.note().await?;
    let mut next_id: i64 =
        sqlx::query_scalar("SELECT COALESCE(MAX(id) + 1, 1) FROM cache_relatives").fetch_one(&mut *note).await?;
    for batch in relatives.chunks(BATCH) {
        insert(batch, next_id).build().persistent(is_common(batch.len())).execute(&mut *note).await?;
        next_id += batch.len() as i64;
    }
    let oldest = next_id.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX));
    sqlx::query("DELETE FROM cache_relatives WHERE id < $1").bind(oldest).execute(&mut *note).await?;
    note.commit().await?;
    Ok(())
}

fn insert(relatives: &[RelativeRecord], id: i64) -> QueryBuilder<Sqlite> {
    let mut insert = QueryBuilder::new("INSERT INTO cache_relatives (id, program, family, columns, types) ");
    insert.push_values((id..).zip(relatives), |mut row, (id, relative)| {
        row.push_bind(id)
            .push_bind(relative.program.as_bytes().to_vec())
            .push_bind(relative.family.as_bytes().to_vec())
            .push_bind(relative.columns.iter().flat_map(|column| *column.as_bytes()).collect::<Vec<u8>>())
            .push_bind(encode_schema(&relative.schema));
    });
    // A program gives the same rows for ever.
    insert.push(" ON CONFLICT (program) DO NOTHING");
    insert
}

pub(in super::super) async fn relatives(
    lane: &mut Lane,
    after: i64,
    limit: usize,
) -> Result<(i64, Vec<RelativeRecord>), Fault> {
    let select = sqlx::query(
        "SELECT id, program, family, columns, types FROM cache_relatives WHERE id > $1 ORDER BY id DESC LIMIT $2",
    );
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = select.bind(after).bind(limit).fetch_all(lane.read()?).await?;
    let (mut last, mut relatives) = (after, Vec::with_capacity(rows.len()));
    for row in rows.iter().rev() {
        last = row.try_get(0)?;
        let fingerprint = |column: usize| row.try_get(column).ok().and_then(Fingerprint::from_slice);
        let columns = row.try_get(3).ok().and_then(columns);
        let schema = row.try_get(4).ok().and_then(|bytes| decode_schema(bytes).ok());
        if let (Some(program), Some(family), Some(columns), Some(schema)) =
            (fingerprint(1), fingerprint(2), columns, schema)
            && columns.len() == schema.fields().len()
        {
            relatives.push(RelativeRecord { program, family, columns: columns.into(), schema });
        }
    }
    Ok((last, relatives))
}

fn columns(bytes: &[u8]) -> Option<Vec<Fingerprint>> {
    bytes.chunks(size_of::<Fingerprint>()).map(Fingerprint::from_slice).collect()
}
