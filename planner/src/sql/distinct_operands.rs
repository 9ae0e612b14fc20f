//! [`DistinctOperands`]: what follows `a IS DISTINCT FROM b` is no part of `b`.
//!
//! The parser takes everything up to the next bracket, comma or clause for the second operand. As in PostgreSQL, only
//! what binds tighter than `IS` belongs to it.
//!
//! ```text
//!   text                              the parser                            means
//!   a IS DISTINCT FROM b AND c        a IS DISTINCT FROM (b AND c)          (a IS DISTINCT FROM b) AND c
//!   NOT a IS DISTINCT FROM b OR c     NOT (a IS DISTINCT FROM (b OR c))     (NOT (a IS DISTINCT FROM b)) OR c
//!   a IS DISTINCT FROM b = c          a IS DISTINCT FROM (b = c)            the same
//! ```
//!
//! Nothing is lost in the parser's tree: brackets are nodes of it (`Nested`). So a right operand without them that binds
//! less than its operator can have come from nowhere else, and is taken out of it.

use std::ops::ControlFlow;

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator, Value, VisitMut, VisitorMut};

/// Gives operands of `IS [NOT] DISTINCT FROM` back what is not theirs.
pub(super) struct DistinctOperands;

impl DistinctOperands {
    /// In all of a tree, which must be as the parser made it.
    pub(super) fn mend(tree: &mut impl VisitMut) {
        let _: ControlFlow<()> = tree.visit(&mut Self);
    }
}

impl VisitorMut for DistinctOperands {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        regroup(expr);
        ControlFlow::Continue(())
    }
}

/// How tight an operator binds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    Is,
    Tighter,
}

/// Takes what binds less out of the right operand. Operands are right by themselves already.
fn regroup(expr: &mut Expr) {
    let Some((right, takes)) = right_operand(expr) else { return };
    if binding(right) >= takes {
        return;
    }
    let mut outer = std::mem::replace(right, nothing());
    let mut first = &mut outer;
    while binding(first) < takes {
        first = left_operand(first);
    }
    // The first of its operands is ours, and we are its first operand.
    *right = std::mem::replace(first, nothing());
    *first = std::mem::replace(expr, nothing());
    *expr = outer;
}

/// How tight an operator with a left operand binds; what has none is whole.
fn binding(expr: &Expr) -> Binding {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, .. } => Binding::Or,
        Expr::BinaryOp { op: BinaryOperator::And, .. } => Binding::And,
        Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsNormalized { .. } => Binding::Is,
        _ => Binding::Tighter,
    }
}

/// An operator's right operand, and what it must at least be.
fn right_operand(expr: &mut Expr) -> Option<(&mut Expr, Binding)> {
    match expr {
        Expr::BinaryOp { op: BinaryOperator::Or, right, .. } => Some((right.as_mut(), Binding::And)),
        Expr::UnaryOp { op: UnaryOperator::Not | UnaryOperator::BangNot, expr } => Some((expr.as_mut(), Binding::Is)),
        // Of `AND`, and of `->>` and its like, which take an `IS` in some dialects.
        Expr::BinaryOp { right, .. } => Some((right.as_mut(), Binding::Is)),
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => Some((right.as_mut(), Binding::Tighter)),
        _ => None,
    }
}

