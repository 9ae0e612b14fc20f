//! [`QueriesInValues`]: `VALUES ((SELECT max(id) FROM t) + 1, 'x')` is `SELECT (SELECT max(id) FROM t) + 1, 'x'`.
//!
//! DataFusion 55 knows subqueries in a SELECT, not among VALUES. Rows of VALUES, and those of an INSERT before all, have types that a
//! SELECT does not give them: `1.005` for a DECIMAL is what is written, in a SELECT it is a float. So this is for one row whose other
//! cells mean the same in both; whatever else has subqueries is refused, see [`has_queries`].

use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Query, SetExpr, UnaryOperator, Value, Values, Visit, Visitor, VisitorMut};

use super::inner_values::as_selects;

/// The largest number of digits that is surely an integer of 64 bits.
const DIGITS_MAX: usize = 18;

/// Makes a select of a row that holds subqueries.
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
        && values.rows.len() == 1
        && cells(values).all(|cell| has_query(cell) || means_the_same(cell))
        && let Some(selects) = as_selects(values)
    {
        *body = selects;
    }
}

/// Whether there are subqueries.
pub(super) fn has_queries(values: &Values) -> bool {
    cells(values).any(has_query)
}

/// The same for all that a query is made of.
pub(super) fn holds_queries(mut body: &SetExpr) -> bool {
    while let SetExpr::SetOperation { left, right, .. } = body {
        if holds_queries(right) {
            return true;
        }
        body = left;
    }
    matches!(body, SetExpr::Values(values) if has_queries(values))
}

fn cells(values: &Values) -> impl Iterator<Item = &Expr> {
    values.rows.iter().flat_map(|row| &row.content)
}

fn has_query(cell: &Expr) -> bool {
    struct Any;

    impl Visitor for Any {
        type Break = ();

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }

    cell.visit(&mut Any).is_break()
}

/// Whether it is the same value in a SELECT.
fn means_the_same(cell: &Expr) -> bool {
    match cell {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => number.len() <= DIGITS_MAX && number.bytes().all(|byte| byte.is_ascii_digit()),
            Value::SingleQuotedString(_) | Value::Boolean(_) | Value::Null | Value::Placeholder(_) => true,
            _ => false,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } | Expr::Nested(expr) => means_the_same(expr),
        // Its type is said.
        Expr::TypedString(_) => true,
        Expr::Cast { expr, .. } => matches!(expr.as_ref(), Expr::Value(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use sqlparser::ast::VisitMut;
    use sqlparser::dialect::GenericDialect;
    use sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn a_row_with_subqueries_is_a_select() {
        for (sql, expected) in [
            ("VALUES ((SELECT 1), 2)", "SELECT (SELECT 1) AS column1, 2 AS column2"),
            (
                "INSERT INTO t VALUES ((SELECT 2) + 1, -7, 'x', DATE '2020-01-01')",
                "INSERT INTO t SELECT (SELECT 2) + 1 AS column1, -7 AS column2, 'x' AS column3, DATE '2020-01-01' AS column4",
            ),
            (
                "SELECT * FROM (VALUES (EXISTS (SELECT 1))) AS v",
                "SELECT * FROM (SELECT EXISTS (SELECT 1) AS column1) AS v",
            ),
        ] {
            assert_eq!(rewritten(sql), expected);
        }
    }

    #[test]
    fn others_stay() {
        for sql in [
            "VALUES (1), (2)",
            "INSERT INTO t VALUES (1), ((SELECT 2))",
            "INSERT INTO t VALUES (1.005, (SELECT 1))",
            "INSERT INTO t VALUES (12345678901234567890, (SELECT 1))",
            "INSERT INTO t VALUES (DEFAULT, (SELECT 1))",
            "VALUES (count(*), (SELECT 1))",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }

    fn rewritten(sql: &str) -> String {
        let mut parsed = Parser::parse_sql(&GenericDialect {}, sql).expect("SQL");
        let _: ControlFlow<()> = VisitMut::visit(&mut parsed, &mut QueriesInValues);
        parsed[0].to_string()
    }
}
