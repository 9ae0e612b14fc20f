//! [`CacheEntry`]: one result that exists, as Nectar writes it: `<FP_PD, FP_P, result, statistics, extents per input>`.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;

use crate::Fingerprint;

/// Longest description that is kept, of an entry or a program; longer ones are cut.
pub const DESCRIPTION_BYTES_MAX: usize = 512;

/// What the files of an entry hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EntryKind {
    /// The rows that the program returns.
    Rows,
    /// Aggregate states, to be combined and finished.
    States,
}

impl EntryKind {
    /// As system tables show it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::States => "states",
        }
    }
}

/// One file of a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryPart {
    /// Where it is, relative to the derived store.
    pub location: String,
    /// Its size.
    pub bytes: u64,
    /// Rows in it.
    pub rows: u64,
    /// Of its content.
    pub checksum: Fingerprint,
}

/// A result that exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// FP_PD: the program together with the extents it ran on.
    pub key: Fingerprint,
    /// FP_P: the program alone.
    pub program: Fingerprint,
    /// What the files hold.
    pub kind: EntryKind,
    /// The files, in order. None for an empty result, which is a result like any other.
    pub parts: Vec<EntryPart>,
    /// Rows of all parts.
    pub rows: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// What computing it took, microseconds.
    pub cost_us: u64,
    /// The extents it was computed from: for each input of the program, in order, their fingerprints in order.
    pub inputs: Vec<Arc<[Fingerprint]>>,
    /// The program for people, short; see [`DESCRIPTION_BYTES_MAX`].
    pub description: String,
    /// Microseconds since 1970.
    pub created_at: i64,
}

impl CacheEntry {
    /// What an index holds of an entry that was never used.
    pub fn summary(&self) -> EntrySummary {
        EntrySummary {
            key: self.key,
            program: self.program,
            kind: self.kind,
            rows: self.rows,
            bytes: self.bytes,
            cost_us: self.cost_us,
            uses: 0,
            saved_us: 0,
            created_at: self.created_at,
            last_used_at: self.created_at,
        }
    }
}

/// All that choosing and evicting need to know of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntrySummary {
    /// FP_PD.
    pub key: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// What the files hold.
    pub kind: EntryKind,
    /// Rows of all parts.
    pub rows: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// What computing it took, microseconds.
    pub cost_us: u64,
    /// How often queries read it.
    pub uses: u64,
    /// What that saved in all, microseconds.
    pub saved_us: u64,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Microseconds since 1970; `created_at` while it has no uses.
    pub last_used_at: i64,
}

/// A program, kept once however many entries it has, and also when it has none any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRecord {
    /// FP_P.
    pub program: Fingerprint,
    /// The canonical encoding, to be compared when the fingerprint matches.
    pub encoding: Arc<[u8]>,
    /// The program for people, short; see [`DESCRIPTION_BYTES_MAX`].
    pub description: String,
}

/// Which rows a program gives, and what its columns are: others that give the same rows in other columns are its relatives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RelativeRecord {
    /// FP_P.
    pub program: Fingerprint,
    /// Which rows, with the extents left open.
    pub family: Fingerprint,
    /// What each column is, within the family.
    pub columns: Arc<[Fingerprint]>,
    /// Their types.
    pub schema: SchemaRef,
}

/// Cuts a description that is too long, between two characters.
pub(crate) fn bounded(mut description: String) -> String {
    description.truncate(description.floor_char_boundary(DESCRIPTION_BYTES_MAX));
    description
}
