//! `DROP TABLE`, `DROP VIEW`.

use datafusion::common::TableReference;
use nectarine_catalog::{CatalogError, TableKind};

use super::{check_schema, table};
use crate::command::StatementRun;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(crate) async fn drop_table(
    run: &StatementRun<'_>,
    reference: &TableReference,
    if_exists: bool,
    view: bool,
) -> Result<Answer> {
    let name = run.table_name(reference)?;
    check_schema(&name.schema)?;
    let tag = if view { "DROP VIEW" } else { "DROP TABLE" };
    if run.session.forget_table(&name) {
        return Ok(run.command(tag));
    }
    let Some(found) = run.catalog.view.tables.get(&name) else {
        return match if_exists {
            true => Ok(run.noticed(tag, format!("\"{}\" does not exist, skipping", name.name))),
            false => Err(CatalogError::TableNotFound { name }.into()),
        };
    };
    match (&found.kind, view) {
        (TableKind::View { .. }, false) => {
            return Err(
                EngineError::new(ErrorKind::Sql, format!("\"{}\" is a view", name.name)).with_hint("use DROP VIEW")
            );
        }
        (TableKind::Managed { .. } | TableKind::External(_), true) => {
            return Err(
                EngineError::new(ErrorKind::Sql, format!("\"{}\" is a table", name.name)).with_hint("use DROP TABLE")
            );
        }
        _ => {}
    }
    run.catalog.shared.store.drop_table(found.id).await?;
    table::forget_replaced(run, Some(found.as_ref().clone()));
    Ok(run.command(tag))
}
