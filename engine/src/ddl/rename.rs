//! `ALTER TABLE .. RENAME TO`, `ALTER TABLE .. SET SCHEMA`, and the same for views and derived tables.

use datafusion::common::TableReference;
use nectarine_catalog::{CatalogError, TableName};
use nectarine_planner::sql::{AlterTableRename, AlterTableSetSchema, Relation};
use sqlparser::ast::ObjectName;

use super::{check_schema, drop, reference, table};
use crate::command::StatementRun;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(crate) async fn rename(run: &StatementRun<'_>, rename: AlterTableRename) -> Result<Answer> {
    let name = run.table_name(&reference(&rename.table, run.state.config_options())?)?;
    let given = reference(&rename.new_name, run.state.config_options())?;
    // A bare new name stays in the schema of the old one, as in PostgreSQL.
    let to = match &given {
        TableReference::Bare { table } => TableName::new(name.schema.clone(), table.as_ref()),
        qualified => run.table_name(qualified)?,
    };
    apply(run, rename.relation, name, to, rename.if_exists).await
}

pub(crate) async fn set_schema(run: &StatementRun<'_>, set: AlterTableSetSchema) -> Result<Answer> {
    let name = run.table_name(&reference(&set.table, run.state.config_options())?)?;
    let schema = schema_name(run, &set.schema)?;
    let to = TableName::new(schema, name.name.clone());
    apply(run, set.relation, name, to, set.if_exists).await
}

fn schema_name(run: &StatementRun<'_>, name: &ObjectName) -> Result<String> {
    match reference(name, run.state.config_options())? {
        TableReference::Bare { table } => Ok(table.to_string()),
        _ => Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" is not the name of a schema"))),
    }
}

async fn apply(
    run: &StatementRun<'_>,
    relation: Relation,
    name: TableName,
    to: TableName,
    if_exists: bool,
) -> Result<Answer> {
    check_schema(&name.schema)?;
    check_schema(&to.schema)?;
    let tag = &format!("ALTER {}", relation.keywords());
    let Some(found) = run.catalog.view.tables.get(&name) else {
        return match if_exists {
            true => Ok(run.noticed(tag, format!("\"{}\" does not exist, skipping", name.name))),
            false => Err(CatalogError::TableNotFound { name }.into()),
        };
    };
    // ALTER TABLE goes for everything, as in PostgreSQL.
    if relation != Relation::Table {
        drop::check_kind("ALTER", relation, found)?;
    }
    run.rights().check_owns(found)?;
    table::check_is_no_location(run.rights(), &to)?;
    if to.schema != name.schema {
        run.rights().check_create(&to.schema)?;
    }
    run.catalog.shared.store.rename_table(found.id, &to).await?;
    Ok(run.command(tag))
}
