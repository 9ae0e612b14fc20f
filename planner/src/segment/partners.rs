//! [`Partners`]: extents that hold no partner for a join, by the bounds of its keys.
//!
//! ```text
//!   orders ⋈ lineitem ON o_orderkey = l_orderkey, both grew
//!
//!   new orders       keys 900..999                       lineitem extents    keys
//!   x old lineitem   all of it, or so it seems:            l0                1..450      no new order has such keys
//!                                                          l1                451..905    stays
//! ```
//!
//! What a term over few extents reads of the other scans is often little; whether it pays is decided by what is left.
//!
//! Keeps true   the rows of the plan over the lists. A row is left out only if it could decide nothing: it has no partner in a
//!              join that drops rows without one, or it is looked for, and nobody who looks has its key. Bounds must be known
//!              exactly, of the same type, ordered as statistics are (no floats: NaN are not in bounds); NULL equals nothing.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::stats::Precision;
use datafusion::common::{JoinType, NullEquality, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use nectarine_catalog::{Extent, stats};

use super::apart::Keys;
use super::term::Lists;
use crate::node::ExtentScanExec;

/// Rounds in which scans leave extents out because others did.
const ROUNDS_MAX: usize = 8;

/// Ranges that are looked at one by one.
const RANGES_MAX: usize = 16;

/// Pairs of ranges that are compared at most.
const COMPARED_MAX: usize = 1_000_000;

/// The smallest and the largest value.
type Bounds = (ScalarValue, ScalarValue);

/// A column of a scan's table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Origin {
    leaf: usize,
    ordinal: usize,
}

/// Rows of `looked_at` whose key no row of `by` has are of no use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Edge {
    by: Origin,
    looked_at: Origin,
}

/// Which scans of a plan look for partners in which.
#[derive(Debug)]
pub(crate) struct Partners<'a> {
    scans: Vec<&'a ExtentScanExec>,
    edges: Vec<Edge>,
    /// Columns that a join compares, or that groups are made by.
    compared: Vec<(Origin, Origin)>,
}

impl<'a> Partners<'a> {
    /// Of the joins of a plan.
    pub(crate) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Self {
        let mut partners = Self { scans: vec![], edges: vec![], compared: vec![] };
        partners.visit(plan);
        partners
    }

