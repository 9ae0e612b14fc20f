//! [`ExactDecimals`]: numbers such as `12345678.91` beside DECIMAL columns mean what is written.
//!
//! DataFusion reads such a number as a float, and compares a float with a DECIMAL as `DECIMAL(30, 15)`: of 12345678.91 that
//! is 12345678.910000000149, which no column holds.
//!
//! ```text
//!   before coercion   price = 12345678.91   price = DECIMAL '12345678.91'
//!                     price = weight        CAST(price AS DOUBLE) = weight         where weight is a DOUBLE
//!   after it          CAST(1.005 AS DECIMAL(10, 2))   1.01
//! ```
//!
//! Keeps true   a number of at most 15 digits is exactly the decimal that was written: it is the shortest text of its float.
//!              What cannot be a decimal stays as it was.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Between, BinaryExpr, InList};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, cast};
use datafusion::optimizer::AnalyzerRule;

use crate::look::any_expr;

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 38;

/// The rule; it runs once before and once after DataFusion's coercion of types.
#[derive(Debug)]
pub enum ExactDecimals {
    /// Comparisons, where both sides are known as they were written.
    Comparisons,
    /// Casts of numbers, those that coercion added as well.
    Casts,
}

impl ExactDecimals {
    /// Puts the rule around the one that coerces types.
    pub fn around(rules: &mut Vec<Arc<dyn AnalyzerRule + Send + Sync>>) {
        let coercion = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(rules.len());
        rules.insert((coercion + 1).min(rules.len()), Arc::new(Self::Casts));
        rules.insert(coercion, Arc::new(Self::Comparisons));
    }
}

impl AnalyzerRule for ExactDecimals {
    fn name(&self) -> &str {
        match self {
            Self::Comparisons => "exact_decimal_comparisons",
            Self::Casts => "exact_decimal_casts",
        }
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if matches!(self, Self::Casts) && !any_expr(&plan, is_cast_of_float) {
            return Ok(plan);
        }
        let analyzed = plan.transform_up_with_subqueries(|plan| {
            let schema = match (&plan, self) {
                // Casts need no types of columns.
                (_, Self::Casts) => DFSchema::empty(),
                (LogicalPlan::TableScan(scan), _) => {
                    DFSchema::try_from_qualified_schema(scan.table_name.clone(), scan.source.schema().as_ref())?
                }
                (plan, _) => merge_schema(&plan.inputs()),
            };
            let names = datafusion::logical_expr::expr_rewriter::NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let exact = match self {
                    Self::Comparisons => exact_comparisons(expr, &schema)?,
                    Self::Casts => exact_casts(expr)?,
                };
                Ok(exact.update_data(|expr| name.restore(expr)))
            })
        });
        analyzed.data()
    }
}

/// The expression with decimals beside decimals, and floats beside floats.
pub(crate) fn exact_comparisons(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let (l, r) = (side(&left, schema), side(&right, schema));
            let (left, right) = (meet(*left, l, r), meet(*right, r, l));
            let changed = left.transformed || right.transformed;
            let (left, right) = (Box::new(left.data), Box::new(right.data));
            Ok(Transformed::new_transformed(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let value = side(&expr, schema);
            let (low, high) = (meet_value(*low, value, schema), meet_value(*high, value, schema));
            let changed = low.transformed || high.transformed;
            let between = Between { expr, negated, low: Box::new(low.data), high: Box::new(high.data) };
            Ok(Transformed::new_transformed(Expr::Between(between), changed))
        }
        Expr::InList(InList { expr, list, negated }) => {
            let value = side(&expr, schema);
            let list: Vec<_> = list.into_iter().map(|item| meet_value(item, value, schema)).collect();
            let changed = list.iter().any(|item| item.transformed);
            let list = list.into_iter().map(|item| item.data).collect();
            Ok(Transformed::new_transformed(Expr::InList(InList { expr, list, negated }), changed))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_cast_of_float(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => float_of(expr).is_some(),
        _ => false,
    }
}

fn exact_casts(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let (Expr::Cast(Cast { expr: inner, field }) | Expr::TryCast(TryCast { expr: inner, field })) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let exact = float_of(inner).and_then(|number| match field.data_type() {
            DataType::Decimal128(precision, scale) => rounded(number, *precision, *scale),
            _ => None,
        });
        Ok(match exact {
            Some(value) => Transformed::yes(Expr::Literal(value, None)),
            None => Transformed::no(expr),
        })
    })
}

