//! [`CacheOracle`]: what the rule asks the view cache. Rules are synchronous: it answers from memory.

use std::fmt;
use std::sync::Arc;

use nectarine_catalog::Fingerprint;

use super::Relative;

/// An entry, as far as choosing needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// Rows in it.
    pub rows: u64,
    /// Stored bytes.
    pub bytes: u64,
    /// What computing it took, in microseconds.
    pub cost_us: u64,
}

/// An entry of a program over some extents.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Segment {
    /// FP_PD.
    pub key: Fingerprint,
    /// The entry.
    pub found: Found,
    /// Its extents, for each input of the program.
    pub inputs: Arc<[Arc<[Fingerprint]>]>,
}

/// What is known of one prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inquiry {
    /// The entry of exactly this program on exactly these extents.
    pub found: Option<Found>,
    /// How often this program was looked up before.
    pub lookups: u64,
    /// Entries of the same program on other extents.
    pub n_other_extents: u32,
    /// There was an entry, and it was dropped.
    pub was_dropped: bool,
}

/// Answers from memory.
pub trait CacheOracle: fmt::Debug + Send + Sync {
    /// One answer for each (key, program); `count` says whether the look-ups are to be remembered.
    fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], count: bool) -> Vec<Inquiry>;

    /// Programs of a family (see `canonical::Lineage`) that have or had entries, the youngest first.
    fn relatives(&self, _family: &Fingerprint) -> Vec<Relative> {
        vec![]
    }

    /// Entries of a program that hold states, or rows, over whatever extents; the youngest first.
    fn segments(&self, program: &Fingerprint, states: bool) -> Vec<Segment>;

    /// Whether keeping all rows of a program was seen to take longer than computing them again, or to be impossible.
    fn is_dear(&self, _program: &Fingerprint) -> bool {
        false
    }

    /// Whether all rows of a program were seen to be more than may be kept.
    fn is_too_large(&self, _program: &Fingerprint) -> bool {
        false
    }

    /// The youngest of those that hold rows.
    fn youngest(&self, program: &Fingerprint) -> Option<Segment> {
        self.segments(program, false).into_iter().next()
    }
}

/// Knows nothing.
#[derive(Debug, Default)]
pub struct EmptyOracle;

impl CacheOracle for EmptyOracle {
    fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], _count: bool) -> Vec<Inquiry> {
        vec![Inquiry::default(); prefixes.len()]
    }

    fn segments(&self, _program: &Fingerprint, _states: bool) -> Vec<Segment> {
        vec![]
    }
}
