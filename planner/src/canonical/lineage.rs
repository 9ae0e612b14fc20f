//! [`Lineage`]: which rows a prefix has, and what each of its columns is, whatever other columns stand beside it.
//!
//! DataFusion drops columns that a query does not need, down to the scans. So the groups below
//! `SELECT k, sum(a), count(*) .. GROUP BY k` and those below `SELECT k, count(*) .. GROUP BY k` are two programs, although
//! the second is two columns of the first. They are of one family:
//!
//! ```text
//!   family     which rows       scan: of which reading      filter: of which family, by what      groups: of which family, by what
//!   column     what it is       scan: its field             groups: key number 0, or sum(what)    projection: an expression over whats
//!                               window: its function over whats; the rows are those below it
//! ```
//!
//! Keeps true   two prefixes of one family on the same extents have the same rows in some order, and two of their columns with
//!              the same fingerprint the same value in each row. So an entry of one answers the other, if it has its columns.
//! Fails closed what is not handled here is a family of its own, made of its program: nothing is assumed about it.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::window::WindowExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use nectarine_catalog::{FileFormatKind, Fingerprint};

use crate::node::ExtentScanExec;

use super::aggregate::exactness_of;
use super::encoder::{Encoder, Tag};
use super::expr::{ExprContext, Naming};
use super::{BuiltIns, Exactness, PrefixNode, Salt, Uncacheable, scan, types};

/// Where rows and columns come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// Which rows, with the extents left open.
    pub family: Fingerprint,
    /// What each column is, within the family.
    pub columns: Arc<[Fingerprint]>,
}

impl Lineage {
    /// Of a program about which nothing else is known.
    pub(super) fn alone(program: &Fingerprint, n_columns: usize) -> Self {
        let mut family = Encoder::new(Tag::Family);
        family.text("alone").fingerprint(program);
        let column = |position: usize| {
            let mut column = Encoder::new(Tag::Lineage);
            column.text("position").number(position as u64);
            column.finish()
        };
        Self { family: family.finish(), columns: (0..n_columns).map(column).collect() }
    }
}

/// The lineage of a node whose children have theirs; `None` if it is not handled here.
pub(super) fn of(
    plan: &Arc<dyn ExecutionPlan>,
    children: &[PrefixNode],
    context: &ExprContext<'_>,
    salt: &Salt,
) -> Option<Lineage> {
    let lineage = if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
        scanned(scan, salt)
    } else if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        filtered(filter, children, context, salt)
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        projected(projection, children, context)
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        grouped(aggregate, children, context, salt)
    } else if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        joined(join, children, context, salt)
    } else if let Some(functions) = window_functions(plan) {
        windowed(functions, children, context)
    } else {
        None
    };
    context.naming.replace(Naming::Position);
    // Each column must have been accounted for.
    lineage.filter(|lineage| lineage.columns.len() == plan.schema().fields().len())
}

fn family(kind: &str, salt: &Salt, below: &[&Lineage], own: &[u8]) -> Fingerprint {
    let mut family = Encoder::new(Tag::Family);
    family.text(kind).fingerprint(salt.fingerprint()).number(below.len() as u64);
    below.iter().for_each(|lineage| _ = family.fingerprint(&lineage.family));
    family.bytes(own);
    family.finish()
}

fn column(kind: &str, what: &[u8]) -> Fingerprint {
    let mut column = Encoder::new(Tag::Lineage);
    column.text(kind).bytes(what);
    column.finish()
}

fn lineage_of(node: Option<&PrefixNode>) -> Option<&Lineage> {
    Some(&node?.prefix.as_ref().ok()?.lineage)
}

/// Files whose columns are apart from each other. In text, what one column is may depend on how the others are read.
fn scanned(scan: &ExtentScanExec, salt: &Salt) -> Option<Lineage> {
    let reading = scan.reading();
    if !matches!(reading.format, FileFormatKind::Parquet | FileFormatKind::Arrow) {
        return None;
    }
    let mut own = scan::rows(scan);
    own.list(scan::paths(scan));
    let columns = scan::columns(scan).iter().map(|field| column("field", field)).collect();
    Some(Lineage { family: family("scan", salt, &[], &own.into_bytes()), columns })
}

fn filtered(filter: &FilterExec, children: &[PrefixNode], context: &ExprContext<'_>, salt: &Salt) -> Option<Lineage> {
    if filter.fetch().is_some() {
        return None;
    }
    let below = lineage_of(children.first())?;
    context.naming.replace(Naming::Lineage(Arc::clone(&below.columns)));
    let predicate = context.predicate(filter.predicate()).ok()?;
    let columns = match filter.projection() {
        Some(columns) => choose(&below.columns, columns)?,
        None => Arc::clone(&below.columns),
    };
    Some(Lineage { family: family("filter", salt, &[below], &predicate), columns })
}

