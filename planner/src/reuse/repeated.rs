//! [`repeated`]: what one statement needs several times, and so computes once.
//!
//! ```text
//!   before                              run first, then
//!   HashJoinExec                        HashJoinExec
//!     ProjectionExec                      ProjectionExec
//!       HashJoinExec: t.k = d.k             CacheReadExec
//!     ProjectionExec                      ProjectionExec
//!       HashJoinExec: t.k = d.k             CacheReadExec
//! ```
//!
//! Fires when   groups occur more than once; joins, windows (with the filters on top of them) and unnested lists too, if what they
//!              read is neither small nor huge.
//! Stays quiet  in a recursive term, which runs many times on other rows; for what has an entry, or is read from one; for what uses
//!              a scalar subquery of the plan around it, which has no value where it runs by itself; where a limit, or the other
//!              side of a join, may leave few of the rows in each of the places; for rows that turned out to take longer to keep
//!              than to compute.
//! Refresh      the same, of what is computed anew: only entries that the statement made itself are there.
//! Keeps true   where groups and windows that luck decides can be kept, two places in a statement see the same rows of them. So what
//!              is needed twice within something else that is needed twice comes first, and the latter in the next round, when the
//!              former can be read.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use nectarine_catalog::Fingerprint;

use super::Inquiry;
use super::candidate::candidate;
use super::consistent::Doubles;
use super::context::{Repeated, ReuseContext};
use super::cut::Cuts;
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode};
use crate::node::Worth;

/// What occurs more than once in what is computed, the largest prefixes only; what is part of another comes before it.
///
/// `read` is what comes from entries, in whole or in part. Where a limit cuts all occurrences short, computing each is cheaper than
/// computing all rows once.
pub(super) fn repeated(
    root: &PrefixNode,
    read: &HashSet<Fingerprint>,
    inquiries: &HashMap<Fingerprint, Inquiry>,
    cuts: &Cuts,
    doubles: &Doubles,
    context: &ReuseContext,
) -> Vec<Repeated> {
    let mut walk = Walk { read, inquiries, cuts, doubles, context, needed: HashMap::new(), found: vec![] };
    walk.count(root, &Whole::All);
    if walk.needed.values().any(|needed| needed.is_repeated()) {
        walk.largest(root);
    }
    let mut found = walk.found;
    found.sort_by_key(|(n_nodes, _)| *n_nodes);
    found.into_iter().map(|(_, repeated)| repeated).collect()
}

/// How a prefix occurs in what is computed.
#[derive(Clone, Copy, Default)]
struct Needed {
    n_occurrences: usize,
    /// Whether in one place all of its rows are computed.
    whole: bool,
    /// Whether it could run by itself first.
    is_shareable: bool,
}

impl Needed {
    fn is_repeated(self) -> bool {
        self.n_occurrences > 1 && self.whole && self.is_shareable
    }
}

/// What is computed with all of its rows, whatever is above.
enum Whole {
    All,
    /// What both sides of a join need: whichever of them comes first is told nothing by the other.
    Only(HashSet<Fingerprint>),
    /// Windows: who is told which rows are wanted can not tell that to what they are made of.
    Windows,
    /// Whoever is above stops asking.
    Nothing,
}

impl Whole {
    fn has(&self, node: &PrefixNode, prefix: &Prefix) -> bool {
        match self {
            Self::All => true,
            Self::Only(keys) => keys.contains(&prefix.key) || is_window(node, prefix),
            Self::Windows => is_window(node, prefix),
            Self::Nothing => false,
        }
    }
}

struct Walk<'a> {
    read: &'a HashSet<Fingerprint>,
    inquiries: &'a HashMap<Fingerprint, Inquiry>,
    cuts: &'a Cuts,
    doubles: &'a Doubles,
    context: &'a ReuseContext,
    needed: HashMap<Fingerprint, Needed>,
    /// With the number of nodes.
    found: Vec<(usize, Repeated)>,
}

