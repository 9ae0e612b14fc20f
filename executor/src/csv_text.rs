//! [`CsvText`]: rows as CSV in which NULL is not an empty text.
//!
//! ```text
//!   NULL                               nothing, or the text that was chosen for it; never between quotes
//!   ''                                 ""
//!   a value like the text for NULL     between quotes
//! ```
//!
//! arrow's writer gives NULL and '' the same form. Everything else is as it writes it.
//!
//! Keeps true   every row is a line that no reader skips: in a single column, NULL that is nothing would be an empty line,
//!              and is written as "".

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{DataType, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::config::CsvOptions;
use datafusion::common::parsers::CsvQuoteStyle;
use datafusion::common::{Result, plan_err};

/// How rows become text.
#[derive(Clone, Debug)]
pub struct CsvText {
    options: CsvOptions,
    null: String,
    /// Bytes that may only stand between quotes.
    is_special: [bool; 256],
}

impl CsvText {
    /// Fails if a NULL could not be told from something else.
    pub fn new(options: &CsvOptions) -> Result<Self> {
        let text = Self::of(options.clone());
        if let Some(byte) = text.null.bytes().find(|byte| text.is_special[usize::from(*byte)]) {
            let (shown, null) = (char::from(byte).escape_default(), &text.null);
            return plan_err!(
                "the text for NULL cannot hold '{shown}', which delimits, quotes or ends fields: choose another than '{null}'"
            );
        }
        Ok(text)
    }

    /// The usual form, with this text for NULL, which is quoted where it must be.
    pub fn plain(delimiter: u8, null: &str) -> Self {
        let mut text = Self::of(CsvOptions { delimiter, ..CsvOptions::default() });
        let mut quoted = vec![];
        if !null.is_empty() {
            text.value(null, &mut quoted);
            text.null = String::from_utf8_lossy(&quoted).into_owned();
        }
        text
    }

    fn of(options: CsvOptions) -> Self {
        let CsvOptions { delimiter, quote, terminator, comment, .. } = options;
        let null = options.null_value.clone().unwrap_or_default();
        let mut is_special = [false; 256];
        // A comment begins only with a line, but quotes do no harm elsewhere.
        for byte in [delimiter, quote, b'\r', b'\n'].into_iter().chain(terminator).chain(comment) {
            is_special[usize::from(byte)] = true;
        }
        Self { options, null, is_special }
    }

    /// The line with the names of the columns.
    pub fn header(&self, schema: &Schema, text: &mut Vec<u8>) {
        for (position, field) in schema.fields().iter().enumerate() {
            self.delimit(position, text);
            self.value(field.name(), text);
        }
        self.end(text);
    }

    /// A line for each row.
    pub fn rows(&self, batch: &RecordBatch, text: &mut Vec<u8>) -> Result<(), ArrowError> {
        let options = &self.options;
        let format = FormatOptions::default()
            .with_date_format(options.date_format.as_deref())
            .with_datetime_format(options.datetime_format.as_deref())
            .with_timestamp_format(options.timestamp_format.as_deref())
            .with_timestamp_tz_format(options.timestamp_tz_format.as_deref())
            .with_time_format(options.time_format.as_deref());
        let schema = batch.schema();
        let mut columns = Vec::with_capacity(batch.num_columns());
        for (array, field) in batch.columns().iter().zip(schema.fields()) {
            if array.data_type().is_nested() {
                let message = format!(
                    "column \"{}\" has the type {}, for which CSV has no form",
                    field.name(),
                    field.data_type()
                );
                return Err(ArrowError::CsvError(message));
            }
            let trims = is_text(array.data_type()) && (options.ignore_leading() || options.ignore_trailing());
            // Dictionaries and the like may have their nulls elsewhere than in the array itself.
            columns.push((array, array.logical_nulls(), ArrayFormatter::try_new(array.as_ref(), &format)?, trims));
        }
        let mut value = String::new();
        for row in 0..batch.num_rows() {
            for (position, (array, nulls, formatter, trims)) in columns.iter().enumerate() {
                self.delimit(position, text);
                if is_null(array, nulls.as_ref(), row) {
                    self.null(columns.len() == 1, text);
                    continue;
                }
                value.clear();
                formatter.value(row).write(&mut value)?;
                self.value(if *trims { options.trimmed(&value) } else { &value }, text);
            }
            self.end(text);
        }
        Ok(())
    }

    fn delimit(&self, position: usize, text: &mut Vec<u8>) {
        if position > 0 {
            text.push(self.options.delimiter);
        }
    }

    fn end(&self, text: &mut Vec<u8>) {
        text.push(self.options.terminator.unwrap_or(b'\n'));
    }

    fn null(&self, is_alone: bool, text: &mut Vec<u8>) {
        match self.null.is_empty() && is_alone && self.options.quote_style != CsvQuoteStyle::Never {
            true => text.extend([self.options.quote; 2]),
            false => text.extend(self.null.as_bytes()),
        }
    }

    fn value(&self, value: &str, text: &mut Vec<u8>) {
        let has_special = || value.bytes().any(|byte| self.is_special[usize::from(byte)]);
        let needs_quotes = || value.is_empty() || value == self.null || has_special();
        let quoted = match self.options.quote_style {
            CsvQuoteStyle::Always => true,
            CsvQuoteStyle::Necessary => needs_quotes(),
            CsvQuoteStyle::NonNumeric => value.parse::<f64>().is_err() || needs_quotes(),
            CsvQuoteStyle::Never => false,
        };
        if !quoted {
            text.extend(value.as_bytes());
            return;
        }
        let CsvOptions { quote, double_quote, .. } = self.options;
        let escape = self.options.escape.filter(|escape| *escape != quote);
        let before_quote = match (escape, double_quote) {
            (Some(escape), None | Some(false)) => escape,
            (None, Some(false)) => b'\\',
            _ => quote,
        };
        text.push(quote);
        for byte in value.bytes() {
            if byte == quote {
                text.push(before_quote);
            } else if escape == Some(byte) || (before_quote != quote && byte == before_quote) {
                // Its reader takes it for the beginning of something else.
                text.push(byte);
            }
            text.push(byte);
        }
        text.push(quote);
    }
}

/// What is cut off from texts.
trait Trims {
    fn ignore_leading(&self) -> bool;
    fn ignore_trailing(&self) -> bool;
    fn trimmed<'t>(&self, text: &'t str) -> &'t str;
}

