//! `system.extents`: every extent of every table, as this statement would read it.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use nectarine_catalog::{Extent, TableDef, TableKind, TableName, plain_location};
use nectarine_planner::Streams;

use super::{number, table_of, text, time};
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![
        text("table_schema"),
        text("table_name"),
        number("position"),
        text("location"),
        number("byte_start"),
        number("byte_end"),
        number("bytes"),
        number("rows"),
        text("fingerprint"),
        time("first_seen_at"),
    ])
}

pub(super) async fn rows(catalog: &Arc<StatementCatalog>) -> Result<RecordBatch> {
    let mut found: Vec<(&TableName, usize, Arc<Extent>)> = vec![];
    let has_extents =
        |table: &&Arc<TableDef>| table.kind.own_files().is_some() || matches!(table.kind, TableKind::External(_));
    for table in catalog.view.tables.values().filter(has_extents) {
        // A table that cannot be read says so in system.tables.
        let Ok(extents) = catalog.extents(table).await else { continue };
        found.extend(extents.iter().enumerate().map(|(position, extent)| (&table.name, position, Arc::clone(extent))));
    }
    let start = |extent: &Extent| extent.range.map_or(0, |range| range.start) as i64;
    let end = |extent: &Extent| extent.range.map_or(extent.file_bytes, |range| range.end) as i64;
    let seen = found.iter().map(|(_, _, extent)| extent.first_seen_at);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(found.iter().map(|(table, _, _)| &table.schema))),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(table, _, _)| &table.name))),
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, position, _)| *position as i64))),
            Arc::new(StringArray::from_iter_values(
                found.iter().map(|(_, _, extent)| plain_location(&extent.location)),
            )),
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, _, extent)| start(extent)))),
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, _, extent)| end(extent)))),
            Arc::new(Int64Array::from_iter_values(found.iter().map(|(_, _, extent)| extent.bytes() as i64))),
            Arc::new(found.iter().map(|(_, _, extent)| extent.rows.map(|rows| rows as i64)).collect::<Int64Array>()),
            Arc::new(StringArray::from_iter_values(found.iter().map(|(_, _, extent)| extent.fingerprint.to_string()))),
            Arc::new(TimestampMicrosecondArray::from_iter_values(seen).with_timezone("UTC")),
        ],
    )?)
}
