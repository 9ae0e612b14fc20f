//! [`Manner`]: what becomes of a statement whose server died before its end was written down.
//!
//! ```text
//!   free      queries, EXPLAIN, SHOW                        run again: nobody sees a difference, and the cache has what was finished
//!   session   SET, RESET, USE, PREPARE                      run again in every session that goes on with the job, also when it has ended
//!   joined    INSERT and COPY .. FROM into a table of ours, its effect and its end are one transaction: if there is no end,
//!             CREATE TABLE [AS]                             there is no effect
//!   again     OR REPLACE, IF [NOT] EXISTS, REFRESH, GRANT,  run again: doing it twice is the same as doing it once
//!             COPY .. TO one file
//!   once      everything else                               never run again: that it begins is written down before
//! ```

use std::path::Path;

use datafusion::sql::parser::{CopyToStatement, Statement as DFStatement};
use nectarine_planner::sql::{AccessStatement, JobStatement, ReportStatement, Statement};
use sqlparser::ast::{self, ObjectName};

use crate::copy_place::is_stream;

/// What becomes of a statement whose server died.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// It has no effect.
    Free,
    /// It changes its session only.
    Session,
    /// Its effect and its end are one transaction.
    Joined,
    /// It can be done twice.
    Again,
    /// It cannot.
    Once,
}

/// That of a statement; `is_external` tells whether a table's files are others'.
pub(super) fn manner(statement: &Statement, is_external: &dyn Fn(&ObjectName) -> bool) -> Manner {
    let again_if = |repeatable: bool| if repeatable { Manner::Again } else { Manner::Once };
    let into = |table: &ObjectName| if is_external(table) { Manner::Once } else { Manner::Joined };
    match statement {
        Statement::DataFusion(statement) => of_datafusion(statement, is_external),
        Statement::CopyFrom(copy) => into(&copy.table),
        Statement::CreateView(create) => again_if(create.or_replace || create.if_not_exists),
        Statement::CreateDerived(create) => again_if(create.or_replace || create.if_not_exists),
        Statement::CreateFunction(create) => again_if(create.or_replace || create.if_not_exists),
        Statement::Drop(drop) => again_if(drop.if_exists),
        Statement::DropFunction(drop) => again_if(drop.if_exists),
        Statement::Refresh(_) | Statement::Purge(_) | Statement::Pin(_) => Manner::Again,
        Statement::ShowCreate(_)
        | Statement::ExplainReuse(_)
        | Statement::ExplainStages(_)
        | Statement::ExplainProvenance(_)
        | Statement::Verify(_) => Manner::Free,
        Statement::Access(AccessStatement::Rights { .. }) => Manner::Again,
        Statement::Report(statement) => match statement {
            ReportStatement::Show | ReportStatement::ShowCreate(_) => Manner::Free,
            ReportStatement::Create { or_replace, if_not_exists, dry_run, .. } => {
                again_if(*or_replace || *if_not_exists || *dry_run)
            }
            ReportStatement::Drop { if_exists, .. } => again_if(*if_exists),
            ReportStatement::Pause { .. } => Manner::Again,
            _ => Manner::Once,
        },
        Statement::Job(statement) => match statement {
            JobStatement::ShowAll | JobStatement::Show(_) | JobStatement::Result(_) => Manner::Free,
            JobStatement::Drop { if_exists, .. } => again_if(*if_exists),
            JobStatement::Cancel(_) | JobStatement::Submit { .. } => Manner::Once,
        },
        Statement::PinDerived(_)
        | Statement::Unpin(_)
        | Statement::AlterTableRename(_)
        | Statement::AlterTableSetSchema(_)
        | Statement::Access(_) => Manner::Once,
    }
}