fn projected(projection: &ProjectionExec, children: &[PrefixNode], context: &ExprContext<'_>) -> Option<Lineage> {
    choice(projection, lineage_of(children.first())?, context)
}

fn choice(projection: &ProjectionExec, below: &Lineage, context: &ExprContext<'_>) -> Option<Lineage> {
    context.naming.replace(Naming::Lineage(Arc::clone(&below.columns)));
    let columns = projection.expr().iter().map(|projected| what(&projected.expr, below, context).ok());
    Some(Lineage { family: below.family, columns: columns.collect::<Option<_>>()? })
}

/// What an expression over the columns of `below` is. The naming has been set.
fn what(expr: &Arc<dyn PhysicalExpr>, below: &Lineage, context: &ExprContext<'_>) -> Result<Fingerprint, Uncacheable> {
    if let Some(plain) = expr.downcast_ref::<Column>()
        && let Some(what) = below.columns.get(plain.index())
    {
        return Ok(*what);
    }
    Ok(column("expression", &context.expr(expr)?))
}

/// Groups, from both halves of an aggregate. A half alone is states, not groups.
fn grouped(
    aggregate: &AggregateExec,
    children: &[PrefixNode],
    context: &ExprContext<'_>,
    salt: &Salt,
) -> Option<Lineage> {
    let (first_half, below) = first_half(aggregate, children)?;
    let below = lineage_of(below)?;
    context.naming.replace(Naming::Lineage(Arc::clone(&below.columns)));
    let keys = context.group_by(first_half.group_expr()).ok()?;
    let schema = ExecutionPlan::schema(aggregate);
    let n_keys = schema.fields().len().checked_sub(first_half.aggr_expr().len())?;
    let mut columns: Vec<_> = (0..n_keys).map(|key| column("key", &key.to_le_bytes())).collect();
    for (position, (function, filter)) in first_half.aggr_expr().iter().zip(first_half.filter_expr()).enumerate() {
        let mut value = Encoder::default();
        value.bytes(&context.aggregate(function).ok()?).bytes(&context.filter(filter.as_ref()).ok()?);
        value.bytes(&types::data_type(schema.field(n_keys + position).data_type()));
        columns.push(column("aggregate", &value.into_bytes()));
    }
    Some(Lineage { family: family("groups", salt, &[below], &keys), columns: columns.into() })
}

/// The half of an aggregate that reads what is grouped, and what that is.
fn first_half<'a>(
    aggregate: &'a AggregateExec,
    children: &'a [PrefixNode],
) -> Option<(&'a AggregateExec, Option<&'a PrefixNode>)> {
    match aggregate.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => Some((aggregate, children.first())),
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let half = aggregate.input().downcast_ref::<AggregateExec>()?;
            let is_first =
                *half.mode() == AggregateMode::Partial && half.aggr_expr().len() == aggregate.aggr_expr().len();
            is_first.then_some((half, children.first()?.children.first()))
        }
        AggregateMode::Partial | AggregateMode::PartialReduce => None,
    }
}

fn window_functions(plan: &Arc<dyn ExecutionPlan>) -> Option<&[Arc<dyn WindowExpr>]> {
    match plan.downcast_ref::<WindowAggExec>() {
        Some(window) => Some(window.window_expr()),
        None => plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr),
    }
}

/// The rows below, each with something more.
fn windowed(functions: &[Arc<dyn WindowExpr>], children: &[PrefixNode], context: &ExprContext<'_>) -> Option<Lineage> {
    let below = lineage_of(children.first())?;
    context.naming.replace(Naming::Lineage(Arc::clone(&below.columns)));
    let mut columns = below.columns.to_vec();
    for function in functions {
        columns.push(column("window", &context.window(function).ok()?));
    }
    Some(Lineage { family: below.family, columns: columns.into() })
}

/// What the top of a prefix decides by luck, or adds up from floats: some of its columns.
pub(crate) fn lucky(node: &PrefixNode, built_ins: &BuiltIns) -> Vec<Fingerprint> {
    let Some(prefix) = node.prefix.as_ref().ok().filter(|prefix| prefix.exactness != Exactness::Exact) else {
        return vec![];
    };
    let last = |n: usize| prefix.lineage.columns.iter().copied().skip(prefix.lineage.columns.len().saturating_sub(n));
    if let Some(functions) = window_functions(&node.plan) {
        return last(functions.len()).collect();
    }
    let aggregate = node.plan.downcast_ref::<AggregateExec>();
    let Some((half, _)) = aggregate.and_then(|aggregate| first_half(aggregate, &node.children)) else { return vec![] };
    let schema = half.input_schema();
    let is_lucky = |function: &AggregateFunctionExpr| {
        let types: Result<Vec<_>, _> =
            function.expressions().iter().map(|argument| argument.data_type(&schema)).collect();
        types.map_or(true, |types| exactness_of(function, &types, built_ins) != Exactness::Exact)
    };
    let values = last(half.aggr_expr().len()).zip(half.aggr_expr());
    values.filter(|(_, function)| is_lucky(function)).map(|(value, _)| value).collect()
}

