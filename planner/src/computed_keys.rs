//! [`ComputedKeys`]: what a subquery's groups have in common with the outer row is one value, also where it is
//! computed.
//!
//! ```text
//!   SELECT d, (SELECT sum(x) FROM s WHERE s.ts::date = t.d) FROM t
//!
//!   before                                     after
//!   Aggregate: sum(x)                          Aggregate: sum(x)
//!     Filter: CAST(s.ts AS DATE) = outer(d)      Projection: s.ts, s.x
//!       Scan: s                                    Filter: __key = outer(d)
//!                                                    Projection: s.ts, s.x, CAST(s.ts AS DATE) AS __key
//!                                                      Scan: s
//! ```
//!
//! DataFusion 55 makes groups by the columns of such a condition, and a join by the condition. It takes a cast for the
//! column: where days are asked for, there is a group for each time, and the outer row comes once for each. Of other
//! functions it has no plan.
//!
//! Fires when   a subquery that uses the outer row has aggregates, and compares with it what is no column.
//! Runs         before subqueries become joins.
//! Keeps true   names and types of columns.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::{BinaryExpr, Exists, InSubquery};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Cast, Expr, ExprSchemable, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Subquery, binary_expr,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::kept_casts::keeps_values;
use crate::look::{any_expr, any_node, has_expr};

/// The rule that makes joins of subqueries first.
const BEFORE: &str = "decorrelate_predicate_subquery";

/// See the module.
#[derive(Debug, Default)]
pub struct ComputedKeys;

impl ComputedKeys {
    /// Puts itself where subqueries become joins next.
    pub fn put_into(rules: &mut Vec<Arc<dyn OptimizerRule + Send + Sync>>) {
        let at = rules.iter().position(|rule| rule.name() == BEFORE).unwrap_or(0);
        rules.insert(at, Arc::new(Self));
    }
}

impl OptimizerRule for ComputedKeys {
    fn name(&self) -> &str {
        "computed_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_expr(&plan, computes_keys) {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| match has_expr(&node, computes_keys) {
            true => node.map_expressions(|expr| expr.transform_up(|expr| with_keys(expr, config))),
            false => Ok(Transformed::no(node)),
        })
    }
}

fn computes_keys(expr: &Expr) -> bool {
    let subquery = match expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::InSubquery(InSubquery { subquery, .. }) | Expr::Exists(Exists { subquery, .. }) => subquery,
        _ => return false,
    };
    let has_key = |filter: &Filter| {
        split_conjunction(&filter.predicate).into_iter().any(|condition| key(condition, &filter.input).is_some())
    };
    !subquery.outer_ref_columns.is_empty()
        && any_node(
            &subquery.subquery,
            |node| matches!(node, LogicalPlan::Aggregate(aggregate) if !aggregate.aggr_expr.is_empty()),
        )
        && any_node(&subquery.subquery, |node| matches!(node, LogicalPlan::Filter(filter) if has_key(filter)))
}

fn with_keys(expr: Expr, config: &dyn OptimizerConfig) -> Result<Transformed<Expr>> {
    if !computes_keys(&expr) {
        return Ok(Transformed::no(expr));
    }
    let keyed = |subquery: Subquery| -> Result<Subquery> {
        let plan = Arc::unwrap_or_clone(subquery.subquery);
        let plan = plan.transform_up(|node| match node {
            LogicalPlan::Filter(filter) => by_keys(filter, config),
            other => Ok(Transformed::no(other)),
        });
        Ok(Subquery { subquery: Arc::new(plan.data()?), ..subquery })
    };
    Ok(Transformed::yes(match expr {
        Expr::ScalarSubquery(subquery) => Expr::ScalarSubquery(keyed(subquery)?),
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
            Expr::InSubquery(InSubquery { expr, subquery: keyed(subquery)?, negated })
        }
        Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists { subquery: keyed(subquery)?, negated }),
        other => other,
    }))
}

/// The filter over a column for each computed key.
fn by_keys(filter: Filter, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
    let shown: Vec<Expr> = filter.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut below = shown.clone();
    let conditions = split_conjunction_owned(filter.predicate.clone()).into_iter().map(|condition| {
        let Some((computed, outer)) = key(&condition, &filter.input) else { return condition };
        let name = config.alias_generator().next("__key");
        below.push(computed.clone().alias(name.as_str()));
        binary_expr(Expr::Column(Column::new_unqualified(name)), Operator::Eq, outer.clone())
    });
    let Some(predicate) = conjunction(conditions.collect::<Vec<_>>()) else {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    };
    if below.len() == shown.len() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input)).project(below)?;
    input.filter(predicate)?.project(shown)?.build().map(Transformed::yes)
}

/// What is computed of a row below and has to be a value of the outer row; and that.
fn key<'a>(condition: &'a Expr, below: &LogicalPlan) -> Option<(&'a Expr, &'a Expr)> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return None };
    [(left, right), (right, left)]
        .into_iter()
        .find(|(computed, outer)| is_computed(computed, below) && outer.contains_outer() && !outer.any_column_refs())
        .map(|(computed, outer)| (computed.as_ref(), outer.as_ref()))
}

fn is_computed(expr: &Expr, below: &LogicalPlan) -> bool {
    let schema: &DFSchema = below.schema();
    let is_column = match expr {
        Expr::Column(_) => true,
        // As good as its column.
        Expr::Cast(Cast { expr, field }) if matches!(**expr, Expr::Column(_)) => {
            expr.get_type(schema).is_ok_and(|from| keeps_values(&from, field.data_type()))
        }
        _ => false,
    };
    let is_subquery = |expr: &Expr| {
        matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_))
    };
    !is_column
        && expr.any_column_refs()
        && !expr.contains_outer()
        && !expr.is_volatile()
        && !expr.exists(|part| Ok(is_subquery(part))).unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use datafusion::optimizer::Optimizer;

    use super::*;

    #[test]
    fn the_rule_is_found() {
        assert!(Optimizer::new().rules.iter().any(|rule| rule.name() == BEFORE));
    }
}
