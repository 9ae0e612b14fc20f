//! [`Json`]: rows as JSON objects, in one array or one per line. A NULL is written as `null`, so every object has every key.

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::WriterBuilder;
use arrow::json::writer::{JsonFormat, Writer};
use arrow::record_batch::RecordBatch;
use std::io::Write;

use super::cell::{display_text, with_text_columns};
use super::{Paper, Sink};
use crate::failure::Result;

/// Writes objects.
pub(super) struct Json<F: JsonFormat> {
    writer: Writer<Vec<u8>, F>,
    foreign: Vec<bool>,
}

impl<F: JsonFormat> Json<F> {
    pub(super) fn new(schema: SchemaRef) -> Self {
        let foreign = schema.fields().iter().map(|field| is_foreign(field.data_type())).collect();
        Self { writer: WriterBuilder::new().with_explicit_nulls(true).build(Vec::new()), foreign }
    }

    fn drain(&mut self, paper: &mut dyn Paper) -> Result<()> {
        let written = self.writer.get_mut();
        paper.write_all(written)?;
        written.clear();
        Ok(())
    }
}

impl<F: JsonFormat> Sink for Json<F> {
    fn batch(&mut self, batch: &RecordBatch, paper: &mut dyn Paper) -> Result<()> {
        let batch = with_text_columns(batch, &self.foreign, |array: &ArrayRef| display_text(array))?;
        self.writer.write(&batch)?;
        self.drain(paper)
    }

    fn finish(&mut self, paper: &mut dyn Paper) -> Result<()> {
        self.writer.finish()?;
        self.drain(paper)
    }
}

/// Types that JSON's writer has no words for.
pub(super) fn is_foreign(data_type: &DataType) -> bool {
    match data_type {
        DataType::Union(..) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => is_foreign(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| is_foreign(field.data_type())),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) => {
                let text_key = fields.first().is_some_and(|key| key.data_type().is_string());
                !text_key || fields.iter().any(|field| is_foreign(field.data_type()))
            }
            _ => true,
        },
        DataType::Dictionary(_, value) => is_foreign(value),
        DataType::RunEndEncoded(_, value) => is_foreign(value.data_type()),
        _ => false,
    }
}

/// One array with an object per line.
#[derive(Debug, Default)]
pub(super) struct Rows;

impl JsonFormat for Rows {
    fn start_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"[")?)
    }

    fn start_row<W: Write>(&self, writer: &mut W, is_first_row: bool) -> Result<(), ArrowError> {
        Ok(writer.write_all(if is_first_row { b"" } else { b",\n" })?)
    }

    fn end_stream<W: Write>(&self, writer: &mut W) -> Result<(), ArrowError> {
        Ok(writer.write_all(b"]\n")?)
    }
}
