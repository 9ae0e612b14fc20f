//! Small entries of one program that are merged while a statement reads them, so that the next one reads fewer.
//!
//! ```text
//!   before                                after
//!   CacheReadExec: states of e1           AddEntryExec: states of e1 e2
//!   CacheReadExec: states of e2             MergeGroupsExec
//!   CacheReadExec: states of e3               UnionExec
//!   CacheReadExec: states of e4 .. e7           CacheReadExec: states of e1
//!                                               CacheReadExec: states of e2
//!                                         CacheReadExec: states of e3
//!                                         CacheReadExec: states of e4 .. e7
//! ```
//!
//! Fires when   a statement reads many entries of a window's program anyway, and may keep something.
//! Stays quiet  where entries are large: merging holds all groups of two of them; where memory is short: so does each merging.
//! Keeps true   every part is used once, so the states are those of the same rows; an entry that is written is of exactly the
//!              extents of its parts, in today's order, and of no other. The small ones stay.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::union::UnionExec;
use nectarine_catalog::{Extent, Fingerprint};

use super::rule::Rewrite;
use crate::canonical::Prefix;
use crate::node::{MergeGroupsExec, Worth};
use crate::segment::{Doubled, Lists, Part, doubled};

/// Reading more entries than this is worth merging some.
const READS_MANY: usize = 8;
/// Pairs that one statement merges at most.
const MERGES_MAX: usize = 16;
/// Stored bytes of an entry that is small.
const SMALL_BYTES: u64 = 1 << 20;

/// States over some extents of one scan, all of the others.
pub(super) struct StatesPart {
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The extents of that scan.
    pub(super) extents: Vec<Fingerprint>,
    /// Stored bytes, if it is read.
    pub(super) bytes: Option<u64>,
    /// What computing took that which it reads.
    pub(super) cost_us: u64,
}

/// A program, and the scan whose extents its parts share.
pub(super) struct Whole<'a> {
    pub(super) partial: &'a AggregateExec,
    pub(super) program: &'a Prefix,
    /// Extents of all scans.
    pub(super) lists: Lists,
    pub(super) leaf: usize,
}

/// A part on its way into the plan.
struct Built {
    plan: Arc<dyn ExecutionPlan>,
    first: usize,
    last: usize,
    cost_us: u64,
}

impl Rewrite<'_> {
    /// The same parts, or fewer that hold the same states, and are kept.
    pub(super) fn merged(&mut self, whole: &Whole<'_>, parts: Vec<StatesPart>) -> Result<Vec<Arc<dyn ExecutionPlan>>> {
        let Some(mut placed) = placed(&parts, &whole.lists[whole.leaf]) else {
            return Ok(parts.into_iter().map(|part| part.plan).collect());
        };
        let n_reads = parts.iter().filter(|part| part.bytes.is_some()).count();
        let mut all: Vec<(Part, StatesPart)> = placed.drain(..).zip(parts).collect();
        all.sort_by_key(|(part, _)| part.first);
        let order: Vec<Part> = all.iter().map(|(part, _)| *part).collect();
        let is_disjoint = order.windows(2).all(|pair| pair[0].last < pair[1].first);
        if n_reads <= READS_MANY || !is_disjoint {
            return Ok(all.into_iter().map(|(_, part)| part.plan).collect());
        }
        let mut left: Vec<Option<(Part, StatesPart)>> = all.into_iter().map(Some).collect();
        let merged = doubled(&order, MERGES_MAX.min(self.context.branches_max));
        merged.iter().map(|doubled| Ok(self.built(whole, doubled, &mut left)?.plan)).collect()
    }

    fn built(
        &mut self,
        whole: &Whole<'_>,
        doubled: &Doubled,
        parts: &mut [Option<(Part, StatesPart)>],
    ) -> Result<Built> {
        match doubled {
            Doubled::One(ordinal) => match parts.get_mut(*ordinal).and_then(Option::take) {
                Some((place, part)) => {
                    Ok(Built { plan: part.plan, first: place.first, last: place.last, cost_us: part.cost_us })
                }
                None => datafusion::common::internal_err!("a part of a window is used twice"),
            },
            Doubled::Two(two) => {
                let (left, right) = (self.built(whole, &two.0, parts)?, self.built(whole, &two.1, parts)?);
                let (first, last) = (left.first, right.last);
                let cost_us = left.cost_us + right.cost_us;
                let union = UnionExec::try_new(vec![left.plan, right.plan])?;
                let merged = Arc::new(MergeGroupsExec::new(whole.partial, union).of_few());
                let mut lists = whole.lists.clone();
                lists[whole.leaf] = whole.lists[whole.leaf][first..=last].into();
                let plan = self.kept(merged, whole.program.over(&lists), cost_us, Worth::Wanted)?;
                Ok(Built { plan, first, last, cost_us })
            }
        }
    }
}

/// Where the parts are among today's extents; `None` if an extent is not there, or twice.
fn placed(parts: &[StatesPart], today: &[Arc<Extent>]) -> Option<Vec<Part>> {
    let positions: HashMap<Fingerprint, usize> =
        today.iter().enumerate().map(|(position, extent)| (extent.fingerprint, position)).collect();
    if positions.len() != today.len() {
        return None;
    }
    // What is computed will be about as large as what is there.
    let of_extent = |part: &StatesPart| part.bytes.map_or(0, |bytes| bytes / part.extents.len().max(1) as u64);
    let each = parts.iter().map(of_extent).max().unwrap_or(0);
    let place = |part: &StatesPart| {
        let here = part.extents.iter().map(|extent| positions.get(extent).copied()).collect::<Option<Vec<usize>>>()?;
        let n_extents = here.len();
        let bytes = part.bytes.unwrap_or(each.saturating_mul(n_extents as u64));
        let (first, last) = (*here.iter().min()?, *here.iter().max()?);
        Some(Part { first, last, n_extents, is_small: bytes <= SMALL_BYTES })
    };
    parts.iter().map(place).collect()
}
