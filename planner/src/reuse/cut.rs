//! [`Cut`]: groups that DataFusion does not compute to the end, because a limit above them needs only some.
//!
//! ```text
//!   GlobalLimitExec: fetch=10               any ten groups end it
//!     AggregateExec: gby=[s], aggr=[]
//!   SortExec: TopK(fetch=5), m DESC         all rows are looked at, five groups are held
//!     AggregateExec: gby=[s], aggr=[max(id)]
//! ```
//!
//! Keeping such groups means to compute all of them, and reading them to read all of them: both may take far longer than the
//! statement would by itself. So they are kept by statements that need all of them, and read where that is likely to be cheaper.
//!
//! A query that comes again when its tables have grown is another matter: once all groups were computed, the next time costs what was
//! appended. That is tried once; where there turn out to be too many groups, they are cut short again.
//!
//! Which groups these are is for DataFusion to say: its own rules are asked, and what they make of the plan is thrown away.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::limited_distinct_aggregation::LimitedDistinctAggregation;
use datafusion::physical_optimizer::topk_aggregation::TopKAggregation;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;

use super::Found;
use super::context::ReuseContext;
use super::derived::address;
use super::rule::read_us;
use crate::canonical::{PrefixKind, PrefixNode};
use crate::node::ExtentScanExec;

/// Holding a few groups instead of all of them is taken to cost one part in so many, if what is below costs nothing.
const BEST_PART: u64 = 8;
/// Rows of an entry that are read, or go through the sort above it, in a microsecond.
const ROWS_PER_US: u64 = 1;

/// How groups are cut short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cut {
    /// Whether any groups are as good as others: when there are enough of them, nobody asks for more rows.
    is_any: bool,
    /// How many of them are enough, where it does not matter which, and rows come as they are read.
    enough: Option<u64>,
    /// Otherwise, how many rows are read, where little else is done with them and it is known.
    rows: Option<u64>,
}

impl Cut {
    /// Whether rows right below it are left unread.
    pub(super) fn ends_early(self) -> bool {
        self.enough.is_some()
    }

    /// Whether it may end before all of its input is computed, whatever that is made of.
    pub(super) fn may_end_early(self) -> bool {
        self.is_any
    }

    /// What computing takes with the cut, in microseconds, where an entry of all groups is known.
    fn cost_us(self, found: &Found) -> u64 {
        match self.enough {
            // As many rows as it takes to see so many groups.
            Some(enough) if enough < found.rows => {
                u64::try_from(u128::from(found.cost_us) * u128::from(enough) / u128::from(found.rows))
                    .unwrap_or(u64::MAX)
            }
            Some(_) => found.cost_us,
            None => found.cost_us / BEST_PART,
        }
    }

    /// An entry of all groups, that took no longer to compute than some of them.
    pub(super) fn applied(self, found: Found) -> Found {
        Found { cost_us: self.cost_us(&found), ..found }
    }

    /// The same, if reading it is likely to take less time than computing some.
    pub(super) fn read(self, found: Found) -> Option<Found> {
        let found = self.applied(found);
        // Times are longer when the machine is busy; as many groups as rows are too many at any time.
        if self.rows.is_some_and(|rows| found.rows > rows / BEST_PART) {
            return None;
        }
        (found.cost_us > read_us(&found) + found.rows / ROWS_PER_US).then_some(found)
    }
}

/// The groups of a plan that are cut short, by their addresses: both halves, where there are two.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    cuts: HashMap<usize, Cut>,
    /// Whether some of DataFusion's were taken away.
    is_lifted: bool,
}