impl Trims for CsvOptions {
    fn ignore_leading(&self) -> bool {
        self.ignore_leading_whitespace.unwrap_or(false)
    }

    fn ignore_trailing(&self) -> bool {
        self.ignore_trailing_whitespace.unwrap_or(false)
    }

    fn trimmed<'t>(&self, text: &'t str) -> &'t str {
        let text = if self.ignore_leading() { text.trim_start() } else { text };
        if self.ignore_trailing() { text.trim_end() } else { text }
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_null(array: &ArrayRef, nulls: Option<&arrow::buffer::NullBuffer>, row: usize) -> bool {
    match nulls {
        Some(nulls) => nulls.is_null(row),
        None => array.data_type() == &DataType::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{DictionaryArray, Int64Array, NullArray, StringArray};
    use arrow::datatypes::{Field, Int32Type};

    use super::*;

    fn text(options: CsvOptions, columns: Vec<ArrayRef>) -> String {
        let fields: Vec<Field> = columns
            .iter()
            .enumerate()
            .map(|(n, column)| Field::new(format!("c{n}"), column.data_type().clone(), true))
            .collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap();
        let writer = CsvText::new(&options).unwrap();
        let mut text = vec![];
        writer.rows(&batch, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn texts(values: &[Option<&str>]) -> ArrayRef {
        Arc::new(StringArray::from(values.to_vec()))
    }

    #[test]
    fn null_is_nothing_and_empty_is_quoted() {
        let ones: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
        let words = texts(&[Some(""), None, Some("x")]);
        assert_eq!(text(CsvOptions::default(), vec![Arc::clone(&ones), Arc::clone(&words)]), "1,\"\"\n,\n3,x\n");
        let null = CsvOptions { null_value: Some("x".into()), ..CsvOptions::default() };
        assert_eq!(text(null, vec![ones, words]), "1,\"\"\nx,x\n3,\"x\"\n");
    }

    #[test]
    fn a_line_is_never_empty() {
        assert_eq!(text(CsvOptions::default(), vec![texts(&[None, Some(""), Some("a")])]), "\"\"\n\"\"\na\n");
        let null = CsvOptions { null_value: Some("\\N".into()), ..CsvOptions::default() };
        assert_eq!(text(null, vec![texts(&[None, Some(""), Some("\\N")])]), "\\N\n\"\"\n\"\\N\"\n");
    }

    #[test]
    fn nulls_are_found_wherever_they_are() {
        let keys: DictionaryArray<Int32Type> = vec![Some(""), None, Some("a")].into_iter().collect();
        let nothing: ArrayRef = Arc::new(NullArray::new(3));
        assert_eq!(text(CsvOptions::default(), vec![Arc::new(keys), nothing]), "\"\",\n,\na,\n");
    }

    #[test]
    fn what_would_break_a_line_is_quoted() {
        let values = texts(&[Some("a,b"), Some("a\"b"), Some("a\nb"), Some("a\rb"), Some(" a "), Some("a\\b")]);
        let ones = texts(&[Some("1"); 6]);
        let plain = "\"a,b\",1\n\"a\"\"b\",1\n\"a\nb\",1\n\"a\rb\",1\n a ,1\na\\b,1\n";
        assert_eq!(text(CsvOptions::default(), vec![Arc::clone(&values), Arc::clone(&ones)]), plain);
        let escaped = CsvOptions { escape: Some(b'\\'), quote_style: CsvQuoteStyle::Always, ..CsvOptions::default() };
        let always =
            "\"a,b\",\"1\"\n\"a\\\"b\",\"1\"\n\"a\nb\",\"1\"\n\"a\rb\",\"1\"\n\" a \",\"1\"\n\"a\\\\b\",\"1\"\n";
        assert_eq!(text(escaped, vec![Arc::clone(&values), Arc::clone(&ones)]), always);
        let numbers = CsvOptions { quote_style: CsvQuoteStyle::NonNumeric, ..CsvOptions::default() };
        assert!(text(numbers, vec![values, ones]).starts_with("\"a,b\",1\n"));
    }

    #[test]
    fn a_plain_text_takes_any_null() {
        for (null, expected) in [("", ","), ("NULL", "NULL,NULL"), ("a,b", "\"a,b\",\"a,b\"")] {
            let text = CsvText::plain(b',', null);
            let columns = [("a", texts(&[None])), ("b", texts(&[None]))];
            let batch =
                RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
            let mut written = vec![];
            text.rows(&batch, &mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), format!("{expected}\n"));
        }
    }

    #[test]
    fn a_text_for_null_that_breaks_lines_is_refused() {
        for null in ["a,b", "\"", "\n"] {
            let options = CsvOptions { null_value: Some(null.into()), ..CsvOptions::default() };
            let error = CsvText::new(&options).unwrap_err().to_string();
            assert!(error.contains("the text for NULL"), "{error}");
        }
    }
}
