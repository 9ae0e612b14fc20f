//! Copies of derived tables that were made of purged data. They are the user's own, so they are named, not dropped; what was
//! made from them goes.
//!
//! Keeps true   a copy counts as long as a result may be left that was made from it: also if it, or a derived table between
//!              it and the data, was dropped since.

use std::collections::BTreeSet;

use nectarine_catalog::{DataScope, DerivedSource, DerivedSources, Location, TableId, TableKind, TableName};

use super::scope::location;
use crate::Result;
use crate::catalog_view::CatalogView;
use crate::command::StatementRun;
use crate::engine::Shared;
use crate::home::Home;

/// The scope with all derived tables in it that may hold rows of something in it, their copies in particular.
pub(super) async fn with_copies(run: &StatementRun<'_>, mut scope: DataScope) -> Result<DataScope> {
    let shared: &Shared = &run.session.inner.shared;
    let mut derived: Vec<DerivedSources> =
        run.catalog.view.tables.values().filter_map(|table| DerivedSources::of(table)).collect();
    // After those that are there: one that is dropped in between is seen here.
    derived.extend(shared.store.dropped_derived_tables().await?);
    for source in derived.iter_mut().flat_map(|table| &mut table.sources) {
        // The scope has the places without links.
        let real = source.locations.iter().filter_map(|text| location(text).ok()?.without_links());
        let real: Vec<String> = real.map(|location| location.to_string()).collect();
        source.locations.extend(real);
    }
    loop {
        let mut more = vec![];
        for table in derived.iter().filter(|table| !scope.tables.contains(&table.id)) {
            if table.sources.iter().any(|source| is_meant(source, &scope, &shared.home)) {
                more.push(table.id);
            }
        }
        if more.is_empty() {
            return Ok(scope);
        }
        for id in more {
            // Results over a copy know it by its id and by its files.
            scope.tables.push(id);
            scope.locations.push(folder(&shared.home, id)?);
        }
    }
}

/// Those of the scope's derived tables that have a copy now, by name, without one that the user named.
pub(super) fn pinned_copies(view: &CatalogView, scope: &DataScope) -> BTreeSet<TableName> {
    let is_named = |name: &TableName| scope.table_names.contains(&name.to_string());
    let pinned = view.tables.values().filter(|table| match &table.kind {
        TableKind::Derived(derived) => {
            derived.pinned.is_some() && scope.tables.contains(&table.id) && !is_named(&table.name)
        }
        _ => false,
    });
    pinned.map(|table| table.name.clone()).collect()
}

fn is_meant(source: &DerivedSource, scope: &DataScope, home: &Home) -> bool {
    scope.tables.contains(&source.id)
        || scope.table_names.contains(&source.name.to_string())
        || scope.table_names.contains(&source.name.name)
        || is_located(source, scope, home)
}

/// Whether a source's files may be among those of the scope. Which of its files the copy was made of is not known any more:
/// a table more is taken rather than one less.
fn is_located(source: &DerivedSource, scope: &DataScope, home: &Home) -> bool {
    let own = folder(home, source.id).ok();
    let own = own.iter().map(Location::as_str).chain(source.locations.iter().map(String::as_str));
    own.map(beginning).any(|own| {
        scope.locations.iter().map(|location| beginning(location.as_str())).any(|other| {
            let (own, other) = (own.trim_end_matches('/'), other.trim_end_matches('/'));
            own.starts_with(other) || other.starts_with(own)
        })
    })
}

/// Where a table has its own files.
fn folder(home: &Home, id: TableId) -> Result<Location> {
    location(&home.table(id).display().to_string())
}

/// A location up to where it becomes a pattern.
fn beginning(location: &str) -> &str {
    location.find(['*', '?', '[', '{']).map_or(location, |at| &location[..at])
}
