//! [`Statement`]: one statement, told apart by who carries it out.
//!
//! What DataFusion's planner carries well stays DataFusion's. The rest is what the engine does itself, because the
//! planner has no word for it (`COPY t FROM`), refuses it (`ALTER TABLE`), or loses what must be kept (the text of a
//! view).

use datafusion::sql::parser::Statement as DFStatement;
use sqlparser::ast::{self, Ident, ObjectName};

use super::access::AccessStatement;
use super::job::JobStatement;
use super::report::ReportStatement;

/// One statement of SQL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Statement {
    /// For DataFusion's planner: queries, `INSERT`, `CREATE [EXTERNAL] TABLE`, `COPY .. TO`, `EXPLAIN`, `SET`, ..
    DataFusion(Box<DFStatement>),
    /// `COPY t FROM 'file'`.
    CopyFrom(CopyFrom),
    /// `CREATE VIEW`, `CREATE MATERIALIZED VIEW`.
    CreateView(Box<CreateView>),
    /// `CREATE DERIVED TABLE`.
    CreateDerived(Box<CreateDerived>),
    /// `REFRESH MATERIALIZED VIEW`.
    Refresh(ObjectName),
    /// `ALTER DERIVED TABLE .. SET PINNED`.
    PinDerived(PinDerived),
    /// `DROP TABLE`, `DROP VIEW`, `DROP MATERIALIZED VIEW`, `DROP DERIVED TABLE`.
    Drop(Drop),
    /// `CREATE FUNCTION`. Keep the statement's text to read it again.
    CreateFunction(Box<ast::CreateFunction>),
    /// `DROP FUNCTION`.
    DropFunction(ast::DropFunction),
    /// `ALTER TABLE .. RENAME TO`, `ALTER VIEW .. RENAME TO`.
    AlterTableRename(AlterTableRename),
    /// `ALTER TABLE .. SET SCHEMA`, `ALTER VIEW .. SET SCHEMA`.
    AlterTableSetSchema(AlterTableSetSchema),
    /// `SHOW CREATE TABLE` and the like.
    ShowCreate(ShowCreate),
    /// `EXPLAIN REUSE statement`.
    ExplainReuse(Box<DFStatement>),
    /// `EXPLAIN STAGES statement`.
    ExplainStages(Box<DFStatement>),
    /// `EXPLAIN PROVENANCE statement | ENTRY 'fingerprint' | name | ALL`.
    ExplainProvenance(Subject),
    /// `PURGE DERIVED FROM table | 'table, file, glob or URL'`.
    Purge(PurgeSource),
    /// `VERIFY statement | ENTRY 'fingerprint' | name | ALL [SAMPLE n PERCENT]`.
    Verify(Subject),
    /// `PIN query | ENTRY 'fingerprint' | MATERIALIZED VIEW name`.
    Pin(PinTarget),
    /// `UNPIN query | ENTRY 'fingerprint' | MATERIALIZED VIEW name`.
    Unpin(PinTarget),
    /// About users, roles and rights.
    Access(AccessStatement),
    /// About reports.
    Report(ReportStatement),
    /// About jobs that are left to the servers.
    Job(JobStatement),
}

/// A result that is to stay, or may go again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PinTarget {
    /// The answer to a query.
    Query {
        /// To plan it.
        statement: Box<DFStatement>,
        /// As it was written.
        text: String,
    },
    /// One cached result, by the beginning of its fingerprint.
    Entry(String),
    /// What a materialized view computes.
    View(ObjectName),
}

/// What a statement about results is about.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// The answer to a query, and all that it is made of.
    Statement(Box<DFStatement>),
    /// One cached result, by the beginning of its fingerprint.
    Entry(String),
    /// A share of all cached results, in percent.
    All(Percent),
}

/// A share, in percent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Percent(pub f64);

impl Eq for Subject {}

/// What derived data comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PurgeSource {
    /// A table.
    Table(ObjectName),
    /// A table, a file, a folder, a glob or a URL, in quotes.
    Text(String),
}

/// What a name in a statement stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// `TABLE`
    Table,
    /// `VIEW`
    View,
    /// `MATERIALIZED VIEW`
    MaterializedView,
    /// `DERIVED TABLE`
    DerivedTable,
}

impl Relation {
    /// As it is written in statements.
    pub fn keywords(self) -> &'static str {
        match self {
            Self::Table => "TABLE",
            Self::View => "VIEW",
            Self::MaterializedView => "MATERIALIZED VIEW",
            Self::DerivedTable => "DERIVED TABLE",
        }
    }
}

/// `COPY table [(columns)] FROM 'source' [STORED AS format] [options]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyFrom {
    /// The table to append to.
    pub table: ObjectName,
    /// Its columns in the order of the file; empty for all of them.
    pub columns: Vec<Ident>,
    /// Path, glob or URL, or [`STANDARD_INPUT`](super::STANDARD_INPUT).
    pub source: String,
    /// In upper case, if given; else the name of the file tells.
    pub format: Option<String>,
    /// Options as in `CREATE EXTERNAL TABLE`: lower case, `format.` before names without a dot. PostgreSQL's own names
    /// are translated (`HEADER` is `format.has_header`).
    pub options: Vec<(String, String)>,
}

