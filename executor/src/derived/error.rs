//! What can be wrong with an entry, and why something was not recorded.

use std::sync::Arc;

/// Why a part could not be used. Never a reason to fail a statement: the entry is dropped and the rows are computed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum DerivedError {
    /// The part is not there: deleted, or evicted meanwhile.
    #[error("derived part \"{location}\" is missing")]
    Missing {
        /// Which part.
        location: String,
    },
    /// The part is not what was written.
    #[error("derived part \"{location}\" is damaged: {detail}")]
    Damaged {
        /// Which part.
        location: String,
        /// What differs.
        detail: String,
    },
    /// The store did not answer; the part may be fine.
    #[error("cannot {attempted} derived part \"{location}\"")]
    Unavailable {
        /// `read`, `write`, `delete`, `list`.
        attempted: &'static str,
        /// Which part.
        location: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
}

impl DerivedError {
    /// Whether the entry itself is useless, and not only the store unwell.
    pub fn is_lost(&self) -> bool {
        !matches!(self, Self::Unavailable { .. })
    }

    pub(crate) fn unavailable(
        attempted: &'static str,
        location: &str,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> Self {
        Self::Unavailable { attempted, location: location.to_owned(), source: Arc::new(source) }
    }
}

/// Why a recording gives no entry. All of them are harmless to the statement.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotRecorded {
    /// Somebody above had enough, or never asked: LIMIT, an empty build side, a cancelled statement.
    #[error("only {ended} of {partitions} partitions were read to their end")]
    NotAllRows {
        /// Partitions that ended.
        ended: usize,
        /// Partitions there are; 0 when none was ever asked for.
        partitions: usize,
    },
    /// The rows ended with an error.
    #[error("the rows ended with an error")]
    Failed,
    /// A partition ran more than once, so that it is not known which rows are which.
    #[error("a partition was executed twice")]
    RanTwice,
    /// More bytes than allowed.
    #[error("larger than {bytes_max} bytes")]
    TooLarge {
        /// The limit.
        bytes_max: u64,
    },
    /// Nobody asked for it yet, and recording it would take too much of the statement's time.
    #[error("too many bytes for the time they took")]
    TooDear,
    /// Nobody asked for it yet, and the statement needs only a part of its rows.
    #[error("the statement itself needs less")]
    GaveWay,
    /// There is no room for it in the derived store.
    #[error("there is no room for {bytes} bytes")]
    NoRoom {
        /// What it would have taken, so far.
        bytes: u64,
    },
    /// The store did not keep up.
    #[error("the derived store is too slow")]
    StoreTooSlow,
    /// The store failed.
    #[error("the derived store failed")]
    Store(#[source] DerivedError),
    /// The rows can not be kept as they are.
    #[error("rows that can not be kept: {detail}")]
    Unstorable {
        /// Why.
        detail: String,
    },
    /// The engine did not want it any more.
    #[error("discarded")]
    Discarded,
    /// It was finished before.
    #[error("finished before")]
    FinishedBefore,
}