fn of_datafusion(statement: &DFStatement, is_external: &dyn Fn(&ObjectName) -> bool) -> Manner {
    let again_if = |repeatable: bool| if repeatable { Manner::Again } else { Manner::Once };
    match statement {
        DFStatement::Reset(_) => Manner::Session,
        // With ANALYZE it is run.
        DFStatement::Explain(explain) => of_datafusion(&explain.statement, is_external),
        DFStatement::CreateExternalTable(create) => again_if(create.or_replace || create.if_not_exists),
        DFStatement::CopyTo(copy) => again_if(is_one_file(copy)),
        DFStatement::Statement(inner) => match inner.as_ref() {
            ast::Statement::Query(_)
            | ast::Statement::ShowVariable { .. }
            | ast::Statement::ShowVariables { .. }
            | ast::Statement::ShowTables { .. }
            | ast::Statement::ShowViews { .. }
            | ast::Statement::ShowSchemas { .. }
            | ast::Statement::ShowDatabases { .. }
            | ast::Statement::ShowCatalogs { .. }
            | ast::Statement::ShowColumns { .. }
            | ast::Statement::ShowFunctions { .. }
            | ast::Statement::ExplainTable { .. } => Manner::Free,
            ast::Statement::Set(_)
            | ast::Statement::Use(_)
            | ast::Statement::Prepare { .. }
            | ast::Statement::Deallocate { .. } => Manner::Session,
            ast::Statement::Insert(insert) => match &insert.table {
                ast::TableObject::TableName(name) if is_external(name) => Manner::Once,
                ast::TableObject::TableName(_) => Manner::Joined,
                _ => Manner::Once,
            },
            // What was prepared is a query or an INSERT; one into files of others is refused.
            ast::Statement::Execute { .. } | ast::Statement::CreateTable(_) => Manner::Joined,
            ast::Statement::CreateSchema { if_not_exists, .. } => again_if(*if_not_exists),
            ast::Statement::Drop { if_exists, .. } => again_if(*if_exists),
            _ => Manner::Once,
        },
    }
}

/// Whether a COPY makes one file, which replaces the one before.
fn is_one_file(copy: &CopyToStatement) -> bool {
    let name = copy.target.rsplit('/').next().unwrap_or_default();
    let path = Path::new(&copy.target);
    copy.partitioned_by.is_empty() && Path::new(name).extension().is_some() && !is_stream(path) && !path.is_dir()
}

#[cfg(test)]
mod tests {
    use nectarine_planner::sql::{self, ParseOptions};

    use super::*;

    fn of(sql: &str) -> Manner {
        let statement = sql::parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        manner(&statement.expect("a statement"), &|name| name.to_string() == "files")
    }

    #[test]
    fn what_is_done_again_and_what_is_not() {
        for (manner, texts) in [
            (
                Manner::Free,
                &["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)", "EXPLAIN SELECT 1", "SHOW JOBS"][..],
            ),
            (Manner::Session, &["SET a.b = 1", "RESET a.b", "USE s", "PREPARE p AS SELECT 1", "DEALLOCATE p"]),
            (
                Manner::Joined,
                &[
                    "INSERT INTO t VALUES (1)",
                    "COPY t FROM '/x.csv'",
                    "CREATE TABLE t (a INT)",
                    "CREATE OR REPLACE TABLE t AS SELECT 1",
                    "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
                    "EXECUTE p(1)",
                ],
            ),
            (
                Manner::Again,
                &[
                    "CREATE OR REPLACE VIEW v AS SELECT 1",
                    "DROP TABLE IF EXISTS t",
                    "CREATE SCHEMA IF NOT EXISTS s",
                    "REFRESH MATERIALIZED VIEW v",
                    "GRANT SELECT ON t TO bob",
                    "COPY t TO '/x/y.csv'",
                ],
            ),
            (
                Manner::Once,
                &[
                    "INSERT INTO files VALUES (1)",
                    "COPY files FROM '/x.csv'",
                    "CREATE VIEW v AS SELECT 1",
                    "DROP TABLE t",
                    "ALTER TABLE t RENAME TO u",
                    "CREATE SCHEMA s",
                    "COPY t TO '/x/folder/' STORED AS PARQUET",
                    "RUN REPORT r",
                ],
            ),
        ] {
            for text in texts {
                assert_eq!(of(text), manner, "{text}");
            }
        }
    }
}
