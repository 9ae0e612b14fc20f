//! [`TrueFilters`]: `count(x) FILTER (WHERE true)` is `count(x)`.
//!
//! Dropped before anything is planned, so that no rule can drop it later, when other parts of the plan know the column by a name that
//! has the filter in it.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, VisitorMut};

/// Takes filters that let everything through off aggregates.
pub(super) struct TrueFilters;

impl VisitorMut for TrueFilters {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let is_true = |filter: &Expr| matches!(filter, Expr::Value(value) if value.value == Value::Boolean(true));
        if let Expr::Function(call) = expr {
            call.filter.take_if(|filter| is_true(filter));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse};

    #[test]
    fn only_what_lets_everything_through() {
        let sql = "EXPLAIN SELECT count(a) FILTER (WHERE true), (SELECT sum(b) FILTER (WHERE TRUE) FROM t) FROM t \
                   HAVING count(a) FILTER (WHERE true) > 1 AND count(a) FILTER (WHERE a > 0) > count(a) FILTER (WHERE false)";
        let Ok(Some(Statement::DataFusion(statement))) = parse(sql, &ParseOptions::default()) else { panic!() };
        assert_eq!(
            statement.to_string(),
            "EXPLAIN SELECT count(a), (SELECT sum(b) FROM t) FROM t \
             HAVING count(a) > 1 AND count(a) FILTER (WHERE a > 0) > count(a) FILTER (WHERE false)"
        );
    }
}