/// Joins that show the columns of both sides.
fn joined(join: &HashJoinExec, children: &[PrefixNode], context: &ExprContext<'_>, salt: &Salt) -> Option<Lineage> {
    let shows_both = matches!(join.join_type(), JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
    if !shows_both {
        return None;
    }
    let sides = (lineage_of(children.first())?, lineage_of(children.get(1))?);
    let family = join_family(join, *join.join_type(), sides, context, salt)?;
    let columns: Vec<_> = side_columns("left", sides.0).chain(side_columns("right", sides.1)).collect();
    Some(Lineage { family, columns: shown(columns, join)? })
}

/// The same rows if it does not matter how often each is there: `SELECT DISTINCT` makes DataFusion turn a join of which only
/// one side's columns are used into a semijoin. As a set, that is those columns of the join.
pub(super) fn as_set(
    plan: &Arc<dyn ExecutionPlan>,
    children: &[PrefixNode],
    context: &ExprContext<'_>,
    salt: &Salt,
) -> Option<Lineage> {
    let lineage = if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        semijoined(join, children, context, salt)
    } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        let below = children.first()?.prefix.as_ref().ok()?.as_set.as_ref()?;
        choice(projection, below, context)
    } else {
        None
    };
    context.naming.replace(Naming::Position);
    lineage.filter(|lineage| lineage.columns.len() == plan.schema().fields().len())
}

fn semijoined(join: &HashJoinExec, children: &[PrefixNode], context: &ExprContext<'_>, salt: &Salt) -> Option<Lineage> {
    let sides = (lineage_of(children.first())?, lineage_of(children.get(1))?);
    let columns: Vec<_> = match join.join_type() {
        JoinType::LeftSemi => side_columns("left", sides.0).collect(),
        JoinType::RightSemi => side_columns("right", sides.1).collect(),
        _ => return None,
    };
    let family = join_family(join, JoinType::Inner, sides, context, salt)?;
    Some(Lineage { family, columns: shown(columns, join)? })
}

/// The rows of a join, whatever columns of them it shows.
fn join_family(
    join: &HashJoinExec,
    join_type: JoinType,
    (left, right): (&Lineage, &Lineage),
    context: &ExprContext<'_>,
    salt: &Salt,
) -> Option<Fingerprint> {
    if join.fetch().is_some() || join.null_aware {
        return None;
    }
    let mut own = Encoder::default();
    own.text(&format!("{join_type:?}")).text(&format!("{:?}", join.null_equality()));
    context.naming.replace(Naming::Lineage(Arc::clone(&left.columns)));
    let lefts = context.exprs(join.on().iter().map(|(left, _)| left)).ok()?;
    context.naming.replace(Naming::Lineage(Arc::clone(&right.columns)));
    let rights = context.exprs(join.on().iter().map(|(_, right)| right)).ok()?;
    let pairs = lefts.iter().zip(&rights).map(|(left, right)| {
        let mut pair = Encoder::new(Tag::Equality);
        pair.bytes(left).bytes(right);
        pair.into_bytes()
    });
    own.set(pairs.collect());
    context.naming.replace(Naming::Sides([Arc::clone(&left.columns), Arc::clone(&right.columns)]));
    match join.filter() {
        Some(filter) => own.tag(Tag::Some).bytes(&context.join_filter(filter).ok()?),
        None => own.tag(Tag::None),
    };
    Some(family("join", salt, &[left, right], &own.into_bytes()))
}

fn side_columns(side: &'static str, lineage: &Lineage) -> impl Iterator<Item = Fingerprint> {
    lineage.columns.iter().map(move |what| column(side, what.as_bytes()))
}

fn shown(columns: Vec<Fingerprint>, join: &HashJoinExec) -> Option<Arc<[Fingerprint]>> {
    match &join.projection {
        Some(shown) => choose(&columns, shown),
        None => Some(columns.into()),
    }
}

fn choose(columns: &[Fingerprint], chosen: &[usize]) -> Option<Arc<[Fingerprint]>> {
    chosen.iter().map(|position| columns.get(*position).copied()).collect()
}
