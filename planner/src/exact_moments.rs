//! [`ExactMoments`]: times of one unit or zone beside constants of another are compared as the moments that they are.
//!
//! ```text
//!   s is a TIMESTAMP(0), t a TIMESTAMP,
//!   the session is in Europe/Berlin               DataFusion 55       here
//!   CAST(s AS TIMESTAMP) <  '10:00:00.5'          s <  '10:00:00'     s <= '10:00:00'
//!   CAST(s AS TIMESTAMP) =  '10:00:00.5'          s =  '10:00:00'     s < '10:00:00' AND s > '10:00:00'
//!   CAST(t AS TIMESTAMPTZ) = '10:00:00Z'          t =  '10:00:00'     t = '12:00:00'
//! ```
//!
//! DataFusion takes such a cast off by giving the constant the column's unit, whatever is cut off, and the column's
//! zone, whatever its clocks show. Here it comes too late.
//!
//! Runs          before expressions are simplified, each time that they are.
//! Stays quiet   on constants that the clocks of a zone show twice: these are compared row by row.
//! Keeps true    schema and rows, and that files are left out by such a filter.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::datatypes::{DataType, TimeUnit, TimestampSecondType};
use arrow::temporal_conversions::as_datetime_with_timezone;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator, and, binary_expr, lit, or};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::decimals::is_comparison;
use crate::kept_casts::{is_utc, kept};
use crate::look::{any_expr, has_expr};
use crate::rewritten::{rewrite_node, schema_below};

/// The rule that takes off casts.
const BEFORE: &str = "simplify_expressions";

/// See the module.
#[derive(Debug, Default)]
pub struct ExactMoments;

impl ExactMoments {
    /// Puts itself where casts are taken off next.
    pub fn put_into(rules: &mut Vec<Arc<dyn OptimizerRule + Send + Sync>>) {
        let at = rules.iter().position(|rule| rule.name() == BEFORE).unwrap_or(0);
        rules.insert(at, Arc::new(Self));
    }
}

impl OptimizerRule for ExactMoments {
    fn name(&self) -> &str {
        "exact_moments"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_expr(&plan, is_moment_cast) {
            return Ok(Transformed::no(plan));
        }
        let context = SimplifyContext::builder()
            .with_schema(Arc::new(DFSchema::empty()))
            .with_config_options(config.options())
            .with_query_execution_start_time(config.query_execution_start_time())
            .build();
        let constants = ExprSimplifier::new(context);
        plan.transform_up_with_subqueries(|node| {
            if !has_expr(&node, is_moment_cast) {
                return Ok(Transformed::no(node));
            }
            let schema = schema_below(&node)?;
            rewrite_node(node, |expr| exact(expr, &schema, &constants))
        })
    }
}

fn is_moment_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::Cast(Cast { field, .. }) if matches!(field.data_type(), DataType::Timestamp(..)))
}

fn exact(expr: Expr, schema: &DFSchema, constants: &ExprSimplifier) -> Result<Transformed<Expr>> {
    let compared = |left: &Expr, op: Operator, right: &Expr| {
        let as_it_stands = Moment::of(left, schema).and_then(|left| left.compared(op, &constant(right, constants)?));
        as_it_stands.or_else(|| Moment::of(right, schema)?.compared(op.swap()?, &constant(left, constants)?))
    };
    let changed = |new: Option<Expr>, old: Expr| match new {
        Some(new) => Transformed::yes(new),
        None => Transformed::no(old),
    };
    expr.transform_up(|expr| {
        let new = match &expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => compared(left, *op, right),
            // DataFusion takes it apart and the casts off in one go.
            Expr::Between(Between { expr: value, negated, low, high })
                if !value.is_volatile() && Moment::of(value, schema).is_some() =>
            {
                let half = |op: Operator, bound: &Expr| {
                    compared(value, op, bound).unwrap_or_else(|| binary_expr(Expr::clone(value), op, bound.clone()))
                };
                Some(match *negated {
                    false => and(half(Operator::GtEq, low), half(Operator::LtEq, high)),
                    true => or(half(Operator::Lt, low), half(Operator::Gt, high)),
                })
            }
            Expr::InList(InList { expr: value, list, negated }) => {
                let items = || list.iter().map(|item| constant(item, constants)).collect::<Option<Vec<_>>>();
                Moment::of(value, schema).and_then(|value| value.among(&items()?, *negated))
            }
            _ => None,
        };
        Ok(changed(new, expr))
    })
}

