//! [`SteadyRounding`]: the type of `round(m, n)` is decided once.
//!
//! ```text
//!   round(m, 1)                       a constant: DECIMAL(9, 1), see `node::functions::rounded`
//!   round(m, -(1)), round(m, 1 + 0)   a constant is made of it first
//!   round(m, k)                       DECIMAL(10, 2), also where k becomes a constant later
//! ```
//!
//! Runs before types are coerced; what stands beside a call is fitted to its type then.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use crate::look::{any_expr, has_expr};
use crate::node::{round_of_columns, rounded};
use crate::rewritten::rewrite_node;

/// The rule that coerces types.
const BEFORE: &str = "type_coercion";

/// See the module.
#[derive(Debug)]
pub struct SteadyRounding;

impl SteadyRounding {
    /// Puts itself before types are coerced.
    pub fn put_into(rules: &mut Vec<Arc<dyn AnalyzerRule + Send + Sync>>) {
        let at = rules.iter().position(|rule| rule.name() == BEFORE).unwrap_or(0);
        rules.insert(at, Arc::new(Self));
    }
}

impl AnalyzerRule for SteadyRounding {
    fn name(&self) -> &str {
        "steady_rounding"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_expr(&plan, is_unsteady) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| match has_expr(&node, is_unsteady) {
            true => rewrite_node(node, steady),
            false => Ok(Transformed::no(node)),
        })
        .data()
    }
}

/// Whether it rounds to a number of places that is not written there.
fn is_unsteady(expr: &Expr) -> bool {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return false };
    matches!(args.as_slice(), [_, places] if !matches!(places, Expr::Literal(..))) && *func == rounded()
}

/// The expression with each `round` of one type.
pub(crate) fn steady(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let is_unsteady = is_unsteady(&expr);
        match expr {
            Expr::ScalarFunction(mut call) if is_unsteady => {
                match call.args.get(1).and_then(constant) {
                    Some(places) => call.args[1] = places,
                    None => call.func = round_of_columns(),
                }
                Ok(Transformed::yes(Expr::ScalarFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        }
    })
}

/// The whole number that an expression is, whatever its columns are.
fn constant(places: &Expr) -> Option<Expr> {
    if places.any_column_refs() || places.is_volatile() {
        return None;
    }
    let nothing = Arc::new(DFSchema::empty());
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&nothing)).build());
    let coerced = simplifier.coerce(places.clone(), &nothing).ok()?;
    match simplifier.simplify(coerced) {
        Ok(Expr::Literal(value, metadata)) if value.data_type().is_integer() => Some(Expr::Literal(value, metadata)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;
    use datafusion::logical_expr::{cast, col, lit};

    use super::*;

    fn shown(places: Expr) -> (String, bool) {
        let call = Expr::ScalarFunction(ScalarFunction::new_udf(rounded(), vec![col("m"), places]));
        let steady = steady(call).unwrap().data;
        let Expr::ScalarFunction(call) = &steady else { panic!("{steady} is a call") };
        (steady.to_string(), call.func == rounded())
    }

    #[test]
    fn constants_and_columns() {
        for (places, expected) in [
            (lit(1_i64), "round(m, Int64(1))"),
            (lit(1_i8), "round(m, Int8(1))"),
            (-lit(1_i64), "round(m, Int64(-1))"),
            (lit(1_i64) + lit(0_i64), "round(m, Int64(1))"),
            (cast(lit(1_i64), DataType::Int32), "round(m, Int32(1))"),
        ] {
            assert_eq!(shown(places), (expected.to_owned(), true));
        }
        assert_eq!(shown(col("k")), ("round(m, k)".to_owned(), false));
        assert!(shown(lit(1.5)).1, "it is an error, and stays one");
        assert!(!shown(lit(1_i64) / lit(0_i64)).1);
    }
}
