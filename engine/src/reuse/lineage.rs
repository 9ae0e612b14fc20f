//! What entries were made of, as the store keeps it.

use nectarine_catalog::{EntryLineage, InputLineage, TableId, looks_like_location};
use nectarine_planner::canonical::Prefix;
use nectarine_planner::reuse::MadeOf;

use crate::statement::StatementCatalog;

/// What a prefix was made of.
pub(super) fn lineage(catalog: &StatementCatalog, prefix: &Prefix, made_of: &MadeOf) -> EntryLineage {
    let mut inputs = vec![];
    for input in &prefix.inputs {
        let (table, table_id) = origin_of(catalog, &input.table);
        let reused = match &made_of.scanned {
            None => vec![],
            Some(scanned) => input.extents.iter().map(|extent| !scanned.contains(&extent.fingerprint)).collect(),
        };
        inputs.push(InputLineage { table, table_id, extents: std::sync::Arc::clone(&input.extents), reused });
    }
    // An entry that takes its own place was not made from itself.
    let origins = made_of.entries.iter().filter(|origin| **origin != prefix.key).copied().collect();
    EntryLineage { inputs, origins }
}

/// As [`table_of`]; but a table that a derived one reads as it was then is known by its name and its identifier of then.
fn origin_of(catalog: &StatementCatalog, name: &str) -> (String, Option<TableId>) {
    let tables = catalog.tables_read();
    match tables.iter().find(|table| table.name.to_string() == name) {
        Some(table) if !looks_like_location(&table.name.name) => (name.to_string(), Some(table.id)),
        _ => table_of(catalog, name),
    }
}

/// What a scan's table is called, and its identifier if the catalog has it; a location that stood for a table is none.
pub(super) fn table_of(catalog: &StatementCatalog, name: &str) -> (String, Option<TableId>) {
    let tables = catalog.tables_read();
    let Some(table) = tables.iter().find(|table| table.name.to_string() == name) else {
        return (name.to_string(), None);
    };
    match catalog.view.tables.get(&table.name) {
        Some(known) if known.id == table.id => (name.to_string(), Some(table.id)),
        _ => (table.name.name.clone(), None),
    }
}
