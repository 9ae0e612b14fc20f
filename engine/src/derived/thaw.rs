//! The query of a derived table, planned with what it meant when the table was made.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::Schema;
use chrono::DateTime;
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::context::SessionState;
use datafusion::prelude::SessionConfig;
use nectarine_catalog::{
    DerivedTable, Extent, Frozen, FrozenRelation, FrozenStream, TableDef, TableId, TableKind, TableName,
};
use nectarine_executor::exact_aggregates;
use nectarine_planner::canonical::{Salt, prefixes};
use nectarine_planner::reuse::luck;

use super::freeze::is_frozen;
use super::order::ordered_totally;
use crate::catalog_view::{CatalogView, here};
use crate::named::NamedTable;
use crate::statement::{StatementCatalog, wrap};
use crate::{EngineError, ErrorKind};

/// The derived table as something to read. `extents` are those of its streams, one list after the other.
pub(crate) async fn thaw(
    catalog: &Arc<StatementCatalog>,
    table: &Arc<TableDef>,
    derived: &DerivedTable,
    extents: &[Arc<Extent>],
) -> Result<NamedTable> {
    let mut tables = BTreeMap::new();
    let mut pinned = HashMap::new();
    for (relation, list) in lists(catalog, derived, extents)? {
        let frozen = match &relation.what {
            Frozen::View { query, default_schema } => {
                let (query, default_schema) = (query.clone(), default_schema.clone());
                let kind = TableKind::View { query, default_schema, mentions: None };
                relation_of(TableId::new(), &relation.name, Arc::new(Schema::empty()), kind)
            }
            Frozen::Stream(stream) => {
                pinned.insert(stream.id, list);
                stream_of(stream, &relation.name)
            }
            Frozen::Derived { id } => {
                let Some(found) = catalog.stored.tables.values().find(|table| table.id == *id) else {
                    return plan_err!(
                        "derived table \"{}\", which \"{}\" stands on, is gone",
                        relation.name,
                        table.name
                    );
                };
                TableDef { name: relation.name.clone(), ..found.as_ref().clone() }
            }
        };
        tables.insert(relation.name.clone(), Arc::new(frozen));
    }
    let mut schemas: Vec<String> = tables.keys().map(|name: &TableName| name.schema.clone()).collect();
    schemas.push(derived.default_schema.clone());
    schemas.sort();
    schemas.dedup();
    let view = CatalogView::frozen(catalog.view.version, schemas, tables, derived.functions.clone());
    let frozen = catalog.frozen(&table.name, view, pinned);

    let mut state = state(catalog, derived).await?;
    for function in frozen.view.functions(&catalog.shared.template).await {
        state.register_udf(Arc::clone(function))?;
    }
    let planning = frozen.plan_with(&mut state);
    let planned = frozen.view_plan(&derived.query, &derived.default_schema, &frozen.rights).await?;
    drop(planning);
    let (plan, state) = planned?;
    NamedTable::try_new(Arc::clone(table), ordered_totally(plan)?, state)
}

/// A relation of a derived table, with its extents.
type FrozenList<'a> = (&'a FrozenRelation, Arc<[Arc<Extent>]>);

/// The relations of a derived table, each with its extents.
pub(crate) fn lists<'a>(
    catalog: &StatementCatalog,
    derived: &'a DerivedTable,
    extents: &[Arc<Extent>],
) -> Result<Vec<FrozenList<'a>>> {
    let mut rest = extents;
    let mut found = vec![];
    for relation in &derived.relations {
        let n_extents = match &relation.what {
            Frozen::Stream(stream) => stream.n_extents,
            Frozen::View { .. } | Frozen::Derived { .. } => 0,
        };
        let Some((list, others)) = rest.split_at_checked(n_extents) else {
            return plan_err!("the stored extents of \"{}\" are incomplete", relation.name);
        };
        rest = others;
        let list = match &relation.what {
            Frozen::Stream(stream) if matches!(stream.kind, TableKind::Managed { .. }) => {
                let folder = catalog.shared.home.table(stream.id);
                list.iter().map(|extent| Arc::new(here(extent.as_ref().clone(), &folder))).collect()
            }
            _ => list.into(),
        };
        found.push((relation, list));
    }
    Ok(found)
}

fn stream_of(stream: &FrozenStream, name: &TableName) -> TableDef {
    TableDef {
        primary_keys: stream.primary_keys.clone(),
        unique_keys: stream.unique_keys.clone(),
        ..relation_of(stream.id, name, Arc::clone(&stream.schema), stream.kind.clone())
    }
}

fn relation_of(id: TableId, name: &TableName, schema: Arc<Schema>, kind: TableKind) -> TableDef {
    TableDef {
        id,
        name: name.clone(),
        schema,
        kind,
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: None,
        created_at: 0,
        owner: None,
    }
}

/// What the query is planned with: its own settings where they can change rows, those of the session elsewhere.
async fn state(catalog: &StatementCatalog, derived: &DerivedTable) -> Result<SessionState> {
    let session = Arc::clone(catalog.session_state()?.config_options());
    let mut options = ConfigOptions::default();
    options.extensions = session.extensions.clone();
    let defaults: BTreeMap<String, Option<String>> =
        ConfigOptions::default().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    for entry in session.entries() {
        let is_default = defaults.get(&entry.key).is_none_or(|default| *default == entry.value);
        if let Some(value) = entry.value.filter(|_| !is_default && !is_frozen(&entry.key)) {
            options.set(&entry.key, &value)?;
        }
    }
    for (key, value) in &derived.settings {
        options.set(key, value)?;
    }
    // What there is to list is not kept in extents.
    options.catalog.information_schema = false;
    let template = catalog.shared.template.clone();
    let config = SessionConfig::from(options);
    let mut state = SessionStateBuilder::new_from_existing(template).with_config(config).build();
    // Sums of floats have the same bits each time.
    for function in exact_aggregates() {
        state.register_udaf(function)?;
    }
    state.mark_start_execution();
    state.execution_props_mut().query_execution_start_time = Some(DateTime::from_timestamp_nanos(derived.now_ns));
    Ok(state)
}

/// Fails if two computations of a derived table could differ.
pub(crate) async fn check_luck(catalog: &StatementCatalog, table: &NamedTable) -> crate::Result<()> {
    let plan = table.initial_plan().await?;
    let config = table.state().config_options();
    let root = prefixes(&plan, &catalog.shared.reuse.built_ins, config, &Salt::new(config));
    match luck(&root) {
        None => Ok(()),
        Some(reason) => {
            let message = "a derived table must have the same rows whenever they are computed";
            Err(EngineError::new(ErrorKind::Unsupported, message).with_detail(reason).with_hint(
                "before a LIMIT, ORDER BY all columns says which rows are meant; or keep the rows themselves: \
                 CREATE TABLE .. AS",
            ))
        }
    }
}

impl StatementCatalog {
    /// A derived table as something to read.
    pub(crate) async fn derived_table(
        self: &Arc<Self>,
        table: &Arc<TableDef>,
        derived: &DerivedTable,
    ) -> Result<NamedTable> {
        let extents = self.shared.catalog.frozen_extents(table.id).await.map_err(wrap)?;
        Box::pin(thaw(self, table, derived, &extents)).await
    }
}
