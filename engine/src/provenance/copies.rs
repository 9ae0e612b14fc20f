//! Pinned copies of derived tables that were made of purged data: they are the user's own, so they are named, not dropped.

use std::collections::BTreeSet;

use nectarine_catalog::{DataScope, DerivedTable, Frozen, FrozenStream, TableDef, TableId, TableKind, TableName};

use crate::catalog_view::CatalogView;

/// Derived tables with a copy of their own that may hold rows of something in the scope, by name.
pub(super) fn pinned_copies(view: &CatalogView, scope: &DataScope) -> BTreeSet<TableName> {
    let pinned = view.tables.values().filter(|table| match &table.kind {
        TableKind::Derived(derived) => derived.pinned.is_some() && holds(view, derived, scope, &mut BTreeSet::new()),
        _ => false,
    });
    pinned.map(|table| table.name.clone()).collect()
}

fn holds(view: &CatalogView, derived: &DerivedTable, scope: &DataScope, seen: &mut BTreeSet<TableId>) -> bool {
    derived.relations.iter().any(|relation| match &relation.what {
        Frozen::View { .. } => false,
        Frozen::Stream(stream) => {
            scope.tables.contains(&stream.id)
                || scope.table_names.contains(&relation.name.to_string())
                || scope.table_names.contains(&relation.name.name)
                || is_located(stream, scope)
        }
        Frozen::Derived { id } => {
            let below = view.tables.values().find(|table| table.id == *id).map(AsRef::as_ref);
            seen.insert(*id)
                && below.is_some_and(|TableDef { kind, .. }| match kind {
                    TableKind::Derived(below) => holds(view, below, scope, seen),
                    _ => false,
                })
        }
    })
}

/// Whether a stream's files may be among those of the scope. Which of its files the copy was made of is not known any more:
/// a table more is named rather than one less.
fn is_located(stream: &FrozenStream, scope: &DataScope) -> bool {
    let TableKind::External(source) = &stream.kind else { return false };
    let own = std::iter::once(&source.location).chain(&source.more_locations);
    let mut own = own.map(|location| beginning(location));
    own.any(|own| {
        scope.locations.iter().map(|location| beginning(location.as_str())).any(|other| {
            let (own, other) = (own.trim_end_matches('/'), other.trim_end_matches('/'));
            own.starts_with(other) || other.starts_with(own)
        })
    })
}

/// A location up to where it becomes a pattern.
fn beginning(location: &str) -> &str {
    location.find(['*', '?', '[', '{']).map_or(location, |at| &location[..at])
}