/// The value of an expression without columns.
fn constant(expr: &Expr, constants: &ExprSimplifier) -> Option<ScalarValue> {
    if let Expr::Literal(value, _) = expr {
        return Some(value.clone());
    }
    if expr.any_column_refs() || expr.is_volatile() {
        return None;
    }
    match constants.simplify(expr.clone()) {
        Ok(Expr::Literal(value, _)) => Some(value),
        // Who runs it finds out what is wrong with it.
        _ => None,
    }
}

/// A time that is cast to a finer unit, or from the clocks of a zone.
struct Moment<'a> {
    value: &'a Expr,
    unit: TimeUnit,
    zone: Option<Arc<str>>,
    /// The type of the cast.
    cast: &'a DataType,
    /// How many of the finer ticks are one of the value's.
    ratio: i64,
    /// The zone whose clocks the value tells.
    clocks: Option<&'a str>,
}

/// A constant as the value would say it: what of it is whole, and whether that is all.
struct Below {
    whole: Expr,
    is_all: bool,
}

impl<'a> Moment<'a> {
    fn of(expr: &'a Expr, schema: &DFSchema) -> Option<Self> {
        let Expr::Cast(Cast { expr: value, field }) = kept(expr).unwrap_or(expr) else { return None };
        let DataType::Timestamp(to_unit, to_zone) = field.data_type() else { return None };
        let DataType::Timestamp(unit, zone) = value.get_type(schema).ok()? else { return None };
        let ratio = per_second(*to_unit) / per_second(unit);
        let clocks = to_zone.as_deref().filter(|to_zone| zone.is_none() && !is_utc(to_zone));
        // The others are as DataFusion has them.
        let is_other = ratio > 1 || (ratio == 1 && clocks.is_some());
        is_other.then_some(Self { value: value.as_ref(), unit, zone, cast: field.data_type(), ratio, clocks })
    }

    /// The comparison without the cast.
    fn compared(&self, op: Operator, constant: &ScalarValue) -> Option<Expr> {
        let Below { whole, is_all } = self.below(constant)?;
        let is = |op: Operator| binary_expr(self.value.clone(), op, whole.clone());
        if is_all {
            return Some(is(op));
        }
        Some(match op {
            Operator::Lt | Operator::LtEq => is(Operator::LtEq),
            Operator::Gt | Operator::GtEq => is(Operator::Gt),
            // No value is in between; of NULL it is not known.
            Operator::Eq => and(is(Operator::Lt), is(Operator::Gt)),
            Operator::NotEq => or(is(Operator::LtEq), is(Operator::Gt)),
            Operator::IsDistinctFrom => lit(true),
            Operator::IsNotDistinctFrom => lit(false),
            _ => return None,
        })
    }

    /// The value is, or is not, one of those.
    fn among(&self, constants: &[ScalarValue], negated: bool) -> Option<Expr> {
        let below = constants.iter().map(|constant| self.below(constant)).collect::<Option<Vec<_>>>()?;
        let list: Vec<Expr> = below.iter().filter(|below| below.is_all).map(|below| below.whole.clone()).collect();
        if list.is_empty() {
            return self.compared(if negated { Operator::NotEq } else { Operator::Eq }, constants.first()?);
        }
        Some(Expr::InList(InList { expr: Box::new(self.value.clone()), list, negated }))
    }

    fn below(&self, constant: &ScalarValue) -> Option<Below> {
        if constant.data_type() != *self.cast {
            return None;
        }
        let own = |ticks: Option<i64>| Expr::Literal(moment(ticks, self.unit, self.zone.clone()), None);
        let Some(ticks) = ticks(constant)? else { return Some(Below { whole: own(None), is_all: true }) };
        let local = match self.clocks {
            Some(zone) => {
                let DataType::Timestamp(unit, _) = self.cast else { return None };
                let per_second = per_second(*unit);
                let local = ticks.checked_add(offset(zone, ticks.div_euclid(per_second))?.checked_mul(per_second)?)?;
                // Clocks that are set back show it twice.
                let shown = moment(Some(local), *unit, None);
                if shown.cast_to(self.cast).ok()? != *constant {
                    return None;
                }
                local
            }
            None => ticks,
        };
        let whole = own(Some(local.div_euclid(self.ratio)));
        Some(Below { whole, is_all: local.rem_euclid(self.ratio) == 0 })
    }
}

