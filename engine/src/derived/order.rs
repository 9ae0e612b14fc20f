//! [`ordered_totally`]: which rows a LIMIT leaves, where an order says so but for ties.
//!
//! ```text
//!   Limit 10                       Limit 10
//!     Sort: hits DESC       -->      Sort: hits DESC, page, hits
//!       ..                             ..
//! ```
//!
//! Any choice among equals is right, so it may as well be the same each time: ties are decided by the other columns.

use arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::logical_expr::{Expr, LogicalPlan, SortExpr};

/// The plan with all columns in the order of what is cut.
pub(super) fn ordered_totally(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Limit(mut limit) => {
            let input = ordered(std::sync::Arc::unwrap_or_clone(limit.input));
            limit.input = std::sync::Arc::new(input);
            Ok(Transformed::yes(LogicalPlan::Limit(limit)))
        }
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// The sort that decides about the order of a plan, with all columns.
fn ordered(plan: LogicalPlan) -> LogicalPlan {
    match plan {
        LogicalPlan::Sort(mut sort) => {
            let schema = std::sync::Arc::clone(sort.input.schema());
            if schema.fields().iter().all(|field| has_order(field.data_type())) {
                for column in schema.columns() {
                    let column = Expr::Column(column);
                    if !sort.expr.iter().any(|key| key.expr == column) {
                        sort.expr.push(SortExpr::new(column, true, false));
                    }
                }
            }
            LogicalPlan::Sort(sort)
        }
        LogicalPlan::Projection(mut projection) => {
            let input = ordered(std::sync::Arc::unwrap_or_clone(projection.input));
            projection.input = std::sync::Arc::new(input);
            LogicalPlan::Projection(projection)
        }
        LogicalPlan::SubqueryAlias(mut alias) => {
            alias.input = std::sync::Arc::new(ordered(std::sync::Arc::unwrap_or_clone(alias.input)));
            LogicalPlan::SubqueryAlias(alias)
        }
        other => other,
    }
}

/// Whether values that are equal in order are the same.
fn has_order(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => has_order(values),
        other => !other.is_nested() && !matches!(other, DataType::Null),
    }
}
