//! [`as_query`]: what lists schemas, tables and views is a query over what the catalog tells of itself.
//!
//! ```text
//!   SHOW SCHEMAS                            information_schema.schemata
//!   SHOW TABLES [FROM schema] [LIKE 'x%']   information_schema.tables
//!   SHOW VIEWS ..                           the same
//!   SHOW MATERIALIZED VIEWS ..              system.tables
//!   SHOW DATABASES                          the one there is
//! ```
//!
//! Plain `SHOW TABLES` stays DataFusion's, which knows nothing else of these.

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::config::ConfigOptions;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast::{
    self, ShowStatementFilter, ShowStatementFilterPosition, ShowStatementIn, ShowStatementInParentType,
    ShowStatementOptions,
};

use crate::statement::StatementCatalog;
use crate::use_schema::{check_schema, named};
use crate::{EngineError, ErrorKind, Result, system};

/// Puts a query in the place of a statement that lists something, also where it is explained.
pub(crate) fn as_query(statement: &mut DFStatement, catalog: &StatementCatalog, config: &ConfigOptions) -> Result<()> {
    let query = match statement {
        DFStatement::Explain(explain) => return as_query(&mut explain.statement, catalog, config),
        DFStatement::Statement(inner) => match query_of(inner, catalog, config)? {
            Some(query) => query,
            None => return Ok(()),
        },
        _ => return Ok(()),
    };
    let read = sql::parse(&query, &ParseOptions::default())?;
    let Some(Statement::DataFusion(query)) = read else {
        return Err(EngineError::new(ErrorKind::Internal, "a list was read as something else"));
    };
    *statement = *query;
    Ok(())
}

/// The query that a statement is, if it lists something.
fn query_of(statement: &ast::Statement, catalog: &StatementCatalog, config: &ConfigOptions) -> Result<Option<String>> {
    let database = quoted(&config.catalog.default_catalog);
    let own = [system::SCHEMA, INFORMATION_SCHEMA].map(quoted).join(", ");
    let (list, options) = match statement {
        ast::Statement::ShowTables { terse, history, extended, full, external, show_options } => {
            let has_more = *terse || *history || *extended || *external;
            if !has_more && !*full && is_plain(show_options) {
                return Ok(None);
            }
            // The types that FULL asks for are always there.
            let list = List::new("SHOW TABLES", "* FROM information_schema.tables", "table_name");
            list.refuse_if(has_more)?;
            (list, show_options)
        }
        ast::Statement::ShowViews { terse, materialized: false, show_options } => {
            let mut list = List::new("SHOW VIEWS", "* FROM information_schema.tables", "table_name");
            list.refuse_if(*terse)?;
            list.conditions.push("table_type = 'VIEW'".to_string());
            // Those of the engine are shown to who asks for their schema.
            if show_options.show_in.is_none() {
                list.conditions.push(format!("table_schema NOT IN ({own})"));
            }
            (list, show_options)
        }
        ast::Statement::ShowViews { terse, materialized: true, show_options } => {
            let columns = format!("{database} AS table_catalog, table_schema, table_name, table_type");
            let from = format!("{columns} FROM {}.tables", system::SCHEMA);
            let mut list = List::new("SHOW MATERIALIZED VIEWS", from, "table_name");
            list.refuse_if(*terse)?;
            list.conditions.push("table_type = 'materialized view'".to_string());
            (list, show_options)
        }
        ast::Statement::ShowSchemas { terse, history, show_options } => {
            let list =
                List::new("SHOW SCHEMAS", "catalog_name, schema_name FROM information_schema.schemata", "schema_name");
            list.refuse_if(*terse || *history)?;
            (list, show_options)
        }
        ast::Statement::ShowDatabases { terse, history, show_options }
        | ast::Statement::ShowCatalogs { terse, history, show_options } => {
            let from = format!("* FROM (SELECT {database} AS database_name) AS databases");
            let list = List::new("SHOW DATABASES", from, "database_name");
            list.refuse_if(*terse || *history || show_options.show_in.is_some())?;
            (list, show_options)
        }
        _ => return Ok(None),
    };
    list.query(options, catalog, config).map(Some)
}

/// Whether nothing is asked for but the whole list.
fn is_plain(options: &ShowStatementOptions) -> bool {
    let ShowStatementOptions { show_in, starts_with, limit, limit_from, filter_position } = options;
    show_in.is_none() && starts_with.is_none() && limit.is_none() && limit_from.is_none() && filter_position.is_none()
}

/// A list, before it is known what of it is wanted.
struct List {
    statement: &'static str,
    /// `columns FROM table`
    from: String,
    /// What patterns are about.
    name: &'static str,
    conditions: Vec<String>,
}

impl List {
    fn new(statement: &'static str, from: impl Into<String>, name: &'static str) -> Self {
        Self { statement, from: from.into(), name, conditions: vec![] }
    }

    fn query(
        mut self,
        options: &ShowStatementOptions,
        catalog: &StatementCatalog,
        config: &ConfigOptions,
    ) -> Result<String> {
        let ShowStatementOptions { show_in, starts_with, limit, limit_from, filter_position } = options;
        self.refuse_if(starts_with.is_some() || limit.is_some() || limit_from.is_some())?;
        if let Some(place) = show_in {
            self.within(place, catalog, config)?;
        }
        if let Some(ShowStatementFilterPosition::Infix(filter) | ShowStatementFilterPosition::Suffix(filter)) =
            filter_position
        {
            self.conditions.push(match filter {
                ShowStatementFilter::Like(pattern) | ShowStatementFilter::NoKeyword(pattern) => {
                    format!("{} LIKE {}", self.name, quoted(pattern))
                }
                ShowStatementFilter::ILike(pattern) => format!("{} ILIKE {}", self.name, quoted(pattern)),
                ShowStatementFilter::Where(condition) => format!("({condition})"),
            });
        }
        let conditions = match self.conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", self.conditions.join(" AND ")),
        };
        let schema = if self.name == "table_name" { "table_schema, " } else { "" };
        Ok(format!("SELECT {}{conditions} ORDER BY {schema}{}", self.from, self.name))
    }

    /// What is in one schema, or in the database.
    fn within(&mut self, place: &ShowStatementIn, catalog: &StatementCatalog, config: &ConfigOptions) -> Result<()> {
        let is_database = match place.parent_type {
            None => self.name == "schema_name",
            Some(ShowStatementInParentType::Database) => true,
            Some(ShowStatementInParentType::Schema) if self.name == "table_name" => false,
            Some(_) => return self.refuse_if(true),
        };
        let Some(name) = &place.parent_name else { return self.refuse_if(true) };
        if let Some(schema) = named(name, is_database, catalog, config)? {
            check_schema(catalog, &schema)?;
            self.conditions.push(format!("table_schema = {}", quoted(&schema)));
        }
        Ok(())
    }

    /// Says what to write where there are more clauses than these.
    fn refuse_if(&self, more: bool) -> Result<()> {
        let Self { statement, from, name, .. } = self;
        match more {
            false => Ok(()),
            true => Err(EngineError::new(ErrorKind::Unsupported, format!("{statement} takes no such clause"))
                .with_hint(format!("write a query: SELECT {from} WHERE {name} LIKE '..'"))),
        }
    }
}

/// A text as SQL has it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
