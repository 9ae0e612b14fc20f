//! [`Delimited`]: csv as RFC 4180 has it, and tsv the same way with tabs.
//!
//! Lists, structs and maps are written as JSON text, which every reader of csv can take apart again.

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::csv::WriterBuilder;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::LineDelimited;
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

use super::cell::{display_text, with_text_columns};
use super::json::is_foreign;
use super::{Paper, Sink, View};
use crate::failure::Result;

/// Writes rows between delimiters.
pub(super) struct Delimited {
    delimiter: u8,
    null: String,
    schema: SchemaRef,
    nested: Vec<bool>,
    header_due: bool,
}

impl Delimited {
    pub(super) fn new(delimiter: u8, view: &View, schema: SchemaRef) -> Self {
        let nested = schema
            .fields()
            .iter()
            .map(|field| field.data_type().is_nested() || matches!(field.data_type(), DataType::Union(..)))
            .collect();
        Self { delimiter, null: view.null.clone().unwrap_or_default(), schema, nested, header_due: view.header }
    }

    fn write(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        if self.schema.fields().is_empty() {
            return Ok(());
        }
        let batch = with_text_columns(batch, &self.nested, json_text)?;
        // The writer gives its buffer back only when it ends: one per batch costs nothing that can be measured.
        let header = std::mem::take(&mut self.header_due);
        let builder =
            WriterBuilder::new().with_delimiter(self.delimiter).with_header(header).with_null(self.null.clone());
        let mut writer = builder.build(Vec::new());
        writer.write(&batch)?;
        paper.write_all(&writer.into_inner())?;
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
