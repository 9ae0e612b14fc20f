//! [`Oracle`]: the view cache as the planner's rule asks it.

use std::collections::HashSet;

use nectarine_catalog::{EntryKind, Fingerprint, ViewCache};
use nectarine_planner::reuse::{CacheOracle, Found, Inquiry, Relative, Segment};
use parking_lot::Mutex;

use super::{Dear, Relatives};

/// Entries of one program that are looked at, the youngest first.
const SEGMENTS_MAX: usize = 1_000;

/// Answers from the view cache's memory. What is not there is noted, for who can wait for it.
#[derive(Debug)]
pub(crate) struct Oracle {
    cache: ViewCache,
    relatives: Relatives,
    dear: Dear,
    /// Bytes that an entry of this statement's may have.
    entry_bytes_max: u64,
    /// Programs that this statement ran first, once.
    tried: HashSet<Fingerprint>,
    /// Entries whose extents would have to be read.
    unknown: Mutex<Vec<Fingerprint>>,
}

impl Oracle {
    pub(crate) fn new(cache: ViewCache, relatives: Relatives, dear: Dear, entry_bytes_max: u64) -> Self {
        Self { cache, relatives, dear, entry_bytes_max, tried: HashSet::new(), unknown: Mutex::default() }
    }

    /// The same for a statement that ran some programs first. What came of that can be read, or it is in vain to try again.
    #[must_use]
    pub(crate) fn after(mut self, tried: &HashSet<Fingerprint>) -> Self {
        self.tried = tried.clone();
        self
    }

    /// Entries that could not be looked at because their extents are not in memory.
    pub(crate) fn take_unknown(&self) -> Vec<Fingerprint> {
        std::mem::take(&mut self.unknown.lock())
    }

    /// The youngest entries of a program, so many at most.
    fn some(&self, program: &Fingerprint, kind: EntryKind, n: usize) -> Vec<Segment> {
        let entries = self.cache.entries_of(program).into_iter().filter(|entry| entry.kind == kind);
        let mut segments = vec![];
        for entry in entries.take(n) {
            let found = Found { rows: entry.rows, bytes: entry.bytes, cost_us: entry.cost_us };
            match self.cache.inputs(&entry.key) {
                Some(inputs) => segments.push(Segment { key: entry.key, found, inputs }),
                None => self.unknown.lock().push(entry.key),
            }
        }
        segments
    }
}

impl CacheOracle for Oracle {
    fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], count: bool) -> Vec<Inquiry> {
        let answers = self.cache.inquire(prefixes, count);
        let one = |answer: nectarine_catalog::Inquiry| Inquiry {
            found: answer.hit.map(|entry| Found { rows: entry.rows, bytes: entry.bytes, cost_us: entry.cost_us }),
            lookups: answer.lookups,
            n_other_extents: answer.entries_of_program.saturating_sub(u32::from(answer.hit.is_some())),
            was_dropped: answer.dropped,
        };
        answers.into_iter().map(one).collect()
    }

    fn relatives(&self, family: &Fingerprint) -> Vec<Relative> {
        self.relatives.of(family)
    }

    fn is_dear(&self, program: &Fingerprint) -> bool {
        self.tried.contains(program) || self.dear.has(program, self.entry_bytes_max)
    }

    fn is_too_large(&self, program: &Fingerprint) -> bool {
        self.dear.is_larger(program, self.entry_bytes_max)
    }

    fn segments(&self, program: &Fingerprint, states: bool) -> Vec<Segment> {
        let kind = if states { EntryKind::States } else { EntryKind::Rows };
        self.some(program, kind, SEGMENTS_MAX)
    }

    fn youngest(&self, program: &Fingerprint) -> Option<Segment> {
        self.some(program, EntryKind::Rows, 1).pop()
    }
}
