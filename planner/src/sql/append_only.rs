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
    hint: &'static str,
}

impl Change {
    fn error(self, sql: &str) -> PlannerError {
        let table = self.table.as_ref().map_or_else(|| "t".to_owned(), ToString::to_string);
        let position = self.table.and_then(|name| offset_of_span(sql, name.span()));
        PlannerError::AppendOnly { attempted: self.attempted, hint: self.hint.replace("{t}", &table), table, position }
    }
}

impl Visitor for Changes {
    type Break = Change;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<Change> {
        let change = match statement {
            ast::Statement::Update(update) => Change {
                attempted: "update",
                table: table_of(&update.table),
                hint: "write the table anew: CREATE OR REPLACE TABLE {t} AS SELECT .., CASE WHEN .. THEN .. ELSE .. END AS .. FROM {t}",
            },
            ast::Statement::Delete(delete) => {
                let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
                Change {
                    attempted: "delete from",
                    table: from.first().and_then(table_of),
                    hint: "write the table anew with the rows to keep: CREATE OR REPLACE TABLE {t} AS SELECT * FROM {t} WHERE NOT (..)",
                }
            }
            ast::Statement::Truncate(truncate) => Change {
                attempted: "truncate",
                table: truncate.table_names.first().map(|target| target.name.clone()),
                hint: "write the table anew without rows: CREATE OR REPLACE TABLE {t} AS SELECT * FROM {t} LIMIT 0",
            },
            ast::Statement::Merge(merge) => Change {
                attempted: "merge into",
                table: name_of(&merge.table),
                hint: "INSERT INTO {t} the rows that are new, or write the table anew: CREATE OR REPLACE TABLE {t} AS SELECT ..",
            },
            ast::Statement::Insert(insert) if insert.overwrite || insert.replace_into || insert.or.is_some() => {
                Change {
                    attempted: if insert.overwrite { "overwrite" } else { "replace rows of" },
                    table: match &insert.table {
                        TableObject::TableName(name) => Some(name.clone()),
                        _ => None,
                    },
                    hint: "append with INSERT INTO {t}, or write the table anew: CREATE OR REPLACE TABLE {t} AS SELECT ..",
                }
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
