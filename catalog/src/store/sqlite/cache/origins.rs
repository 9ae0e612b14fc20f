//! What an entry was made of, besides its inputs: entries, and the statement that made it.

use sqlx::sqlite::SqliteConnection;
use sqlx::{QueryBuilder, Sqlite};

use super::super::fault::Fault;
use super::{BATCH, is_common};
use crate::cache::NewEntry;

/// Writes it down for entries from an id on.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    new: &[&NewEntry],
    id: i64,
    source_id: Option<i64>,
) -> Result<(), Fault> {
    let mut origins = vec![];
    for (id, new) in (id..).zip(new) {
        let keys = new.lineage.iter().flat_map(|lineage| &lineage.origins);
        origins.extend((0_i64..).zip(keys).map(|(position, key)| (id, position, key)));
    }
    for batch in origins.chunks(BATCH) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO cache_entry_origins (entry_id, position, origin) ");
        insert.push_values(batch, |mut row, (id, position, origin)| {
            row.push_bind(*id).push_bind(*position).push_bind(origin.as_bytes().to_vec());
        });
        insert.build().persistent(is_common(batch.len())).execute(&mut *connection).await?;
    }
    if let Some(source_id) = source_id {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO cache_entry_sources (entry_id, source_id) ");
        insert.push_values((id..).zip(new), |mut row, (id, _)| {
            row.push_bind(id).push_bind(source_id);
        });
        insert.build().persistent(is_common(new.len())).execute(&mut *connection).await?;
    }
    Ok(())
}

/// One bit each; `None` if none is set.
pub(super) fn pack_bits(bits: &[bool]) -> Option<Vec<u8>> {
    let byte = |bits: &[bool]| (0..8).fold(0_u8, |byte, at| byte | (u8::from(bits.get(at) == Some(&true)) << at));
    bits.contains(&true).then(|| bits.chunks(8).map(byte).collect())
}

/// Whether a bit is set.
pub(super) fn bit(packed: Option<&[u8]>, at: usize) -> bool {
    packed.and_then(|packed| packed.get(at / 8)).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back() {
        let bits: Vec<bool> = (0..19).map(|at| at % 3 == 0).collect();
        let packed = pack_bits(&bits).expect("some are set");
        assert_eq!(packed.len(), 3);
        assert_eq!((0..19).map(|at| bit(Some(&packed), at)).collect::<Vec<_>>(), bits);
        assert_eq!(pack_bits(&[false; 9]), None);
        assert!(!bit(None, 3) && !bit(Some(&packed), 1000));
    }
}
