//! [`CountedSets`]: `EXCEPT ALL` and `INTERSECT ALL` mind how often a row is there.
//!
//! ```text
//!   (1, 1, 2) EXCEPT ALL (1)      is 1, 2        each row of the other side takes one away
//!   (1, 1, 2) INTERSECT ALL (1)   is 1           as often as on the side that has fewer
//! ```
//!
//! DataFusion 55 joins the two sides by all columns, so that one row takes all that are like it. Equal rows are numbered on both sides
//! here, and the numbers are joined too.
//!
//! Keeps true   the plan's schema.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::config::ConfigOptions;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, Join, LogicalPlan, LogicalPlanBuilder, ident};
use datafusion::optimizer::AnalyzerRule;

use crate::look::any_node;

/// See the module.
#[derive(Debug)]
pub struct CountedSets;

impl AnalyzerRule for CountedSets {
    fn name(&self) -> &str {
        "counted_sets"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, |node| matches!(node, LogicalPlan::Join(join) if counts(join))) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Join(join) if counts(&join) => numbered(join).map(Transformed::yes),
            other => Ok(Transformed::no(other)),
        })
        .data()
    }
}

/// Whether it is one of those two: nothing else takes NULLs for equal before plans are optimized, and without ALL the rows of the left
/// side are distinct.
fn counts(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftAnti | JoinType::LeftSemi)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.filter.is_none()
        && join.on.len() == join.left.schema().fields().len()
        && !matches!(join.left.as_ref(), LogicalPlan::Distinct(_))
}

fn numbered(mut join: Join) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = join.left.schema().columns().into_iter().map(Expr::Column).collect();
    let (left, right) = ("__number_left", "__number_right");
    join.left = Arc::new(with_number(&join.left, left)?);
    join.right = Arc::new(with_number(&join.right, right)?);
    join.on.push((ident(left), ident(right)));
    join.schema = Arc::clone(join.left.schema());
    LogicalPlanBuilder::from(LogicalPlan::Join(join)).project(columns)?.build()
}

/// Rows with their number among those that are equal.
fn with_number(plan: &LogicalPlan, name: &str) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().columns().into_iter().map(Expr::Column).collect();
    let number = row_number().partition_by(columns.clone()).build()?;
    let shown = Expr::Column(Column::from_name(number.schema_name().to_string())).alias(name);
    LogicalPlanBuilder::from(plan.clone()).window([number])?.project(columns.into_iter().chain([shown]))?.build()
}
