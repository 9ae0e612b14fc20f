//! `CREATE SCHEMA`, `DROP SCHEMA`.

use std::collections::BTreeSet;

use datafusion::common::SchemaReference;
use datafusion::logical_expr::{CreateCatalogSchema, DropCatalogSchema};
use nectarine_catalog::{CatalogError, TableId};

use super::{check_schema, table};
use crate::command::StatementRun;
use crate::dependencies::with_dependants;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(crate) async fn create_schema(run: &StatementRun<'_>, create: CreateCatalogSchema) -> Result<Answer> {
    let tag = "CREATE SCHEMA";
    run.rights().check_admin("make schemas")?;
    // `catalog.schema` arrives as one text.
    let catalog = &run.state.config_options().catalog.default_catalog;
    let name = create.schema_name.strip_prefix(&format!("{catalog}.")).unwrap_or(&create.schema_name).to_string();
    check_schema(&name)?;
    if run.catalog.view.has_schema(&name) {
        return match create.if_not_exists {
            true => Ok(run.noticed(tag, format!("schema \"{name}\" already exists, skipping"))),
            false => Err(CatalogError::AlreadyExists { what: "schema", name }.into()),
        };
    }
    run.catalog.shared.store.create_schema(&name).await?;
    Ok(run.command(tag))
}

pub(crate) async fn drop_schema(run: &StatementRun<'_>, drop: DropCatalogSchema) -> Result<Answer> {
    let tag = "DROP SCHEMA";
    let name = match &drop.name {
        SchemaReference::Bare { schema } => schema.to_string(),
        SchemaReference::Full { schema, .. } => schema.to_string(),
    };
    check_schema(&name)?;
    if !run.catalog.view.has_schema(&name) {
        return match drop.if_exists {
            true => Ok(run.noticed(tag, format!("schema \"{name}\" does not exist, skipping"))),
            false => Err(CatalogError::NotFound { what: "schema", name }.into()),
        };
    }
    run.rights().check_owns_schema(&name)?;
    if drop.cascade {
        // What goes as well may be other users'.
        run.rights().check_admin("drop what others made")?;
    }
    if name == "public" {
        return Err(EngineError::new(ErrorKind::Sql, "schema \"public\" cannot be dropped"));
    }
    let shared = &run.catalog.shared;
    let mut dropped = vec![];
    if drop.cascade {
        // Plain views of other schemas, which the store knows nothing of.
        let view = &run.catalog.view;
        let inside: Vec<TableId> =
            view.tables.values().filter(|table| table.name.schema == name).map(|table| table.id).collect();
        let all = with_dependants(view, &inside, &BTreeSet::new(), run.catalog.shared.template.config_options());
        dropped.extend(shared.store.drop_tables(&all, true).await?);
    }
    dropped.extend(shared.store.drop_schema(&name, drop.cascade).await?);
    let elsewhere = dropped.iter().filter(|table| table.name.schema != name).map(super::drop::cascaded).collect();
    dropped.into_iter().for_each(|table| table::forget_replaced(run, Some(table)));
    Ok(run.noticed_all(tag, elsewhere))
}
