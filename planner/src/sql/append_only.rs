//! [`append_only`]: no statement changes rows that are there.
//!
//! Extents are immutable and streams only grow: what was computed over them stays true. Changing rows means writing
//! a new table.

use sqlparser::ast::{self, ObjectName, SetExpr, Spanned, TableFactor, TableObject, TableWithJoins, Visit, Visitor};
use std::ops::ControlFlow;

use super::position::offset_of_span;
use super::statement::Statement;
use crate::{PlannerError, Result};

/// Fails for `UPDATE`, `DELETE`, `TRUNCATE`, `MERGE` and the `INSERT`s that replace, also inside of `EXPLAIN`,
/// `PREPARE` and `WITH`.
pub fn append_only(statement: &Statement, sql: &str) -> Result<()> {
    let Some(statement) = statement.sql() else { return Ok(()) };
    match statement.visit(&mut Changes) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(change) => Err(change.error(sql)),
    }
}

struct Changes;

struct Change {
    attempted: &'static str,
    table: Option<ObjectName>,
    hint: String,
}

impl Change {
    /// `hint` gets the name of the table.
    fn new(attempted: &'static str, table: Option<ObjectName>, hint: impl FnOnce(&str) -> String) -> Self {
        let hint = hint(&shown(table.as_ref()));
        Self { attempted, table, hint }
    }

    fn error(self, sql: &str) -> PlannerError {
        let table = shown(self.table.as_ref());
        let position = self.table.and_then(|name| offset_of_span(sql, name.span()));
        PlannerError::AppendOnly { attempted: self.attempted, hint: self.hint, table, position }
    }
}

fn shown(table: Option<&ObjectName>) -> String {
    table.map_or_else(|| "t".to_owned(), ToString::to_string)
}

/// A table that is made of a query has neither DEFAULTs nor NOT NULL, unless its columns are given as well.
fn defaults(t: &str) -> String {
    format!(
        "; to keep DEFAULTs and NOT NULL, give the columns again: CREATE OR REPLACE TABLE {t} (a INT DEFAULT 1, ..) AS SELECT .."
    )
}

fn without_rows(t: &str) -> String {
    format!(
        "make the table anew without rows: CREATE OR REPLACE TABLE {t} (..) with its columns, or CREATE OR REPLACE TABLE {t} AS SELECT * FROM {t} LIMIT 0, which keeps neither DEFAULTs nor NOT NULL"
    )
}

impl Visitor for Changes {
    type Break = Change;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<Change> {
        let change = match statement {
            ast::Statement::Update(update) => Change::new("update", table_of(&update.table), |t| {
                let anew = format!(
                    "CREATE OR REPLACE TABLE {t} AS SELECT * REPLACE (CASE WHEN .. THEN .. ELSE a END AS a) FROM {t}"
                );
                format!("write the table anew: {anew}{}", defaults(t))
            }),
            ast::Statement::Delete(delete) => {
                let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
                Change::new("delete from", from.first().and_then(table_of), |t| match condition(delete, from) {
                    // Rows for which it is NULL stay as well: NOT (..) would lose them.
                    Some(condition) => format!(
                        "write the table anew with the rows to keep: CREATE OR REPLACE TABLE {t} AS SELECT * FROM {t} WHERE ({condition}) IS NOT TRUE{}",
                        defaults(t)
                    ),
                    None => without_rows(t),
                })
            }
            ast::Statement::Truncate(truncate) => {
                let table = truncate.table_names.first().map(|target| target.name.clone());
                Change::new("truncate", table, without_rows)
            }
            ast::Statement::Merge(merge) => Change::new("merge into", name_of(&merge.table), |t| {
                format!(
                    "INSERT INTO {t} the rows that are new, or write the table anew: CREATE OR REPLACE TABLE {t} AS SELECT .."
                )
            }),
            ast::Statement::Insert(insert) if insert.overwrite || insert.replace_into || insert.or.is_some() => {
                let attempted = if insert.overwrite { "overwrite" } else { "replace rows of" };
                let table = match &insert.table {
                    TableObject::TableName(name) => Some(name.clone()),
                    _ => None,
                };
                Change::new(attempted, table, |t| {
                    format!(
                        "append with INSERT INTO {t}, or write the table anew: CREATE OR REPLACE TABLE {t} AS SELECT .."
                    )
                })
            }
            _ => return ControlFlow::Continue(()),
        };
        ControlFlow::Break(change)
    }

