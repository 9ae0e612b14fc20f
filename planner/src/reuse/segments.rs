//! Segment hits in a plan: the rows or states of some extents are read, those of the others computed, and both combined.
//!
//! ```text
//!   before                                after
//!   AggregateExec: Final                  AggregateExec: Final
//!     AggregateExec: Partial                [AddEntryExec, MergeGroupsExec]     if the merged states are worth an entry
//!       ExtentScanExec: e0 e1 e2              UnionExec
//!                                               CacheReadExec: states over e0 e1
//!                                               AddEntryExec                    the new states, for the next time
//!                                                 AggregateExec: Partial
//!                                                   ExtentScanExec: e2
//! ```
//!
//! Fires when   the program has entries over some of today's extents, it decomposes (`segment::decompose`), and it pays.
//! Stays quiet  where what lies below groups may differ from run to run: old and new rows would have seen different values.
//!              Where a program whose floats may differ is needed twice: both must see the same run.
//! Keeps true   schema and rows of the node that is replaced. All nodes of terms are new.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::union::UnionExec;

use super::candidate::candidate;
use super::rule::{Place, Rewrite, extents_below, made_of};
use super::{Hit, ReuseMode, Segment, Verdict};
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode};
use crate::node::{AddEntryExec, CacheReadExec, MergeGroupsExec, PrefixKey, Worth};
use crate::segment::{Candidates, SegmentLine, SegmentPlan, can_grow, choose, draw, enough, merges, term};

/// Reading more entries than this of one program is worth merging them.
const PARTS_MAX: usize = 4;

/// How results over disjoint extents combine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Combine {
    /// States of groups; the second half of the aggregate above merges them.
    MergeGroups,
    /// Rows beside rows.
    Union,
    /// Rows beside rows, sorted (and cut) again.
    Sort,
    /// The rows that are there are enough.
    Limit,
}

/// A segment hit that was decided on.
pub(super) struct ChosenSegments {
    combine: Combine,
    /// The same in words, if somebody asks.
    lines: Vec<SegmentLine>,
    plan: SegmentPlan,
    /// What is computed, one plan for each term.
    terms: Vec<Arc<dyn ExecutionPlan>>,
}

impl ChosenSegments {
    pub(super) fn saved_us(&self) -> u64 {
        self.plan.saved_us
    }
}

/// Whether and how results of this node over disjoint extents combine.
pub(super) fn combine(node: &PrefixNode, is_root: bool) -> Option<Combine> {
    let prefix = node.prefix.as_ref().ok()?;
    let below_is_exact = || node.children.iter().all(|child| is_exact(child, Exactness::Exact));
    if !prefix.reads || prefix.borrowed != Exactness::Exact {
        return None;
    }
    match prefix.kind {
        PrefixKind::States => {
            let aggregate = node.plan.downcast_ref::<AggregateExec>()?;
            let decomposes = *aggregate.mode() == AggregateMode::Partial && merges(aggregate);
            (decomposes && below_is_exact()).then_some(Combine::MergeGroups)
        }
        PrefixKind::Filter | PrefixKind::Join | PrefixKind::Union | PrefixKind::Unnest | PrefixKind::Projection => {
            let asks = candidate(node, is_root).is_some() && !prefix.ordered;
            (asks && prefix.exactness == Exactness::Exact).then_some(Combine::Union)
        }
        PrefixKind::Sort => (is_root && node.plan.is::<SortExec>() && below_is_exact()).then_some(Combine::Sort),
        PrefixKind::Limit => {
            let limit = node.plan.downcast_ref::<GlobalLimitExec>()?;
            (is_root && limit.skip() == 0 && !prefix.ordered && below_is_exact()).then_some(Combine::Limit)
        }
        PrefixKind::Aggregate | PrefixKind::Window | PrefixKind::Scan | PrefixKind::Constant => None,
    }
}

fn is_exact(node: &PrefixNode, wanted: Exactness) -> bool {
    node.prefix.as_ref().is_ok_and(|prefix| prefix.exactness <= wanted)
}

