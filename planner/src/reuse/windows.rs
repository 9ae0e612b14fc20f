//! Windows in a plan: extents that lie wholly inside a filter share one program, wherever the filter's bounds are.
//!
//! ```text
//!   before                                after
//!   AggregateExec: Partial                UnionExec
//!     FilterExec: ts >= X AND p             CacheReadExec: states of e1        entries without X: a week ago they were
//!       ExtentScanExec: e0 e1 e2 e3         CacheReadExec: states of e2        part of another window
//!                                           AddEntryExec
//!                                             AggregateExec: Partial
//!                                               FilterExec: p
//!                                                 ExtentScanExec: e3           new
//!                                           AggregateExec: Partial
//!                                             FilterExec: ts >= X AND p
//!                                               ExtentScanExec: e0             the edge
//! ```
//!
//! Fires when   statistics decide a part of the filter for enough extents (`segment::window`), and the groups above it decompose.
//! Keeps true   schema and rows of the node that is replaced; every extent is in exactly one branch. All nodes are new.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::union::UnionExec;
use nectarine_catalog::{Extent, Fingerprint};

use super::merging::{StatesPart, Whole};
use super::rule::{Place, Rewrite};
use super::segments::{Combine, combine, over};
use super::{Hit, Inquiry, ReuseContext, ReuseMode, Segment, SegmentLine, Verdict};
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode, Salt, prefixes};
use crate::node::CacheReadExec;
use crate::segment::{Candidates, Lists, SegmentPlan, Term, Window, choose, draw, term, windows};

/// Entries that one statement makes of what was not known of a window. As many of them can go out of a sliding window, one by
/// one, before what they hold has to be computed anew.
const PIECES_MAX: usize = 16;

/// Windows of one plan that are tried.
const WINDOWS_MAX: usize = 3;

/// Reading other scans once more for each piece may take one part in so many of what the window has.
const AGAIN_PART: u64 = 4;

/// A window that was decided on.
pub(super) struct ChosenWindow {
    /// The program over inner extents.
    inner: Prefix,
    /// What there is of it.
    reads: Vec<Segment>,
    /// What there is of the edge: entries of the program itself.
    edge_reads: Vec<Segment>,
    /// The inner extents that no entry has, in pieces, and the prefix that each is.
    computed: Vec<(Arc<dyn ExecutionPlan>, Prefix)>,
    /// The same for the edge.
    edge_computed: Option<(Arc<dyn ExecutionPlan>, Prefix)>,
    /// Which scan it is about, and extents for all: the inner ones of that scan.
    leaf: usize,
    lists: Lists,
    pub(super) saved_us: u64,
    lines: Vec<SegmentLine>,
}

