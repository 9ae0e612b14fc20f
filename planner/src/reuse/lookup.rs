//! [`Lookup`]: one prefix that a statement asked for, and what came of it.
//!
//! One for each prefix, however often the plan holds it. What lies below a hit is not asked for; nor are scans, choices of
//! columns and prefixes whose order matters. What can not be recognised is told once, where it begins.
//! A plan that reads no stream asks for nothing.

use std::collections::HashSet;

use nectarine_catalog::Fingerprint;

use super::{Findings, PrefixReport, Verdict};
use crate::node::ExtentScanExec;

/// Prefixes that are told of one statement.
const LOOKUPS_MAX: usize = 64;
/// Bytes of a prefix's node in words.
const NODE_BYTES_MAX: usize = 160;
/// Bytes of a detail.
const DETAIL_BYTES_MAX: usize = 240;

/// Nodes around a query, which nobody would want to reuse: they write, measure or gather its rows.
const AROUND: [&str; 4] = ["DataSinkExec", "CoalescePartitionsExec", "AnalyzeExec", "ExplainExec"];

/// What came of asking for a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lookup {
    /// FP_PD; none of what can not be recognised.
    pub key: Option<Fingerprint>,
    /// FP_P.
    pub program: Option<Fingerprint>,
    /// Whether an entry is read.
    pub is_hit: bool,
    /// Why not: the word of a [`Verdict`].
    pub reason: Option<&'static str>,
    /// What else there is to say.
    pub detail: Option<String>,
    /// The top of the prefix as EXPLAIN prints it, cut.
    pub node: String,
}

impl Findings {
    /// What the statement asked for, in the plan's order, a bounded number.
    pub fn lookups(&self) -> Vec<Lookup> {
        let (mut told, mut reasons) = (HashSet::new(), HashSet::new());
        let mut lookups: Vec<Lookup> = vec![];
        for line in &self.report {
            if lookups.len() == LOOKUPS_MAX {
                break;
            }
            let is_new = match (&line.verdict, line.key) {
                (Verdict::Covered | Verdict::NotAsked, _) => false,
                (Verdict::Uncacheable(_), _) if !line.is_reason || AROUND.contains(&line.plan.name()) => false,
                (Verdict::Uncacheable(reason), _) => reasons.insert(reason.to_string()),
                (_, Some(key)) => told.insert(key),
                (_, None) => false,
            };
            if is_new {
                lookups.push(Lookup::of(line));
            }
        }
        let reads_streams = || self.report.iter().any(|line| line.plan.is::<ExtentScanExec>());
        // What has a key reads a stream, or it would not have been asked for.
        if lookups.iter().all(|lookup| lookup.key.is_none()) && !reads_streams() {
            lookups.clear();
        }
        lookups
    }
}

impl Lookup {
    fn of(line: &PrefixReport) -> Self {
        let is_hit = matches!(line.verdict, Verdict::Hit(_) | Verdict::Segments { .. });
        let detail = match &line.verdict {
            Verdict::Uncacheable(reason) => Some(reason.to_string()),
            Verdict::Segments { .. } => Some(line.verdict.to_string()),
            Verdict::NotWorthIt(found) => Some(format!("{} bytes to read", found.bytes)),
            Verdict::InputsChanged { n_entries: 1 } => Some("1 entry on other extents".to_string()),
            Verdict::InputsChanged { n_entries } => Some(format!("{n_entries} entries on other extents")),
            _ => None,
        };
        Self {
            key: line.key,
            program: line.program,
            is_hit,
            reason: (!is_hit).then(|| line.verdict.word()),
            detail: detail.map(|mut detail| {
                detail.truncate(detail.floor_char_boundary(DETAIL_BYTES_MAX));
                detail
            }),
            node: line.words(NODE_BYTES_MAX),
        }
    }
}