impl Rewrite<'_> {
    /// The best segment hit for a node, with its terms planned.
    pub(super) fn segments_of(&self, node: &PrefixNode, is_root: bool) -> Result<Option<ChosenSegments>> {
        let (Ok(prefix), Some(combine)) = (&node.prefix, combine(node, is_root)) else { return Ok(None) };
        let is_several = self.is_several(node, prefix);
        if self.inconsistent.contains(&prefix.key) || (is_several && prefix.exactness != Exactness::Exact) {
            return Ok(None);
        }
        // States of new extents would be those of all their groups.
        if self.cut(node).is_some() {
            return Ok(None);
        }
        let mut segments = self.context.oracle.segments(&prefix.program, combine == Combine::MergeGroups);
        segments.retain(|segment| !self.context.banned.contains(&segment.key));
        if segments.is_empty() {
            return Ok(None);
        }
        let below = match combine {
            Combine::Union => &node.plan,
            Combine::MergeGroups | Combine::Sort | Combine::Limit => match node.children.as_slice() {
                [child] => &child.plan,
                _ => return Ok(None),
            },
        };
        let candidates = Candidates { plan: below, today: prefix.lists(), segments, leaf: None };
        let found = match node.plan.downcast_ref::<GlobalLimitExec>() {
            // Any rows of today's are an answer to a LIMIT without an order, if they are as many as it asks for.
            Some(limit) => limit.fetch().and_then(|fetch| enough(&candidates, fetch as u64)),
            None => choose(&candidates),
        };
        let Some(plan) = found else { return Ok(None) };
        // The catalog says which extents an entry is about; its key was made of them.
        let is_so = |segment: &Segment| prefix.key_over(&segment.inputs) == Some(segment.key);
        if !plan.reads.iter().all(is_so) {
            return Ok(None);
        }
        let lines = match self.context.explains {
            true => draw(below, &candidates.today, &plan)?,
            false => vec![],
        };
        let mut terms = vec![];
        for wanted in &plan.terms {
            let Some(mut made) = term(below, &wanted.reads, Some(wanted.focus))? else { return Ok(None) };
            if let Some(partial) = node.plan.downcast_ref::<AggregateExec>() {
                made = Arc::new(over(partial, made)?);
            }
            terms.push(made);
        }
        Ok(Some(ChosenSegments { combine, lines, plan, terms }))
    }

    /// Puts a segment hit in the place of its node.
    pub(super) fn read_segments(
        &mut self,
        node: &PrefixNode,
        prefix: &Prefix,
        chosen: ChosenSegments,
        place: Place,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ChosenSegments { combine, lines, plan, terms } = chosen;
        let n_entries = plan.reads.len();
        let keeps = place.may_keep && self.context.mode == ReuseMode::On;
        let wants_merged = n_entries + terms.len() > PARTS_MAX || plan.terms.iter().any(|term| !term.is_program);
        // Merging holds all groups in memory, and must not fail where computing would not.
        let fits = plan.reads.iter().map(|segment| segment.found.bytes).sum::<u64>() <= self.context.merge_bytes_max;
        let merges = keeps && combine == Combine::MergeGroups && wants_merged && fits && !terms.is_empty();
        let verdict =
            Verdict::Segments { n_entries, n_terms: terms.len(), saved_us: plan.saved_us, combine: word(combine) };
        let reported = self.findings.report.len();
        self.report(node, place.depth, verdict, keeps && !terms.is_empty());
        if let Some(report) = self.findings.report.get_mut(reported) {
            report.segments = lines;
        }

        let mut parts: Vec<Arc<dyn ExecutionPlan>> = vec![];
        let mut reused_us = 0;
        for Segment { key, found, .. } in &plan.reads {
            reused_us += found.cost_us;
            self.findings.hits.push(Hit { key: *key, program: prefix.program, found: *found, is_root: false });
            let (rows, bytes, cost_us) = (found.rows, found.bytes, found.cost_us);
            parts.push(Arc::new(CacheReadExec::new(*key, prefix.program, rows, bytes, cost_us, node.plan.schema())));
        }
        for (wanted, made) in plan.terms.iter().zip(terms) {
            let keeps_term = match combine {
                Combine::MergeGroups => keeps && wanted.is_program && !merges,
                // Old rows are not written once more for each new one.
                Combine::Union => keeps && wanted.is_program && !wants_merged && self.growth.is_of_rows(&prefix.key),
                Combine::Sort | Combine::Limit => false,
            };
            parts.push(match keeps_term {
                true => self.kept(made, prefix.over(&wanted.lists), 0, Worth::Wanted)?,
                false => made,
            });
        }
        let union = match parts.len() {
            1 => parts.remove(0),
            _ => UnionExec::try_new(parts)?,
        };
        if merges && let Some(partial) = node.plan.downcast_ref::<AggregateExec>() {
            let merged = Arc::new(MergeGroupsExec::new(partial, union));
            return self.kept(merged, prefix.clone(), reused_us, Worth::Wanted);
        }
        match node.plan.downcast_ref::<SortExec>() {
            Some(sort) => {
                let again = SortExec::new(sort.expr().clone(), union);
                Ok(Arc::new(again.with_preserve_partitioning(false).with_fetch(sort.fetch())))
            }
            None => Ok(union),
        }
    }

    /// Whether the states of a group that is computed are worth keeping.
    pub(super) fn keeps_states(&self, node: &PrefixNode, place: Place) -> bool {
        let Ok(prefix) = &node.prefix else { return false };
        let may = place.may_keep && matches!(self.context.mode, ReuseMode::On | ReuseMode::Refresh);
        may && !self.growth.is_idle(&prefix.key)
            && !self.is_too_large(prefix)
            && combine(node, false) == Some(Combine::MergeGroups)
            && self.inquiries.get(&prefix.key).is_some_and(|inquiry| {
                let is_new = inquiry.found.is_none() || !self.context.mode.reads();
                is_new
                    && match self.cut(node) {
                        Some(_) => self.replaces(inquiry),
                        None => self.context.policy.admits(PrefixKind::Aggregate, inquiry, place.parent_lookups),
                    }
            })
            && node.children.first().is_some_and(|child| can_grow(&child.plan, prefix.lists().len()))
    }

    /// Whether a prefix occurs several times, or decides by luck what another one decides as well.
    pub(super) fn is_several(&self, node: &PrefixNode, prefix: &Prefix) -> bool {
        self.doubles.has(node) || self.n_occurrences.get(&prefix.key).is_some_and(|n| *n > 1)
    }

    /// Keeps what `plan` gives as the entry of `prefix`.
    pub(super) fn kept(
        &mut self,
        plan: Arc<dyn ExecutionPlan>,
        prefix: Prefix,
        reused_us: u64,
        worth: Worth,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !self.kept_keys.insert(prefix.key) {
            return Ok(plan);
        }
        let ordinal = self.findings.kept.len();
        let key = PrefixKey { key: prefix.key, program: prefix.program, ordinal, worth };
        let mut made_of = made_of(&plan)?;
        // Subqueries may add entries (`add_subqueries`), and what did not come by way of those has to be known then. Extents without
        // a partner for a join count as read, as they do elsewhere.
        if prefix.uses_subqueries && made_of.scanned.is_none() {
            let mut scanned = extents_below(&plan)?;
            scanned.extend(prefix.lists().iter().flat_map(|list| list.iter()).map(|extent| extent.fingerprint));
            made_of.scanned = Some(Arc::new(scanned));
        }
        self.findings.kept.push(super::Kept { prefix, reused_us, made_of });
        Ok(Arc::new(AddEntryExec::new(plan, Arc::new(key))))
    }
}

/// The first half of an aggregate over another input.
pub(super) fn over(partial: &AggregateExec, input: Arc<dyn ExecutionPlan>) -> Result<AggregateExec> {
    AggregateExec::try_new(
        *partial.mode(),
        partial.group_expr().clone(),
        partial.aggr_expr().to_vec(),
        partial.filter_expr().to_vec(),
        input,
        partial.input_schema(),
    )
}

fn word(combine: Combine) -> &'static str {
    match combine {
        Combine::MergeGroups => "merge groups",
        Combine::Union => "union",
        Combine::Sort => "sort",
        Combine::Limit => "limit",
    }
}