/// What one side of a comparison is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Decimal,
    /// A number in the text.
    FloatNumber,
    Float,
    Other,
}

fn side(expr: &Expr, schema: &DFSchema) -> Side {
    if float_of(expr).is_some() {
        return Side::FloatNumber;
    }
    match expr.get_type(schema) {
        Ok(kind) if kind.is_decimal() => Side::Decimal,
        Ok(DataType::Float64 | DataType::Float32) => Side::Float,
        _ => Side::Other,
    }
}

pub(crate) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn meet_value(expr: Expr, value: Side, schema: &DFSchema) -> Transformed<Expr> {
    let own = side(&expr, schema);
    meet(expr, own, value)
}

/// An expression as it is compared with the other side.
fn meet(expr: Expr, own: Side, other: Side) -> Transformed<Expr> {
    match (own, other) {
        (Side::FloatNumber, Side::Decimal) => match float_of(&expr).and_then(natural) {
            Some(value) => Transformed::yes(Expr::Literal(value, None)),
            None => Transformed::no(expr),
        },
        // As in PostgreSQL: beside a float, everything is one.
        (Side::Decimal, Side::Float) => Transformed::yes(cast(expr, DataType::Float64)),
        _ => Transformed::no(expr),
    }
}

/// The number that is written there.
fn float_of(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Literal(ScalarValue::Float64(Some(number)), _) => Some(*number).filter(|number| number.is_finite()),
        Expr::Negative(inner) => float_of(inner).map(|number| -number),
        _ => None,
    }
}

/// Digits without a point, and how many of them are behind it.
fn digits(number: f64) -> Option<(i128, usize)> {
    let text = number.to_string();
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let value: i128 = format!("{whole}{part}").parse().ok()?;
    (value.unsigned_abs() < 10_u128.pow(DIGITS_MAX as u32)).then_some((value, part.len()))
}

/// The decimal with as many digits as it takes.
fn natural(number: f64) -> Option<ScalarValue> {
    let (value, scale) = digits(number)?;
    let n_digits = value.unsigned_abs().to_string().len().max(scale).max(1);
    (n_digits <= DIGITS_MAX)
        .then(|| ScalarValue::Decimal128(Some(value), n_digits as u8, i8::try_from(scale).unwrap_or_default()))
}

/// The decimal of that type, half away from zero where it has fewer digits.
fn rounded(number: f64, precision: u8, scale: i8) -> Option<ScalarValue> {
    let (value, found) = digits(number)?;
    let wanted = usize::try_from(scale).ok()?;
    let value = match wanted.checked_sub(found) {
        Some(more) => value.checked_mul(10_i128.checked_pow(u32::try_from(more).ok()?)?)?,
        None => {
            let unit = 10_i128.checked_pow(u32::try_from(found - wanted).ok()?)?;
            (value + value.signum() * (unit / 2)) / unit
        }
    };
    let fits = value.unsigned_abs() < 10_u128.checked_pow(u32::from(precision))?;
    fits.then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_what_was_written() {
        let decimal = |value, precision, scale| Some(ScalarValue::Decimal128(Some(value), precision, scale));
        assert_eq!(natural(0.07), decimal(7, 2, 2));
        assert_eq!(natural(-12345678.91), decimal(-1_234_567_891, 10, 2));
        assert_eq!(natural(1e20), decimal(100_000_000_000_000_000_000, 21, 0));
        assert_eq!(natural(1e40), None);
        assert_eq!(natural(1e-40), None);
        assert_eq!(rounded(1.005, 10, 2), decimal(101, 10, 2));
        assert_eq!(rounded(-1.005, 10, 2), decimal(-101, 10, 2));
        assert_eq!(rounded(1.004, 10, 2), decimal(100, 10, 2));
        assert_eq!(rounded(9999999999999.99, 15, 2), decimal(999_999_999_999_999, 15, 2));
        assert_eq!(rounded(1.5, 10, 5), decimal(150_000, 10, 5));
        assert_eq!(rounded(999.995, 5, 2), None, "it does not fit");
        assert_eq!(rounded(f64::MAX, 38, 0), None);
    }
}
