//! [`Names`]: what there is to name, for completion and for "did you mean".

use std::sync::Arc;

use datafusion::execution::context::SessionState;

use crate::access::{Rights, Who};
use crate::session::SessionInner;
use crate::{EngineError, NameHints, Result, system};

/// Everything that can be named in a statement.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Schemas.
    pub schemas: Vec<String>,
    /// The one that names without a schema are looked for in.
    pub current_schema: String,
    /// Schema, table, columns.
    pub tables: Vec<(String, String, Vec<String>)>,
    /// Functions of all sorts.
    pub functions: Vec<String>,
    /// Settings.
    pub settings: Vec<String>,
}

pub(crate) async fn all(session: &SessionInner) -> Result<Names> {
    let view = session.shared.catalog.view().await?;
    let rights = Rights::new(session.who.clone(), Arc::clone(&view.access));
    let state = session.state.read().clone();
    let mut tables: Vec<(String, String, Vec<String>)> = view
        .tables
        .values()
        .filter(|table| rights.sees(table))
        .map(|table| {
            let columns = table.schema.fields().iter().map(|field| field.name().clone()).collect();
            (table.name.schema.clone(), table.name.name.clone(), columns)
        })
        .collect();
    for (name, schema) in system::columns().filter(|(name, _)| system::is_for(name, &rights)) {
        let columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        tables.push((system::SCHEMA.to_string(), name.to_string(), columns));
    }
    for (name, table) in session.tables.read().iter() {
        let columns = table.schema().fields().iter().map(|field| field.name().clone()).collect();
        tables.push((name.schema.clone(), name.name.clone(), columns));
    }
    let mut functions = function_names(&state);
    functions.extend(view.functions.iter().map(|function| function.name.clone()));
    functions.sort();
    functions.dedup();
    let is_seen = |schema: &&String| rights.sees_schema(schema, view.tables.values().cloned());
    let mut schemas: Vec<String> = view.schemas.iter().filter(is_seen).cloned().collect();
    schemas.extend([system::SCHEMA.to_string(), "information_schema".to_string()]);
    let settings = state.config_options().entries().into_iter().map(|entry| entry.key).collect();
    let current_schema = state.config_options().catalog.default_schema.clone();
    Ok(Names { schemas, current_schema, tables, functions, settings })
}

fn function_names(state: &SessionState) -> Vec<String> {
    let scalar = state.scalar_functions().keys();
    let aggregate = state.aggregate_functions().keys();
    let window = state.window_functions().keys();
    let table = state.table_functions().keys();
    scalar.chain(aggregate).chain(window).chain(table).cloned().collect()
}

/// Adds to an error where in the statement it is and which names are near.
pub(crate) async fn locate(session: &SessionInner, error: EngineError, sql: &str) -> EngineError {
    let Ok(names) = all(session).await else { return error };
    let hints = NameHints {
        tables: names.tables.iter().map(|(schema, table, _)| (schema.clone(), table.clone())).collect(),
        functions: names.functions,
        // Others have no business with what lies on this machine.
        sees_files: matches!(session.who, Who::Owner),
    };
    error.locate(sql, &hints)
}
