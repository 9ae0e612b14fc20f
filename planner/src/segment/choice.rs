//! [`choose`]: which entries of a program to read, and what to compute beside them.
//!
//! ```text
//!   one scan grew      entries over disjoint extents of it, the heaviest that fit      + the program over the missing ones
//!   several grew       one entry over the old extents of all                           + one term per scan that grew:
//!                        new x .. x delta x old x .. x old
//!   no common keys     one entry over extents whose keys no other extent has           + the program over the others (`apart`)
//! ```
//!
//! Fires when   reading and computing the rest is estimated to take less than computing all; the estimate is by bytes, at the
//!              rate that the entries' own computation had.
//! Keeps true   every row of the result over today's extents comes from exactly one entry or term.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::{Extent, Fingerprint};

use super::apart::{Keys, falls_apart};
use super::decompose::{Linear, grows_with, linear, n_scans};
use super::partners::Partners;
use super::schedule::{Interval, schedule};
use super::term::Lists;
use crate::reuse::{Segment, read_us};

/// A segment hit must be estimated to save at least one part in so many.
const SAVES_AT_LEAST: u64 = 20;
/// Entries that one hit reads at most.
const READS_MAX: usize = 128;
/// Entries that are looked at by themselves, for what takes long to find out.
const HEAVIEST_MAX: usize = 4;

/// A program over today's extents, and its entries over others.
pub(crate) struct Candidates<'a> {
    /// What the terms are made of: the program, or what lies below its groups.
    pub(crate) plan: &'a Arc<dyn ExecutionPlan>,
    /// Today's extents, for each scan from the left.
    pub(crate) today: Lists,
    /// What there is.
    pub(crate) segments: Vec<Segment>,
    /// The only scan that entries may lack extents of, if it has to be a certain one.
    pub(crate) leaf: Option<usize>,
}

/// One plan to compute beside what is read.
#[derive(Debug)]
pub(crate) struct Term {
    /// Extents for each scan.
    pub(crate) lists: Lists,
    /// Those among them that can add something: the others hold no partner for a join.
    pub(crate) reads: Lists,
    /// The scan that it is about.
    pub(crate) focus: usize,
    /// Whether it is the program itself over `lists`, and so may be an entry of its own.
    pub(crate) is_program: bool,
}

/// What to read and what to compute.
#[derive(Debug)]
pub(crate) struct SegmentPlan {
    /// Entries over disjoint extents.
    pub(crate) reads: Vec<Segment>,
    /// The rest.
    pub(crate) terms: Vec<Term>,
    /// What the entries took to compute, less what reading them takes, in microseconds.
    pub(crate) saved_us: u64,
}

/// An entry, seen from today's extents.
struct Candidate<'a> {
    segment: &'a Segment,
    /// Positions of its extents in today's lists, in order.
    positions: Vec<Vec<usize>>,
    /// Scans of which it has not all extents.
    grown: Vec<usize>,
}

