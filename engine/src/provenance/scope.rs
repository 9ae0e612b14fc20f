//! Which data a name or a location in a statement means: all that it is, and ever was, and copies of it.

use nectarine_catalog::{DataScope, Location, TableDef, TableKind, TableName, looks_like_location};
use nectarine_planner::sql::PurgeSource;

use super::copies::with_copies;
use crate::command::StatementRun;
use crate::ddl::reference;
use crate::{EngineError, ErrorKind, Result};

/// What the user meant: a table by its name, also one that is gone, or files.
pub(super) async fn scope(run: &StatementRun<'_>, source: &PurgeSource) -> Result<DataScope> {
    with_copies(run, plain_scope(run, source).await?).await
}

async fn plain_scope(run: &StatementRun<'_>, source: &PurgeSource) -> Result<DataScope> {
    match source {
        PurgeSource::Table(name) => {
            let name = run.table_name(&reference(name, run.state.config_options())?)?;
            match named(run, &name).await? {
                Some(scope) => Ok(scope),
                None => Err(unknown(&name.to_string())),
            }
        }
        PurgeSource::Text(text) => {
            let parts: Vec<&str> = text.split('.').collect();
            let name = match parts.as_slice() {
                [schema, table] => TableName::new(*schema, *table),
                _ => run.session.table_name(&datafusion::common::TableReference::bare(text.as_str())),
            };
            if let Some(table) = run.catalog.view.tables.get(&name) {
                return of_table(run, table);
            }
            if looks_like_location(text) || std::path::Path::new(text).exists() {
                // One that stood for a table has its own text for a name.
                let (locations, table_names) = (vec![location(text)?], vec![text.clone()]);
                return Ok(DataScope { locations, table_names, unknown: true, ..DataScope::default() });
            }
            named(run, &name).await?.ok_or_else(|| unknown(text))
        }
    }
}

/// A table that is there, or that some result was made of.
async fn named(run: &StatementRun<'_>, name: &TableName) -> Result<Option<DataScope>> {
    match run.catalog.view.tables.get(name) {
        Some(table) => of_table(run, table).map(Some),
        None => {
            let gone = DataScope { table_names: vec![name.to_string()], ..DataScope::default() };
            let gone = with_copies(run, gone).await?;
            let dependants = run.session.inner.shared.reuse.cache.dependants(&gone).await?;
            Ok((!dependants.is_empty()).then_some(DataScope { unknown: true, ..gone }))
        }
    }
}

fn of_table(run: &StatementRun<'_>, table: &TableDef) -> Result<DataScope> {
    // By its name too: one that was there before it, and was dropped or replaced, had another id.
    let (tables, table_names) = (vec![table.id], vec![table.name.to_string()]);
    let mut scope = DataScope { tables, table_names, unknown: true, ..DataScope::default() };
    match &table.kind {
        TableKind::External(source) => {
            for text in std::iter::once(&source.location).chain(&source.more_locations) {
                scope.locations.push(location(text)?);
            }
        }
        kind if kind.own_files().is_some() => {
            let folder = run.session.inner.shared.home.table(table.id);
            scope.locations.push(location(&folder.display().to_string())?);
        }
        kind => {
            let message = format!("\"{}\" is a {}", table.name, kind.word());
            return Err(EngineError::new(ErrorKind::Unsupported, message)
                .with_hint("it has no data of its own: name the tables that it reads"));
        }
    }
    Ok(scope)
}

pub(super) fn location(text: &str) -> Result<Location> {
    let here = std::env::current_dir().unwrap_or_else(|_| std::path::PathBuf::from("/"));
    Ok(Location::parse(text, &here)?)
}

fn unknown(name: &str) -> EngineError {
    EngineError::new(ErrorKind::Sql, format!("there is no table \"{name}\", and no cached result was made of one"))
        .with_hint("files are named by a path, a glob or a URL in quotes")
}
