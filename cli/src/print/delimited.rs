//! [`Delimited`]: csv as RFC 4180 has it, and tsv the same way with tabs.
//!
//! A NULL is nothing (or what `\pset null` says), an empty text is `""`: the same form that COPY writes. Lists, structs and maps are written as JSON text, which every reader of csv can take apart again.

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::LineDelimited;
use arrow::record_batch::RecordBatch;
use nectarine_engine::CsvText;
use std::sync::Arc;

use super::cell::{display_text, with_text_columns};
use super::json::is_foreign;
use super::{Paper, Sink, View};
use crate::failure::Result;

/// Writes rows between delimiters.
pub(super) struct Delimited {
    text: CsvText,
    schema: SchemaRef,
    nested: Vec<bool>,
    header_due: bool,
}

impl Delimited {
    pub(super) fn new(text: CsvText, view: &View, schema: SchemaRef) -> Self {
        let nested = schema
            .fields()
            .iter()
            .map(|field| field.data_type().is_nested() || matches!(field.data_type(), DataType::Union(..)))
            .collect();
        Self { text, schema, nested, header_due: view.header }
    }

    fn write(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        if self.schema.fields().is_empty() {
            return Ok(());
        }
        let batch = with_text_columns(batch, &self.nested, json_text)?;
        let mut written = Vec::new();
        if std::mem::take(&mut self.header_due) {
            self.text.header(&batch.schema(), &mut written);
        }
        self.text.rows(&batch, &mut written)?;
        paper.write_all(&written)?;
        Ok(())
    }
}

impl Sink for Delimited {
    fn batch(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        self.write(batch, paper)
    }

    fn finish(&mut self, paper: &mut dyn Paper) -> Result<()> {
        if self.header_due {
            self.write(&RecordBatch::new_empty(Arc::clone(&self.schema)), paper)?;
        }
        Ok(())
    }
}

/// The values as JSON, one text each.
fn json_text(array: &ArrayRef) -> Result<StringArray, ArrowError> {
    if is_foreign(array.data_type()) {
        return display_text(array);
    }
    let field = Field::new("", array.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::clone(array)])?;
    let mut writer = arrow::json::WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
    writer.write(&batch)?;
    writer.finish()?;
    let lines = String::from_utf8(writer.into_inner()).map_err(|error| ArrowError::CsvError(error.to_string()))?;
    // Each line is {"":VALUE}; JSON has no raw newlines inside.
    let value = |(row, line): (usize, &'_ str)| {
        let inner = line.strip_prefix("{\"\":").and_then(|rest| rest.strip_suffix('}')).unwrap_or(line);
        (!array.is_null(row)).then(|| inner.to_owned())
    };
    Ok(lines.lines().enumerate().map(value).collect())
}