impl Walk<'_> {
    fn count(&mut self, node: &PrefixNode, whole: &Whole) {
        if self.is_read(node) {
            return;
        }
        let is_shareable = self.shareable(node).is_some();
        if let Ok(prefix) = &node.prefix
            && (is_shareable || (is_luck(prefix) && !renames(node, prefix)))
        {
            let is_whole = match prefix.kind {
                PrefixKind::Aggregate => is_luck(prefix) || self.cuts.of(&node.plan).is_none(),
                _ => whole.has(node, prefix),
            };
            let needed = self.needed.entry(prefix.key).or_default();
            needed.n_occurrences += 1;
            needed.whole |= is_whole;
            needed.is_shareable |= is_shareable;
        }
        let below = self.whole_below(node, whole);
        node.children.iter().for_each(|child| self.count(child, below.as_ref().unwrap_or(whole)));
    }

    fn largest(&mut self, node: &PrefixNode) {
        // A recursive term is no place for anything that runs once.
        if self.is_read(node) || node.plan.name() == "RecursiveQueryExec" {
            return;
        }
        if let Some(prefix) = self.shareable(node)
            && let Some(needed) = self.needed.get(&prefix.key)
            && needed.is_repeated()
            && stands_alone(&node.plan)
            && !node.children.iter().any(|child| self.is_torn(child, prefix.key, needed.n_occurrences))
            && !self.doubles.are_torn(node, needed.n_occurrences)
        {
            if self.found.iter().all(|(_, other)| other.prefix.key != prefix.key) {
                let is_wanted = prefix.kind == PrefixKind::Aggregate || is_lucky_window(node, prefix) || node.named;
                let worth = if is_wanted { Worth::Wanted } else { Worth::Cheap };
                let repeated = Repeated { prefix: prefix.clone(), plan: Arc::clone(&node.plan), worth };
                self.found.push((n_nodes(&node.plan), repeated));
            }
            return;
        }
        node.children.iter().for_each(|child| self.largest(child));
    }

    /// Whether something at or below `node` is needed more often than the prefix around it: by itself that would come to other values
    /// than elsewhere, or be computed twice.
    fn is_torn(&self, node: &PrefixNode, around: Fingerprint, n_occurrences: usize) -> bool {
        if self.is_read(node) {
            return false;
        }
        let is_needed_elsewhere = |prefix: &Prefix| {
            let needed = self.needed.get(&prefix.key).copied().unwrap_or_default();
            let counts = is_luck(prefix) || needed.is_repeated();
            prefix.key != around && counts && needed.n_occurrences > n_occurrences
        };
        node.prefix.as_ref().is_ok_and(is_needed_elsewhere)
            || node.children.iter().any(|child| self.is_torn(child, around, n_occurrences))
    }

    fn is_read(&self, node: &PrefixNode) -> bool {
        node.prefix.as_ref().is_ok_and(|prefix| self.read.contains(&prefix.key))
    }

    /// What of the children is computed with all of its rows; `None`: as it is for the node.
    fn whole_below(&self, node: &PrefixNode, whole: &Whole) -> Option<Whole> {
        // First halves have what their second halves are wanted for.
        let aggregate = node.plan.downcast_ref::<AggregateExec>();
        if let Some(aggregate) = aggregate.filter(|aggregate| *aggregate.mode() != AggregateMode::Partial) {
            return Some(match self.cuts.of(&node.plan) {
                Some(_) => Whole::Nothing,
                None if tells_bounds(aggregate) => Whole::Windows,
                None => Whole::All,
            });
        }
        // Who wants only so many rows stops asking, or tells which could still be among them.
        if node.plan.fetch().is_some() {
            return Some(if node.plan.is::<SortExec>() { Whole::Windows } else { Whole::Nothing });
        }
        if matches!(whole, Whole::Nothing) {
            return None;
        }
        let is_whole = node.prefix.as_ref().is_ok_and(|prefix| whole.has(node, prefix));
        if node.prefix.as_ref().is_ok_and(|prefix| prefix.kind == PrefixKind::Window) {
            return Some(Whole::All);
        }
        // One side tells the other which keys it has; which one is decided later.
        match node.children.as_slice() {
            [left, right] if node.plan.is::<HashJoinExec>() && is_whole => {
                let (mut both, mut others) = (HashSet::new(), HashSet::new());
                straight_below(left, &mut both);
                straight_below(right, &mut others);
                both.retain(|key| others.contains(key));
                Some(Whole::Only(both))
            }
            _ if node.plan.is::<HashJoinExec>() => Some(Whole::Windows),
            _ => None,
        }
    }

    /// The node's prefix, if its rows could be computed by themselves first.
    fn shareable<'n>(&self, node: &'n PrefixNode) -> Option<&'n Prefix> {
        let prefix = candidate(node, false)?;
        let is_shareable = match prefix.kind {
            PrefixKind::Aggregate => node.plan.is::<AggregateExec>(),
            PrefixKind::Join | PrefixKind::Window | PrefixKind::Unnest => self.is_in_bounds(node, prefix),
            // The few rows of a window that are left, such as the youngest of each.
            PrefixKind::Filter => is_above_window(node) && self.is_in_bounds(node, prefix),
            _ => false,
        };
        // What has an entry, and is not read all the same, would not be read the next time.
        let is_there = !self.context.banned.contains(&prefix.key)
            && self.context.reads(&prefix.key)
            && self.inquiries.get(&prefix.key).is_some_and(|inquiry| inquiry.found.is_some());
        (is_shareable && !is_there && !self.context.oracle.is_dear(&prefix.program)).then_some(prefix)
    }

    fn is_in_bounds(&self, node: &PrefixNode, prefix: &Prefix) -> bool {
        let (bytes, wanted) = (bytes_read(prefix), &self.context.share_bytes);
        let is_enough = is_lucky_window(node, prefix) || bytes >= *wanted.start();
        !renames(node, prefix) && is_enough && bytes <= *wanted.end()
    }
}

