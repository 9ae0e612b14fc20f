//! [`any_node`], [`any_expr`]: whether a plan has something that a rule wants to change.
//!
//! Looking costs a fraction of writing every node again, and most rules have nothing to do with most statements.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Whether a node of the plan, or of a subquery in it, is of this kind.
pub fn any_node(plan: &LogicalPlan, mut is: impl FnMut(&LogicalPlan) -> bool) -> bool {
    let mut found = false;
    // Looking does not fail.
    let _ = plan.apply_with_subqueries(|node| {
        found = is(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

/// The same for a part of an expression.
pub(crate) fn any_expr(plan: &LogicalPlan, is: impl Fn(&Expr) -> bool) -> bool {
    any_node(plan, |node| has_expr(node, &is))
}

/// The same for one node alone.
pub(crate) fn has_expr(node: &LogicalPlan, is: impl Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    let _ = node.apply_expressions(|expr| {
        expr.apply(|part| {
            found |= is(part);
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    });
    found
}
