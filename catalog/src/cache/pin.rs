//! [`Pin`]: a result that somebody wants to stay. It is never evicted to make room.
//!
//! ```text
//!   an entry             one result, by its key
//!   a query              its result over the extents of the moment it was pinned
//!   a materialized view  the newest result of its program: the pin moves when one is kept over other extents
//! ```
//!
//! A pin says that a result stays, not that it is right: one that is damaged, wrong, purged or deleted by hand goes all the
//! same. The pin stays behind, and has the result again as soon as somebody computes it.

use crate::{Fingerprint, TableId};

/// What somebody pinned.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PinSubject {
    /// One result, by its key.
    Entry(Fingerprint),
    /// A query, by its program over its tables; see [`source_name`](super::source_name).
    Query(Fingerprint),
    /// A materialized view.
    View(TableId),
}

impl PinSubject {
    /// As system tables show it.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Entry(_) => "entry",
            Self::Query(_) => "query",
            Self::View(_) => "materialized view",
        }
    }
}

/// A result that stays.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pin {
    /// Whose result.
    pub subject: PinSubject,
    /// For people: the query, or what the entry is. A view has a name, which may change.
    pub what: String,
    /// FP_P of the result.
    pub program: Fingerprint,
    /// FP_PD of the result. It need not be there at the moment.
    pub key: Fingerprint,
    /// Its size, when it was last there.
    pub bytes: u64,
    /// Microseconds since 1970.
    pub pinned_at: i64,
}

/// What pinning came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinOutcome {
    /// It stays from now on.
    Pinned {
        /// Its size.
        bytes: u64,
    },
    /// There is no such entry.
    NoEntry,
    /// All that is pinned would come to more than there may be.
    TooMuch {
        /// With this one.
        bytes: u64,
    },
}

/// A view's program has a result over other extents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PinMove {
    /// The view.
    pub view: TableId,
    /// FP_P: nothing happens if another program is pinned.
    pub program: Fingerprint,
    /// FP_PD of the new result.
    pub key: Fingerprint,
}

/// Views whose pins should move. One stays where it is if its new result is not there, or would be too much.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PinMoves {
    /// Which, and where to.
    pub moves: Vec<PinMove>,
    /// What all pinned results may come to.
    pub bytes_max: u64,
}

/// What all pins come to, besides one of them; a result with several pins counts once.
pub(crate) fn bytes_besides(pins: &[Pin], subject: &PinSubject, key: &Fingerprint) -> u64 {
    let mut counted: Vec<(&Fingerprint, u64)> =
        pins.iter().filter(|pin| pin.subject != *subject && pin.key != *key).map(|pin| (&pin.key, pin.bytes)).collect();
    counted.sort_unstable();
    counted.dedup_by_key(|(key, _)| *key);
    counted.iter().fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes))
}
