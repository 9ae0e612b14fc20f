//! [`by_value`]: aggregates without GROUP BY are one row, also of no rows; what is asked about them is asked about that row's values.
//!
//! ```text
//!   EXISTS (SELECT max(b) FROM s WHERE s.k = t.k)                       true
//!   EXISTS (SELECT 1 FROM s WHERE s.k = t.k HAVING count(*) = 0)        (SELECT count(*) = 0 FROM s WHERE s.k = t.k) IS TRUE
//!   a IN (SELECT count(*) FROM s WHERE s.k = t.k)                       a = (SELECT count(*) FROM s WHERE s.k = t.k)
//! ```
//!
//! DataFusion 55 finds a value for groups of no rows where a subquery is a value, and none where it is looked into.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, Subquery, lit, not};

/// A question about a row that depends on the outer one, asked about its values; any other as it is.
pub(super) fn by_value(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            let value = match (is_one_row(&subquery.subquery), having(&subquery.subquery)) {
                (true, _) => lit(true),
                (false, Some(filter)) if is_correlated(&subquery) => has_row(&subquery, filter)?,
                _ => return Ok(Transformed::no(Expr::Exists(Exists { subquery, negated }))),
            };
            Ok(Transformed::yes(if negated { not(value) } else { value }))
        }
        Expr::InSubquery(question) if is_correlated(&question.subquery) => is_in(question),
        other => Ok(Transformed::no(other)),
    }
}

fn is_in(question: InSubquery) -> Result<Transformed<Expr>> {
    let InSubquery { expr, subquery, negated } = question;
    let rows = &subquery.subquery;
    let (row, has_row) = match having(rows) {
        Some(filter) => (without_having(rows)?, Some(has_row(&subquery, filter)?)),
        None if is_one_row(rows) => (rows.as_ref().clone(), None),
        None => return Ok(Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated }))),
    };
    let is_it = (*expr).eq(Expr::ScalarSubquery(of_plan(&subquery, row)));
    let value = match has_row {
        Some(has_row) => has_row.and(is_it),
        None => is_it,
    };
    Ok(Transformed::yes(if negated { not(value) } else { value }))
}

fn is_correlated(subquery: &Subquery) -> bool {
    !subquery.outer_ref_columns.is_empty()
}

/// Whether there is always one row.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => plan.inputs().into_iter().all(is_one_row),
        LogicalPlan::Sort(sort) => sort.fetch.is_none() && is_one_row(&sort.input),
        _ => false,
    }
}

/// The filter that decides whether there is that row, if the outer row has no say in that: a join finds out otherwise.
fn having(plan: &LogicalPlan) -> Option<&Filter> {
    match plan {
        LogicalPlan::Filter(filter) => {
            (!filter.predicate.contains_outer() && is_one_row(&filter.input)).then_some(filter)
        }
        LogicalPlan::Projection(Projection { input, .. }) => having(input),
        LogicalPlan::SubqueryAlias(alias) => having(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => having(&sort.input),
        _ => None,
    }
}

fn has_row(subquery: &Subquery, filter: &Filter) -> Result<Expr> {
    let condition = filter.predicate.clone().alias("__has_row");
    let row = LogicalPlanBuilder::from(filter.input.as_ref().clone()).project([condition])?.build()?;
    Ok(Expr::ScalarSubquery(of_plan(subquery, row)).is_true())
}

/// The row, whether or not the filter lets it through.
fn without_having(plan: &LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(filter) => Ok(filter.input.as_ref().clone()),
        other => match other.inputs().as_slice() {
            [input] => other.with_new_exprs(other.expressions(), vec![without_having(input)?]),
            _ => plan_err!("a row of aggregates is made of one input"),
        },
    }
}

fn of_plan(subquery: &Subquery, plan: LogicalPlan) -> Subquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    Subquery { subquery: Arc::new(plan), outer_ref_columns, spans: subquery.spans.clone() }
}
