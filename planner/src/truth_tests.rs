//! [`TruthTests`]: `y IS TRUE` among columns may be NULL for those who plan groups above it, as it may for those who compute it.
//!
//! It never is. But DataFusion 55 computes it as `y IS NOT DISTINCT FROM true`, says of that what it says of `y = true`, and stumbles over the
//! difference: `SELECT count(c) FROM (SELECT y IS TRUE AS c FROM t) s` was an internal error.
//!
//! Keeps true   names, types and rows.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::look::any_node;
use crate::rewritten::rewrite_node;

/// See the module.
#[derive(Debug)]
pub struct TruthTests;

impl AnalyzerRule for TruthTests {
    fn name(&self) -> &str {
        "truth_tests"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, asks) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            let node = node.recompute_schema()?;
            match asks(&node) {
                true => rewrite_node(node, |expr| expr.transform_up(as_computed)),
                false => Ok(Transformed::yes(node)),
            }
        })
        .data()
    }
}

fn asks(node: &LogicalPlan) -> bool {
    let LogicalPlan::Projection(projection) = node else { return false };
    projection.expr.iter().any(|expr| expr.exists(|part| Ok(is_test(part))).unwrap_or(false))
}

fn is_test(expr: &Expr) -> bool {
    matches!(expr, Expr::IsTrue(_) | Expr::IsFalse(_) | Expr::IsNotTrue(_) | Expr::IsNotFalse(_))
}

fn as_computed(expr: Expr) -> Result<Transformed<Expr>> {
    let (tested, op, value) = match expr {
        Expr::IsTrue(tested) => (tested, Operator::IsNotDistinctFrom, true),
        Expr::IsFalse(tested) => (tested, Operator::IsNotDistinctFrom, false),
        Expr::IsNotTrue(tested) => (tested, Operator::IsDistinctFrom, true),
        Expr::IsNotFalse(tested) => (tested, Operator::IsDistinctFrom, false),
        other => return Ok(Transformed::no(other)),
    };
    Ok(Transformed::yes(binary_expr(*tested, op, lit(value))))
}
