//! [`PrefixReport`]: what was found for one node of a plan.
//!
//! Cost   every statement makes one for each node, so nothing is put into words before somebody asks.

use std::fmt::{self, Write};
use std::sync::Arc;

use datafusion::physical_plan::{ExecutionPlan, displayable};
use nectarine_catalog::Fingerprint;

use super::Found;
use crate::canonical::{Prefix, Uncacheable};
use crate::segment::SegmentLine;

/// One line of EXPLAIN REUSE.
#[derive(Clone, Debug)]
pub struct PrefixReport {
    /// How deep the node is.
    pub depth: usize,
    /// The node, as it was in the initial plan. Only to be shown.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The node that does the work: those above it with the same prefix only rename.
    pub works: Arc<dyn ExecutionPlan>,
    /// FP_PD, where it has one.
    pub key: Option<Fingerprint>,
    /// FP_P, where it has one.
    pub program: Option<Fingerprint>,
    /// What was found.
    pub verdict: Verdict,
    /// Whether the plan keeps it.
    pub kept: bool,
    /// Whether the node is the reason why it can not be recognised: what is below it can.
    pub is_reason: bool,
    /// Which extents come from where, of a segment hit; for those who explain.
    pub segments: Vec<SegmentLine>,
    /// All about the prefix, for those who explain.
    pub prefix: Option<Box<Prefix>>,
}

impl PrefixReport {
    /// The node as EXPLAIN prints it.
    pub fn line(&self) -> String {
        displayable(self.plan.as_ref()).one_line().to_string().trim().to_string()
    }

    /// The beginning of the line of the node that does the work, so many bytes at most; no more is formatted.
    pub fn words(&self, bytes_max: usize) -> String {
        let mut bounded = Bounded { text: String::new(), bytes_max };
        // An error here means that there is no more room.
        let _ = write!(bounded, "{}", displayable(self.works.as_ref()).one_line());
        bounded.text.truncate(bounded.text.trim_end().len());
        bounded.text
    }
}

/// Takes text up to a bound, and then refuses, which makes whoever formats stop.
struct Bounded {
    text: String,
    bytes_max: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes_max.saturating_sub(self.text.len());
        let end = text.floor_char_boundary(room);
        self.text.push_str(&text[..end]);
        if end < text.len() { Err(fmt::Error) } else { Ok(()) }
    }
}

/// What was found for a prefix.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// An entry is read.
    Hit(Found),
    /// Entries over some of today's extents are read, the rest is computed.
    Segments {
        /// How many entries.
        n_entries: usize,
        /// How many plans beside them.
        n_terms: usize,
        /// What that saves, in microseconds.
        saved_us: u64,
        /// How the two combine.
        combine: &'static str,
    },
    /// Part of what a hit above it covers.
    Covered,
    /// Not asked for: it is no work, or its order matters.
    NotAsked,
    /// Nobody computed this program before.
    NeverSeen,
    /// The program was asked for, but not kept.
    NotKept,
    /// The program ran on other extents.
    InputsChanged {
        /// On how many other lists of extents.
        n_entries: u32,
    },
    /// There was an entry; it was dropped.
    Evicted,
    /// The entry turned out damaged or missing.
    Damaged,
    /// Reading it would cost more than computing it.
    NotWorthIt(Found),
    /// A limit above it needs only some of its groups, and computing those costs less than reading or keeping all.
    CutShort,
    /// It would mix two computations of something that may differ in its last bits.
    Inconsistent,
    /// There is an entry, but the session does not want it read.
    NotWanted,
    /// It can not be recognised.
    Uncacheable(Uncacheable),
}

impl Verdict {
    /// One word, for system tables.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Hit(_) => "hit",
            Self::Segments { .. } => "segments",
            Self::Covered => "covered",
            Self::NotAsked => "not asked",
            Self::NeverSeen => "never seen",
            Self::NotKept => "not kept",
            Self::InputsChanged { .. } => "inputs changed",
            Self::Evicted => "evicted",
            Self::Damaged => "damaged",
            Self::NotWorthIt(_) => "not worth it",
            Self::CutShort => "cut short",
            Self::Inconsistent => "inconsistent",
            Self::NotWanted => "not wanted",
            Self::Uncacheable(_) => "uncacheable",
        }
    }
}

fn entries(n: usize) -> String {
    if n == 1 { "1 entry".to_string() } else { format!("{n} entries") }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit(found) => write!(f, "hit: {} rows, {} bytes", found.rows, found.bytes),
            Self::Segments { n_entries, n_terms: 0, .. } => write!(f, "hit: {} over all extents", entries(*n_entries)),
            Self::Segments { n_entries, combine, .. } => {
                let entries = entries(*n_entries);
                write!(f, "segment hit: {entries} over some extents, the others are computed; {combine}")
            }
            Self::Covered => write!(f, "covered by the hit above"),
            Self::NotAsked => write!(f, "not asked for"),
            Self::NeverSeen => write!(f, "never seen"),
            Self::NotKept => write!(f, "not kept: asked for before, but keeping it did not seem worth it"),
            Self::InputsChanged { n_entries: 1 } => write!(f, "inputs changed: there is an entry on other extents"),
            Self::InputsChanged { n_entries } => {
                write!(f, "inputs changed: there are {n_entries} entries on other extents")
            }
            Self::Evicted => write!(f, "evicted"),
            Self::Damaged => write!(f, "damaged: the entry was damaged or missing"),
            Self::NotWorthIt(found) => write!(f, "not worth it: {} bytes to read", found.bytes),
            Self::CutShort => write!(f, "cut short: the limit above it needs only some of its groups"),
            Self::Inconsistent => write!(f, "inconsistent: it would mix two computations of the same floats"),
            Self::NotWanted => write!(f, "not wanted: nectarine.reuse says to compute anew"),
            Self::Uncacheable(reason) => write!(f, "uncacheable: {reason}"),
        }
    }
}
