//! [`KeptCasts`]: what a cast cuts off, or moves, counts where its value is compared.
//!
//! ```text
//!   m is a DECIMAL(9, 2), 14.48        DataFusion 55      here
//!   CAST(m AS INT) = 14                m = 14.00          kept_cast(CAST(m AS INT)) = 14
//!   TRY_CAST(i AS TINYINT) > 5         i > 5              kept_cast(TRY_CAST(i AS TINYINT)) > 5
//!   CAST(ts AS TIME) < '02:00'         the same, but files are left out by the time of day of their bounds
//! ```
//!
//! DataFusion takes casts off comparisons with constants: in plans, in what it asks of files, and in what a join or a
//! top-k tells the scans below it while it runs. Into functions it does not look.
//!
//! Fires on      casts after which two values may be equal, or in another order, or NULL, and were not before. Wherever
//!               they stand: a filter above a subquery comes to its casts later.
//! Stays quiet   on casts that give the same value in another type, or an error (INT to BIGINT, to DECIMAL and back, a
//!               date to a timestamp): pruning needs them. In a comparison with a constant such an error may be
//!               missing.
//! Runs          when types have been coerced.
//! Keeps true    schema and rows of what it is given.

mod types;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast, cast};
use datafusion::optimizer::AnalyzerRule;

pub(crate) use self::types::{is_utc, keeps_values};

use crate::look::{any_expr, has_expr};
use crate::node::kept_cast;
use crate::rewritten::{rewrite_node, schema_below};

/// See the module.
#[derive(Debug)]
pub struct KeptCasts;

impl AnalyzerRule for KeptCasts {
    fn name(&self) -> &str {
        "kept_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_expr(&plan, is_cast) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            if !has_expr(&node, is_cast) {
                return Ok(Transformed::no(node));
            }
            let schema = schema_below(&node)?;
            rewrite_node(node, |expr| keep_casts(expr, &schema))
        })
        .data()
    }
}

/// Casts of constants are computed before anybody compares them.
fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => !matches!(**expr, Expr::Literal(..)),
        _ => false,
    }
}

/// The expression with those casts kept.
pub(crate) fn keep_casts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        if let Some(inner) = kept(&expr)
            && kept(inner).is_some()
        {
            return Ok(Transformed::yes(inner.clone()));
        }
        let is_wanted = is_cast(&expr)
            && match &expr {
                Expr::Cast(Cast { expr, field }) => misleads(expr, field, false, schema),
                Expr::TryCast(TryCast { expr, field }) => misleads(expr, field, true, schema),
                _ => false,
            };
        Ok(Transformed::new_transformed(if is_wanted { keep(expr) } else { expr }, is_wanted))
    })
}

/// An argument of a function as it stands in its body.
pub(crate) fn kept_argument(expr: Expr, from: &DataType, to: &DataType) -> Expr {
    let is_moment = matches!((from, to), (DataType::Timestamp(..), DataType::Timestamp(..)));
    let cast = cast(expr, to.clone());
    if is_moment || types::misleads(from, to, false) { keep(cast) } else { cast }
}

fn misleads(inner: &Expr, to: &FieldRef, is_try: bool, schema: &DFSchema) -> bool {
    // Of what has no type nothing can be told; it has none in the plan either.
    inner.get_type(schema).is_ok_and(|from| types::misleads(&from, to.data_type(), is_try))
}

fn keep(expr: Expr) -> Expr {
    Expr::ScalarFunction(ScalarFunction::new_udf(kept_cast(), vec![expr]))
}

/// The cast that is kept there.
pub(crate) fn kept(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::ScalarFunction(call) if Arc::ptr_eq(&call.func, &kept_cast()) => call.args.first(),
        _ => None,
    }
}
