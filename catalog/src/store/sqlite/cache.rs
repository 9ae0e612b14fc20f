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
//!   relatives programs by the rows they give
//!   sources   programs that ran, for ever
//!   places    where the extents of lists are
//!   origins   what an entry was made of, written
//!   provenance  the same, read
//!   dependants  the other way round: what was made of something; purging it
//!   space     leases, and room that is set aside
//!   evictions what was evicted, and what it took to make it again
//!   pins      what is not evicted to make room
//!   sweep     what the collector asks
//! ```
//!
//! Every transaction that writes takes its version from `cache_state` first. SQLite lets one writer in anyway; on
//! PostgreSQL that row's lock will do the same, so that versions are committed in their order and what a transaction read
//! stays true until it ends.

mod add;
mod changes;
mod counts;
mod dependants;
mod drop;
mod evictions;
mod near;
mod origins;
mod pins;
mod places;
mod provenance;
mod read;
mod relatives;
mod sources;
mod space;
mod summary;
mod sweep;

use sqlx::sqlite::SqliteConnection;
use sqlx::{Encode, QueryBuilder, Sqlite, Type};

pub(super) use self::add::publish;
pub(super) use self::changes::changes;
pub(super) use self::counts::{lookups, save_counts};
pub(super) use self::dependants::{dependants, known_files_of, local_folders, purge};
pub(super) use self::drop::drop;
pub(super) use self::evictions::{eviction_totals, evictions};
pub(super) use self::near::neighbours;
pub(super) use self::pins::{move_pins, pin, pins, unpin};
pub(super) use self::provenance::provenance;
pub(super) use self::read::{entry, files_referenced, page, program};
pub(super) use self::relatives::{relatives, save_relatives};
pub(super) use self::sources::{program_source, program_sources, save_program_runs};
pub(super) use self::space::{drop_lease, leases, reserve, save_lease};
pub(super) use self::sweep::{drop_inputs, locations, unused_inputs};
use super::fault::Fault;
use crate::Fingerprint;

/// Rows or keys per statement; with at most nine values each far below what SQLite and PostgreSQL let one statement bind.
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
