//! Room in the derived store: who has set some aside, and what was evicted to make some.
//!
//! Keeps true   bytes of entries, plus what leases set aside, plus files of dropped entries that could not be deleted, is all
//!              that there may be in the derived store. A process sets room aside before it writes, and gives it back when what
//!              it wrote is an entry or is deleted.

use crate::Fingerprint;

/// A process at work in the derived store. One that died leaves its lease behind; it goes when what it left is swept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheLease {
    /// The process, by the name that it has in the home.
    pub holder: String,
    /// Room that it has set aside for what is no entry yet, or no more.
    pub reserved: u64,
    /// Microseconds since 1970. Who can be seen to live needs none of it.
    pub expires_at: i64,
}

/// A process asks for room. Amounts are all that it is to have, not what is added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpaceRequest {
    /// Who asks.
    pub holder: String,
    /// Less would be of no use.
    pub least: u64,
    /// More is not needed.
    pub most: u64,
    /// What entries and leases may come to together.
    pub budget: u64,
    /// What entries come to at `version`.
    pub used: u64,
    /// The version of the view cache that the asker knows.
    pub version: i64,
    /// See [`CacheLease::expires_at`].
    pub expires_at: i64,
}

/// What asking for room came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpaceOutcome {
    /// So much is set aside.
    Granted(u64),
    /// Not even the least is there; others have set so much aside, or could not delete it.
    Refused {
        /// The sum over other leases and undeleted files.
        others: u64,
    },
    /// There are entries that the asker does not know of: look again, ask again.
    Stale,
}

/// Why entries are dropped, for [`EvictionRecord`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EvictionNote<'a> {
    /// A word or two.
    pub reason: &'a str,
    /// Microseconds since 1970.
    pub at: i64,
    /// Records that stay, the newest.
    pub keep: usize,
    /// Whether what is pinned stays.
    pub spares_pinned: bool,
}

/// An entry that was dropped, as `system.evictions` shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EvictionRecord {
    /// FP_PD.
    pub key: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// What it was, for people.
    pub description: String,
    /// What that freed.
    pub bytes: u64,
    /// What computing it had taken, microseconds.
    pub cost_us: u64,
    /// How often it had been used.
    pub uses: u64,
    /// See [`EvictionNote::reason`].
    pub reason: String,
    /// Microseconds since 1970.
    pub evicted_at: i64,
    /// When there was such an entry again, and what that took in microseconds.
    pub remade: Option<(i64, u64)>,
}

/// All that was ever evicted, also what is no longer recorded one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EvictionTotals {
    /// How many.
    pub entries: u64,
    /// What that freed.
    pub bytes: u64,
}
