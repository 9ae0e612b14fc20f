//! `CREATE VIEW`: a query kept as text. `CREATE MATERIALIZED VIEW`, `REFRESH`: one whose result is kept as well.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::config::ConfigOptions;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{CatalogError, MaterializedView, TableDef, TableId, TableKind, TableName};
use nectarine_planner::sql::CreateView;
use sqlparser::ast;

use super::absolute::absolute;
use super::{normal, reference, table};
use crate::command::{StatementRun, Warmed};
use crate::dependencies::{mentioned_through_views, mentioned_to_keep};
use crate::managed::now_micros;
use crate::{Answer, EngineError, ErrorKind, Notice, Result};

pub(crate) async fn create_view(run: &StatementRun<'_>, create: CreateView) -> Result<Answer> {
    if create.temporary {
        return Err(EngineError::new(ErrorKind::Unsupported, "temporary views are not offered"));
    }
    let name = run.table_name(&reference(&create.name, run.state.config_options())?)?;
    let tag = if create.materialized { "CREATE MATERIALIZED VIEW" } else { "CREATE VIEW" };
    if let Some(answer) = table::exists(run, &name, create.if_not_exists, create.or_replace, tag)? {
        return Ok(answer);
    }
    // Planned once now, so that its mistakes are told now, and for the columns that listings show.
    let (plan, text, definition) = kept_plan(run, create.query, &create.query_text).await?;
    run.check_plan(&plan)?;
    let found = plan.schema().inner();
    let names = column_names(&create.columns, found, run.state.config_options())?;
    let fields: Vec<Field> =
        found.fields().iter().zip(&names).map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    let schema = match create.columns.is_empty() {
        true => Arc::clone(found),
        false => Arc::new(Schema::new(fields)),
    };
    let text = with_columns(text, &create.columns, found, run.state.config_options())?;
    table::unique_names(&schema)?;
    let default_schema = run.state.config_options().catalog.default_schema.clone();
    let (kind, warmed) = match create.materialized {
        false => {
            let (view, config) = (&run.catalog.view, run.state.config_options());
            let below = mentioned_through_views(view, &text, &default_schema, config);
            check_stands_on_others(&name, below.relations.contains(&name))?;
            let mentions = Some(mentioned_to_keep(view, &text, &default_schema, config));
            (TableKind::View { query: text, default_schema, mentions }, None)
        }
        true => {
            let kind = materialized(run, &name, text, default_schema)?;
            // Before it has a name: one whose query fails is not made.
            let warmed = if create.with_data { Some(run.warm(plan).await?) } else { None };
            (kind, warmed)
        }
    };
    let owner = run.owner(&name);
    let table = TableDef {
        id: TableId::new(),
        name,
        schema,
        kind,
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: Some(definition),
        created_at: now_micros(),
        owner,
    };
    let replace = table::replace(run, &table.name, create.or_replace);
    run.catalog.shared.store.create_table(&table, &[], replace).await?;
    Ok(match warmed {
        Some(warmed) => answered(run, tag, &table, warmed),
        None => run.command(tag),
    })
}

/// The plan of a query that is kept, its text, and the statement that makes it; with paths that mean the same from everywhere.
pub(super) async fn kept_plan(
    run: &StatementRun<'_>,
    query: Box<ast::Query>,
    text: &str,
) -> Result<(LogicalPlan, String, String)> {
    let plan = |query| {
        let query = DFStatement::Statement(Box::new(ast::Statement::Query(query)));
        Box::pin(run.state.statement_to_plan(query))
    };
    let kept = absolute(run, query.clone(), text)?;
    match plan(kept.query).await {
        Ok(planned) => Ok((planned, kept.text, kept.definition)),
        // Told where it is in the text that was written.
        Err(error) if kept.text != text => Err(plan(query).await.err().unwrap_or(error).into()),
        Err(error) => Err(error.into()),
    }
}