/// The best plan, if there is one that pays.
pub(crate) fn choose(candidates: &Candidates<'_>) -> Option<SegmentPlan> {
    let Candidates { plan, today, segments, leaf } = candidates;
    let positions: Vec<HashMap<Fingerprint, usize>> = today.iter().map(|list| positions_of(list)).collect();
    // The same extent twice in one scan: which of the two an entry has can not be told.
    if positions.iter().zip(today).any(|(positions, list)| positions.len() != list.len()) {
        return None;
    }
    if n_scans(plan) != today.len() {
        return None;
    }
    let worth_it = segments.iter().filter(|segment| saved_us(segment) > 0);
    let seen: Vec<Candidate<'_>> = worth_it.filter_map(|segment| locate(segment, &positions)).collect();
    if let Some(whole) = seen.iter().find(|candidate| candidate.grown.is_empty()) {
        return Some(SegmentPlan {
            reads: vec![whole.segment.clone()],
            terms: vec![],
            saved_us: saved_us(whole.segment),
        });
    }
    let rate = Rate::of(&seen, today)?;
    let partners = Partners::of(plan);
    let dependence: Vec<Linear> = (0..today.len()).map(|leaf| linear(plan, leaf)).collect();
    let is_wanted = |wanted: usize| leaf.is_none_or(|leaf| leaf == wanted);
    let by_one = (0..today.len()).filter(|leaf| is_wanted(*leaf)).filter_map(|leaf| match &dependence[leaf] {
        Linear::Yes => one_grew(leaf, &seen, today, READS_MAX, rate, &partners),
        Linear::Affine => one_grew(leaf, &seen, today, 1, rate, &partners),
        Linear::Absent | Linear::No(_) => None,
    });
    let mut heaviest: Vec<&Candidate<'_>> = seen.iter().filter(|_| leaf.is_none()).collect();
    heaviest.sort_by_key(|candidate| std::cmp::Reverse(saved_us(candidate.segment)));
    heaviest.truncate(HEAVIEST_MAX);
    let several = heaviest.iter().filter_map(|candidate| several_grew(candidate, today, &dependence, &partners));
    let apart = heaviest.iter().filter_map(|candidate| no_common_keys(candidate, plan, today, &partners));
    // Of equals the last is taken.
    several.chain(apart).chain(by_one).filter(|plan| pays(plan, today, rate)).max_by_key(|plan| plan.saved_us)
}

/// An entry that holds as many rows as are `wanted`, all of which are still rows of the program. Enough for a limit.
pub(crate) fn enough(candidates: &Candidates<'_>, wanted: u64) -> Option<SegmentPlan> {
    let Candidates { plan, today, segments, .. } = candidates;
    let positions: Vec<HashMap<Fingerprint, usize>> = today.iter().map(|list| positions_of(list)).collect();
    if n_scans(plan) != today.len() {
        return None;
    }
    let stays = |leaf: &usize| matches!(linear(plan, *leaf), Linear::Yes | Linear::Affine | Linear::Absent);
    let seen = segments.iter().filter(|segment| segment.found.rows == wanted);
    let found = seen.filter_map(|segment| locate(segment, &positions)).find(|found| found.grown.iter().all(stays))?;
    Some(SegmentPlan { reads: vec![found.segment.clone()], terms: vec![], saved_us: saved_us(found.segment) })
}

/// Whether appending to any of its scans leaves something to reuse.
pub(crate) fn can_grow(plan: &Arc<dyn ExecutionPlan>, n_scans: usize) -> bool {
    (0..n_scans).any(|leaf| grows_with(plan, leaf))
}

/// Whether appending to all of these scans may leave something to reuse. Extents' keys decide in the end.
pub(crate) fn can_follow(plan: &Arc<dyn ExecutionPlan>, leaves: &[usize]) -> bool {
    leaves.iter().all(|leaf| grows_with(plan, *leaf))
        || Partners::of(plan).keys(leaves).iter().any(|keys| falls_apart(plan, keys))
}

fn positions_of(list: &[Arc<Extent>]) -> HashMap<Fingerprint, usize> {
    list.iter().enumerate().map(|(position, extent)| (extent.fingerprint, position)).collect()
}

/// The extents of an entry among today's, for each scan; `None` if one is gone.
pub(crate) fn extents_of(segment: &Segment, today: &Lists) -> Option<Lists> {
    let positions: Vec<HashMap<Fingerprint, usize>> = today.iter().map(|list| positions_of(list)).collect();
    let found = locate(segment, &positions)?;
    let here = |(positions, list): (&Vec<usize>, &Arc<[Arc<Extent>]>)| -> Arc<[Arc<Extent>]> {
        positions.iter().map(|position| Arc::clone(&list[*position])).collect()
    };
    Some(found.positions.iter().zip(today).map(here).collect())
}