    /// The lists without extents that hold no partner.
    pub(crate) fn left(&self, lists: &Lists) -> Lists {
        let mut lists = lists.clone();
        if lists.len() != self.scans.len() {
            return lists;
        }
        for _ in 0..ROUNDS_MAX {
            let mut has_changed = false;
            for Edge { by, looked_at } in &self.edges {
                let Some(sought) = self.bounds(by, &lists) else { continue };
                let is_of_use = |extent: &Arc<Extent>| match self.bounds_of(looked_at, extent) {
                    Some(held) => sought.iter().any(|sought| overlap(sought, &held)),
                    None => true,
                };
                let before = &lists[looked_at.leaf];
                let kept: Arc<[Arc<Extent>]> = before.iter().filter(|extent| is_of_use(extent)).cloned().collect();
                if kept.len() < before.len() {
                    lists[looked_at.leaf] = kept;
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        lists
    }

    /// Columns of some scans that are compared with each other, one of each: perhaps the key that a plan falls apart by.
    pub(super) fn keys(&self, leaves: &[usize]) -> Vec<Keys> {
        let mut classes: Vec<Vec<Origin>> = vec![];
        for (one, two) in &self.compared {
            let (mut together, others): (Vec<_>, Vec<_>) =
                classes.into_iter().partition(|class| class.contains(one) || class.contains(two));
            together.push(vec![*one, *two]);
            classes = others;
            classes.push(together.concat());
        }
        let key_of = |class: &Vec<Origin>, leaf: usize| {
            class.iter().find(|origin| origin.leaf == leaf).map(|origin| (leaf, origin.ordinal))
        };
        classes.iter().filter_map(|class| leaves.iter().map(|leaf| key_of(class, *leaf)).collect()).collect()
    }

    /// Whether extents of two groups are known to have no value of the key in common, and none without a value.
    pub(super) fn have_no_common_key(&self, keys: &Keys, one: &Lists, two: &Lists) -> bool {
        let all = |lists: &Lists| -> Option<Vec<Bounds>> {
            let bounds = keys.iter().flat_map(|(leaf, ordinal)| {
                let origin = Origin { leaf: *leaf, ordinal: *ordinal };
                lists[*leaf]
                    .iter()
                    .map(move |extent| self.bounds_of(&origin, extent).filter(|_| self.has_no_null(&origin, extent)))
            });
            bounds.collect()
        };
        let (Some(one), Some(two)) = (all(one), all(two)) else { return false };
        one.len().saturating_mul(two.len()) <= COMPARED_MAX
            && !one.iter().any(|one| two.iter().any(|two| overlap(one, two)))
    }

    fn has_no_null(&self, origin: &Origin, extent: &Extent) -> bool {
        let schema = self.scans.get(origin.leaf).map(|scan| scan.table_schema());
        schema.is_some_and(|schema| stats::column(extent, schema, origin.ordinal).null_count == Precision::Exact(0))
    }

    /// Bounds of a column in each extent that is left, or of many together; `None` if one is unknown.
    fn bounds(&self, origin: &Origin, lists: &Lists) -> Option<Vec<Bounds>> {
        let all = lists[origin.leaf].iter().map(|extent| self.bounds_of(origin, extent)).collect::<Option<Vec<_>>>()?;
        match all.len() > RANGES_MAX {
            true => all.into_iter().reduce(around).map(|bounds| vec![bounds]),
            false => Some(all),
        }
    }

    fn bounds_of(&self, origin: &Origin, extent: &Extent) -> Option<Bounds> {
        let schema = self.scans.get(origin.leaf)?.table_schema();
        let known = stats::column(extent, schema, origin.ordinal);
        match (known.min_value, known.max_value) {
            (Precision::Exact(min), Precision::Exact(max)) if !min.is_null() && !max.is_null() => Some((min, max)),
            _ => None,
        }
    }

    /// The columns of a node, each with where it comes from, if it is as it was there.
    fn visit(&mut self, plan: &'a Arc<dyn ExecutionPlan>) -> Vec<Option<Origin>> {
        if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
            let leaf = self.scans.len();
            self.scans.push(scan);
            let n_columns = scan.schema().fields().len();
            let ordinal = |column: usize| scan.projection().map_or(Some(column), |shown| shown.get(column).copied());
            return (0..n_columns).map(|column| ordinal(column).map(|ordinal| Origin { leaf, ordinal })).collect();
        }
        let inputs: Vec<Vec<Option<Origin>>> = plan.children().into_iter().map(|child| self.visit(child)).collect();
        if let (Some(filter), [input]) = (plan.downcast_ref::<FilterExec>(), inputs.as_slice()) {
            return match filter.fetch() {
                None => projected(input.clone(), filter.projection().as_deref()),
                Some(_) => unknown(plan),
            };
        }
        if let (Some(projection), [input]) = (plan.downcast_ref::<ProjectionExec>(), inputs.as_slice()) {
            return projection.expr().iter().map(|shown| column(&shown.expr, input)).collect();
        }
        if let (Some(aggregate), [input]) = (plan.downcast_ref::<AggregateExec>(), inputs.as_slice()) {
            return self.groups(aggregate, input).unwrap_or_else(|| unknown(plan));
        }
        if let (Some(join), [left, right]) = (plan.downcast_ref::<HashJoinExec>(), inputs.as_slice()) {
            return self.join(join, left, right).unwrap_or_else(|| unknown(plan));
        }
        unknown(plan)
    }

    /// All rows of a group have its key: who is not looked for is left out with all of its group.
    fn groups(&mut self, aggregate: &AggregateExec, input: &[Option<Origin>]) -> Option<Vec<Option<Origin>>> {
        if aggregate.limit_options().is_some() || !aggregate.group_expr().is_single() {
            return None;
        }
        let mut columns: Vec<Option<Origin>> =
            aggregate.group_expr().expr().iter().map(|(expr, _)| column(expr, input)).collect();
        let alike = columns.iter().flatten().filter(|origin| self.are_alike(origin, origin));
        let alike: Vec<(Origin, Origin)> = alike.map(|origin| (*origin, *origin)).collect();
        self.compared.extend(alike);
        columns.resize(aggregate.schema().fields().len(), None);
        Some(columns)
    }

    fn join(
        &mut self,
        join: &HashJoinExec,
        left: &[Option<Origin>],
        right: &[Option<Origin>],
    ) -> Option<Vec<Option<Origin>>> {
        if join.fetch().is_some() || join.null_aware || join.null_equality() != NullEquality::NullEqualsNothing {
            return None;
        }
        // Which sides lose rows without a partner; the other is looked at by them. Columns that may be padded are not passed on.
        let (left_loses, right_loses, columns) = match join.join_type() {
            JoinType::Inner => (true, true, [left, right].concat()),
            JoinType::LeftSemi => (true, true, left.to_vec()),
            JoinType::RightSemi => (true, true, right.to_vec()),
            JoinType::LeftAnti => (false, true, left.to_vec()),
            JoinType::RightAnti => (true, false, right.to_vec()),
            JoinType::Left => (false, true, [left, &vec![None; right.len()]].concat()),
            JoinType::Right => (true, false, [&vec![None; left.len()], right].concat()),
            JoinType::Full | JoinType::LeftMark | JoinType::RightMark => return None,
        };
        for (one, two) in join.on() {
            if let (Some(one), Some(two)) = (column(one, left), column(two, right))
                && self.are_alike(&one, &two)
            {
                self.compared.push((one, two));
                if left_loses {
                    self.edges.push(Edge { by: two, looked_at: one });
                }
                if right_loses {
                    self.edges.push(Edge { by: one, looked_at: two });
                }
            }
        }
        Some(projected(columns, join.projection.as_ref().map(|columns| columns.as_ref())))
    }

    /// Whether bounds of the two columns can be compared.
    fn are_alike(&self, one: &Origin, two: &Origin) -> bool {
        let data_type = |origin: &Origin| {
            self.scans.get(origin.leaf)?.table_schema().fields().get(origin.ordinal).map(|field| field.data_type())
        };
        let (one, two) = (data_type(one), data_type(two));
        one == two && one.is_some_and(|data_type| data_type.is_integer() || is_date_or_decimal(data_type))
    }
}

fn is_date_or_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        // Times are seldom keys.
        DataType::Date32
            | DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..)
    )
}