/// `CREATE [OR REPLACE] [TEMPORARY] VIEW [IF NOT EXISTS] name [(columns)] AS query`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateView {
    /// The view.
    pub name: ObjectName,
    /// Names for the query's columns; empty to keep them.
    pub columns: Vec<Ident>,
    /// To plan it once, so that a view that cannot work is refused now.
    pub query: Box<ast::Query>,
    /// The query as it was written: what is kept.
    pub query_text: String,
    /// Replaces a view of the same name.
    pub or_replace: bool,
    /// Keeps a view of the same name.
    pub if_not_exists: bool,
    /// Gone with the session.
    pub temporary: bool,
    /// Whether its result is kept.
    pub materialized: bool,
    /// Whether that is made at once.
    pub with_data: bool,
}

/// `CREATE [OR REPLACE] DERIVED TABLE [IF NOT EXISTS] name [(columns)] AS query [WITH [NO] DATA]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateDerived {
    /// The table.
    pub name: ObjectName,
    /// Names for the query's columns; empty to keep them.
    pub columns: Vec<Ident>,
    /// To plan it.
    pub query: Box<ast::Query>,
    /// The query as it was written: what is kept.
    pub query_text: String,
    /// Replaces a derived table of the same name.
    pub or_replace: bool,
    /// Keeps a table of the same name.
    pub if_not_exists: bool,
    /// Whether its rows are made at once.
    pub with_data: bool,
}

/// `ALTER DERIVED TABLE [IF EXISTS] name SET PINNED`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PinDerived {
    /// The table.
    pub name: ObjectName,
    /// No error if it is not there.
    pub if_exists: bool,
}

/// `DROP TABLE|VIEW|MATERIALIZED VIEW|DERIVED TABLE [IF EXISTS] name, .. [CASCADE | RESTRICT]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Drop {
    /// What they were called in the statement.
    pub relation: Relation,
    /// Which ones: all or none.
    pub names: Vec<ObjectName>,
    /// No error if one is not there.
    pub if_exists: bool,
    /// Whether what depends on them goes as well.
    pub cascade: bool,
}

/// `ALTER TABLE|VIEW [IF EXISTS] name RENAME TO new_name`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlterTableRename {
    /// What it was called in the statement.
    pub relation: Relation,
    /// What is renamed.
    pub table: ObjectName,
    /// Its new name. With a schema, it moves there.
    pub new_name: ObjectName,
    /// No error if it is not there.
    pub if_exists: bool,
}

/// `ALTER TABLE|VIEW [IF EXISTS] name SET SCHEMA schema`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlterTableSetSchema {
    /// What it was called in the statement.
    pub relation: Relation,
    /// What is moved.
    pub table: ObjectName,
    /// Where it goes.
    pub schema: ObjectName,
    /// No error if it is not there.
    pub if_exists: bool,
}

/// `SHOW CREATE TABLE|VIEW|MATERIALIZED VIEW|DERIVED TABLE name`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShowCreate {
    /// What it was called in the statement.
    pub relation: Relation,
    /// Which one.
    pub name: ObjectName,
}

impl Statement {
    /// Which columns a `CREATE TABLE` declares NOT NULL, in order; empty where it declares none.
    pub fn not_null_columns(&self) -> Vec<bool> {
        let Self::DataFusion(statement) = self else { return vec![] };
        let DFStatement::Statement(statement) = statement.as_ref() else { return vec![] };
        let ast::Statement::CreateTable(create) = statement.as_ref() else { return vec![] };
        let is_not_null = |option: &ast::ColumnOptionDef| matches!(option.option, ast::ColumnOption::NotNull);
        create.columns.iter().map(|column| column.options.iter().any(is_not_null)).collect()
    }

    /// The statement of sqlparser inside, looking through `EXPLAIN`.
    pub(super) fn sql(&self) -> Option<&ast::Statement> {
        let (Self::DataFusion(statement)
        | Self::ExplainReuse(statement)
        | Self::ExplainStages(statement)
        | Self::ExplainProvenance(Subject::Statement(statement))
        | Self::Verify(Subject::Statement(statement))
        | Self::Pin(PinTarget::Query { statement, .. })
        | Self::Unpin(PinTarget::Query { statement, .. })) = self
        else {
            return None;
        };
        let mut statement = statement.as_ref();
        loop {
            match statement {
                DFStatement::Statement(statement) => return Some(statement),
                DFStatement::Explain(explain) => statement = &explain.statement,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, parse};

    #[test]
    fn columns_that_are_declared_not_null() {
        for (sql, expected) in [
            ("CREATE TABLE t (a INT NOT NULL, b INT, c INT DEFAULT 1 NOT NULL)", vec![true, false, true]),
            ("CREATE TABLE t (a INT NULL)", vec![false]),
            ("CREATE TABLE t (a INT, b INT NOT NULL) AS SELECT 1, 2", vec![false, true]),
            ("CREATE TABLE t AS SELECT 1 AS a", vec![]),
            ("SELECT 1 AS a INTO t", vec![]),
            ("DROP TABLE t", vec![]),
        ] {
            let statement = parse(sql, &ParseOptions::default()).expect(sql).expect(sql);
            assert_eq!(statement.not_null_columns(), expected, "{sql}");
        }
    }
}
