//! `system.functions`: functions that users wrote in SQL.

use std::sync::Arc;

use arrow::array::{StringArray, TimestampMicrosecondArray};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{table_of, text, time};
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![text("name"), text("definition"), time("created_at")])
}

pub(super) fn rows(catalog: &StatementCatalog) -> Result<RecordBatch> {
    let functions = &catalog.view.functions;
    let created = functions.iter().map(|function| function.created_at);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(functions.iter().map(|function| &function.name))),
            Arc::new(StringArray::from_iter_values(functions.iter().map(|function| &function.definition))),
            Arc::new(TimestampMicrosecondArray::from_iter_values(created).with_timezone("UTC")),
        ],
    )?)
}