/// Where the extents of an entry are today; `None` if one is gone, or the entry has one of them twice: the rows of an
/// extent are in it as often as the extent was in the scan, and that may be another number today.
fn locate<'a>(segment: &'a Segment, today: &[HashMap<Fingerprint, usize>]) -> Option<Candidate<'a>> {
    // What scalar subqueries read comes after the scans, and is part of the program.
    let lists = segment.inputs.get(..today.len())?;
    let mut positions = vec![];
    let mut grown = vec![];
    for (leaf, (list, known)) in lists.iter().zip(today).enumerate() {
        let mut here = list.iter().map(|extent| known.get(extent).copied()).collect::<Option<Vec<usize>>>()?;
        here.sort_unstable();
        if here.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        if here.len() != known.len() {
            grown.push(leaf);
        }
        positions.push(here);
    }
    Some(Candidate { segment, positions, grown })
}

fn saved_us(segment: &Segment) -> u64 {
    segment.found.cost_us.saturating_sub(read_us(&segment.found))
}

/// Entries over disjoint extents of one scan, all with today's extents of the others.
fn one_grew(
    leaf: usize,
    seen: &[Candidate<'_>],
    today: &Lists,
    reads_max: usize,
    rate: Rate,
    partners: &Partners<'_>,
) -> Option<SegmentPlan> {
    let fits = |candidate: &&Candidate<'_>| candidate.grown == [leaf] && !candidate.positions[leaf].is_empty();
    let usable: Vec<&Candidate<'_>> = seen.iter().filter(fits).collect();
    // By what computing its extents would take now. What it took once depends on what else ran at the time, and would have
    // many small entries weigh more than one over the same extents.
    let weight = |candidate: &Candidate<'_>| {
        let bytes = candidate.positions[leaf].iter().map(|position| today[leaf][*position].bytes()).sum();
        // Not nothing: whether all of it pays is decided in the end.
        rate.us(bytes).saturating_sub(read_us(&candidate.segment.found)).max(1)
    };
    let interval = |candidate: &&Candidate<'_>| {
        let positions = &candidate.positions[leaf];
        // Extents in between that it has not are computed, or lost to it: nobody else may cover them.
        let (first, last) = (positions[0], positions[positions.len() - 1]);
        Interval { first, last, weight: weight(candidate) }
    };
    let intervals: Vec<Interval> = usable.iter().map(interval).collect();
    let mut chosen: Vec<&Candidate<'_>> = match reads_max {
        1 => usable.iter().max_by_key(|candidate| weight(candidate)).copied().into_iter().collect(),
        _ => schedule(&intervals).into_iter().map(|ordinal| usable[ordinal]).collect(),
    };
    if chosen.len() > reads_max {
        chosen.sort_by_key(|candidate| std::cmp::Reverse(weight(candidate)));
        chosen.truncate(reads_max);
    }
    if chosen.is_empty() {
        return None;
    }
    let mut is_covered = vec![false; today[leaf].len()];
    for candidate in &chosen {
        candidate.positions[leaf].iter().for_each(|position| is_covered[*position] = true);
    }
    let missing: Arc<[Arc<Extent>]> = today[leaf]
        .iter()
        .zip(&is_covered)
        .filter(|(_, covered)| !**covered)
        .map(|(extent, _)| Arc::clone(extent))
        .collect();
    let mut terms = vec![];
    if !missing.is_empty() {
        let mut lists = today.clone();
        lists[leaf] = missing;
        terms.push(Term { reads: partners.left(&lists), lists, focus: leaf, is_program: reads_max > 1 });
    }
    let saved_us = chosen.iter().map(|candidate| saved_us(candidate.segment)).sum();
    Some(SegmentPlan {
        reads: chosen.into_iter().map(|candidate| candidate.segment.clone()).collect(),
        terms,
        saved_us,
    })
}

