//! Aggregates and window functions.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::{
    PlainAggregateWindowExpr, SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr,
};
use datafusion::physical_plan::aggregates::PhysicalGroupBy;
use datafusion::physical_plan::windows::WindowUDFExpr;

use super::by_floats::holds_floats;
use super::encoder::{Encoder, Tag};
use super::expr::ExprContext;
use super::prefix::Exactness;
use super::types;
use super::{BuiltIns, Uncacheable};

/// Aggregates whose value is decided by the set of rows alone; exactly, where no floats are added.
const OF_SETS: [&str; 27] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "median",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "corr",
    "covar_samp",
    "covar_pop",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
    "regr_sxy",
];

/// Whether a built-in aggregate of this name is decided by the set of rows alone.
pub(crate) fn is_of_sets(name: &str) -> bool {
    OF_SETS.contains(&name)
}

/// How alike two computations of it are, in whatever order the rows come.
pub(super) fn exactness_of(
    aggregate: &AggregateFunctionExpr,
    input_types: &[DataType],
    built_ins: &BuiltIns,
) -> Exactness {
    if built_ins.is_exact(aggregate) {
        return Exactness::Exact;
    }
    let name = aggregate.fun().name();
    if !is_of_sets(name) {
        return Exactness::Any;
    }
    // An average of integers is a quotient of floats.
    let no_floats = !input_types.iter().any(holds_floats);
    let no_quotient = !aggregate.field().data_type().is_floating();
    match name {
        "count" => Exactness::Exact,
        // Where two values can not be told apart, or not be compared, the first of them is kept: structs with NULLs, lists in lists.
        "min" | "max" if input_types.iter().any(DataType::is_nested) => Exactness::Any,
        _ if no_floats && no_quotient => Exactness::Exact,
        // DataFusion lets what comes after a NaN win, and keeps the first of 0.0 and -0.0.
        "min" | "max" => Exactness::Any,
        _ => Exactness::Floats,
    }
}

impl ExprContext<'_> {
    /// One aggregate, without its name.
    pub(super) fn aggregate(&self, aggregate: &AggregateFunctionExpr) -> Result<Vec<u8>, Uncacheable> {
        self.built_ins.check_aggregate(aggregate.fun())?;
        let mut encoder = Encoder::new(Tag::AggregateFunction);
        // The same rows may have another sum, in its last bits, and a sum has other states.
        let exact = if self.built_ins.is_exact(aggregate) { "exact " } else { "" };
        encoder
            .text(&format!("{exact}{}", aggregate.fun().name()))
            .bytes(&types::data_type(aggregate.field().data_type()))
            .flag(aggregate.is_distinct())
            .flag(aggregate.ignore_nulls())
            .flag(aggregate.is_reversed());
        encoder.list(self.exprs(&aggregate.expressions())?).list(self.sort(aggregate.order_bys())?);
        Ok(encoder.into_bytes())
    }

    /// The keys of a GROUP BY with its grouping sets.
    pub(super) fn group_by(&self, group_by: &PhysicalGroupBy) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(Tag::Aggregate);
        encoder.list(self.exprs(group_by.expr().iter().map(|(expr, _)| expr))?);
        encoder.list(self.exprs(group_by.null_expr().iter().map(|(expr, _)| expr))?);
        encoder.flag(group_by.has_grouping_set()).number(group_by.groups().len() as u64);
        for group in group_by.groups() {
            encoder.number(group.len() as u64);
            group.iter().for_each(|is_null| _ = encoder.flag(*is_null));
        }
        Ok(encoder.into_bytes())
    }

    /// An optional filter.
    pub(super) fn filter(&self, filter: Option<&Arc<dyn PhysicalExpr>>) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::default();
        match filter {
            Some(filter) => encoder.tag(Tag::Some).bytes(&self.predicate(filter)?),
            None => encoder.tag(Tag::None),
        };
        Ok(encoder.into_bytes())
    }

    /// One window function with its frame, partition and order.
    pub(super) fn window(&self, window: &Arc<dyn WindowExpr>) -> Result<Vec<u8>, Uncacheable> {
        let mut encoder = Encoder::new(Tag::WindowFunction);
        let any = window.as_any();
        if let Some(plain) = any.downcast_ref::<PlainAggregateWindowExpr>() {
            check_no_filter(&format!("{plain:?}"))?;
            encoder.bytes(&self.aggregate(plain.get_aggregate_expr())?);
        } else if let Some(sliding) = any.downcast_ref::<SlidingAggregateWindowExpr>() {
            check_no_filter(&format!("{sliding:?}"))?;
            encoder.bytes(&self.aggregate(sliding.get_aggregate_expr())?);
        } else if let Some(standard) = any.downcast_ref::<StandardWindowExpr>() {
            let function = standard.get_standard_func_expr().as_any().downcast_ref::<WindowUDFExpr>();
            let function = function.ok_or_else(|| Uncacheable::Expression(window.name().to_string()))?;
            encoder.bytes(&self.window_function(function)?);
        } else {
            return Err(Uncacheable::Expression(window.name().to_string()));
        }
        let frame = window.get_window_frame();
        encoder.text(&format!("{:?}", frame.units));
        for bound in [&frame.start_bound, &frame.end_bound] {
            encoder.bytes(&window_bound(bound)?);
        }
        encoder.list(self.exprs(window.partition_by())?).list(self.sort(window.order_by())?);
        Ok(encoder.into_bytes())
    }

    fn window_function(&self, function: &WindowUDFExpr) -> Result<Vec<u8>, Uncacheable> {
        self.built_ins.check_window(function.fun())?;
        // Whether NULLs are ignored can not be asked; its text ends with it.
        let text = format!("{function:?}");
        let options = ["is_reversed: false, ignore_nulls: false }", "is_reversed: false, ignore_nulls: true }"];
        let known = options.iter().position(|end| text.ends_with(end));
        let ignore_nulls =
            known.ok_or(Uncacheable::Shape("a window function whose handling of NULLs is not known"))? == 1;
        let mut encoder = Encoder::new(Tag::Function);
        encoder.text(function.fun().name()).flag(ignore_nulls).list(self.exprs(function.args())?);
        Ok(encoder.into_bytes())
    }
}

/// The filter of a window's aggregate can not be asked for; its text ends with it.
fn check_no_filter(text: &str) -> Result<(), Uncacheable> {
    match text.ends_with("filter: None }") {
        true => Ok(()),
        false => Err(Uncacheable::Shape("a window function with a FILTER")),
    }
}

fn window_bound(bound: &datafusion::logical_expr::WindowFrameBound) -> Result<Vec<u8>, Uncacheable> {
    use datafusion::logical_expr::WindowFrameBound;
    let mut encoder = Encoder::default();
    let (name, value) = match bound {
        WindowFrameBound::Preceding(value) => ("preceding", Some(value)),
        WindowFrameBound::CurrentRow => ("current", None),
        WindowFrameBound::Following(value) => ("following", Some(value)),
    };
    encoder.text(name);
    if let Some(value) = value {
        let bytes =
            super::literal::scalar(value).map_err(|_| Uncacheable::Shape("a window bound that is not known"))?;
        encoder.bytes(&bytes);
    }
    Ok(encoder.into_bytes())
}
