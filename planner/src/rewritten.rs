//! [`rewrite_node`]: the expressions of a node, changed under the names that they had.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, JoinConstraint, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// The node with its expressions rewritten.
pub(crate) fn rewrite_node(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let mut rewrite_named = |expr: Expr| -> Result<Transformed<Expr>> {
        let name = names.save(&expr);
        Ok(rewrite(expr)?.update_data(|expr| name.restore(expr)))
    };
    let rewritten = plan.map_expressions(|expr| match expr {
        // Sets have no names of their own.
        sets @ Expr::GroupingSet(_) => sets.map_children(&mut rewrite_named),
        expr => rewrite_named(expr),
    })?;
    Ok(rewritten.update_data(with_computed_keys))
}

/// What the expressions of a node are over.
pub(crate) fn schema_below(plan: &LogicalPlan) -> Result<DFSchema> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), scan.source.schema().as_ref())
        }
        plan => Ok(merge_schema(&plan.inputs())),
    }
}

/// Keys of `USING` are columns for DataFusion, or casts of them: with others it is a join ON them.
pub(crate) fn with_computed_keys(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Join(mut join) => {
            let is_column = |key: &Expr| key.get_as_join_column().is_some();
            if !join.on.iter().all(|(left, right)| is_column(left) && is_column(right)) {
                join.join_constraint = JoinConstraint::On;
            }
            LogicalPlan::Join(join)
        }
        other => other,
    }
}
