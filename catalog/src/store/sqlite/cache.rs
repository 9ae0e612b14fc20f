//! Cache entries: what an index needs in one narrow table, everything else beside it.
//!
//! ```text
//!   summary   the packed record that an index is built of
//!   changes   what happened since a version
//!   add       publishing
//!   drop      dropping, and remembering that
//!   read      whole entries and programs
//!   near      entries that a query may be like
//!   counts    uses and look-ups
//! ```
//!
//! Every transaction that writes takes its version from `cache_state` first. SQLite lets one writer in anyway; on
//! PostgreSQL that row's lock will do the same, so that versions are committed in their order and what a transaction read
//! stays true until it ends.

mod add;
mod changes;
mod counts;
mod drop;
mod near;
mod read;
mod summary;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Encode, QueryBuilder, Sqlite, Type};

pub(super) use self::add::add;
pub(super) use self::changes::changes;
pub(super) use self::counts::{lookups, save_counts};
pub(super) use self::drop::drop;
pub(super) use self::near::neighbours;
pub(super) use self::read::{entry, files_referenced, page, program};
use super::fault::Fault;
use crate::Fingerprint;

/// Rows or keys per statement; with at most six values each far below what SQLite and PostgreSQL let one statement bind.
const BATCH: usize = 256;

/// Whether a statement for so many rows comes again, so that it is worth keeping prepared.
fn is_common(n_rows: usize) -> bool {
    n_rows == 1 || n_rows == BATCH
}

/// The version of this transaction.
async fn next_version(connection: &mut SqliteConnection) -> Result<i64, Fault> {
    let next = sqlx::query_scalar("UPDATE cache_state SET version = version + 1 RETURNING version");
    Ok(next.fetch_one(connection).await?)
}

/// A statement followed by ` IN (..)` with fingerprints.
fn among<'a>(sql: &str, keys: impl IntoIterator<Item = &'a Fingerprint>) -> QueryBuilder<Sqlite> {
    among_values(sql, keys.into_iter().map(|key| key.as_bytes().to_vec()))
}

/// A statement followed by ` IN (..)` with values.
fn among_values<'a, T>(sql: &str, values: impl IntoIterator<Item = T>) -> QueryBuilder<Sqlite>
where
    T: Encode<'a, Sqlite> + Type<Sqlite>,
{
    let mut builder = QueryBuilder::new(sql);
    builder.push(" IN (");
    let mut list = builder.separated(", ");
    for value in values {
        list.push_bind(value);
    }
    builder.push(")");
    builder
}
