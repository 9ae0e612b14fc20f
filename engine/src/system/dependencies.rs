//! `system.dependencies`: what stands on what, directly.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;

use super::{table_of, text};
use crate::dependencies;
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![text("name"), text("kind"), text("depends_on"), text("depends_on_kind")])
}

pub(super) fn rows(catalog: &Arc<StatementCatalog>) -> Result<RecordBatch> {
    let found = dependencies::all(&catalog.view, catalog.shared.template.config_options());
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(found.iter().map(|line| &line.name))),
            Arc::new(StringArray::from_iter_values(found.iter().map(|line| line.kind))),
            Arc::new(StringArray::from_iter_values(found.iter().map(|line| &line.depends_on))),
            Arc::new(StringArray::from_iter_values(found.iter().map(|line| line.depends_on_kind))),
        ],
    )?)
}