impl Rewrite<'_> {
    /// The states of a node by inner extents and edge, if its filter is a window over them.
    pub(super) fn window_of(&self, node: &PrefixNode) -> Result<Option<ChosenWindow>> {
        let Ok(prefix) = &node.prefix else { return Ok(None) };
        let is_cut = self.cut(node).is_some();
        if prefix.kind != PrefixKind::States || combine(node, false) != Some(Combine::MergeGroups) || is_cut {
            return Ok(None);
        }
        let is_several = self.is_several(node, prefix);
        if self.inconsistent.contains(&prefix.key) || (is_several && prefix.exactness != Exactness::Exact) {
            return Ok(None);
        }
        let (Some(partial), [below]) = (node.plan.downcast_ref::<AggregateExec>(), node.children.as_slice()) else {
            return Ok(None);
        };
        // What scalar subqueries read is part of a program, and known for the plan as it was only.
        if prefix.inputs.len() != prefix.lists().len() {
            return Ok(None);
        }
        let mut best: Option<ChosenWindow> = None;
        let windows = windows(&below.plan, &self.context.built_ins, self.config, false);
        for window in windows.into_iter().take(WINDOWS_MAX) {
            let chosen = self.by_window(prefix, partial, &below.plan, window)?;
            let is_better = |chosen: &ChosenWindow| best.as_ref().is_none_or(|best| chosen.saved_us > best.saved_us);
            if let Some(chosen) = chosen.filter(is_better) {
                best = Some(chosen);
            }
        }
        Ok(best)
    }

    /// The states of a prefix by inner extents and edge of one window.
    fn by_window(
        &self,
        prefix: &Prefix,
        partial: &AggregateExec,
        below: &Arc<dyn ExecutionPlan>,
        window: Window,
    ) -> Result<Option<ChosenWindow>> {
        let today = prefix.lists();
        let of = |extents: &Arc<[Arc<Extent>]>| -> Lists {
            let mut lists = today.clone();
            lists[window.leaf] = Arc::clone(extents);
            lists
        };
        let inner_states = |extents: &Arc<[Arc<Extent>]>| window_states(partial, below, &window, &of(extents));
        let Some((inner, inner_below)) =
            self.context.inner_program(partial, below, &window, &today, self.config, self.salt)?
        else {
            return Ok(None);
        };
        let (inner_plan, edge_plan) = (
            self.known(&inner, &inner_below, of(&window.inner), window.leaf),
            match window.edge.is_empty() {
                true => None,
                false => self.known(prefix, below, of(&window.edge), window.leaf),
            },
        );
        let saved_us = inner_plan.iter().chain(&edge_plan).map(|plan| plan.saved_us).sum();
        let missing = missing(inner_plan.as_ref(), &window.inner, window.leaf);
        let mut computed = vec![];
        let n_pieces = n_pieces(&today, &window).min(self.context.branches_max).max(1);
        for piece in pieces(&missing, &window.inner, n_pieces) {
            let Some(states) = inner_states(&piece)? else { return Ok(None) };
            computed.push((states, inner.over(&of(&piece))));
        }
        let mut edge_computed: Option<(Arc<dyn ExecutionPlan>, Prefix)> = None;
        if let Some(extents) = missing_edge(edge_plan.as_ref(), &window) {
            let Some(copy) = term(below, &of(&extents), Some(window.leaf))? else { return Ok(None) };
            edge_computed = Some((Arc::new(over(partial, copy)?), prefix.over(&of(&extents))));
        }
        let (reads, edge_reads) = (reads(inner_plan), reads(edge_plan));
        let lines = match self.context.explains {
            true => {
                let terms = computed.iter().chain(&edge_computed).map(|(_, prefix)| Term {
                    lists: prefix.lists(),
                    reads: prefix.lists(),
                    focus: window.leaf,
                    is_program: true,
                });
                let all: Vec<Segment> = reads.iter().chain(&edge_reads).cloned().collect();
                draw(below, &today, &SegmentPlan { reads: all, terms: terms.collect(), saved_us })?
            }
            false => vec![],
        };
        let (leaf, lists) = (window.leaf, of(&window.inner));
        let chosen = ChosenWindow { inner, reads, edge_reads, computed, edge_computed, leaf, lists, saved_us, lines };
        Ok(Some(chosen))
    }

    /// What entries have of a program, if it pays to read them and they lack nothing but extents of the window's scan.
    fn known(&self, prefix: &Prefix, plan: &Arc<dyn ExecutionPlan>, today: Lists, leaf: usize) -> Option<SegmentPlan> {
        let mut segments = self.context.oracle.segments(&prefix.program, true);
        segments.retain(|segment| !self.context.banned.contains(&segment.key));
        let plan = choose(&Candidates { plan, today, segments, leaf: Some(leaf) })?;
        // The catalog says which extents an entry is about; its key was made of them.
        let is_so = |segment: &Segment| prefix.key_over(&segment.inputs) == Some(segment.key);
        let is_of_leaf = |term: &Term| term.focus == leaf && term.is_program;
        (plan.reads.iter().all(is_so) && plan.terms.iter().all(is_of_leaf)).then_some(plan)
    }

    /// Puts a window in the place of its node.
    pub(super) fn read_window(
        &mut self,
        node: &PrefixNode,
        prefix: &Prefix,
        chosen: ChosenWindow,
        place: Place,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let ChosenWindow { inner, reads, edge_reads, computed, edge_computed, leaf, lists, saved_us, lines: drawn } =
            chosen;
        let keeps = place.may_keep && self.context.mode == ReuseMode::On;
        let n_entries = reads.len() + edge_reads.len();
        let n_terms = computed.len() + edge_computed.iter().len();
        let verdict = match n_entries {
            0 => self.verdict(node, Some(prefix)),
            _ => Verdict::Segments { n_entries, n_terms, saved_us, combine: "merge groups" },
        };
        let reported = self.findings.report.len();
        self.report(node, place.depth, verdict, keeps && n_terms > 0);
        if let Some(report) = self.findings.report.get_mut(reported) {
            report.segments = drawn;
        }
        let mut parts = vec![];
        for read in &reads {
            parts.push(StatesPart {
                plan: self.read(read, inner.program, node),
                extents: read.inputs.get(leaf).map(|list| list.to_vec()).unwrap_or_default(),
                bytes: Some(read.found.bytes),
                cost_us: read.found.cost_us,
            });
        }
        // Another window is another program: only what they share tells that somebody asked before.
        let question = [(inner.key, inner.program)];
        let asked = self.context.oracle.inquire(&question, self.context.counts).into_iter().next();
        let is_asked = |inquiry: &Inquiry| self.context.policy.is_wanted(inquiry, place.parent_lookups);
        let worth = place.worth(n_entries > 0 || self.has_grown || asked.as_ref().is_some_and(is_asked));
        for (plan, prefix) in computed {
            let extents = prefix.inputs[leaf].extents.iter().map(|extent| extent.fingerprint).collect();
            let plan = if keeps { self.kept(plan, prefix, 0, worth)? } else { plan };
            parts.push(StatesPart { plan, extents, bytes: None, cost_us: 0 });
        }
        let mut parts: Vec<Arc<dyn ExecutionPlan>> = match node.plan.downcast_ref::<AggregateExec>().filter(|_| keeps) {
            Some(partial) => self.merged(&Whole { partial, program: &inner, lists, leaf }, parts)?,
            None => parts.into_iter().map(|part| part.plan).collect(),
        };
        for read in &edge_reads {
            parts.push(self.read(read, prefix.program, node));
        }
        if let Some((plan, prefix)) = edge_computed {
            parts.push(if keeps { self.kept(plan, prefix, 0, worth)? } else { plan });
        }
        match parts.len() {
            1 => Ok(parts.remove(0)),
            _ => UnionExec::try_new(parts),
        }
    }

    /// Reads an entry of states in the place of a node.
    fn read(&mut self, segment: &Segment, program: Fingerprint, node: &PrefixNode) -> Arc<dyn ExecutionPlan> {
        let Segment { key, found, .. } = segment;
        self.findings.hits.push(Hit { key: *key, program, found: *found, is_root: false });
        let (rows, bytes, cost_us) = (found.rows, found.bytes, found.cost_us);
        Arc::new(CacheReadExec::new(*key, program, rows, bytes, cost_us, node.plan.schema()))
    }
}

