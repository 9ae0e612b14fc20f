//! [`Cells`]: values as text for people, with nothing in it that could move the cursor.

use std::borrow::Cow;
use std::fmt::Write;

use arrow::array::{Array, ArrayRef, StringArray};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};
use unicode_width::UnicodeWidthChar;

use crate::failure::Result;

/// Columns a tab advances to a multiple of.
const TAB_COLUMNS: usize = 8;

/// One column of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Numbers stand at the right.
    pub(crate) right: bool,
}

/// The columns of an answer.
pub(crate) fn columns(schema: &SchemaRef) -> Vec<Column> {
    let column = |field: &arrow::datatypes::FieldRef| Column {
        name: printable(field.name()).replace('\n', "\\n"),
        right: is_number(field.data_type()),
    };
    schema.fields().iter().map(column).collect()
}

fn is_number(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => is_number(value),
        DataType::RunEndEncoded(_, value) => is_number(value.data_type()),
        other => other.is_numeric(),
    }
}

/// A batch whose values can be asked for one by one.
pub(crate) struct Cells<'b> {
    columns: Vec<(ArrayFormatter<'b>, &'b ArrayRef, bool)>,
    null: &'b str,
}

impl<'b> Cells<'b> {
    pub(crate) fn new(batch: &'b RecordBatch, null: &'b str) -> Result<Self, ArrowError> {
        let options = FormatOptions::default()
            .with_null(null)
            .with_duration_format(DurationFormat::Pretty)
            .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
            .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
            .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
        let column = |array: &'b ArrayRef| {
            Ok((ArrayFormatter::try_new(array.as_ref(), &options)?, array, is_binary(array.data_type())))
        };
        let columns = batch.columns().iter().map(column).collect::<Result<_, ArrowError>>()?;
        Ok(Self { columns, null })
    }

    /// The value as text.
    pub(crate) fn text(&self, row: usize, column: usize) -> Result<String, ArrowError> {
        let (formatter, array, binary) = &self.columns[column];
        if array.is_null(row) {
            return Ok(self.null.to_owned());
        }
        let mut text = String::new();
        if *binary {
            text.push_str("\\x");
        }
        formatter.value(row).write(&mut text)?;
        Ok(text)
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_))
}

/// Text whose only control character is the newline: tabs become spaces, others are spelled out.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |character: char| character == '\n' || !(character.is_control() || is_direction_mark(character));
    if text.bytes().all(|byte| (b' '..0x7f).contains(&byte)) || text.chars().all(harmless) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    let mut column = 0;
    for character in text.chars() {
        match character {
            '\n' => {
                shown.push('\n');
                column = 0;
                continue;
            }
            '\t' => {
                let spaces = TAB_COLUMNS - column % TAB_COLUMNS;
                shown.extend(std::iter::repeat_n(' ', spaces));
                column += spaces;
                continue;
            }
            _ => {}
        }
        let start = shown.len();
        match character {
            '\r' => shown.push_str("\\r"),
            _ if harmless(character) => {
                shown.push(character);
                column += character.width().unwrap_or(0);
                continue;
            }
            _ if u32::from(character) < 0x100 => {
                let _ = write!(shown, "\\x{:02X}", u32::from(character));
            }
            _ => {
                let _ = write!(shown, "\\u{:04X}", u32::from(character));
            }
        }
        column += shown.len() - start;
    }
    Cow::Owned(shown)
}

/// Marks that turn the direction of what follows, up to the end of the line and beyond the cell.
fn is_direction_mark(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// The columns that `chosen` picks turned into text, for writers that do not know their types.
pub(crate) fn with_text_columns(
    batch: &RecordBatch,
    chosen: &[bool],
    text: impl Fn(&ArrayRef) -> Result<StringArray, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    if !chosen.contains(&true) {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let mut columns = Vec::with_capacity(batch.num_columns());
    for ((field, array), chosen) in schema.fields().iter().zip(batch.columns()).zip(chosen) {
        let array: ArrayRef = if *chosen { std::sync::Arc::new(text(array)?) } else { std::sync::Arc::clone(array) };
        columns.push((field.name().clone(), array, true));
    }
    let fields: Vec<_> = columns
        .iter()
        .map(|(name, array, nullable)| arrow::datatypes::Field::new(name, array.data_type().clone(), *nullable))
        .collect();
    let arrays = columns.into_iter().map(|(_, array, _)| array).collect();
    let options = arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(std::sync::Arc::new(arrow::datatypes::Schema::new(fields)), arrays, &options)
}

/// The values as text for people.
pub(crate) fn display_text(array: &ArrayRef) -> Result<StringArray, ArrowError> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
    (0..array.len())
        .map(|row| if array.is_null(row) { Ok(None) } else { formatter.value(row).try_to_string().map(Some) })
        .collect()
}
