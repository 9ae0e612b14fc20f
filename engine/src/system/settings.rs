//! `system.settings`: every setting, its value in this session, and which layer gave it.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::catalog::Session as DataFusionSession;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;

use super::{table_of, text};
use crate::discretion::is_place;
use crate::settings::NectarineExtension;
use crate::statement::StatementCatalog;

pub(super) fn schema() -> SchemaRef {
    table_of(vec![text("name"), text("value"), text("default"), text("source"), text("description")])
}

pub(super) fn rows(catalog: &StatementCatalog, state: &dyn DataFusionSession) -> Result<RecordBatch> {
    let mut built_in = ConfigOptions::new();
    built_in.extensions.insert(NectarineExtension::default());
    let defaults: HashMap<String, Option<String>> =
        built_in.entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let opened: HashMap<String, Option<String>> =
        catalog.shared.template.config_options().entries().into_iter().map(|entry| (entry.key, entry.value)).collect();
    let mut entries = state.config_options().entries();
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    let default = |key: &str| defaults.get(key).cloned().flatten();
    let source = |key: &str, value: &Option<String>| match opened.get(key) == Some(value) {
        false => "session",
        true => catalog.shared.settings.source(key),
    };
    let is_told = |key: &str| catalog.rights.is_admin() || !is_place(key);
    Ok(RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| &entry.key))),
            Arc::new(
                entries
                    .iter()
                    .map(|entry| entry.value.as_deref().filter(|_| is_told(&entry.key)))
                    .collect::<StringArray>(),
            ),
            Arc::new(entries.iter().map(|entry| default(&entry.key)).collect::<StringArray>()),
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| source(&entry.key, &entry.value)))),
            Arc::new(StringArray::from_iter_values(entries.iter().map(|entry| entry.description.trim()))),
        ],
    )?)
}
