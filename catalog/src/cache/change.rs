//! What the metadata store and an index tell each other.
//!
//! Every transaction that adds, drops or counts entries has a version, one more than the one before. A key is either an
//! entry or remembered as dropped, never both, under the version of the last transaction that touched it: an index that
//! applies a change only over older ones ends up the same in whatever order changes reach it.

use super::{EntryPart, EntrySummary};
use crate::Fingerprint;

/// Something an index should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CacheChange {
    /// Everything follows: what the reader has is void. Comes first or not at all.
    Everything,
    /// An entry came, or was used by another process.
    Entry {
        /// As it is now.
        summary: EntrySummary,
        /// The version of its last change.
        version: i64,
    },
    /// An entry went.
    Dropped {
        /// Its key.
        key: Fingerprint,
        /// The version that dropped it.
        version: i64,
    },
}

/// What reading changes came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheChanges {
    /// The reader now knows everything up to this version.
    pub version: i64,
    /// Records that could not be read and were left out.
    pub n_damaged: usize,
}

/// What adding entries came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddedEntries {
    /// The version that added them; `None` if all were there already.
    pub version: Option<i64>,
    /// For each given entry whether it was added; where not, one with its key was there.
    pub added: Vec<bool>,
}

/// What dropping entries came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DroppedEntries {
    /// The version that dropped them; `None` if none was there.
    pub version: Option<i64>,
    /// The keys that were there.
    pub keys: Vec<Fingerprint>,
    /// Their parts that no other entry has, each location once.
    pub parts: Vec<EntryPart>,
}

/// Uses of an entry since they were last written down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UseCount {
    /// The entry.
    pub key: Fingerprint,
    /// How often.
    pub uses: u64,
    /// What that saved, microseconds.
    pub saved_us: u64,
    /// Microseconds since 1970.
    pub last_used_at: i64,
}

/// Look-ups of a program: since they were last written down, or in all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LookupCount {
    /// The program.
    pub program: Fingerprint,
    /// How often.
    pub lookups: u64,
    /// Microseconds since 1970.
    pub last_lookup_at: i64,
}
