//! What a query means at this moment.
//!
//! Keeps true   nothing is frozen that the statement may not read: each scan looks, with the rights that it has in the statement, before
//!              any extent is asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use nectarine_catalog::{DerivedTable, Extent, Frozen, FrozenRelation, FrozenStream, TableDef, TableKind};
use nectarine_planner::canonical::changes_rows;
use nectarine_planner::{StreamTable, Streams};

use crate::access::each_table;
use crate::broken_view::BrokenView;
use crate::command::StatementRun;
use crate::dependencies::{mentioned, with_called};
use crate::named::NamedTable;
use crate::{EngineError, ErrorKind, Result};

/// All that `query` means, and the extents of its streams. `plan` is the query, planned by this statement.
pub(crate) async fn freeze(
    run: &StatementRun<'_>,
    query: String,
    plan: &LogicalPlan,
) -> Result<(DerivedTable, Vec<Arc<Extent>>)> {
    check_tables(plan)?;
    check_scans(run.state, plan).await?;
    let config = run.state.config_options();
    let view = &run.catalog.view;
    let default_schema = config.catalog.default_schema.clone();
    let mut functions = mentioned(view, &query, &default_schema, config).functions;
    let mut relations = vec![];
    let mut extents = vec![];
    for (name, table) in run.catalog.resolved() {
        let what = match &table.kind {
            kind if let Some((query, default_schema)) = kind.as_view() => {
                functions.extend(mentioned(view, query, default_schema, config).functions);
                Frozen::View { query: query.to_string(), default_schema: default_schema.to_string() }
            }
            TableKind::Derived(_) => Frozen::Derived { id: table.id },
            _ => {
                let list = run.catalog.extents(&table).await?;
                extents.extend(list.iter().cloned());
                Frozen::Stream(Box::new(stream(&table, list.len())))
            }
        };
        relations.push(FrozenRelation { name, what });
    }
    let functions = with_called(view, functions, config);
    let derived = DerivedTable {
        query,
        default_schema,
        settings: settings(config),
        now_ns: now_ns(run),
        relations,
        functions: of_names(view, &functions),
        pinned: None,
    };
    Ok((derived, extents))
}

fn stream(table: &TableDef, n_extents: usize) -> FrozenStream {
    FrozenStream {
        id: table.id,
        kind: table.kind.clone(),
        schema: Arc::clone(&table.schema),
        primary_keys: table.primary_keys.clone(),
        unique_keys: table.unique_keys.clone(),
        n_extents,
    }
}

fn of_names(view: &crate::catalog_view::CatalogView, names: &BTreeSet<String>) -> Vec<nectarine_catalog::Function> {
    view.functions.iter().filter(|function| names.contains(&function.name)).cloned().collect()
}

/// When the statement began.
fn now_ns(run: &StatementRun<'_>) -> i64 {
    let started = run.state.execution_props().query_execution_start_time;
    started.and_then(|time| time.timestamp_nanos_opt()).unwrap_or_default()
}

/// Whether a setting decides what a text means, or which rows a plan gives.
pub(super) fn is_frozen(key: &str) -> bool {
    changes_rows(key) || key.starts_with("datafusion.sql_parser.")
}

/// Settings that are not the default and may change rows.
fn settings(config: &ConfigOptions) -> BTreeMap<String, String> {
    let defaults: BTreeMap<String, Option<String>> =
        ConfigOptions::default().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let is_set = |key: &String, value: &String| is_frozen(key) && defaults.get(key) != Some(&Some(value.clone()));
    let entries = config.entries().into_iter().filter_map(|entry| Some((entry.key, entry.value?)));
    entries.filter(|(key, value)| is_set(key, value)).collect()
}

/// Only what is stored can be read again later, and only what can be read now.
fn check_tables(plan: &LogicalPlan) -> Result<()> {
    let mut refused = None;
    each_table(plan, &mut |scan, provider| {
        if let Some(broken) = provider.downcast_ref::<BrokenView>() {
            return Err(broken.reason());
        }
        if !provider.is::<StreamTable>() && !provider.is::<NamedTable>() {
            refused.get_or_insert_with(|| scan.table_name.to_string());
        }
        Ok(())
    })?;
    match refused {
        None => Ok(()),
        Some(name) => {
            let message = format!("a derived table cannot be made from \"{name}\", whose rows are not kept in extents");
            Err(EngineError::new(ErrorKind::Unsupported, message)
                .with_hint("CREATE TABLE .. AS keeps the rows themselves"))
        }
    }
}

/// Plans all scans, each of which looks whether it may read its table: what is frozen is read with no more questions asked.
async fn check_scans(state: &SessionState, plan: &LogicalPlan) -> Result<()> {
    let state = SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(vec![]).build();
    Box::pin(state.create_physical_plan(plan)).await?;
    Ok(())
}