/// What is at and below a node, as far as nothing leaves out rows.
fn straight_below(node: &PrefixNode, keys: &mut HashSet<Fingerprint>) {
    keys.extend(node.prefix.as_ref().ok().map(|prefix| prefix.key));
    let leaves_out = node.plan.is::<AggregateExec>() || node.plan.is::<HashJoinExec>() || node.plan.fetch().is_some();
    if !leaves_out {
        node.children.iter().for_each(|child| straight_below(child, keys));
    }
}

/// Whether groups tell those below which rows could still change them.
fn tells_bounds(aggregate: &AggregateExec) -> bool {
    let is_bound = |name: &str| matches!(name, "min" | "max");
    aggregate.group_expr().expr().is_empty() && aggregate.aggr_expr().iter().all(|expr| is_bound(expr.fun().name()))
}

/// Whether a filter has a window below it, and nothing between that does work.
fn is_above_window(node: &PrefixNode) -> bool {
    let [below] = node.children.as_slice() else { return false };
    let Ok(prefix) = &below.prefix else { return false };
    match prefix.kind {
        PrefixKind::Window => true,
        PrefixKind::Filter | PrefixKind::Projection => is_above_window(below),
        _ => false,
    }
}

/// Whether a node has the rows of a window, or what a filter leaves of them.
fn is_window(node: &PrefixNode, prefix: &Prefix) -> bool {
    prefix.kind == PrefixKind::Window || (prefix.kind == PrefixKind::Filter && is_above_window(node))
}

fn is_lucky_window(node: &PrefixNode, prefix: &Prefix) -> bool {
    is_window(node, prefix) && prefix.exactness != Exactness::Exact
}

/// Whether luck may be decided at the top of a prefix, not only below it.
fn is_luck(prefix: &Prefix) -> bool {
    let decides =
        matches!(prefix.kind, PrefixKind::Aggregate | PrefixKind::Window | PrefixKind::Sort | PrefixKind::Limit);
    decides && prefix.exactness != Exactness::Exact
}

/// Whether a node only renames: it has the key of its child, and the lowest of them stands for all.
fn renames(node: &PrefixNode, prefix: &Prefix) -> bool {
    node.children.iter().any(|child| child.prefix.as_ref().is_ok_and(|below| below.key == prefix.key))
}

fn bytes_read(prefix: &Prefix) -> u64 {
    prefix.inputs.iter().flat_map(|input| input.extents.iter()).map(|extent| extent.bytes()).sum()
}

fn n_nodes(plan: &Arc<dyn ExecutionPlan>) -> usize {
    1 + plan.children().into_iter().map(n_nodes).sum::<usize>()
}

/// Whether no expression of the plan uses a scalar subquery.
fn stands_alone(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut uses = false;
    let seen = plan.apply_expressions(&mut |expr| {
        expr.apply(|part| {
            uses |= part.is::<ScalarSubqueryExpr>();
            Ok(if uses { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    seen.is_ok() && !uses && plan.children().into_iter().all(stands_alone)
}
