//! Paths in the text of a program that is kept: what it reads must not depend on where its reader stands.

use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{Location, TableName, looks_like_location};
use nectarine_planner::sql::{self, ParseOptions, Statement, rename_relations};
use sqlparser::ast;

use crate::Result;
use crate::command::StatementRun;

/// A query as it is kept.
pub(super) struct Kept {
    /// To plan it.
    pub(super) query: Box<ast::Query>,
    /// Its text.
    pub(super) text: String,
    /// The statement that made it, with the same paths.
    pub(super) definition: String,
}

/// The query with paths that begin at the root, where it has others.
pub(super) fn absolute(run: &StatementRun<'_>, query: Box<ast::Query>, text: &str) -> Result<Kept> {
    let definition = run.text.trim().trim_end_matches(';');
    let options = ParseOptions::from(run.state.config_options().as_ref());
    let base = std::env::current_dir()?;
    let default_schema = &run.state.config_options().catalog.default_schema;
    let rename = |name: &str| {
        let known = TableName::new(default_schema.as_str(), name);
        if !looks_like_location(name) || run.catalog.view.tables.contains_key(&known) || run.session.has_table(&known) {
            return None;
        }
        let location = Location::parse(name, &base).ok()?;
        (location.is_local() && location.as_str() != name).then(|| location.to_string())
    };
    let renamed = rename_relations(text, &options, rename)?;
    if renamed != text
        && let Some(Statement::DataFusion(statement)) = sql::parse(&renamed, &options)?
        && let DFStatement::Statement(statement) = *statement
        && let ast::Statement::Query(query) = *statement
    {
        return Ok(Kept { query, definition: definition.replacen(text, &renamed, 1), text: renamed });
    }
    Ok(Kept { query, text: text.to_string(), definition: definition.to_string() })
}
