//! [`Growth`]: what is worth keeping of a statement that was answered before, over other extents: the next time there are more.
//!
//! ```text
//!   AggregateExec: sum(..)                         lineitem grew, and may take away rows of the semi join:
//!     HashJoinExec: LeftSemi                         old states are of no use
//!       HashJoinExec: lineitem ⋈ part              these rows only grow: the largest that do are kept
//!       AggregateExec: Final, avg(..) by part      of use to others at most
//!         AggregateExec: Partial                   so do these states
//!           ExtentScanExec: lineitem
//! ```
//!
//! Costs        nothing where a statement is new, or its extents are the same.
//! Stays quiet  where that was tried: entries over most of today's extents are there, and using them did not pay.

use std::collections::{HashMap, HashSet};

use nectarine_catalog::{Extent, Fingerprint};

use super::Segment;
use super::context::ReuseContext;
use super::segments::{Combine, combine};
use crate::canonical::{Prefix, PrefixKind, PrefixNode};
use crate::segment::{can_follow, grows_with};

/// Entries over one part in so many of today's bytes tell whether reading them pays.
const TRIED_PART: u64 = 2;

/// Prefixes by what keeping them brings when the same scans grow again.
#[derive(Debug, Default)]
pub(super) struct Growth {
    /// The largest that only gain rows, where nothing above them does.
    rows: HashSet<Fingerprint>,
    /// Those among them of which there are entries already.
    tried: HashSet<Fingerprint>,
    /// Groups that will be of no use.
    idle: HashSet<Fingerprint>,
}

impl Growth {
    /// Compares today's extents with those of earlier answers.
    pub(super) fn of(root: &PrefixNode, context: &ReuseContext) -> Self {
        let mut growth = Self::default();
        if let Ok(prefix) = &root.prefix {
            let grown = grown(prefix, &context.oracle.segments(&prefix.program, false));
            if !grown.is_empty() {
                growth.visit(root, &Seen { grown, context }, &mut 0, false);
            }
        }
        growth
    }

    /// Entries of these prefixes are read.
    pub(super) fn are_read<'k>(&mut self, keys: impl Iterator<Item = &'k Fingerprint>) {
        keys.for_each(|key| {
            self.tried.remove(key);
        });
    }

    /// Whether these rows are worth keeping, if they are few.
    pub(super) fn is_of_rows(&self, key: &Fingerprint) -> bool {
        self.rows.contains(key) && !self.tried.contains(key)
    }

    /// Whether these groups are not.
    pub(super) fn is_idle(&self, key: &Fingerprint) -> bool {
        self.idle.contains(key)
    }

    /// `next` is the number of the next scan; `is_covered` says that something above grows as well.
    fn visit(&mut self, node: &PrefixNode, seen: &Seen<'_>, next: &mut usize, mut is_covered: bool) {
        let first = *next;
        if let Ok(prefix) = &node.prefix {
            let n_scans = prefix.lists().len();
            if node.children.is_empty() {
                *next += n_scans;
                return;
            }
            let here = seen.grown.iter().filter(|leaf| (first..first + n_scans).contains(*leaf));
            let here: Vec<usize> = here.map(|leaf| leaf - first).collect();
            if !here.is_empty() {
                is_covered |= self.judge(node, prefix, &here, seen, is_covered);
            }
        }
        node.children.iter().for_each(|child| self.visit(child, seen, next, is_covered));
    }

    /// Whether the node grows with its scans `grown`.
    fn judge(
        &mut self,
        node: &PrefixNode,
        prefix: &Prefix,
        grown: &[usize],
        seen: &Seen<'_>,
        is_covered: bool,
    ) -> bool {
        match (combine(node, false), node.children.as_slice()) {
            (Some(Combine::MergeGroups), [below]) => {
                let grows = can_follow(&below.plan, grown) && !seen.was_tried(prefix, true);
                if !grows {
                    self.idle.insert(prefix.key);
                }
                grows
            }
            (Some(Combine::Union), _) if !is_covered => {
                let grows = grown.iter().all(|leaf| grows_with(&node.plan, *leaf));
                if grows {
                    self.rows.insert(prefix.key);
                }
                if grows && seen.was_tried(prefix, false) {
                    self.tried.insert(prefix.key);
                }
                grows
            }
            _ => {
                if matches!(prefix.kind, PrefixKind::Aggregate | PrefixKind::States) {
                    self.idle.insert(prefix.key);
                }
                false
            }
        }
    }
}

/// What is known before the plan is looked at.
struct Seen<'a> {
    /// Scans that grew, by their numbers from the left.
    grown: Vec<usize>,
    context: &'a ReuseContext,
}

impl Seen<'_> {
    /// Whether entries over most of today's extents are there. Who asks for more of them did not read them.
    fn was_tried(&self, prefix: &Prefix, states: bool) -> bool {
        let lists = prefix.lists();
        let bytes_of = |extent: &Extent| (extent.fingerprint, extent.bytes());
        let today: Vec<HashMap<Fingerprint, u64>> =
            lists.iter().map(|list| list.iter().map(|extent| bytes_of(extent)).collect()).collect();
        let all: u64 = today.iter().flat_map(|list| list.values()).sum();
        // What is gone can not have been of use.
        let bytes = |segment: &Segment| -> Option<u64> {
            let lists = segment.inputs.get(..today.len())?.iter().zip(&today);
            lists.flat_map(|(list, today)| list.iter().map(|extent| today.get(extent).copied())).sum()
        };
        let segments = self.context.oracle.segments(&prefix.program, states);
        segments.iter().filter_map(bytes).any(|bytes| bytes >= all / TRIED_PART)
    }
}

/// Scans of which the largest earlier answer had other extents.
fn grown(prefix: &Prefix, answers: &[Segment]) -> Vec<usize> {
    let n_extents = |answer: &&Segment| answer.inputs.iter().map(|list| list.len()).sum::<usize>();
    let Some(last) = answers.iter().max_by_key(n_extents) else { return vec![] };
    let lists = prefix.lists();
    let is_other = |leaf: &usize| {
        let now = lists[*leaf].iter().map(|extent| extent.fingerprint);
        last.inputs.get(*leaf).is_none_or(|then| !now.eq(then.iter().copied()))
    };
    (0..lists.len()).filter(is_other).collect()
}
