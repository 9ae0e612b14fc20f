//! [`fall_apart`]: whether a plan is the sum of plans over each value of a key, so that extents without common keys can be
//! computed by themselves, whatever joins and groups lie between.
//!
//! ```text
//!   orders ⋉ lineitem ON o_orderkey = l_orderkey         lineitem grew: l2 is new
//!
//!   extent   l_orderkey
//!   l0       1..300         an order has partners in old extents or in new ones, never in both:
//!   l1       301..600         orders ⋉ {l0 l1 l2} = orders ⋉ {l0 l1} + orders ⋉ {l2}
//!   l2       601..900       with a common key, an order could be counted twice
//! ```
//!
//! Some scans are keyed: each has a column that is the key. All others are whole, the same for every value of the key.
//!
//! ```text
//!   filter, projection                      as what lies below
//!   keyed ⋈ whole                           if keyed rows are kept, or lost, each by itself: inner; left, semi, anti from keyed
//!   whole ⋉ keyed ON .. = key               a row has one value, and so partners of one value only
//!   keyed ⋈ keyed ON key = key              inner, left, semi, anti: partners have the same value
//!   groups BY key, ..                       no group has rows of two values
//!   anything else                           does not fall apart
//! ```
//!
//! Keeps true   whitelists. NULL equals nothing in these joins, but is a group: keys must be known to be without NULL
//!              (`choice` asks), as must their bounds, exactly.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{JoinType, NullEquality};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;

use crate::node::ExtentScanExec;

/// For each keyed scan, by its number from the left, the ordinal of the key in its table.
pub(super) type Keys = HashMap<usize, usize>;

/// What a node gives.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Parts {
    /// The same for every value of the key.
    Whole,
    /// The sum of what it gives for each value; these columns hold the value.
    Keyed(Vec<usize>),
}

/// Whether the plan is the sum of what it is for each value of the key.
pub(super) fn falls_apart(plan: &Arc<dyn ExecutionPlan>, keys: &Keys) -> bool {
    matches!(visit(plan, keys, &mut 0), Some(Parts::Keyed(_)))
}

/// `None` if it does not fall apart.
fn visit(plan: &Arc<dyn ExecutionPlan>, keys: &Keys, next: &mut usize) -> Option<Parts> {
    if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        let key = keys.get(next).copied();
        *next += 1;
        let Some(key) = key else { return Some(Parts::Whole) };
        let ordinal = |column: usize| scan.projection().map_or(Some(column), |shown| shown.get(column).copied());
        let columns = (0..scan.schema().fields().len()).filter(|column| ordinal(*column) == Some(key));
        return Some(Parts::Keyed(columns.collect()));
    }
    // All of them are looked at, so that scans are counted.
    let inputs: Vec<Option<Parts>> = plan.children().into_iter().map(|child| visit(child, keys, next)).collect();
    let inputs = inputs.into_iter().collect::<Option<Vec<Parts>>>()?;
    if inputs.iter().all(|input| *input == Parts::Whole) {
        return Some(Parts::Whole);
    }
    if let (Some(filter), [Parts::Keyed(columns)]) = (plan.downcast_ref::<FilterExec>(), inputs.as_slice()) {
        let shown = filter.projection().as_deref();
        return filter.fetch().is_none().then(|| Parts::Keyed(projected(columns, shown)));
    }
    if let (Some(projection), [Parts::Keyed(columns)]) = (plan.downcast_ref::<ProjectionExec>(), inputs.as_slice()) {
        return Some(Parts::Keyed(holding(projection.expr().iter().map(|shown| &shown.expr), columns)));
    }
    if let (Some(aggregate), [Parts::Keyed(columns)]) = (plan.downcast_ref::<AggregateExec>(), inputs.as_slice()) {
        let is_plain = aggregate.limit_options().is_none() && aggregate.group_expr().is_single();
        let held = holding(aggregate.group_expr().expr().iter().map(|(expr, _)| expr), columns);
        return (is_plain && !held.is_empty()).then_some(Parts::Keyed(held));
    }
    if let (Some(join), [left, right]) = (plan.downcast_ref::<HashJoinExec>(), inputs.as_slice()) {
        return joined(join, left, right);
    }
    None
}

fn joined(join: &HashJoinExec, left: &Parts, right: &Parts) -> Option<Parts> {
    if join.fetch().is_some() || join.null_aware || join.null_equality() != NullEquality::NullEqualsNothing {
        return None;
    }
    let n_left = join.left().schema().fields().len();
    let column = |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Column>().map(|column| column.index());
    let on: Vec<(Option<usize>, Option<usize>)> =
        join.on().iter().map(|(left, right)| (column(left), column(right))).collect();
    let join_type = *join.join_type();
    let (left_columns, right_columns) = match (left, right) {
        (Parts::Keyed(left), Parts::Keyed(right)) => {
            let holds =
                |columns: &[usize], column: &Option<usize>| column.is_some_and(|column| columns.contains(&column));
            if !on.iter().any(|(one, two)| holds(left, one) && holds(right, two)) {
                return None;
            }
            (left.clone(), right.clone())
        }
        (Parts::Keyed(left), Parts::Whole) => {
            let partners = partners(left, on.iter().copied());
            match join_type {
                JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => {}
                JoinType::RightSemi if !partners.is_empty() => {}
                _ => return None,
            }
            (left.clone(), partners)
        }
        (Parts::Whole, Parts::Keyed(right)) => {
            let partners = partners(right, on.iter().map(|(left, right)| (*right, *left)));
            match join_type {
                JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => {}
                JoinType::LeftSemi if !partners.is_empty() => {}
                _ => return None,
            }
            (partners, right.clone())
        }
        (Parts::Whole, Parts::Whole) => return None,
    };
    // Columns that may be padded with NULL do not hold the value.
    let columns = match join_type {
        JoinType::Inner => left_columns.into_iter().chain(right_columns.iter().map(|column| n_left + column)).collect(),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => left_columns,
        JoinType::Right => right_columns.iter().map(|column| n_left + column).collect(),
        JoinType::RightSemi | JoinType::RightAnti => right_columns,
        JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return None,
    };
    Some(Parts::Keyed(projected(&columns, join.projection.as_ref().map(|columns| columns.as_ref()))))
}

/// Columns of the other side that equal one of `columns`.
fn partners(columns: &[usize], on: impl Iterator<Item = (Option<usize>, Option<usize>)>) -> Vec<usize> {
    on.filter(|(one, _)| one.is_some_and(|one| columns.contains(&one))).filter_map(|(_, two)| two).collect()
}

/// Where `columns` are among those that are shown.
fn projected(columns: &[usize], shown: Option<&[usize]>) -> Vec<usize> {
    match shown {
        Some(shown) => (0..shown.len()).filter(|position| columns.contains(&shown[*position])).collect(),
        None => columns.to_vec(),
    }
}

/// Positions of expressions that are one of `columns`.
fn holding<'a>(exprs: impl Iterator<Item = &'a Arc<dyn PhysicalExpr>>, columns: &[usize]) -> Vec<usize> {
    let is_one = |expr: &Arc<dyn PhysicalExpr>| {
        expr.downcast_ref::<Column>().is_some_and(|column| columns.contains(&column.index()))
    };
    exprs.enumerate().filter(|(_, expr)| is_one(expr)).map(|(position, _)| position).collect()
}