impl ReuseContext {
    /// The program that all inner extents share, and what lies below its groups.
    pub(super) fn inner_program(
        &self,
        partial: &AggregateExec,
        below: &Arc<dyn ExecutionPlan>,
        window: &Window,
        today: &Lists,
        config: &ConfigOptions,
        salt: &Salt,
    ) -> Result<Option<(Prefix, Arc<dyn ExecutionPlan>)>> {
        let mut lists = today.clone();
        lists[window.leaf] = Arc::clone(&window.inner);
        let Some(whole) = window_states(partial, below, window, &lists)? else { return Ok(None) };
        let encoded = prefixes(&whole, &self.built_ins, config, salt);
        let (Ok(inner), [inner_below]) = (encoded.prefix, encoded.children.as_slice()) else { return Ok(None) };
        let is_known = inner.kind == PrefixKind::States && inner.inputs.len() == today.len();
        Ok(is_known.then(|| (inner, Arc::clone(&inner_below.plan))))
    }
}

/// The states over extents for which the window is decided.
fn window_states(
    partial: &AggregateExec,
    below: &Arc<dyn ExecutionPlan>,
    window: &Window,
    lists: &Lists,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(copy) = term(below, lists, Some(window.leaf))? else { return Ok(None) };
    let Some(weaker) = window.without_decided(&copy)? else { return Ok(None) };
    Ok(Some(Arc::new(over(partial, weaker)?)))
}

fn reads(plan: Option<SegmentPlan>) -> Vec<Segment> {
    plan.map(|plan| plan.reads).unwrap_or_default()
}

/// Inner extents that no entry has.
fn missing(plan: Option<&SegmentPlan>, inner: &Arc<[Arc<Extent>]>, leaf: usize) -> Vec<Arc<Extent>> {
    match plan {
        None => inner.to_vec(),
        Some(plan) => plan.terms.iter().flat_map(|term| term.lists[leaf].iter().cloned()).collect(),
    }
}

fn missing_edge(plan: Option<&SegmentPlan>, window: &Window) -> Option<Arc<[Arc<Extent>]>> {
    let extents: Arc<[Arc<Extent>]> = missing(plan, &window.edge, window.leaf).into();
    (!extents.is_empty()).then_some(extents)
}

/// How many pieces may be computed: each of them reads all other scans again.
fn n_pieces(today: &Lists, window: &Window) -> usize {
    let bytes = |extents: &[Arc<Extent>]| extents.iter().map(|extent| extent.bytes()).sum::<u64>();
    let others = today.iter().enumerate().filter(|(leaf, _)| *leaf != window.leaf);
    let again: u64 = others.map(|(_, extents)| bytes(extents)).sum();
    match (bytes(&window.inner) / AGAIN_PART).checked_div(again) {
        None => PIECES_MAX,
        Some(times) => usize::try_from(times).unwrap_or(PIECES_MAX).saturating_add(1).min(PIECES_MAX),
    }
}

/// Neighbours together, in about `n` pieces. A piece has no gap, because what lies in a gap could not be read from another
/// entry; only where that would make too many, there is one for all.
fn pieces(extents: &[Arc<Extent>], inner: &[Arc<Extent>], n: usize) -> Vec<Arc<[Arc<Extent>]>> {
    if extents.is_empty() {
        return vec![];
    }
    let size = extents.len().div_ceil(n).max(1).next_power_of_two();
    let mut positions = inner.iter().enumerate();
    let mut position = |extent: &Arc<Extent>| positions.find(|(_, other)| Arc::ptr_eq(extent, other)).map(|(at, _)| at);
    let placed: Vec<(Option<usize>, Arc<Extent>)> =
        extents.iter().map(|extent| (position(extent), Arc::clone(extent))).collect();
    let is_next = |one: &(Option<usize>, _), next: &(Option<usize>, _)| one.0.map(|at| at + 1) == next.0;
    let pieces: Vec<Arc<[Arc<Extent>]>> = placed
        .chunk_by(is_next)
        .flat_map(|run| run.chunks(size))
        .map(|piece| piece.iter().map(|(_, extent)| Arc::clone(extent)).collect())
        .collect();
    match pieces.len() > 2 * n {
        true => vec![extents.into()],
        false => pieces,
    }
}
