//! [`RowsOfNothing`]: a condition without columns stays above groups of which there is one even of no rows.
//!
//! ```text
//!   SELECT count(*) FROM t HAVING (SELECT count(*) FROM u) > 100
//!
//!   before                     DataFusion 55 makes of it     which is a row, of no rows
//!   Filter: (..) > 100         Aggregate: count(*)
//!     Aggregate: count(*)        Filter: (..) > 100
//! ```
//!
//! It moves a condition below groups if they are made by all of its columns; of none, that is always so.
//!
//! Fires when   there are aggregates without GROUP BY, or with a set of groups that is empty (ROLLUP, CUBE).
//! Runs         around DataFusion's rule, which stops at a limit: meanwhile there is one, of more rows than there can be.
//! Keeps true   the plan's schema and rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, Limit, LogicalPlan, lit};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::look::any_node;

/// The rule that moves conditions down.
const PUSHES: &str = "push_down_filter";

/// More rows than there can be.
const ALL_ROWS: i64 = i64::MAX - 1;

/// See the module.
#[derive(Debug)]
pub struct RowsOfNothing {
    inner: Arc<dyn OptimizerRule + Send + Sync>,
}

impl RowsOfNothing {
    /// Puts itself around DataFusion's rule.
    pub fn guard(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name() == PUSHES) {
            *rule = Arc::new(Self { inner: Arc::clone(rule) });
        }
    }
}

impl OptimizerRule for RowsOfNothing {
    fn name(&self) -> &str {
        PUSHES
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let push = |plan: LogicalPlan| plan.transform_down_with_subqueries(|node| self.inner.rewrite(node, config));
        if !any_node(&plan, is_row_of_nothing) {
            return push(plan);
        }
        let limited = plan.transform_up_with_subqueries(|node| {
            Ok(match is_row_of_nothing(&node) {
                true => Transformed::yes(LogicalPlan::Limit(all_rows(node))),
                false => Transformed::no(node),
            })
        })?;
        let pushed = push(limited.data)?;
        let freed = pushed.data.transform_up_with_subqueries(|node| {
            Ok(match node {
                LogicalPlan::Limit(limit) if is_of_all_rows(&limit) => {
                    Transformed::yes(Arc::unwrap_or_clone(limit.input))
                }
                other => Transformed::no(other),
            })
        })?;
        Ok(Transformed::new(freed.data, pushed.transformed, TreeNodeRecursion::Continue))
    }
}

fn is_row_of_nothing(node: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(Aggregate { group_expr, .. }) = node else { return false };
    match group_expr.as_slice() {
        [] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => true,
        _ => false,
    }
}

fn all_rows(input: LogicalPlan) -> Limit {
    Limit { skip: None, fetch: Some(Box::new(lit(ALL_ROWS))), input: Arc::new(input) }
}

fn is_of_all_rows(limit: &Limit) -> bool {
    limit.skip.is_none() && limit.fetch.as_deref() == Some(&lit(ALL_ROWS))
}
