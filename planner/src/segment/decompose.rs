//! Per operator: does a result over D + d follow from those over D and over d?
//!
//! ```text
//!   f(D + d) = f(D) + f(d)     filter, projection, unnest; a join, in its preserved side; UNION ALL, branch by branch
//!   merge(f(D), f(d))          groups, on their states
//!   not at all                 windows, limits, the side of an outer, semi or anti join that decides about the other's rows
//! ```
//!
//! Streams only grow, so a delta is never negative: what an extent adds is never taken back by another.
//! Whitelists: an operator or an aggregate that is not named here does not decompose.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::unnest::UnnestExec;

use crate::canonical::is_of_sets;
use crate::node::ExtentScanExec;

/// How a plan depends on one of its scans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Linear {
    /// Not at all.
    Absent,
    /// Bag by bag: what is added to the scan adds rows, and takes none away; without it there are none.
    Yes,
    /// The same, but there are rows without it: those of other branches of a UNION ALL.
    Affine,
    /// Otherwise; for people, why.
    No(String),
}

/// Whether states over disjoint rows merge into the state over all of them, in whatever order: so it is where the set of rows
/// alone decides, and for a sketch of which it is known.
fn is_mergeable(name: &str) -> bool {
    is_of_sets(name) || name == "approx_distinct"
}

/// Whether all states of a group merge.
pub(crate) fn merges(aggregate: &AggregateExec) -> bool {
    let merge = |function: &Arc<AggregateFunctionExpr>| {
        // The least of structs or of lists in lists may be the one that comes first.
        let is_told_apart = !function.field().data_type().is_nested();
        is_mergeable(function.fun().name()) && function.order_bys().is_empty() && is_told_apart
    };
    aggregate.limit_options().is_none() && aggregate.aggr_expr().iter().all(merge)
}

/// Whether what is added to a scan adds rows, and nothing else does.
pub(crate) fn is_linear(plan: &Arc<dyn ExecutionPlan>, leaf: usize) -> bool {
    linear(plan, leaf) == Linear::Yes
}

/// Whether what is added to a scan only adds rows, to those of other branches perhaps.
pub(crate) fn grows_with(plan: &Arc<dyn ExecutionPlan>, leaf: usize) -> bool {
    matches!(linear(plan, leaf), Linear::Yes | Linear::Affine)
}

/// How `plan` depends on its scan number `leaf`, counted from the left.
pub(super) fn linear(plan: &Arc<dyn ExecutionPlan>, leaf: usize) -> Linear {
    let mut next = 0;
    visit(plan, leaf, &mut next)
}

/// How many scans a plan has. Those of scalar subqueries are no inputs of the program: with them, scans can not be told by
/// their numbers.
pub(super) fn n_scans(plan: &Arc<dyn ExecutionPlan>) -> usize {
    match plan.is::<ExtentScanExec>() {
        true => 1,
        false => plan.children().into_iter().map(n_scans).sum(),
    }
}

fn visit(plan: &Arc<dyn ExecutionPlan>, leaf: usize, next: &mut usize) -> Linear {
    if plan.is::<ExtentScanExec>() {
        let here = *next == leaf;
        *next += 1;
        return if here { Linear::Yes } else { Linear::Absent };
    }
    let mut from = None;
    let mut refused = None;
    for (position, child) in plan.children().into_iter().enumerate() {
        match visit(child, leaf, next) {
            Linear::Absent => {}
            linear @ (Linear::Yes | Linear::Affine) => from = Some((position, linear)),
            Linear::No(reason) => refused = Some(reason),
        }
    }
    if let Some(reason) = refused {
        return Linear::No(reason);
    }
    match from {
        None => Linear::Absent,
        Some((side, below)) => match own(plan, side) {
            Linear::Yes => below,
            other => other,
        },
    }
}

/// One operator, whose input number `side` grows.
fn own(plan: &Arc<dyn ExecutionPlan>, side: usize) -> Linear {
    let join_type = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        Some((*join.join_type(), join.fetch().is_none()))
    } else if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
        Some((join.join_type(), join.fetch().is_none()))
    } else if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        Some((*join.join_type(), join.fetch().is_none()))
    } else {
        plan.is::<CrossJoinExec>().then_some((JoinType::Inner, true))
    };
    if let Some((join_type, is_whole)) = join_type {
        return match is_whole && keeps_rows(join_type, side) {
            true => Linear::Yes,
            false => Linear::No(format!("{join_type} join, whose other side decides about it")),
        };
    }
    if plan.is::<UnionExec>() {
        return Linear::Affine;
    }
    let is_linear = match plan.downcast_ref::<FilterExec>() {
        Some(filter) => filter.fetch().is_none(),
        None => plan.is::<ProjectionExec>() || plan.is::<UnnestExec>(),
    };
    match is_linear {
        true => Linear::Yes,
        false => Linear::No(format!("{} needs all rows", plan.name())),
    }
}

/// Whether rows added to one side of a join only add rows to its result.
fn keeps_rows(join_type: JoinType, side: usize) -> bool {
    match join_type {
        JoinType::Inner => true,
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => side == 0,
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => side == 1,
        JoinType::Full => false,
    }
}
