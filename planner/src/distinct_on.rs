//! [`DistinctOnKeys`]: `DISTINCT ON`, and an `ORDER BY` beside it, name each key once.
//!
//! `SELECT DISTINCT ON (k) .. ORDER BY k, v, k` sorts as `ORDER BY k, v` does. DataFusion 55 counts the keys of the order that it asks
//! for and of the one that it gets, in which none comes twice.
//!
//! Keeps true   the plan's schema and rows: rows that a key does not tell apart, it does not tell apart later either.

use std::collections::HashSet;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::look::any_node;

/// See the module.
#[derive(Debug)]
pub struct DistinctOnKeys;

impl AnalyzerRule for DistinctOnKeys {
    fn name(&self) -> &str {
        "distinct_on_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| matches!(node, LogicalPlan::Distinct(Distinct::On(_)))) {
            return Ok(plan);
        }
        let analyzed = plan.transform_down_with_subqueries(|node| match node {
            LogicalPlan::Distinct(Distinct::On(mut distinct)) => {
                let is_sorted_again =
                    distinct.sort_expr.as_mut().is_some_and(|keys| drop_repeated(keys, |key| key.expr.clone()));
                let is_changed = drop_repeated(&mut distinct.on_expr, Expr::clone) || is_sorted_again;
                Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(distinct)), is_changed))
            }
            other => Ok(Transformed::no(other)),
        });
        analyzed.data()
    }
}

/// Whether there were some.
fn drop_repeated<T>(keys: &mut Vec<T>, of: impl Fn(&T) -> Expr) -> bool {
    let n_keys = keys.len();
    let mut seen = HashSet::with_capacity(n_keys);
    keys.retain(|key| seen.insert(of(key)));
    keys.len() < n_keys
}