/// How many seconds the clocks of a zone are ahead.
fn offset(zone: &str, seconds: i64) -> Option<i64> {
    let zone: Tz = zone.parse().ok()?;
    let moment = as_datetime_with_timezone::<TimestampSecondType>(seconds, zone)?;
    Some((moment.naive_local() - moment.naive_utc()).num_seconds())
}

/// The ticks of a time, NULL being none; `None` of what is no time.
fn ticks(value: &ScalarValue) -> Option<Option<i64>> {
    match value {
        ScalarValue::TimestampSecond(ticks, _)
        | ScalarValue::TimestampMillisecond(ticks, _)
        | ScalarValue::TimestampMicrosecond(ticks, _)
        | ScalarValue::TimestampNanosecond(ticks, _) => Some(*ticks),
        _ => None,
    }
}

fn moment(ticks: Option<i64>, unit: TimeUnit, zone: Option<Arc<str>>) -> ScalarValue {
    match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(ticks, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(ticks, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(ticks, zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(ticks, zone),
    }
}

fn per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::logical_expr::{cast, col};
    use datafusion::optimizer::Optimizer;

    use super::*;

    const NOON: i64 = 1_719_835_200;

    fn nanoseconds(seconds: i64, more: i64, zone: Option<&str>) -> Expr {
        let ticks = Some(seconds * 1_000_000_000 + more);
        Expr::Literal(ScalarValue::TimestampNanosecond(ticks, zone.map(Into::into)), None)
    }

    fn changed(expr: Expr) -> String {
        let time = |unit| DataType::Timestamp(unit, None);
        let fields = [("s", TimeUnit::Second), ("t", TimeUnit::Nanosecond)];
        let schema = Schema::new(fields.map(|(name, unit)| Field::new(name, time(unit), true)).to_vec());
        let schema = DFSchema::try_from(schema).unwrap();
        let context = SimplifyContext::builder().with_schema(Arc::new(DFSchema::empty())).build();
        exact(expr, &schema, &ExprSimplifier::new(context)).unwrap().data.to_string()
    }

    #[test]
    fn units() {
        let finer = || cast(col("s"), DataType::Timestamp(TimeUnit::Nanosecond, None));
        let (whole, half) = (nanoseconds(NOON, 0, None), nanoseconds(NOON, 500_000_000, None));
        let before = nanoseconds(-1, -1, None);
        for (expr, expected) in [
            (finer().eq(whole.clone()), "s = N"),
            (whole.clone().gt(finer()), "s < N"),
            (finer().lt(half.clone()), "s <= N"),
            (finer().gt_eq(half.clone()), "s > N"),
            (half.clone().lt_eq(finer()), "s > N"),
            (finer().eq(half.clone()), "s < N AND s > N"),
            (finer().not_eq(half.clone()), "s <= N OR s > N"),
            (finer().between(half.clone(), whole.clone()), "s > N AND s <= N"),
            (finer().in_list(vec![half.clone(), whole.clone()], true), "s NOT IN ([N])"),
            (finer().in_list(vec![half.clone()], false), "s < N AND s > N"),
            // Before 1970 as well.
            (finer().gt(before), "s > TimestampSecond(-2, None)"),
        ] {
            assert_eq!(changed(expr).replace("TimestampSecond(1719835200, None)", "N"), expected);
        }
        let other = finer().eq(col("t"));
        assert_eq!(changed(other.clone()), other.to_string());
    }

    #[test]
    fn zones() {
        let zone = Some("Europe/Berlin");
        let zoned = || cast(col("t"), DataType::Timestamp(TimeUnit::Nanosecond, zone.map(Into::into)));
        let summer = nanoseconds(NOON - 2 * 3600, 7, zone);
        assert_eq!(changed(zoned().gt(summer)), "t > TimestampNanosecond(1719835200000000007, None)");
        // Half past two, when clocks were set back at three.
        let twice = zoned().eq(nanoseconds(1_729_989_000, 0, zone));
        assert_eq!(changed(twice.clone()), twice.to_string());
    }

    #[test]
    fn the_rule_is_found() {
        assert!(Optimizer::new().rules.iter().any(|rule| rule.name() == BEFORE));
    }
}