    // `WITH .. UPDATE ..`: the visitor finds the statement in the query's body by itself, and this finds it first.
    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<Change> {
        match query.body.as_ref() {
            SetExpr::Insert(statement)
            | SetExpr::Update(statement)
            | SetExpr::Delete(statement)
            | SetExpr::Merge(statement) => self.pre_visit_statement(statement),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Which rows a `DELETE` is about, in words that can stand in a query over its table; `None` if about all.
fn condition(delete: &ast::Delete, from: &[TableWithJoins]) -> Option<String> {
    const LETTERS_MAX: usize = 200;
    let is_plain = matches!(
        from,
        [TableWithJoins { relation: TableFactor::Table { alias: None, .. }, joins }] if joins.is_empty()
    );
    let is_of_all = delete.selection.is_none() && delete.using.is_none() && delete.limit.is_none();
    let is_whole = is_plain && delete.tables.is_empty() && delete.using.is_none() && delete.limit.is_none();
    let text = delete.selection.as_ref().filter(|_| is_whole).map(ToString::to_string);
    let text = text.filter(|text| text.chars().count() <= LETTERS_MAX);
    (!is_of_all).then(|| text.unwrap_or_else(|| "..".to_owned()))
}

fn table_of(table: &TableWithJoins) -> Option<ObjectName> {
    name_of(&table.relation)
}

fn name_of(table: &TableFactor) -> Option<ObjectName> {
    match table {
        TableFactor::Table { name, .. } => Some(name.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{ParseOptions, parse};

    fn check(sql: &str) -> Result<()> {
        append_only(&parse(sql, &ParseOptions::default())?.expect("a statement"), sql)
    }

    #[test]
    fn says_what_to_do_instead() {
        for (sql, message, at) in [
            ("UPDATE t SET a = 1", "cannot update \"t\": tables are append-only", "t SET"),
            ("DELETE FROM s.t WHERE a = 1", "cannot delete from \"s.t\": tables are append-only", "s.t"),
            ("TRUNCATE TABLE t", "cannot truncate \"t\": tables are append-only", "t"),
            (
                "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
                "cannot merge into \"t\": tables are append-only",
                "t USING",
            ),
            ("INSERT OVERWRITE t SELECT 1", "cannot overwrite \"t\": tables are append-only", "t SELECT"),
            ("REPLACE INTO t VALUES (1)", "cannot replace rows of \"t\": tables are append-only", "t VALUES"),
            ("EXPLAIN DELETE FROM t", "cannot delete from \"t\": tables are append-only", "t"),
            ("PREPARE p AS DELETE FROM t", "cannot delete from \"t\": tables are append-only", "t"),
            ("WITH w AS (SELECT 1) DELETE FROM t", "cannot delete from \"t\": tables are append-only", "t"),
        ] {
            let error = check(sql).expect_err(sql);
            assert_eq!(error.to_string(), message, "{sql}");
            let position = error.position().expect(sql);
            assert!(sql[position..].starts_with(at), "{sql}: {}", &sql[position..]);
            assert!(error.hint().is_some_and(|hint| hint.contains("CREATE OR REPLACE TABLE")), "{sql}");
        }
    }

    #[test]
    fn hints_keep_rows_that_are_not_meant() {
        for (sql, hint) in [
            (
                "DELETE FROM s.t WHERE a = 1 OR b",
                "CREATE OR REPLACE TABLE s.t AS SELECT * FROM s.t WHERE (a = 1 OR b) IS NOT TRUE",
            ),
            ("DELETE FROM t AS x WHERE x.a = 1", "SELECT * FROM t WHERE (..) IS NOT TRUE"),
            ("DELETE FROM t USING u WHERE t.a = u.a", "SELECT * FROM t WHERE (..) IS NOT TRUE"),
            ("DELETE FROM t", "SELECT * FROM t LIMIT 0"),
            ("TRUNCATE t", "CREATE OR REPLACE TABLE t (..)"),
            ("UPDATE t SET a = 2 WHERE b", "SELECT * REPLACE (CASE WHEN .. THEN .. ELSE a END AS a) FROM t"),
        ] {
            let error = check(sql).expect_err(sql);
            assert!(error.hint().is_some_and(|told| told.contains(hint)), "{sql}: {:?}", error.hint());
        }
    }

    #[test]
    fn appending_is_fine() {
        for sql in [
            "INSERT INTO t VALUES (1)",
            "INSERT INTO t SELECT * FROM t",
            "CREATE OR REPLACE TABLE t AS SELECT 1",
            "DROP TABLE t",
            "SELECT 1",
        ] {
            check(sql).expect(sql);
        }
    }
}
