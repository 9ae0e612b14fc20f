//! [`Mode`]: the ways in which one statement is run.

/// Which engine on the home.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// The one that most statements run on.
    Main,
    /// Another one beside it that holds nothing in memory, so that entries come from their files.
    Second,
    /// A third with hardly any memory to compute with.
    Small,
}

/// One way to run a statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Without the cache: what is right.
    Reference,
    /// Without the cache on other partitions and batches: whether there is a right answer at all.
    OtherReference,
    /// As the first client that asks, where there is no room to keep anything: what was begun for the cache must not show.
    NoRoom,
    /// As the first client that asks.
    Cold,
    /// As the next one.
    Hit,
    /// Reading only.
    ReadOnly,
    /// Computing anew and replacing.
    Refresh,
    /// Computing anew and comparing with every entry.
    Check,
    /// On so many partitions.
    Partitions(usize),
    /// In batches of so many rows.
    Batch(usize),
    /// On another engine.
    SecondEngine,
    /// With hardly any memory.
    SmallMemory,
    /// After some entries were dropped.
    Evicted,
    /// After files of entries were damaged.
    Damaged,
    /// After all files of entries were deleted.
    Wiped,
}

impl Mode {
    /// Those that every statement goes through.
    pub const ALWAYS: [Self; 4] = [Self::NoRoom, Self::Cold, Self::Hit, Self::Check];

    /// Those of which a statement goes through some, or through all in the long form.
    pub const OTHERS: [Self; 13] = [
        Self::SecondEngine,
        Self::Partitions(1),
        Self::Partitions(2),
        Self::Partitions(7),
        Self::Batch(1),
        Self::Batch(7),
        Self::Batch(8192),
        Self::ReadOnly,
        Self::Refresh,
        Self::SmallMemory,
        Self::Evicted,
        Self::Damaged,
        Self::Wiped,
    ];

    pub(super) fn place(self) -> Place {
        match self {
            Self::SecondEngine | Self::Damaged | Self::Wiped => Place::Second,
            Self::SmallMemory => Place::Small,
            _ => Place::Main,
        }
    }

    /// What to SET before the statement.
    pub fn settings(self) -> Vec<(&'static str, String)> {
        let reuse = match self {
            Self::Reference | Self::OtherReference => "off",
            Self::ReadOnly => "read_only",
            Self::Refresh => "refresh",
            Self::Check => "check",
            _ => "on",
        };
        let mut settings = vec![("nectarine.reuse", reuse.to_owned())];
        let (partitions, batch) = match self {
            Self::Reference => (Some(2), None),
            Self::OtherReference => (Some(7), Some(3)),
            Self::Partitions(n) => (Some(n), None),
            Self::Batch(n) => (None, Some(n)),
            _ => (None, None),
        };
        if self == Self::NoRoom {
            settings.push(("nectarine.cache.entry_limit", "1".to_owned()));
        }
        settings.extend(partitions.map(|n| ("datafusion.execution.target_partitions", n.to_string())));
        settings.extend(batch.map(|n| ("datafusion.execution.batch_size", n.to_string())));
        settings
    }
}
