//! [`Receipt`]: what an answer used and what that saved.

use std::sync::Arc;
use std::time::Duration;

use nectarine_catalog::Fingerprint;
use nectarine_planner::reuse::ExtentCounts;
use parking_lot::Mutex;

use crate::Notice;

/// How much of an answer was there already.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reused {
    /// Nothing.
    #[default]
    None,
    /// All of it.
    Exact,
    /// Some prefixes.
    Partial,
}

impl Reused {
    /// As `system.queries` shows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Exact => "exact",
            Self::Partial => "partial",
        }
    }
}

/// What an answer used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Receipt {
    /// How much was there.
    pub reused: Reused,
    /// The entries it read.
    pub entries: Vec<Fingerprint>,
    /// What computing them took, less what reading them took.
    pub saved: Duration,
    /// Extents that the answer is about, and those among them that were not read; not known without reuse.
    pub extents: Option<ExtentCounts>,
    /// When the newest of these extents was written, microseconds since 1970; not known of answers from a server.
    pub data_to: Option<i64>,
    /// Results that this answer leaves behind: published just after it has ended, if they are worth it.
    pub kept: usize,
    /// What the user should know and nobody knew before it ran.
    pub notices: Vec<Notice>,
}

/// Where a statement writes its receipt; whole when its rows have ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceiptSlot(Arc<Mutex<Receipt>>);

impl ReceiptSlot {
    pub(crate) fn get(&self) -> Receipt {
        self.0.lock().clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Receipt)) {
        change(&mut self.0.lock());
    }
}
