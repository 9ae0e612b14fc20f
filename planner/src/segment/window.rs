//! [`window`]: filters that statistics decide for whole extents.
//!
//! ```text
//!   WHERE ts >= '2026-03-03 12:00' AND page = 'home'
//!
//!   extent        ts                    ts >= ..      what is left of the filter
//!   2026-03-01    whole day             never         (pruned before)
//!   2026-03-03    whole day             maybe         all of it             the edge
//!   2026-03-04    whole day             always        page = 'home'         inner: the same program wherever the window is
//! ```
//!
//! Keeps true   a conjunct is dropped for an extent only if it is true for every row of it: the extent has no NULL in its one
//!              column, both bounds are known exactly, it holds at both, and it is monotonic in between. Floats never prove
//!              anything: their statistics leave NaN out.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_expr::utils::{conjunction_opt, split_conjunction};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use nectarine_catalog::{Extent, stats};

use super::decompose::is_linear;
use super::fresh::fresh;
use crate::canonical::BuiltIns;
use crate::node::ExtentScanExec;

/// Inner extents must have at least one part in so many of the bytes that the plan reads. Otherwise the edge is all there is, or
/// the window is one of a small table: its extents would have entries that a large one beside it outgrows.
const INNER_PART: u64 = 4;

/// A scan whose filter is decided for some extents.
#[derive(Debug)]
pub(crate) struct Window {
    /// Which scan, from the left.
    pub(crate) leaf: usize,
    /// Extents of which all rows are in the window, in order.
    pub(crate) inner: Arc<[Arc<Extent>]>,
    /// The others, in order.
    pub(crate) edge: Arc<[Arc<Extent>]>,
    /// The filter that is decided.
    whole: Arc<dyn PhysicalExpr>,
    /// What of it inner extents still need.
    rest: Option<Arc<dyn PhysicalExpr>>,
}

/// Scans of a plan that it is linear in, and whose filter is decided for some of their extents. The most promising first: one that
/// cuts extents will move on, one of a single extent can not; then the one with most bytes. With `all`, also where these are few.
pub(crate) fn windows(
    plan: &Arc<dyn ExecutionPlan>,
    built_ins: &BuiltIns,
    config: &ConfigOptions,
    all: bool,
) -> Vec<Window> {
    let mut seen = All { n_scans: 0, bytes: 0, windows: vec![] };
    seen.find(plan, &Known { built_ins, config });
    let least = if all { 0 } else { seen.bytes / INNER_PART };
    let mut windows = seen.windows;
    windows.retain(|window| bytes(&window.inner) >= least && is_linear(plan, window.leaf));
    let promise = |window: &Window| (!window.edge.is_empty(), window.inner.len() > 1, bytes(&window.inner));
    windows.sort_by_key(|window| Reverse(promise(window)));
    windows
}

/// What was seen of a plan.
struct All {
    n_scans: usize,
    /// Of all scans.
    bytes: u64,
    windows: Vec<Window>,
}

/// What functions mean.
struct Known<'a> {
    built_ins: &'a BuiltIns,
    config: &'a ConfigOptions,
}

impl All {
    fn find(&mut self, plan: &Arc<dyn ExecutionPlan>, known: &Known<'_>) {
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && let Some(scan) = filter.input().downcast_ref::<ExtentScanExec>()
        {
            self.windows.extend(decide(self.n_scans, filter, scan, known));
        }
        if let Some(scan) = plan.downcast_ref::<ExtentScanExec>() {
            self.n_scans += 1;
            self.bytes = self.bytes.saturating_add(bytes(scan.extents()));
        }
        plan.children().into_iter().for_each(|child| self.find(child, known));
    }
}

fn bytes(extents: &[Arc<Extent>]) -> u64 {
    extents.iter().map(|extent| extent.bytes()).sum()
}

