//! Tables and views where a statement or command names one, written so that they are found.
//!
//! ```text
//!   from cl        ->  clicks            in the current schema
//!   from cl        ->  demo.clicks       in another one
//!   from sys       ->  system.           what the engine knows of itself is offered behind its schema only
//!   from system.q  ->  system.queries
//! ```

use std::collections::BTreeSet;

use nectarine_engine::Names;
use rustyline::completion::Pair;

use super::{CANDIDATES_MAX, bare, identifier, pair};

/// Schemas whose tables are the engine's own.
const OWN_SCHEMAS: [&str; 2] = ["information_schema", "system"];

/// The tables of `information_schema`, which describe all others and not themselves.
const INFORMATION: [&str; 7] = ["columns", "df_settings", "parameters", "routines", "schemata", "tables", "views"];

/// What is done with the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    /// Changed or dropped: none of the engine's own.
    Change,
}

/// Candidates for a table's name; of its last part `prefix` is typed, before which a schema may stand.
pub(super) fn relations(
    schema: Option<&str>,
    prefix: &str,
    names: &Names,
    what_for: Use,
    others: Vec<String>,
) -> Vec<Pair> {
    let is_own = |schema: &str| OWN_SCHEMAS.iter().any(|own| own.eq_ignore_ascii_case(schema));
    let begun = bare(prefix).to_lowercase();
    let matches = |name: &str| name.to_lowercase().starts_with(&begun);
    let write = |name: &str| identifier(prefix, name);
    let mut found = BTreeSet::new();
    if let Some(schema) = schema {
        if what_for == Use::Change && is_own(schema) {
            return Vec::new();
        }
        let tables = names.tables.iter().filter(|(own, _, _)| own.eq_ignore_ascii_case(schema));
        found.extend(tables.filter(|(_, table, _)| matches(table)).map(|(_, table, _)| write(table)));
        if schema.eq_ignore_ascii_case(OWN_SCHEMAS[0]) {
            found.extend(INFORMATION.iter().filter(|table| matches(table)).map(|table| write(table)));
        }
        return found.into_iter().take(CANDIDATES_MAX).map(pair).collect();
    }
    let mut listed = BTreeSet::new();
    for (schema, table, _) in names.tables.iter().filter(|(schema, _, _)| !is_own(schema)) {
        if *schema == names.current_schema {
            found.extend(matches(table).then(|| write(table)));
            continue;
        }
        listed.insert(schema.as_str());
        if matches(table) || matches(schema) {
            found.insert(format!("{}.{}", write(schema), write(table)));
        }
    }
    // A schema is offered for what is in it; one whose tables are offered already need not be.
    let schemas = names.schemas.iter().filter(|schema| matches(schema) && !listed.contains(schema.as_str()));
    let schemas = schemas.filter(|schema| what_for == Use::Read || !is_own(schema));
    let schemas = schemas.filter(|schema| !begun.is_empty() || **schema != names.current_schema);
    found.extend(schemas.map(|schema| format!("{}.", write(schema))));
    found.extend(others.iter().filter(|name| matches(name)).map(|name| write(name)));
    found.into_iter().take(CANDIDATES_MAX).map(pair).collect()
}
