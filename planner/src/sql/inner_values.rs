//! [`InnerValues`]: `VALUES` inside of the query of an `INSERT` are rows of their own, not of the table.
//!
//! DataFusion 55 gives every `VALUES` in such a statement the table's types: `INSERT INTO t SELECT x * 10 FROM (VALUES (1.7)) v (x)` would
//! multiply 1 where the column is an integer. Only those that are the whole source go into columns as they are; others become
//! `SELECT .. UNION ALL SELECT ..`. The same for `CREATE TABLE t (columns) AS`.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, Parens, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement, Values, Visit,
    VisitMut, Visitor, VisitorMut,
};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

/// More rows than this stay as they are, and are refused: a plan with a branch for each would take too long.
const ROWS_MAX: usize = 1_000;

/// Gives inner rows types of their own.
pub(super) struct InnerValues;

impl VisitorMut for InnerValues {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        let source = match statement {
            Statement::Insert(insert) => insert.source.as_mut(),
            Statement::CreateTable(create) if !create.columns.is_empty() => create.query.as_mut(),
            _ => None,
        };
        match source {
            Some(source) => source.visit(&mut Inner { is_top: true }),
            None => ControlFlow::Continue(()),
        }
    }
}

struct Inner {
    is_top: bool,
}

impl VisitorMut for Inner {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let is_source = std::mem::take(&mut self.is_top) && matches!(query.body.as_ref(), SetExpr::Values(_));
        if !is_source {
            replace(&mut query.body);
        }
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
        && let Some(selects) = as_selects(values)
    {
        *body = selects;
    }
}

/// The rows as `SELECT .. UNION ALL SELECT ..`, unless they are too many.
pub(super) fn as_selects(values: &mut Values) -> Option<SetExpr> {
    if values.value_keyword || !(1..=ROWS_MAX).contains(&values.rows.len()) {
        return None;
    }
    let template = template();
    let selects = values.rows.drain(..).map(|row| SetExpr::Select(Box::new(select(&template, row))));
    Some(union(selects.collect()))
}

/// A select of nothing in particular.
fn template() -> Select {
    let parsed = Parser::parse_sql(&GenericDialect {}, "SELECT 1");
    match parsed.ok().and_then(|mut statements| statements.pop()) {
        Some(Statement::Query(query)) => match *query.body {
            SetExpr::Select(select) => *select,
            _ => unreachable!("it is a select"),
        },
        _ => unreachable!("it is a query"),
    }
}

fn select(template: &Select, row: Parens<Vec<Expr>>) -> Select {
    let named =
        |(position, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("column{}", position + 1)) };
    Select { projection: row.content.into_iter().enumerate().map(named).collect(), ..template.clone() }
}

/// As a tree that is no deeper than it must be. There is at least one.
fn union(mut selects: Vec<SetExpr>) -> SetExpr {
    let rest = selects.split_off(selects.len().div_ceil(2));
    match rest.is_empty() {
        true => selects.remove(0),
        false => SetExpr::SetOperation {
            left: Box::new(union(selects)),
            op: SetOperator::Union,
            set_quantifier: SetQuantifier::All,
            right: Box::new(union(rest)),
        },
    }
}

/// Whether there are some that were left as they are.
pub(super) fn has_inner_values(source: &Query) -> bool {
    struct Any {
        is_top: bool,
    }

    impl Visitor for Any {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let is_source = std::mem::take(&mut self.is_top) && matches!(query.body.as_ref(), SetExpr::Values(_));
            match !is_source && holds_values(&query.body) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    fn holds_values(body: &SetExpr) -> bool {
        match body {
            SetExpr::Values(_) => true,
            SetExpr::SetOperation { left, right, .. } => holds_values(left) || holds_values(right),
            _ => false,
        }
    }

    source.visit(&mut Any { is_top: true }).is_break()
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse, refuse_ignored};

    fn read(sql: &str) -> Statement {
        parse(sql, &ParseOptions::default()).unwrap().unwrap()
    }

    #[test]
    fn only_inner_ones() {
        for (sql, meant) in [
            ("INSERT INTO t VALUES (1, 2), (3, 4)", "INSERT INTO t VALUES (1, 2), (3, 4)"),
            ("SELECT * FROM (VALUES (1)) AS v", "SELECT * FROM (VALUES (1)) AS v"),
            ("CREATE TABLE t AS SELECT * FROM (VALUES (1)) AS v", "CREATE TABLE t AS SELECT * FROM (VALUES (1)) AS v"),
            (
                "INSERT INTO t SELECT x FROM (VALUES (1.7, 2), (3, 4), (5, 6)) AS v (x, y)",
                "INSERT INTO t SELECT x FROM (SELECT 1.7 AS column1, 2 AS column2 UNION ALL SELECT 3 AS column1, 4 AS column2 \
                 UNION ALL SELECT 5 AS column1, 6 AS column2) AS v (x, y)",
            ),
            (
                "INSERT INTO t WITH v AS (VALUES (1)) SELECT * FROM v WHERE a IN (VALUES (2))",
                "INSERT INTO t WITH v AS (SELECT 1 AS column1) SELECT * FROM v WHERE a IN (SELECT 2 AS column1)",
            ),
            ("INSERT INTO t SELECT 1 UNION VALUES (2)", "INSERT INTO t SELECT 1 UNION SELECT 2 AS column1"),
            (
                "CREATE TABLE t (a INT) AS SELECT x FROM (VALUES (1.7)) AS v (x)",
                "CREATE TABLE t (a INT) AS SELECT x FROM (SELECT 1.7 AS column1) AS v (x)",
            ),
        ] {
            let Statement::DataFusion(statement) = read(sql) else { panic!("{sql}") };
            assert_eq!(statement.to_string(), meant);
        }
    }

    #[test]
    fn too_many_are_refused() {
        let rows = (0..2_000).map(|row| format!("({row})")).collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO t SELECT x FROM (VALUES {rows}) AS v (x)");
        assert!(refuse_ignored(&read(&sql), &sql).is_err());
        let sql = format!("INSERT INTO t VALUES {rows}");
        assert!(refuse_ignored(&read(&sql), &sql).is_ok());
    }
}