impl Cuts {
    /// Asks DataFusion's rules.
    pub(super) fn new(plan: &Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Self {
        let mut cuts = Self::default();
        if !has_limit(plan) {
            return cuts;
        }
        let rules: [&dyn PhysicalOptimizerRule; 2] = [&LimitedDistinctAggregation::new(), &TopKAggregation::new()];
        for rule in rules {
            // A rule that fails will say so when its turn comes.
            if let Ok(after) = rule.optimize(Arc::clone(plan), config) {
                cuts.compare(plan, &after);
            }
        }
        cuts
    }

    /// How the groups of this node are cut short, if they are; of a choice of columns, those below it.
    pub(super) fn of(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<Cut> {
        match plan.downcast_ref::<ProjectionExec>() {
            Some(projection) if !self.cuts.is_empty() => self.of(projection.input()),
            _ => self.cuts.get(&address(plan)).copied(),
        }
    }

    /// All groups of this node are wanted.
    pub(super) fn lift(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if self.of(plan).is_some() {
            self.cuts.remove(&address(plan));
            self.is_lifted = true;
            plan.children().into_iter().for_each(|below| self.lift(below));
        }
    }

    /// Whether groups are computed that the statement by itself would have left out.
    pub(super) fn is_lifted(&self) -> bool {
        self.is_lifted
    }

    /// All groups of a query that was asked before its tables grew are wanted, unless they are known to be too many. Who stops asking
    /// is let stop: rows that were never computed may be many, and may hold what can not be computed.
    pub(super) fn lift_growing(&mut self, root: &PrefixNode, context: &ReuseContext) {
        if self.cuts.is_empty() {
            return;
        }
        let mut too_many = HashSet::new();
        root.for_each(&mut |node| {
            let (Ok(prefix), Some(cut)) = (&node.prefix, self.of(&node.plan)) else { return };
            let segments = context.oracle.segments(&prefix.program, prefix.kind == PrefixKind::States);
            let largest = segments.iter().map(|segment| segment.found).max_by_key(|found| found.rows);
            if cut.may_end_early() || largest.is_some_and(|found| cut.read(found).is_none()) {
                too_many.insert(address(&node.plan));
            }
        });
        let mut lifted = vec![];
        root.for_each(&mut |node| {
            let is_fine = |node: &PrefixNode| !too_many.contains(&address(&node.plan));
            if self.of(&node.plan).is_some() && is_fine(node) && node.children.iter().all(is_fine) {
                lifted.push(Arc::clone(&node.plan));
            }
        });
        lifted.iter().for_each(|plan| self.lift(plan));
    }

    fn compare(&mut self, before: &Arc<dyn ExecutionPlan>, after: &Arc<dyn ExecutionPlan>) {
        if Arc::ptr_eq(before, after) {
            return;
        }
        before.children().into_iter().zip(after.children()).for_each(|(before, after)| self.compare(before, after));
        let Some(groups) = after.downcast_ref::<AggregateExec>() else { return };
        let Some(limit) = groups.limit_options() else { return };
        let cut = before.children().first().and_then(|below| match groups.mode() {
            // The first half does most of the work: if that is not cut, nothing is.
            AggregateMode::Final | AggregateMode::FinalPartitioned => self.of(below),
            _ => {
                let comes = comes_as_read(below);
                let is_any = limit.descending().is_none();
                let is_enough = comes && is_any;
                let rows = rows_of(below).filter(|_| comes && !is_enough);
                Some(Cut { is_any, enough: is_enough.then_some(limit.limit() as u64), rows })
            }
        });
        if let Some(cut) = cut {
            self.cuts.insert(address(before), cut);
        }
    }
}

fn has_limit(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.fetch().is_some() || plan.children().into_iter().any(has_limit)
}

/// Whether the first rows are there before the last ones are read.
fn comes_as_read(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let passes_on =
        plan.is::<FilterExec>() || plan.is::<ProjectionExec>() || plan.is::<UnionExec>() || plan.is::<ExtentScanExec>();
    passes_on && plan.children().into_iter().all(comes_as_read)
}

/// Rows of all scans below, if they are known.
fn rows_of(plan: &Arc<dyn ExecutionPlan>) -> Option<u64> {
    match plan.downcast_ref::<ExtentScanExec>() {
        Some(scan) => scan.extents().iter().map(|extent| extent.rows).sum(),
        None => plan.children().into_iter().map(rows_of).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_is_no_reason_to_read_as_many_groups_as_rows() {
        let found = |rows: u64| Found { rows, bytes: rows * 8, cost_us: 600_000_000 };
        let best = |rows: Option<u64>| Cut { is_any: false, enough: None, rows };
        assert_eq!(best(Some(3_000_000)).read(found(3_000_000)), None);
        assert!(best(Some(3_000_000)).read(found(1000)).is_some());
        // Who knows what it takes to get at the rows.
        assert!(best(None).read(found(3_000_000)).is_some());
    }

    #[test]
    fn any_groups_are_found_in_a_part_of_the_rows() {
        let found = Found { rows: 1000, bytes: 8000, cost_us: 1_000_000 };
        let any = |enough: u64| Cut { is_any: true, enough: Some(enough), rows: None };
        assert_eq!(any(1).read(found), None, "a millisecond to compute, more to read");
        assert_eq!(any(500).read(found).map(|found| found.cost_us), Some(500_000));
        assert_eq!(any(5000).read(found), Some(found), "all of them");
        assert_eq!(any(10).read(Found { rows: 0, ..found }).map(|found| found.cost_us), Some(1_000_000));
    }
}