/// The names of a query's columns, the first of them given anew.
fn column_names(columns: &[ast::Ident], found: &Schema, config: &ConfigOptions) -> Result<Vec<String>> {
    if columns.len() > found.fields().len() {
        let message = format!("the query has {} columns, not {}", found.fields().len(), columns.len());
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    let mut names: Vec<String> = columns.iter().map(|column| normal(column, config)).collect();
    names.extend(found.fields().iter().skip(names.len()).map(|field| field.name().clone()));
    Ok(names)
}

/// The text of a query whose columns are given names; `found` are those that it has.
pub(super) fn with_columns(
    query: String,
    columns: &[ast::Ident],
    found: &Schema,
    config: &ConfigOptions,
) -> Result<String> {
    if columns.is_empty() {
        return Ok(query);
    }
    let names = column_names(columns, found, config)?;
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
    Ok(format!("SELECT * FROM ({query}) AS view_columns ({})", quoted.join(", ")))
}

/// `REFRESH MATERIALIZED VIEW`: what reading it will want is there afterwards.
pub(crate) async fn refresh(run: &StatementRun<'_>, name: ast::ObjectName) -> Result<Answer> {
    let table = materialized_view(run, &name, "only materialized views are refreshed")?;
    run.rights().check_owns(table)?;
    let plan = rows_of(run, table).await?;
    let warmed = run.warm(plan).await?;
    Ok(answered(run, "REFRESH MATERIALIZED VIEW", table, warmed))
}

/// The materialized view of that name; `hint` is for who names something else.
pub(crate) fn materialized_view<'a>(
    run: &StatementRun<'a>,
    name: &ast::ObjectName,
    hint: &str,
) -> Result<&'a Arc<TableDef>> {
    let name = run.table_name(&reference(name, run.state.config_options())?)?;
    let catalog = run.catalog;
    let Some(table) = catalog.view.tables.get(&name) else {
        return Err(CatalogError::TableNotFound { name }.into());
    };
    if !matches!(table.kind, TableKind::MaterializedView(_)) {
        let message = format!("\"{}\" is a {}, not a materialized view", name.name, table.kind.word());
        return Err(EngineError::new(ErrorKind::Sql, message).with_hint(hint));
    }
    Ok(table)
}

/// All rows of a table, and nothing else.
pub(crate) async fn rows_of(run: &StatementRun<'_>, table: &Arc<TableDef>) -> Result<LogicalPlan> {
    let provider = run.catalog.provider_of(table).await?;
    Ok(LogicalPlanBuilder::scan(table.name.name.as_str(), provider_as_source(provider), None)?.build()?)
}

fn answered(run: &StatementRun<'_>, tag: &str, table: &TableDef, warmed: Warmed) -> Answer {
    let Warmed { mut notices, receipt, uncacheable, .. } = warmed;
    if let Some(reason) = uncacheable {
        let message = format!("the result of \"{}\" is computed at each use: {reason}", table.name.name);
        notices.push(Notice { message, hint: None });
    }
    run.noticed_all(tag, notices).with_receipt(receipt)
}

fn check_stands_on_others(name: &TableName, reads_itself: bool) -> Result<()> {
    match reads_itself {
        true => Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" would stand on itself", name.name))),
        false => Ok(()),
    }
}

/// What a new materialized view depends on.
fn materialized(run: &StatementRun<'_>, name: &TableName, query: String, default_schema: String) -> Result<TableKind> {
    let config = run.state.config_options();
    let view = &run.catalog.view;
    // Only a view that is replaced can be read by what replaces it.
    check_stands_on_others(name, run.catalog.resolved().contains_key(name))?;
    let mentions = mentioned_to_keep(view, &query, &default_schema, config);
    let (relations, functions) = (mentions.relations.into_iter().collect(), mentions.functions.into_iter().collect());
    Ok(TableKind::MaterializedView(MaterializedView { query, default_schema, relations, functions }))
}
