//! [`HonestFilters`]: a filter leaves one value of a column only if it says so of the column itself.
//!
//! ```text
//!   WHERE ts::date = '2024-07-01' ORDER BY ts      DataFusion 55: ts is midnight, so there is nothing to sort
//!   WHERE i / 10 = 1 GROUP BY i                                   i is 10, so groups are whole when the next row comes
//!
//!   before                                   after
//!   SortExec: ts                             SortExec: ts
//!     FilterExec: CAST(ts AS Date32) = ..      FilterExec: CAST(ts AS Date32) = .. AND ts IS NOT NULL
//! ```
//!
//! It computes backwards: of all values that come to one date it knows midnight, and takes it for the only one. It does
//! not where a condition is of another kind than comparing and calculating, such as `IS NOT NULL`, which such a filter
//! implies.
//!
//! Fires when   a filter claims a column to be one value, and has a cast that cuts, or calculates otherwise than adding
//!              whole numbers.
//! Runs         before rows are sorted and dealt out, and after filters were told to scans: files are left out as
//!              before.
//! Keeps true   schema, rows, partitions.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal, NegativeExpr, is_not_null};
use datafusion::physical_expr::intervals::utils::check_support;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::kept_casts::keeps_values;

/// The rule that sorts rows and deals them out.
const BEFORE: &str = "EnsureRequirements";

/// See the module.
#[derive(Debug, Default)]
pub struct HonestFilters;

impl HonestFilters {
    /// Puts itself where what filters claim is used next.
    pub fn put_into(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
        let at = rules.iter().position(|rule| rule.name() == BEFORE).unwrap_or(rules.len());
        rules.insert(at, Arc::new(Self));
    }
}

impl PhysicalOptimizerRule for HonestFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            let filter = node.downcast_ref::<FilterExec>();
            match filter.and_then(|filter| Some(honest(filter, doubtful(filter)?))) {
                Some(honest) => honest.map(Transformed::yes),
                None => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "honest_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// A column of the filter's input that it claims to be one value, if that was computed backwards through what does not
/// go backwards.
fn doubtful(filter: &FilterExec) -> Option<Column> {
    let (predicate, input) = (filter.predicate(), filter.input());
    if is_plain(predicate, filter) || !check_support(predicate, &input.schema()) {
        return None;
    }
    let known_below = input.equivalence_properties().constants();
    let is_known = |column: &Column| known_below.iter().any(|known| is_column(&known.expr, column.index()));
    let claimed = filter.properties().equivalence_properties().constants();
    let is_claimed = |column: &Column| {
        // Claims are of the columns that are shown.
        let shown = match filter.projection() {
            Some(projection) => projection.iter().position(|shown| *shown == column.index()),
            None => Some(column.index()),
        };
        shown.is_some_and(|shown| claimed.iter().any(|claimed| is_column(&claimed.expr, shown)))
    };
    let mut columns: Vec<Column> = collect_columns(predicate).into_iter().collect();
    columns.sort_by_key(Column::index);
    columns.into_iter().find(|column| is_claimed(column) && !is_known(column))
}

fn is_column(expr: &Arc<dyn PhysicalExpr>, index: usize) -> bool {
    expr.downcast_ref::<Column>().is_some_and(|column| column.index() == index)
}

/// Whether what is known of the value of each part tells its parts' values.
fn is_plain(expr: &Arc<dyn PhysicalExpr>, filter: &FilterExec) -> bool {
    if expr.is::<Column>() || expr.is::<Literal>() {
        return true;
    }
    let schema = filter.input().schema();
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(&schema);
        return from.is_ok_and(|from| keeps_values(&from, cast.cast_type())) && is_plain(cast.expr(), filter);
    }
    if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        return is_plain(negative.arg(), filter);
    }
    let Some(binary) = expr.downcast_ref::<BinaryExpr>() else { return false };
    let is_whole = |side: &Arc<dyn PhysicalExpr>| side.data_type(&schema).is_ok_and(|side| side.is_integer());
    let is_kind = match binary.op() {
        Operator::And | Operator::Eq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => true,
        Operator::Plus | Operator::Minus => is_whole(binary.left()) && is_whole(binary.right()),
        _ => false,
    };
    is_kind && is_plain(binary.left(), filter) && is_plain(binary.right(), filter)
}

/// The same rows, of which nothing is computed backwards.
fn honest(filter: &FilterExec, column: Column) -> Result<Arc<dyn ExecutionPlan>> {
    let is_there = is_not_null(Arc::new(column))?;
    let predicate = Arc::new(BinaryExpr::new(Arc::clone(filter.predicate()), Operator::And, is_there));
    Ok(Arc::new(FilterExecBuilder::from(filter).with_predicate(predicate).build()?))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// At another place it would come too late, or too early.
    #[test]
    fn the_rule_is_found() {
        let rules = PhysicalOptimizer::new().rules;
        let place = |name: &str| rules.iter().position(|rule| rule.name() == name).unwrap();
        assert!(place("FilterPushdown") < place(BEFORE));
    }
}
