//! [`ComparedIntervals`]: intervals are compared by how long they are, as in PostgreSQL: a month has 30 days, a day 24
//! hours.
//!
//! ```text
//!   b - a > INTERVAL '1 day'          span_ns(b - a) > span_ns(INTERVAL '1 day')
//!   i IN (INTERVAL '24 hours')        span_ns(i) IN (span_ns(INTERVAL '24 hours'))
//!   x JOIN y ON x.i = y.i             ON span_ns(x.i) = span_ns(y.i)
//!   ORDER BY i                        ORDER BY span_ns(i)
//! ```
//!
//! DataFusion 55 compares months, then days, then nanoseconds: 25 hours are less than a day, and so is each difference
//! of two times, which is nanoseconds alone.
//!
//! Runs          when types have been coerced: a duration beside an interval is one by then.
//! Keeps true    the plan's schema.
//! Leaves        groups, DISTINCT, windows, `min`, `max`, `nullif`, `greatest` and functions of arrays as DataFusion
//!               has them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::{Between, BinaryExpr, Case, InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Subquery, TryCast};
use datafusion::optimizer::AnalyzerRule;

use crate::decimals::is_comparison;
use crate::look::any_node;
use crate::node::span_ns;
use crate::rewritten::{rewrite_node, schema_below, with_computed_keys};

/// See the module.
#[derive(Debug)]
pub struct ComparedIntervals;

impl AnalyzerRule for ComparedIntervals {
    fn name(&self) -> &str {
        "compared_intervals"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, has_intervals) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            let schema = schema_below(&node)?;
            let rewritten = rewrite_node(node, |expr| compare_intervals(expr, &schema))?;
            Ok(Transformed::yes(with_computed_keys(by_length(rewritten.data))))
        })
        .data()
    }
}

/// Whether a node has to do with intervals at all.
fn has_intervals(node: &LogicalPlan) -> bool {
    let mut found = node.schema().fields().iter().any(|field| is_interval(field.data_type()));
    let _ = node.apply_expressions(|expr| {
        expr.apply(|part| {
            found |= match part {
                Expr::Literal(value, _) => is_interval(&value.data_type()),
                Expr::Cast(Cast { field, .. }) | Expr::TryCast(TryCast { field, .. }) => is_interval(field.data_type()),
                _ => false,
            };
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    found
}

fn is_interval(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_))
}

/// The expression with numbers for the intervals that it compares.
pub(crate) fn compare_intervals(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_of = |expr: &Expr| expr.get_type(schema).is_ok_and(|data_type| is_interval(&data_type));
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if is_comparison(op) && (is_of(&left) || is_of(&right)) =>
            {
                let (left, right) = (boxed(*left), boxed(*right));
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::Between(Between { expr, negated, low, high }) if is_of(&expr) => {
                let (expr, low, high) = (boxed(*expr), boxed(*low), boxed(*high));
                Transformed::yes(Expr::Between(Between { expr, negated, low, high }))
            }
            Expr::InList(InList { expr, list, negated }) if is_of(&expr) => {
                let list = list.into_iter().map(length).collect();
                Transformed::yes(Expr::InList(InList { expr: boxed(*expr), list, negated }))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_of(&expr) => {
                let subquery = lengths(subquery)?;
                Transformed::yes(Expr::InSubquery(InSubquery { expr: boxed(*expr), subquery, negated }))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) if is_of(&expr) => {
                let (expr, subquery) = (boxed(*expr), lengths(subquery)?);
                Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
            }
            Expr::Case(Case { expr: Some(expr), when_then_expr, else_expr }) if is_of(&expr) => {
                let when_then_expr = when_then_expr.into_iter().map(|(when, then)| (boxed(*when), then)).collect();
                Transformed::yes(Expr::Case(Case { expr: Some(boxed(*expr)), when_then_expr, else_expr }))
            }
            other => Transformed::no(other),
        })
    })
}

/// What compares without saying so.
fn by_length(node: LogicalPlan) -> LogicalPlan {
    let is_of = |expr: &Expr, plan: &LogicalPlan| {
        let schema: &DFSchema = plan.schema();
        expr.get_type(schema).is_ok_and(|data_type| is_interval(&data_type))
    };
    match node {
        LogicalPlan::Join(mut join) => {
            let pairs = std::mem::take(&mut join.on).into_iter();
            join.on = pairs
                .map(|(left, right)| match is_of(&left, &join.left) || is_of(&right, &join.right) {
                    true => (length(left), length(right)),
                    false => (left, right),
                })
                .collect();
            LogicalPlan::Join(join)
        }
        LogicalPlan::Sort(mut sort) => {
            for key in &mut sort.expr {
                if is_of(&key.expr, &sort.input) {
                    key.expr = length(std::mem::take(&mut key.expr));
                }
            }
            LogicalPlan::Sort(sort)
        }
        other => other,
    }
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(length(expr))
}

/// How long an interval is.
fn length(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(span_ns(), vec![expr]))
}

/// The one column of a subquery.
fn lengths(subquery: Subquery) -> Result<Subquery> {
    let Subquery { subquery, outer_ref_columns, spans } = subquery;
    let columns = subquery.schema().columns().into_iter().map(|column: Column| length(Expr::Column(column)));
    let columns: Vec<Expr> = columns.collect();
    let subquery = LogicalPlanBuilder::from(Arc::unwrap_or_clone(subquery)).project(columns)?.build()?;
    Ok(Subquery { subquery: Arc::new(subquery), outer_ref_columns, spans })
}
