//! `USE schema`: where names without a schema are looked for.

use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{SetVariable, Statement as PlanStatement};
use sqlparser::ast::{ObjectName, Use};

use crate::command::StatementRun;
use crate::ddl::normal;
use crate::statement::StatementCatalog;
use crate::{Answer, EngineError, ErrorKind, Result};

/// The setting that it changes.
const DEFAULT_SCHEMA: &str = "datafusion.catalog.default_schema";

/// `USE schema`, `USE database.schema`. `USE database` changes nothing: there is one.
pub(crate) fn use_schema(run: &StatementRun<'_>, used: &Use) -> Result<Answer> {
    let tag = "USE";
    let (name, is_database) = match used {
        Use::Object(name) | Use::Schema(name) => (name, false),
        Use::Database(name) | Use::Catalog(name) => (name, true),
        _ => {
            let message = format!("{used} is not offered");
            return Err(EngineError::new(ErrorKind::Unsupported, message).with_hint("USE takes a schema"));
        }
    };
    let Some(schema) = named(name, is_database, run.catalog, run.state.config_options())? else {
        return Ok(run.command(tag));
    };
    check_schema(run.catalog, &schema)?;
    let set = SetVariable { variable: DEFAULT_SCHEMA.to_string(), value: schema };
    run.change_state(PlanStatement::SetVariable(set))?;
    run.session.inner.changed.lock().insert(DEFAULT_SCHEMA.to_string());
    Ok(run.command(tag))
}

/// The schema that a name means, whether it is there or not; `None` for all of the database.
pub(crate) fn named(
    name: &ObjectName,
    is_database: bool,
    catalog: &StatementCatalog,
    config: &ConfigOptions,
) -> Result<Option<String>> {
    let database = &config.catalog.default_catalog;
    let words = name.0.iter().map(|part| part.as_ident().map(|ident| normal(ident, config)));
    let words: Option<Vec<String>> = words.collect();
    match words.as_deref() {
        Some([given]) if is_database => check_database(given, database).map(|()| None),
        // A schema may have the name of the database.
        Some([given]) if given == database && !catalog.view.has_schema(given) => Ok(None),
        Some([schema]) => Ok(Some(schema.clone())),
        Some([given, schema]) if !is_database => check_database(given, database).map(|()| Some(schema.clone())),
        _ => Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" is not the name of a schema"))),
    }
}

/// Fails unless a database is the one of the home.
pub(crate) fn check_database(given: &str, database: &str) -> Result<()> {
    match given == database {
        true => Ok(()),
        false => Err(EngineError::new(ErrorKind::Sql, format!("database \"{given}\" does not exist"))
            .with_hint(format!("the database of this home is called \"{database}\""))),
    }
}

/// Fails unless there is a schema of that name for who runs the statement.
pub(crate) fn check_schema(catalog: &StatementCatalog, name: &str) -> Result<()> {
    let names = catalog.schema_names();
    // Everybody may go back to where he began, also if there is nothing for him.
    let first = &catalog.shared.template.config_options().catalog.default_schema;
    match name == first || names.iter().any(|known| known == name) {
        true => Ok(()),
        false => Err(EngineError::missing_schema(name, &names)),
    }
}
