//! [`QueriesInValues`]: `VALUES ((SELECT max(id) FROM t) + 1)` is `SELECT (SELECT max(id) FROM t) + 1`.
//!
//! DataFusion 55 knows subqueries in a SELECT, not among VALUES. `DEFAULT` is left to it, as it means something there.

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, SetExpr, Values, Visit, Visitor, VisitorMut};

use super::inner_values::as_selects;

/// Makes selects of rows that hold subqueries.
pub(super) struct QueriesInValues;

impl VisitorMut for QueriesInValues {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        replace(&mut query.body);
        ControlFlow::Continue(())
    }
}

/// Long chains of unions nest to the left.
fn replace(mut body: &mut SetExpr) {
    while let SetExpr::SetOperation { left, right, .. } = body {
        replace(right);
        body = left;
    }
    if let SetExpr::Values(values) = body
        && has_queries(values)
        && let Some(selects) = as_selects(values)
    {
        *body = selects;
    }
}

fn has_queries(values: &Values) -> bool {
    struct Any;

    impl Visitor for Any {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }

    let mut exprs = values.rows.iter().flat_map(|row| &row.content);
    let is_default = |expr: &Expr| matches!(expr, Expr::Identifier(name) if name.value.eq_ignore_ascii_case("default"));
    exprs.clone().any(|expr| expr.visit(&mut Any).is_break()) && !exprs.any(is_default)
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::VisitMut;
    use sqlparser::dialect::GenericDialect;
    use sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn rows_with_subqueries_are_selects() {
        for (sql, expected) in [
            ("VALUES ((SELECT 1), 2)", "SELECT (SELECT 1) AS column1, 2 AS column2"),
            (
                "INSERT INTO t VALUES (1), ((SELECT 2) + 1)",
                "INSERT INTO t SELECT 1 AS column1 UNION ALL SELECT (SELECT 2) + 1 AS column1",
            ),
            (
                "SELECT * FROM (VALUES (EXISTS (SELECT 1))) AS v",
                "SELECT * FROM (SELECT EXISTS (SELECT 1) AS column1) AS v",
            ),
            ("VALUES (1), (2)", "VALUES (1), (2)"),
            ("INSERT INTO t VALUES (DEFAULT, (SELECT 1))", "INSERT INTO t VALUES (DEFAULT, (SELECT 1))"),
        ] {
            let mut parsed = Parser::parse_sql(&GenericDialect {}, sql).expect("SQL");
            let _: ControlFlow<()> = VisitMut::visit(&mut parsed, &mut QueriesInValues);
            assert_eq!(parsed[0].to_string(), expected);
        }
    }
}