fn unknown(plan: &Arc<dyn ExecutionPlan>) -> Vec<Option<Origin>> {
    vec![None; plan.schema().fields().len()]
}

fn projected(columns: Vec<Option<Origin>>, shown: Option<&[usize]>) -> Vec<Option<Origin>> {
    match shown {
        Some(shown) => shown.iter().map(|column| columns.get(*column).copied().flatten()).collect(),
        None => columns,
    }
}

/// The origin of a plain column.
fn column(expr: &Arc<dyn PhysicalExpr>, input: &[Option<Origin>]) -> Option<Origin> {
    input.get(expr.downcast_ref::<Column>()?.index()).copied().flatten()
}

/// Whether two ranges share a value. What can not be compared may.
fn overlap(one: &Bounds, two: &Bounds) -> bool {
    !is_less(&one.1, &two.0) && !is_less(&two.1, &one.0)
}

/// The range around two; both are of one type.
fn around(one: Bounds, two: Bounds) -> Bounds {
    let min = if is_less(&two.0, &one.0) { two.0 } else { one.0 };
    let max = if is_less(&one.1, &two.1) { two.1 } else { one.1 };
    (min, max)
}

fn is_less(one: &ScalarValue, two: &ScalarValue) -> bool {
    one.partial_cmp(two) == Some(Ordering::Less)
}
