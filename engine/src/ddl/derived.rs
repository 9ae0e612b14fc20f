//! `CREATE DERIVED TABLE`, `ALTER DERIVED TABLE .. SET PINNED`.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::catalog::TableProvider;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::LogicalPlanBuilder;
use nectarine_catalog::{CatalogError, Extent, TableDef, TableId, TableKind};
use nectarine_planner::sql::{CreateDerived, PinDerived, Relation};

use super::{drop, reference, table, view};
use crate::command::StatementRun;
use crate::derived::{check_luck, freeze, pin, thaw};
use crate::managed::now_micros;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(crate) async fn create_derived(run: &StatementRun<'_>, create: CreateDerived) -> Result<Answer> {
    let config = run.state.config_options();
    let name = run.table_name(&reference(&create.name, config)?)?;
    let tag = "CREATE DERIVED TABLE";
    if let Some(answer) = table::exists(run, &name, create.if_not_exists, create.or_replace, tag)? {
        return Ok(answer);
    }
    // Planned as any query first, so that its mistakes are told in the words of any query.
    let (plan, text, definition) = view::kept_plan(run, create.query, &create.query_text).await?;
    // Whoever reads the table later reads what is here, with no more questions asked.
    run.check_plan(&plan)?;
    let text = view::with_columns(text, &create.columns, plan.schema().inner(), config)?;
    if run.catalog.resolved().contains_key(&name) {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" would stand on itself", name.name))
            .with_hint("choose another name"));
    }
    let (derived, extents) = freeze(run, text, &plan).await?;
    let owner = run.owner(&name);
    let mut new = TableDef {
        id: TableId::new(),
        name,
        schema: Arc::new(Schema::empty()),
        kind: TableKind::Derived(Box::new(derived.clone())),
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: Some(definition),
        created_at: now_micros(),
        owner,
    };
    let thawed = Box::pin(thaw(run.catalog, &Arc::new(new.clone()), &derived, &extents)).await?;
    table::unique_names(&thawed.schema())?;
    check_luck(run.catalog, &thawed).await?;
    new.schema = thawed.schema();
    // Before it has a name: one whose query fails is not made.
    let mut warmed = None;
    if create.with_data {
        let rows = LogicalPlanBuilder::scan(new.name.name.as_str(), provider_as_source(Arc::new(thawed)), None)?;
        warmed = Some(run.warm(rows.build()?).await?);
    }
    let extents: Vec<Extent> = extents.iter().map(|extent| extent.as_ref().clone()).collect();
    let replace = table::replace(run, &new.name, create.or_replace);
    let replaced = run.catalog.shared.store.create_table(&new, &extents, replace).await?;
    table::forget_replaced(run, replaced);
    Ok(match warmed {
        Some(warmed) => run.noticed_all(tag, warmed.notices).with_receipt(warmed.receipt),
        None => run.command(tag),
    })
}

/// Copies the rows of a derived table into files of its own.
pub(crate) async fn pin_derived(run: &StatementRun<'_>, statement: PinDerived) -> Result<Answer> {
    let name = run.table_name(&reference(&statement.name, run.state.config_options())?)?;
    let tag = "ALTER DERIVED TABLE";
    let Some(found) = run.catalog.view.tables.get(&name) else {
        return match statement.if_exists {
            true => Ok(run.noticed(tag, format!("\"{}\" does not exist, skipping", name.name))),
            false => Err(CatalogError::TableNotFound { name }.into()),
        };
    };
    drop::check_kind("ALTER", Relation::DerivedTable, found)?;
    run.rights().check_owns(found)?;
    let TableKind::Derived(derived) = &found.kind else { return Ok(run.command(tag)) };
    if derived.pinned.is_some() {
        return Ok(run.noticed(tag, format!("\"{}\" is pinned already", name.name)));
    }
    let rows = run.catalog.derived_table(found, derived).await?;
    let plan = pin(run.catalog, found, derived, rows)?;
    run.write(plan).await?;
    Ok(run.command(tag))
}