fn decide(leaf: usize, filter: &FilterExec, scan: &ExtentScanExec, known: &Known<'_>) -> Option<Window> {
    if filter.fetch().is_some() {
        return None;
    }
    let conjuncts = split_conjunction(filter.predicate());
    let mut by_column: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (ordinal, conjunct) in conjuncts.iter().enumerate() {
        if let Some(column) = monotonic_condition(conjunct, &scan.schema(), known) {
            by_column.entry(column).or_default().push(ordinal);
        }
    }
    let windows = by_column.into_iter().filter_map(|(column, decided)| {
        let mut holds = vec![true; scan.extents().len()];
        for ordinal in &decided {
            let proven = always(conjuncts[*ordinal], column, scan)?;
            holds.iter_mut().zip(proven).for_each(|(holds, proven)| *holds &= proven);
        }
        let those = |wanted: bool| -> Arc<[Arc<Extent>]> {
            let extents = scan.extents().iter().zip(&holds);
            extents.filter(|(_, holds)| **holds == wanted).map(|(extent, _)| Arc::clone(extent)).collect()
        };
        let rest = conjuncts.iter().enumerate().filter(|(ordinal, _)| !decided.contains(ordinal));
        let rest = conjunction_opt(rest.map(|(_, conjunct)| Arc::clone(conjunct)).collect::<Vec<_>>());
        let window =
            Window { leaf, inner: those(true), edge: those(false), whole: Arc::clone(filter.predicate()), rest };
        (!window.inner.is_empty()).then_some(window)
    });
    windows.max_by_key(|window| bytes(&window.inner))
}

/// The one column of a comparison with a constant, if what is compared never goes down (or never up) where the column goes up.
fn monotonic_condition(conjunct: &Arc<dyn PhysicalExpr>, schema: &SchemaRef, known: &Known<'_>) -> Option<usize> {
    let comparison = conjunct.downcast_ref::<BinaryExpr>()?;
    let is_ordered =
        matches!(comparison.op(), Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq | Operator::Eq);
    let (left, right) = (comparison.left(), comparison.right());
    let is_constant =
        |expr: &Arc<dyn PhysicalExpr>| expr.downcast_ref::<Literal>().is_some_and(|literal| !literal.value().is_null());
    let value = match (is_constant(left), is_constant(right)) {
        (false, true) => left,
        (true, false) => right,
        _ => return None,
    };
    if !is_ordered || !compares_as_statistics(&value.data_type(schema).ok()?) {
        return None;
    }
    monotonic(value, schema, known)
}

fn monotonic(expr: &Arc<dyn PhysicalExpr>, schema: &SchemaRef, known: &Known<'_>) -> Option<usize> {
    if let Some(column) = expr.downcast_ref::<Column>() {
        return compares_as_statistics(schema.fields().get(column.index())?.data_type()).then(|| column.index());
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema).ok()?;
        return keeps_order(&from, cast.cast_type()).then(|| monotonic(cast.expr(), schema, known))?;
    }
    let call = expr.downcast_ref::<ScalarFunctionExpr>()?;
    known.built_ins.check_scalar(call.fun(), known.config).ok()?;
    match (call.name(), call.args()) {
        ("date_trunc", [unit, value]) if unit.is::<Literal>() && is_wall_time(&value.data_type(schema).ok()?) => {
            monotonic(value, schema, known)
        }
        _ => None,
    }
}

/// Whether values are ordered as bounds in statistics are, and all of them are between the bounds.
fn compares_as_statistics(data_type: &DataType) -> bool {
    data_type.is_integer()
        || is_time(data_type)
        || matches!(
            data_type,
            DataType::Decimal32(..)
                | DataType::Decimal64(..)
                | DataType::Decimal128(..)
                | DataType::Decimal256(..)
                | DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
        )
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// A time without a zone: no hour comes twice.
fn is_wall_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, None))
}

fn keeps_order(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(_, from), DataType::Timestamp(_, to)) => from == to,
        _ if is_wall_time(from) && is_wall_time(to) => true,
        _ => from.is_integer() && to.is_integer(),
    }
}

/// Times at the ends of what can be told, as some write for infinity: what is computed from them wraps around.
fn is_extreme(value: &ScalarValue) -> bool {
    let ticks = match value {
        ScalarValue::TimestampSecond(ticks, _)
        | ScalarValue::TimestampMillisecond(ticks, _)
        | ScalarValue::TimestampMicrosecond(ticks, _)
        | ScalarValue::TimestampNanosecond(ticks, _)
        | ScalarValue::Date64(ticks) => *ticks,
        ScalarValue::Date32(Some(days)) => Some(i64::from(*days) << 32),
        _ => None,
    };
    ticks.is_some_and(|ticks| ticks.unsigned_abs() > (i64::MAX / 16 * 15).unsigned_abs())
}

