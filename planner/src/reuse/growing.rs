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
//! Stays quiet  where that was tried: entries over most of today's extents are there, and using them did not pay. Below a limit
//!              with an order, which lets scans leave out most rows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
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
    /// Compares today's extents with those of the youngest answer.
    pub(super) fn of(root: &PrefixNode, context: &ReuseContext) -> Self {
        let mut growth = Self::default();
        if let Ok(prefix) = &root.prefix
            && let Some(answer) = context.oracle.youngest(&prefix.program)
        {
            let grown = grown(prefix, &answer);
            let place = Place { is_root: true, is_covered: false, is_cut: false };
            growth.visit(root, &Seen { grown, context }, &mut 0, place);
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

    /// `next` is the number of the next scan.
    fn visit(&mut self, node: &PrefixNode, seen: &Seen<'_>, next: &mut usize, place: Place) {
        let first = *next;
        let mut below = Place { is_root: false, ..place };
        let lists = node.prefix.as_ref().map(|prefix| prefix.lists().len()).ok();
        if let (Ok(prefix), Some(n_scans)) = (&node.prefix, lists) {
            let here = seen.grown.iter().filter(|leaf| (first..first + n_scans).contains(*leaf));
            let here: Vec<usize> = here.map(|leaf| leaf - first).collect();
            if !here.is_empty() && !node.children.is_empty() {
                below.is_covered |= self.judge(node, prefix, &here, seen, place);
            }
            // Groups are made of all rows, however few of them are wanted.
            below.is_cut = match prefix.kind {
                PrefixKind::Aggregate | PrefixKind::States => false,
                _ => place.is_cut || node.plan.fetch().is_some(),
            };
        }
        node.children.iter().for_each(|child| self.visit(child, seen, next, below));
        // What scalar subqueries read is not among the lists.
        if let Some(n_scans) = lists {
            *next = first + n_scans;
        }
    }

    /// Whether the node grows with its scans `grown`.
    fn judge(&mut self, node: &PrefixNode, prefix: &Prefix, grown: &[usize], seen: &Seen<'_>, place: Place) -> bool {
        let grows = |plan: &Arc<dyn ExecutionPlan>| grown.iter().all(|leaf| grows_with(plan, *leaf));
        match (combine(node, place.is_root), node.children.as_slice()) {
            (Some(Combine::MergeGroups), [below]) => {
                let is_tried = || grown.len() == 1 && seen.was_tried(prefix, true, grown);
                let grows = can_follow(&below.plan, grown) && !is_tried();
                if !grows {
                    self.idle.insert(prefix.key);
                }
                grows
            }
            // The answer is kept anyway.
            (Some(Combine::Union), _) if place.is_root => grows(&node.plan),
            (Some(Combine::Sort | Combine::Limit), [below]) => grows(&below.plan),
            (Some(Combine::Union), _) if !place.is_covered && !place.is_cut => {
                let grows = grows(&node.plan);
                if grows {
                    self.rows.insert(prefix.key);
                }
                if grows && seen.was_tried(prefix, false, grown) {
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

/// Where in the plan a node is.
#[derive(Clone, Copy)]
struct Place {
    is_root: bool,
    /// Whether something above it grows as well.
    is_covered: bool,
    /// Whether a limit above it may tell scans which rows it does not need: keeping all of them would cost what that saves.
    is_cut: bool,
}

/// What is known before the plan is looked at.
struct Seen<'a> {
    /// Scans that grew, by their numbers from the left.
    grown: Vec<usize>,
    context: &'a ReuseContext,
}

impl Seen<'_> {
    /// Whether there are entries that lack nothing but some of what the scans `grown` have today, and not much of that. Who asks
    /// for more of them did not read them.
    fn was_tried(&self, prefix: &Prefix, states: bool, grown: &[usize]) -> bool {
        let bytes_of = |extent: &Extent| (extent.fingerprint, extent.bytes());
        let today: Vec<HashMap<Fingerprint, u64>> =
            prefix.lists().iter().map(|list| list.iter().map(|extent| bytes_of(extent)).collect()).collect();
        let all: u64 = today.iter().flat_map(|list| list.values()).sum();
        let bytes = |segment: &Segment| -> Option<u64> {
            let mut bytes = 0;
            for (leaf, (list, today)) in segment.inputs.get(..today.len())?.iter().zip(&today).enumerate() {
                if !grown.contains(&leaf) && list.len() != today.len() {
                    return None;
                }
                // What is gone can not have been of use.
                bytes += list.iter().map(|extent| today.get(extent).copied()).sum::<Option<u64>>()?;
            }
            Some(bytes)
        };
        let segments = self.context.oracle.segments(&prefix.program, states);
        let usable = segments.iter().filter(|segment| !self.context.banned.contains(&segment.key));
        usable.filter_map(bytes).any(|bytes| bytes >= all / TRIED_PART)
    }
}

/// Scans that had other extents at an earlier answer.
fn grown(prefix: &Prefix, answer: &Segment) -> Vec<usize> {
    let lists = prefix.lists();
    let is_other = |leaf: &usize| {
        let now = lists[*leaf].iter().map(|extent| extent.fingerprint);
        answer.inputs.get(*leaf).is_none_or(|then| !now.eq(then.iter().copied()))
    };
    (0..lists.len()).filter(is_other).collect()
}
