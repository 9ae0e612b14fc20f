//! `CREATE FUNCTION`, `DROP FUNCTION`: functions written in SQL, kept as text.

use std::collections::BTreeSet;

use datafusion::execution::context::SessionState;
use nectarine_catalog::{CatalogError, Function};
use sqlparser::ast;

use super::reference;
use crate::command::StatementRun;
use crate::dependencies::{callers, with_called, with_dependants};
use crate::functions::{calls, plan_function};
use crate::managed::now_micros;
use crate::{Answer, EngineError, ErrorKind, Notice, Result};

pub(crate) async fn create_function(run: &StatementRun<'_>, create: ast::CreateFunction) -> Result<Answer> {
    if create.temporary {
        return Err(EngineError::new(ErrorKind::Unsupported, "temporary functions are not offered"));
    }
    let definition = run.text.trim().trim_end_matches(';').to_string();
    // Planned once now, so that its mistakes are told now.
    let mut state = SessionState::clone(run.state);
    let function = plan_function(&mut state, &definition).await?;
    let name = function.name().to_string();
    // Only one that is replaced can be called by what it calls.
    let called = with_called(&run.catalog.view, calls(&state, &definition), run.state.config_options());
    if called.contains(&name) {
        return Err(EngineError::new(ErrorKind::Sql, format!("function \"{name}\" would call itself")));
    }
    let is_ours = run.catalog.view.functions.iter().any(|function| function.name == name);
    let template = &run.catalog.shared.template;
    let is_built_in = template.scalar_functions().contains_key(&name)
        || template.aggregate_functions().contains_key(&name)
        || template.window_functions().contains_key(&name);
    if is_built_in && !is_ours {
        return Err(EngineError::new(ErrorKind::Sql, format!("function \"{name}\" is built in"))
            .with_hint("choose another name"));
    }
    if is_ours && create.if_not_exists {
        return Ok(run.noticed("CREATE FUNCTION", format!("function \"{name}\" already exists, skipping")));
    }
    let function = Function { name, definition, created_at: now_micros() };
    run.catalog.shared.store.create_function(&function, create.or_replace).await?;
    Ok(run.command("CREATE FUNCTION"))
}

pub(crate) async fn drop_function(run: &StatementRun<'_>, drop: ast::DropFunction) -> Result<Answer> {
    let tag = "DROP FUNCTION";
    let cascade = drop.drop_behavior == Some(ast::DropBehavior::Cascade);
    let mut notices = vec![];
    for function in &drop.func_desc {
        let name = reference(&function.name, run.state.config_options())?.table().to_string();
        if run.catalog.view.functions.iter().any(|function| function.name == name) {
            notices.extend(drop_one(run, &name, cascade).await?);
            continue;
        }
        if run.state.scalar_functions().contains_key(&name) || run.state.aggregate_functions().contains_key(&name) {
            return Err(EngineError::new(
                ErrorKind::Sql,
                format!("function \"{name}\" is built in and cannot be dropped"),
            ));
        }
        if !drop.if_exists {
            return Err(CatalogError::NotFound { what: "function", name }.into());
        }
        let message = format!("function \"{name}\" does not exist, skipping");
        notices.push(Notice { message, hint: None });
    }
    Ok(run.noticed_all(tag, notices))
}

/// What calls the function stays, unless it is a materialized view; with `cascade` all views that call it go.
async fn drop_one(run: &StatementRun<'_>, name: &str, cascade: bool) -> Result<Vec<Notice>> {
    let store = &run.catalog.shared.store;
    let mut dropped = vec![];
    if cascade {
        let functions = BTreeSet::from([name.to_string()]);
        let views = with_dependants(&run.catalog.view, &[], &functions, run.catalog.shared.template.config_options());
        dropped.extend(store.drop_tables(&views, true).await?);
    }
    let through = callers(&run.catalog.view, name, run.state.config_options());
    dropped.extend(store.drop_function(name, &through, cascade).await?);
    let notices = dropped.iter().map(super::drop::cascaded).collect();
    dropped.into_iter().for_each(|table| super::table::forget_replaced(run, Some(table)));
    Ok(notices)
}
