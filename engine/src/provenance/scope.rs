//! Which data a name or a location in a statement means: all that it is, and ever was, and copies of it, by whatever links it is
//! reached.

use std::collections::BTreeSet;

use nectarine_catalog::{
    DataScope, Location, TableDef, TableKind, TableName, folder_without_links, looks_like_location,
};
use nectarine_planner::sql::PurgeSource;

use super::copies::with_copies;
use crate::command::StatementRun;
use crate::ddl::reference;
use crate::{EngineError, ErrorKind, Result};

/// What the user meant: a table by its name, also one that is gone, or files.
pub(super) async fn scope(run: &StatementRun<'_>, source: &PurgeSource) -> Result<DataScope> {
    let scope = with_links(run, plain_scope(run, source).await?).await?;
    with_copies(run, scope).await
}

/// The scope with the places that its locations are without links, and with all links to files that results were made of. Each
/// folder is looked at once.
async fn with_links(run: &StatementRun<'_>, mut scope: DataScope) -> Result<DataScope> {
    let folders = run.session.inner.shared.store.local_folders().await?;
    let looked = tokio::task::spawn_blocking(move || {
        let real: Vec<Location> = scope.locations.iter().filter_map(Location::without_links).collect();
        scope.locations.extend(real);
        let link = |folder: String| folder_without_links(&folder).map(|real| (folder, real));
        scope.links = folders.into_iter().filter_map(link).collect();
        scope
    });
    looked.await.map_err(|error| EngineError::new(ErrorKind::Internal, "links were not looked at").with_source(error))
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
            let cache = &run.session.inner.shared.reuse.cache;
            let name = name.to_string();
            let mut gone = DataScope { table_names: vec![name.clone()], ..DataScope::default() };
            // It may have had other names: copies of it know it by its identifier.
            let known = cache.provenance(&cache.dependants(&gone).await?).await?;
            let inputs = known.iter().flat_map(|entry| &entry.inputs);
            let ids = inputs.filter(|input| input.table.as_ref() == Some(&name)).filter_map(|input| input.table_id);
            gone.tables = ids.collect::<BTreeSet<_>>().into_iter().collect();
            let gone = with_copies(run, gone).await?;
            let dependants = cache.dependants(&gone).await?;
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
