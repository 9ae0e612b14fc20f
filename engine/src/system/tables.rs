//! `system.tables`: every table and view, with how much it holds.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{TableDef, TableKind};
use nectarine_planner::Streams;

use super::{number, table_of, text, time};
use crate::access::Rights;
use crate::derived::gone;
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("table_schema"),
        text("table_name"),
        text("table_type"),
        text("format"),
        text("location"),
        number("extents"),
        number("bytes"),
        number("rows"),
        time("created_at"),
        text("error"),
        text("owner"),
    ])
}

/// Where files of the server are, and what is wrong with them, is told to who may know it. Others see that something is wrong.
const HIDDEN: &str = "it cannot be read";

/// What its extents add up to; a table that cannot be read says why and does not hide the others.
async fn size(catalog: &StatementCatalog, table: &TableDef) -> (Option<i64>, Option<i64>, Option<i64>, Option<String>) {
    if let TableKind::Derived(derived) = &table.kind
        && derived.pinned.is_none()
    {
        return match gone(catalog, table).await {
            Ok((n_extents, files)) => {
                let error = (!files.is_empty()).then(|| format!("{} of its files are gone or changed", files.len()));
                (Some(n_extents as i64), None, None, error)
            }
            Err(error) => (None, None, None, Some(error.to_string())),
        };
    }
    if table.kind.own_files().is_none() && !matches!(table.kind, TableKind::External(_)) {
        return (None, None, None, None);
    }
    match catalog.extents(table).await {
        Ok(extents) => {
            let bytes: u64 = extents.iter().map(|extent| extent.bytes()).sum();
            let rows: Option<u64> = extents.iter().map(|extent| extent.rows).sum();
            (Some(extents.len() as i64), Some(bytes as i64), rows.map(|rows| rows as i64), None)
        }
        Err(error) => (None, None, None, Some(crate::EngineError::from(error).to_string())),
    }
}

pub(super) async fn rows(catalog: &Arc<StatementCatalog>, rights: &Rights) -> Result<RecordBatch> {
    let tables: Vec<&Arc<TableDef>> = catalog.view.tables.values().filter(|table| rights.sees(table)).collect();
    let mut sizes = Vec::with_capacity(tables.len());
    for table in &tables {
        let (extents, bytes, rows, error) = size(catalog, table).await;
        let error = error.map(|error| if rights.sees_inside(table) { error } else { HIDDEN.to_string() });
        sizes.push((extents, bytes, rows, error));
    }
    let kind = |table: &TableDef| match &table.kind {
        TableKind::Managed { .. } => "managed",
        TableKind::External(_) => "external",
        TableKind::View { .. } => "view",
        TableKind::MaterializedView(_) => "materialized view",
        TableKind::Derived(_) => "derived",
    };
    let format = |table: &TableDef| match &table.kind {
        TableKind::External(source) => Some(source.format.to_string()),
        kind => kind.own_files().map(|format| format.to_string()),
    };
    let location = |table: &TableDef| match &table.kind {
        _ if !rights.is_admin() => None,
        TableKind::External(source) => Some(source.location.clone()),
        kind => kind.own_files().map(|_| catalog.shared.home.table(table.id).display().to_string()),
    };
    let created = tables.iter().map(|table| table.created_at);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(tables.iter().map(|table| &table.name.schema))),
            Arc::new(StringArray::from_iter_values(tables.iter().map(|table| &table.name.name))),
            Arc::new(StringArray::from_iter_values(tables.iter().map(|table| kind(table)))),
            Arc::new(tables.iter().map(|table| format(table)).collect::<StringArray>()),
            Arc::new(tables.iter().map(|table| location(table)).collect::<StringArray>()),
            Arc::new(sizes.iter().map(|size| size.0).collect::<Int64Array>()),
            Arc::new(sizes.iter().map(|size| size.1).collect::<Int64Array>()),
            Arc::new(sizes.iter().map(|size| size.2).collect::<Int64Array>()),
            Arc::new(TimestampMicrosecondArray::from_iter_values(created).with_timezone("UTC")),
            Arc::new(sizes.iter().map(|size| size.3.as_deref()).collect::<StringArray>()),
            Arc::new(tables.iter().map(|table| table.owner.as_deref()).collect::<StringArray>()),
        ],
    )?)
}
