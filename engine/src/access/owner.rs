//! `ALTER .. OWNER TO`, `REASSIGN OWNED`: things change hands.
//!
//! Keeps true   nobody gives a view to somebody whose rights it would then read with, unless he has those rights himself: one who is no
//!              administrator gives only to roles that he is in, and only where the new owner could have made the thing.

use nectarine_catalog::{AccessChange, CatalogError, Report, Securable};
use nectarine_planner::sql::{Owned, Relation, SetOwner};
use sqlparser::ast::Ident;

use super::statement::{change, role_name};
use crate::command::StatementRun;
use crate::ddl::{check_kind, check_schema, normal, reference};
use crate::report::check_runs_as;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(super) async fn set(run: &StatementRun<'_>, set: SetOwner) -> Result<Answer> {
    let owner = role_name(run, &set.owner)?;
    let config = run.state.config_options();
    let (tag, schema, thing) = match &set.of {
        Owned::Schema(schema) => {
            let schema = normal(schema, config);
            check_schema(&schema)?;
            if !run.catalog.view.has_schema(&schema) {
                return Err(CatalogError::NotFound { what: "schema", name: schema }.into());
            }
            run.rights().check_owns_schema(&schema)?;
            ("ALTER SCHEMA".to_string(), None, Securable::Schema(schema))
        }
        Owned::Relation(relation, name) => {
            let tag = format!("ALTER {}", relation.keywords());
            let name = run.table_name(&reference(name, config)?)?;
            check_schema(&name.schema)?;
            let Some(found) = run.catalog.view.tables.get(&name) else {
                return match set.if_exists {
                    true => Ok(run.noticed(&tag, format!("\"{}\" does not exist, skipping", name.name))),
                    false => Err(CatalogError::TableNotFound { name }.into()),
                };
            };
            // ALTER TABLE goes for everything, as in PostgreSQL.
            if *relation != Relation::Table {
                check_kind("ALTER", *relation, found)?;
            }
            run.rights().check_owns(found)?;
            (tag, Some(name.schema), Securable::Table(found.id))
        }
    };
    run.rights().check_gives_to(&owner, schema.as_deref())?;
    change(run, AccessChange::SetOwner { of: vec![thing], owner: Some(owner) }).await?;
    Ok(run.command(&tag))
}

pub(super) async fn reassign(run: &StatementRun<'_>, from: &[Ident], to: &Ident) -> Result<Answer> {
    run.rights().check_admin("give away what users own")?;
    let to = role_name(run, to)?;
    let from = from.iter().map(|name| role_name(run, name)).collect::<Result<Vec<_>>>()?;
    let view = &run.catalog.view;
    if let Some(nobody) = from.iter().find(|name| !view.access.roles.contains_key(*name)) {
        return Err(CatalogError::NotFound { what: "user or role", name: nobody.clone() }.into());
    }
    if from.contains(&to) {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{to}\" owns it already")));
    }
    let tables = view.tables.values().filter(|table| table.owner.as_ref().is_some_and(|owner| from.contains(owner)));
    let mut of: Vec<Securable> = tables.map(|table| Securable::Table(table.id)).collect();
    let schemas = view.access.schema_owners.iter().filter(|(_, owner)| from.contains(owner));
    of.extend(schemas.map(|(schema, _)| Securable::Schema(schema.clone())));
    let store = &run.catalog.shared.store;
    let mut reports = store.reports().await?;
    reports.retain(|report| report.owner.as_ref().is_some_and(|owner| from.contains(owner)));
    if !reports.is_empty() {
        check_runs_as(run.rights(), &to)?;
    }
    change(run, AccessChange::SetOwner { of, owner: Some(to.clone()) }).await?;
    for report in reports {
        store.change_report(&Report { owner: Some(to.clone()), ..report }).await?;
    }
    Ok(run.command("REASSIGN OWNED"))
}