/// For each extent, whether a condition on one column is true for all rows.
fn always(condition: &Arc<dyn PhysicalExpr>, column: usize, scan: &ExtentScanExec) -> Option<Vec<bool>> {
    let ordinal = match scan.projection() {
        Some(projection) => *projection.get(column)?,
        None => column,
    };
    let schema = scan.schema();
    let unknown = ScalarValue::try_from(schema.field(column).data_type()).ok()?;
    let mut bounds = Vec::with_capacity(scan.extents().len() * 2);
    for extent in scan.extents().iter() {
        let known = stats::column(extent, scan.table_schema(), ordinal);
        match (known.null_count, known.min_value, known.max_value) {
            (Precision::Exact(0), Precision::Exact(min), Precision::Exact(max))
                if !is_extreme(&min) && !is_extreme(&max) =>
            {
                bounds.extend([min, max]);
            }
            // NULL proves nothing.
            _ => bounds.extend([unknown.clone(), unknown.clone()]),
        }
    }
    let n_rows = bounds.len();
    let bounds = ScalarValue::iter_to_array(bounds).ok()?;
    let columns: Vec<ArrayRef> = (0..schema.fields().len())
        .map(|index| match index == column {
            true => Arc::clone(&bounds),
            false => new_null_array(schema.field(index).data_type(), n_rows),
        })
        .collect();
    let nullable: SchemaRef = Arc::new(arrow::datatypes::Schema::new(
        schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect::<Vec<_>>(),
    ));
    let options = RecordBatchOptions::new().with_row_count(Some(n_rows));
    let batch = RecordBatch::try_new_with_options(nullable, columns, &options).ok()?;
    let held = condition.evaluate(&batch).ok()?.into_array(n_rows).ok()?;
    let held = held.as_boolean_opt()?;
    let holds = |row: usize| !arrow::array::Array::is_null(held, row) && held.value(row);
    Some((0..n_rows / 2).map(|extent| holds(2 * extent) && holds(2 * extent + 1)).collect())
}

impl Window {
    /// A copy of the plan over inner extents, without what is decided for them. `plan` is one whose nodes are new.
    pub(crate) fn without_decided(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        self.replaced(plan, &mut 0)
    }

    /// The plan with the filter above scan number `leaf` replaced, and no other; `None` if it is not there.
    fn replaced(&self, plan: &Arc<dyn ExecutionPlan>, next: &mut usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if plan.is::<ExtentScanExec>() {
            *next += 1;
            return Ok(None);
        }
        if let Some(filter) = plan.downcast_ref::<FilterExec>()
            && filter.input().is::<ExtentScanExec>()
        {
            *next += 1;
            let is_it = *next - 1 == self.leaf && filter.predicate() == &self.whole;
            return if is_it { self.weakened(filter).map(Some) } else { Ok(None) };
        }
        for (position, child) in plan.children().into_iter().enumerate() {
            if let Some(new) = self.replaced(child, next)? {
                let mut children: Vec<_> = plan.children().into_iter().cloned().collect();
                children[position] = new;
                return fresh(plan, children);
            }
        }
        Ok(None)
    }

    fn weakened(&self, filter: &FilterExec) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(rest) = &self.rest {
            let weaker = FilterExecBuilder::from(filter).with_predicate(Arc::clone(rest)).build()?;
            return Ok(Arc::new(weaker));
        }
        let input = Arc::clone(filter.input());
        let Some(shown) = filter.projection().as_deref() else { return Ok(input) };
        let schema = input.schema();
        let column = |index: &usize| {
            let name = schema.field(*index).name();
            ProjectionExpr { expr: Arc::new(Column::new(name, *index)), alias: name.clone() }
        };
        Ok(Arc::new(ProjectionExec::try_new(shown.iter().map(column).collect::<Vec<_>>(), input)?))
    }
}