/// The left operand of what binds less than others.
fn left_operand(expr: &mut Expr) -> &mut Expr {
    match expr {
        Expr::BinaryOp { left: inner, .. }
        | Expr::IsDistinctFrom(inner, _)
        | Expr::IsNotDistinctFrom(inner, _)
        | Expr::IsNull(inner)
        | Expr::IsNotNull(inner)
        | Expr::IsTrue(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotUnknown(inner)
        | Expr::IsNormalized { expr: inner, .. } => inner.as_mut(),
        whole => whole,
    }
}

/// Stands where something is taken from, until something else is put there.
fn nothing() -> Expr {
    Expr::Value(Value::Null.into())
}

#[cfg(test)]
mod tests {
    use datafusion::config::Dialect;
    use datafusion::sql::parser::Statement as DFStatement;
    use sqlparser::ast::{self, Expr, SelectItem, SetExpr};

    use crate::sql::{ParseOptions, Statement, parse};

    /// With a pair of brackets around each operator; those of the text are square.
    fn grouped(expr: &Expr) -> String {
        match expr {
            Expr::Nested(inner) => format!("[{}]", grouped(inner)),
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", grouped(left), grouped(right)),
            Expr::UnaryOp { op, expr } => format!("({op} {})", grouped(expr)),
            Expr::IsDistinctFrom(left, right) => format!("({} != {})", grouped(left), grouped(right)),
            Expr::IsNotDistinctFrom(left, right) => format!("({} == {})", grouped(left), grouped(right)),
            Expr::IsNull(inner) => format!("({} IS NULL)", grouped(inner)),
            Expr::IsNotTrue(inner) => format!("({} IS NOT TRUE)", grouped(inner)),
            Expr::Between { expr, low, high, .. } => {
                format!("({} BETWEEN {} AND {})", grouped(expr), grouped(low), grouped(high))
            }
            other => other.to_string(),
        }
    }

    fn read(dialect: Dialect, sql: &str) -> Statement {
        let options = ParseOptions { dialect, ..ParseOptions::default() };
        parse(sql, &options).unwrap_or_else(|error| panic!("{sql}: {error}")).expect("a statement")
    }

    fn check(dialect: Dialect, text: &str, expected: &str) {
        let sql = format!("SELECT {text}");
        let Statement::DataFusion(statement) = read(dialect, &sql) else { panic!("{sql}") };
        let DFStatement::Statement(statement) = *statement else { panic!("{sql}") };
        let ast::Statement::Query(query) = *statement else { panic!("{sql}") };
        let SetExpr::Select(select) = query.body.as_ref() else { panic!("{sql}") };
        let [SelectItem::UnnamedExpr(expr)] = select.projection.as_slice() else { panic!("{sql}") };
        assert_eq!(grouped(expr), expected, "{text}");
    }

    #[test]
    fn what_follows_stands_for_itself() {
        for (text, expected) in [
            ("a IS DISTINCT FROM b", "(a != b)"),
            ("a IS DISTINCT FROM b AND c", "((a != b) AND c)"),
            ("a IS NOT DISTINCT FROM b OR c AND d", "((a == b) OR (c AND d))"),
            ("a IS DISTINCT FROM b AND c OR d", "(((a != b) AND c) OR d)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e IS NOT DISTINCT FROM f",
                "(((a != b) AND (c != d)) OR (e == f))",
            ),
            (
                "a IS DISTINCT FROM b OR c IS DISTINCT FROM d AND e IS DISTINCT FROM f",
                "((a != b) OR ((c != d) AND (e != f)))",
            ),
            ("x AND a IS DISTINCT FROM b AND c", "((x AND (a != b)) AND c)"),
            ("x AND a IS DISTINCT FROM b OR c", "((x AND (a != b)) OR c)"),
            ("x OR a IS DISTINCT FROM b AND c OR d", "((x OR ((a != b) AND c)) OR d)"),
            ("x OR a IS DISTINCT FROM b OR c", "((x OR (a != b)) OR c)"),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a != b)) AND c)"),
            ("x AND NOT a IS DISTINCT FROM b AND c OR d", "(((x AND (NOT (a != b))) AND c) OR d)"),
            ("NOT NOT a IS DISTINCT FROM b OR c", "((NOT (NOT (a != b))) OR c)"),
            ("a IS DISTINCT FROM NOT b AND c", "((a != (NOT b)) AND c)"),
            ("a IS DISTINCT FROM b IS NULL", "((a != b) IS NULL)"),
            ("NOT a IS DISTINCT FROM b IS NOT TRUE AND c", "((NOT ((a != b) IS NOT TRUE)) AND c)"),
            ("a IS DISTINCT FROM b IS DISTINCT FROM c IS DISTINCT FROM d", "(((a != b) != c) != d)"),
            ("c IS NULL IS DISTINCT FROM d AND e", "(((c IS NULL) != d) AND e)"),
        ] {
            for dialect in [Dialect::Generic, Dialect::PostgreSQL, Dialect::DuckDB] {
                check(dialect, text, expected);
            }
        }
    }

    #[test]
    fn what_binds_tighter_stays() {
        for (text, expected) in [
            ("a IS DISTINCT FROM b = c", "(a != (b = c))"),
            ("a = b IS DISTINCT FROM c > d AND e", "(((a = b) != (c > d)) AND e)"),
            ("a + 1 IS DISTINCT FROM b * 2 + c", "((a + 1) != ((b * 2) + c))"),
            ("a IS DISTINCT FROM b BETWEEN 1 AND 2 AND c", "((a != (b BETWEEN 1 AND 2)) AND c)"),
            ("a IS DISTINCT FROM b ->> c AND d", "((a != (b ->> c)) AND d)"),
            // Brackets say what is meant.
            ("a IS DISTINCT FROM (b AND c)", "(a != [(b AND c)])"),
            ("NOT (a IS DISTINCT FROM (b OR c)) OR d", "((NOT [(a != [(b OR c)])]) OR d)"),
            ("x AND (a AND b)", "(x AND [(a AND b)])"),
            ("(a IS DISTINCT FROM b OR c) AND d", "([((a != b) OR c)] AND d)"),
            // Nothing is regrouped where there is none.
            ("a OR b AND NOT c IS NULL", "(a OR (b AND (NOT (c IS NULL))))"),
            ("a AND b AND c OR d", "(((a AND b) AND c) OR d)"),
            ("x = (a OR b)", "(x = [(a OR b)])"),
        ] {
            for dialect in [Dialect::Generic, Dialect::PostgreSQL] {
                check(dialect, text, expected);
            }
        }
        // What takes an IS in this dialect takes no AND.
        check(Dialect::Generic, "a ->> b IS DISTINCT FROM c AND d", "((a ->> (b != c)) AND d)");
    }

    #[test]
    fn in_all_statements() {
        for sql in [
            "SELECT a FROM t JOIN u ON t.a IS DISTINCT FROM u.a AND b WHERE EXISTS (SELECT * FROM v)",
            "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a IS DISTINCT FROM t.a AND b)",
            "SELECT CASE WHEN a IS DISTINCT FROM u.a AND b THEN 1 END, f(a IS DISTINCT FROM u.a AND b) FROM t",
            "EXPLAIN SELECT a IS DISTINCT FROM u.a AND b FROM t",
            "INSERT INTO t SELECT a IS DISTINCT FROM u.a AND b FROM u",
            "CREATE TABLE t AS SELECT a IS DISTINCT FROM u.a AND b FROM u",
            "CREATE VIEW v AS SELECT a IS DISTINCT FROM u.a AND b FROM u",
            "CREATE DERIVED TABLE v AS SELECT a IS DISTINCT FROM u.a AND b FROM u",
            "CREATE FUNCTION f(a INT, b BOOLEAN) RETURNS BOOLEAN RETURN a IS DISTINCT FROM u.a AND b",
            "PREPARE p AS SELECT a IS DISTINCT FROM u.a AND b FROM u",
            "EXECUTE p(a IS DISTINCT FROM u.a AND b)",
            "SET x = a IS DISTINCT FROM u.a AND b",
            "COPY (SELECT a IS DISTINCT FROM u.a AND b FROM u) TO 'x.csv'",
            "EXPLAIN REUSE SELECT a IS DISTINCT FROM u.a AND b FROM t",
            "VERIFY SELECT a IS DISTINCT FROM u.a AND b FROM t",
            "CREATE EXTERNAL TABLE t (a INT DEFAULT a IS DISTINCT FROM u.a AND b) STORED AS CSV LOCATION 'x'",
            "CREATE EXTERNAL TABLE t STORED AS CSV WITH ORDER (a IS DISTINCT FROM u.a AND b) LOCATION 'x'",
        ] {
            let tree = format!("{:?}", read(Dialect::Generic, sql));
            assert!(tree.contains("BinaryOp { left: IsDistinctFrom("), "{sql}: {tree}");
        }
    }
}