/// One entry over older extents of several scans, and a term for each of them.
fn several_grew(
    candidate: &Candidate<'_>,
    today: &Lists,
    dependence: &[Linear],
    partners: &Partners<'_>,
) -> Option<SegmentPlan> {
    let grows = |leaf: &usize| matches!(dependence[*leaf], Linear::Yes | Linear::Affine);
    if candidate.grown.len() < 2 || !candidate.grown.iter().all(grows) {
        return None;
    }
    let mut terms = vec![];
    for (n, leaf) in candidate.grown.iter().enumerate() {
        let mut lists = today.clone();
        let old = |leaf: usize, is_old: bool| -> Arc<[Arc<Extent>]> {
            let mut is_covered = vec![false; today[leaf].len()];
            candidate.positions[leaf].iter().for_each(|position| is_covered[*position] = true);
            let wanted = today[leaf].iter().zip(is_covered).filter(|(_, covered)| *covered == is_old);
            wanted.map(|(extent, _)| Arc::clone(extent)).collect()
        };
        lists[*leaf] = old(*leaf, false);
        for later in &candidate.grown[n + 1..] {
            lists[*later] = old(*later, true);
        }
        terms.push(Term { reads: partners.left(&lists), lists, focus: *leaf, is_program: false });
    }
    Some(SegmentPlan { reads: vec![candidate.segment.clone()], terms, saved_us: saved_us(candidate.segment) })
}

/// One entry over extents of several scans (or of one that decides about others' rows) that have keys of their own, and the
/// program over the others.
fn no_common_keys(
    candidate: &Candidate<'_>,
    plan: &Arc<dyn ExecutionPlan>,
    today: &Lists,
    partners: &Partners<'_>,
) -> Option<SegmentPlan> {
    let (mut old, mut new) = (today.clone(), today.clone());
    for leaf in &candidate.grown {
        let mut is_old = vec![false; today[*leaf].len()];
        candidate.positions[*leaf].iter().for_each(|position| is_old[*position] = true);
        let those = |wanted: bool| -> Arc<[Arc<Extent>]> {
            let extents = today[*leaf].iter().zip(&is_old).filter(|(_, is_old)| **is_old == wanted);
            extents.map(|(extent, _)| Arc::clone(extent)).collect()
        };
        (old[*leaf], new[*leaf]) = (those(true), those(false));
    }
    let works = |keys: &Keys| falls_apart(plan, keys) && partners.have_no_common_key(keys, &old, &new);
    partners.keys(&candidate.grown).iter().find(|keys| works(keys))?;
    let term = Term { reads: partners.left(&new), lists: new, focus: *candidate.grown.first()?, is_program: false };
    Some(SegmentPlan {
        reads: vec![candidate.segment.clone()],
        terms: vec![term],
        saved_us: saved_us(candidate.segment),
    })
}

/// What computing takes, by bytes.
#[derive(Clone, Copy, Debug)]
struct Rate {
    bytes: u64,
    cost_us: u64,
}

impl Rate {
    /// The largest computation tells most about it.
    fn of(seen: &[Candidate<'_>], today: &Lists) -> Option<Self> {
        let rate = |candidate: &Candidate<'_>| {
            let lists = candidate.positions.iter().zip(today);
            let bytes: u64 = lists.flat_map(|(here, list)| here.iter().map(|position| list[*position].bytes())).sum();
            (bytes, candidate.segment.found.cost_us)
        };
        seen.iter().map(rate).max().map(|(bytes, cost_us)| Self { bytes, cost_us })
    }

    fn us(self, bytes: u64) -> u64 {
        (u128::from(bytes) * u128::from(self.cost_us) / u128::from(self.bytes.max(1))) as u64
    }
}

/// Whether the plan is estimated to take less time than computing all.
fn pays(plan: &SegmentPlan, today: &Lists, rate: Rate) -> bool {
    let reading: u64 = plan.reads.iter().map(|segment| read_us(&segment.found)).sum();
    let computing: u64 = plan.terms.iter().map(|term| rate.us(bytes_of(&term.reads))).sum();
    let afresh = rate.us(bytes_of(today));
    reading.saturating_add(computing) <= afresh.saturating_sub(afresh / SAVES_AT_LEAST)
}

fn bytes_of(lists: &Lists) -> u64 {
    lists.iter().flat_map(|list| list.iter()).map(|extent| extent.bytes()).sum()
}
