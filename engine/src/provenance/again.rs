//! A statement that ran once, planned again over the extents that it read then.
//!
//! What its tables have got since is left out, so that the same prefixes come up again; what they have lost is told.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::LogicalPlan;
use nectarine_catalog::{EntryProvenance, Fingerprint, ProgramSource, TableName};
use nectarine_executor::exact_aggregates;
use nectarine_planner::sql::{self, ParseOptions, Statement};

use crate::access::Rights;
use crate::engine::{Shared, options};
use crate::settings::adds_exactly;
use crate::statement::{Planning, StatementCatalog};
use crate::{EngineError, ErrorKind, Result};

/// A statement that is planned.
pub(super) struct Again {
    pub(super) catalog: Arc<StatementCatalog>,
    pub(super) planning: Arc<Planning>,
    pub(super) plan: LogicalPlan,
}

/// Plans it with the names, settings and extents of then. Fails in words that say why it can not be done.
pub(super) async fn again(shared: &Arc<Shared>, how: &ProgramSource, entry: &EntryProvenance) -> Result<Again> {
    let mut state = shared.template.clone();
    let settings = state.config_mut().options_mut();
    settings.catalog.default_schema.clone_from(&how.default_schema);
    for (name, value) in &how.settings {
        settings.set(name, value)?;
    }
    let not_a_query = || EngineError::new(ErrorKind::Unsupported, "it was made by a statement that is no query");
    let options_now = ParseOptions::from(state.config_options().as_ref());
    let mut parsed = sql::parse(&how.sql, &options_now)?;
    // What has a name was made when it got it.
    if let Some(query) = parsed.as_ref().and_then(named_query) {
        parsed = sql::parse(query, &options_now)?;
    }
    let Some(Statement::DataFusion(statement)) = parsed else { return Err(not_a_query()) };

    let (view, purges) = shared.catalog.view_and_purges().await?;
    for function in view.functions(&shared.template).await {
        state.register_udf(Arc::clone(function))?;
    }
    if adds_exactly(&options(state.config_options()).float_sums)? {
        for function in exact_aggregates() {
            state.register_udaf(function)?;
        }
    }
    state.mark_start_execution();
    let name = state.config_options().catalog.default_catalog.clone();
    let catalog = StatementCatalog::new(
        Arc::clone(shared),
        // Only administrators come here.
        Rights::everything(),
        (view, purges),
        Arc::default(),
        name,
        None,
    );
    catalog.restrict(extents_of(entry, how));
    let planning = catalog.plan_with(&mut state);
    let plan = Box::pin(planning.state().statement_to_plan(*statement)).await?;
    if !is_query(&plan) {
        return Err(not_a_query());
    }
    Ok(Again { catalog, planning, plan })
}

/// The query of a materialized view or derived table that a statement creates.
fn named_query(statement: &Statement) -> Option<&str> {
    match statement {
        Statement::CreateView(view) if view.materialized => Some(&view.query_text),
        Statement::CreateDerived(table) => Some(&table.query_text),
        _ => None,
    }
}

/// Whether running a plan changes nothing.
pub(super) fn is_query(plan: &LogicalPlan) -> bool {
    !matches!(
        plan,
        LogicalPlan::Ddl(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::DescribeTable(_)
    )
}

/// The extents that an entry has of each table, by the names that tables have in the statement.
fn extents_of(entry: &EntryProvenance, how: &ProgramSource) -> HashMap<TableName, HashSet<Fingerprint>> {
    let mut extents: HashMap<TableName, HashSet<Fingerprint>> = HashMap::new();
    for input in &entry.inputs {
        let Some(table) = &input.table else { continue };
        let name = match (input.table_id, table.split_once('.')) {
            (Some(_), Some((schema, name))) => TableName::new(schema, name),
            // A location that stands for a table is a name in the schema of the statement.
            _ => TableName::new(&how.default_schema, table),
        };
        extents.entry(name).or_default().extend(input.extents.iter().map(|extent| extent.fingerprint));
    }
    extents
}

/// What is gone of the extents that an entry was made of, in words; `None` if all are there.
pub(super) fn gone(again: &Again, entry: &EntryProvenance) -> Option<String> {
    let mut there: HashSet<Fingerprint> = HashSet::new();
    for extents in again.catalog.extents_read() {
        there.extend(extents.iter().map(|extent| extent.fingerprint));
    }
    let all = entry.inputs.iter().flat_map(|input| &input.extents);
    let missing: Vec<_> = all.filter(|extent| !there.contains(&extent.fingerprint)).collect();
    let first = missing.first()?;
    let place = first.location.as_deref().unwrap_or("of an older format");
    Some(match missing.len() {
        1 => format!("the extent it was made of is gone or has changed: {place}"),
        n => format!("{n} of the extents it was made of are gone or have changed, {place} among them"),
    })
}
