//! [`NotNullColumns`]: which columns of a snapshot hold no NULL, worked out once per snapshot.

use std::sync::Arc;

use moka::sync::Cache;
use nectarine_catalog::{Extent, Fingerprint, TableDef, TableId, stats};

/// Snapshots that are remembered.
const SNAPSHOTS_MAX: u64 = 1_000;

/// What is known of the snapshots that were read last.
#[derive(Clone)]
pub(crate) struct NotNullColumns {
    known: Cache<(TableId, Fingerprint), Arc<[bool]>>,
}

impl Default for NotNullColumns {
    fn default() -> Self {
        Self { known: Cache::new(SNAPSHOTS_MAX) }
    }
}

impl NotNullColumns {
    /// One value for each column of `table`; `digest` is that of its `extents`.
    pub(crate) fn of(&self, table: &TableDef, extents: &[Arc<Extent>], digest: Fingerprint) -> Arc<[bool]> {
        self.known.get_with((table.id, digest), || stats::not_null(extents, &table.schema).into())
    }
}
