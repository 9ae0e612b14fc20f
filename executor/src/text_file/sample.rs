//! Columns of a text file, told by its first records.
//!
//! Reads as much as it takes for so many records, whole ones: a log whose last line is just being written has columns, too.
//! The elements of a JSON array are records as well, over however many lines each is.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::csv::reader::Format;
use arrow::datatypes::Schema;
use arrow::error::ArrowError;
use datafusion::common::config::{CsvOptions, TableOptions};
use datafusion::common::{Result, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::physical_plan::metrics::Count;
use futures::StreamExt;
use nectarine_catalog::{CsvDialect, CsvRecords, FileFormatKind, whole_records};
use object_store::{GetOptions, ObjectMeta, ObjectStore};
use regex::Regex;

use super::bytes;
use super::json_sample::{Records, json_columns};
use super::start::{check, without_mark};
use crate::format::compression_of;

/// Records that are looked at, unless the table says otherwise.
pub(crate) const SAMPLE_RECORDS: usize = 1000;

/// What a text file says of its columns, and by how many records.
pub(crate) async fn columns_of_text(
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    reader: &TableOptions,
    compression: FileCompressionType,
    n_records: usize,
) -> Result<(Schema, usize)> {
    let result = store.get_opts(&file.location, GetOptions::default()).await?;
    let records = match format == FileFormatKind::Json && !reader.json.newline_delimited {
        true => Records::Elements,
        false => Records::Lines,
    };
    let mut pieces = bytes::unpacked(result.payload, compression, records == Records::Elements, Count::new())?;
    let mut text = Vec::new();
    let (mut n_lines, mut has_ended) = (0, false);
    let ends_record = match format {
        FileFormatKind::Csv => reader.csv.terminator.unwrap_or(b'\n'),
        _ => b'\n',
    };
    // A header, and an empty line here and there.
    let mut wanted_lines = n_records.saturating_add(16);
    loop {
        while n_lines < wanted_lines && !has_ended {
            match pieces.next().await {
                Some(piece) => {
                    let piece = piece?;
                    n_lines += piece.iter().filter(|byte| **byte == ends_record).count();
                    text.extend_from_slice(&piece);
                }
                None => has_ended = true,
            }
        }
        check(&text)?;
        let name = file.location.filename().unwrap_or_default();
        let sample = match has_ended {
            true => whole_records(format, options, name, &text),
            false => up_to_last_end(format, &reader.csv, &text),
        };
        let (schema, n_read) = match format {
            FileFormatKind::Csv => csv_columns(&reader.csv, sample, n_records)?,
            _ => json_columns(records, without_mark(sample), n_records, !has_ended)?,
        };
        if has_ended || n_read >= n_records {
            return Ok((schema, n_read));
        }
        wanted_lines = wanted_lines.saturating_mul(2);
    }
}

/// The part of a text that goes on in which all records are whole.
fn up_to_last_end<'a>(format: FileFormatKind, options: &CsvOptions, text: &'a [u8]) -> &'a [u8] {
    let end = match format {
        FileFormatKind::Csv => CsvRecords::new(dialect(options), true).last_end(text),
        _ => text.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1),
    };
    &text[..end.unwrap_or(0)]
}

/// The letters that options give a meaning.
pub(crate) fn dialect(options: &CsvOptions) -> CsvDialect {
    CsvDialect {
        delimiter: options.delimiter,
        quote: options.quote,
        escape: options.escape,
        terminator: options.terminator,
        comment: options.comment,
        truncated_rows: options.truncated_rows.unwrap_or(false),
    }
}

/// How Arrow reads CSV of these options.
pub(crate) fn csv_format(options: &CsvOptions) -> Format {
    let mut format = Format::default()
        .with_header(options.has_header.unwrap_or(true))
        .with_delimiter(options.delimiter)
        .with_quote(options.quote)
        .with_truncated_rows(options.truncated_rows.unwrap_or(false));
    if let Some(escape) = options.escape {
        format = format.with_escape(escape);
    }
    if let Some(terminator) = options.terminator {
        format = format.with_terminator(terminator);
    }
    if let Some(comment) = options.comment {
        format = format.with_comment(comment);
    }
    format
}

fn csv_columns(options: &CsvOptions, text: &[u8], n_records: usize) -> Result<(Schema, usize)> {
    let mut format = csv_format(options);
    if let Some(pattern) = &options.null_regex {
        match Regex::new(pattern) {
            Ok(regex) => format = format.with_null_regex(regex),
            Err(error) => return plan_err!("format.null_regex \"{pattern}\" is no regular expression: {error}"),
        }
    }
    Ok(format.infer_schema(without_mark(text), Some(n_records)).map_err(fields_meant)?)
}

/// Arrow says records where it means fields.
fn fields_meant(error: ArrowError) -> ArrowError {
    let told = match &error {
        ArrowError::CsvError(text) => unequal(text),
        _ => None,
    };
    told.map_or(error, ArrowError::CsvError)
}

/// `Encountered unequal lengths between records on CSV file. Expected 2 records, found 1 records at line 3`
fn unequal(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("unequal lengths between records on CSV file. Expected ")?;
    let (expected, rest) = rest.split_once(" records, found ")?;
    let (found, place) = rest.split_once(" records")?;
    Some(format!("{}{place}", of_other_length(expected, found)))
}

/// What is told of a row that has more or fewer fields than the others.
pub(crate) fn of_other_length(expected: &str, found: &str) -> String {
    let fields = if found == "1" { "field" } else { "fields" };
    let are = if expected == "1" { "is" } else { "are" };
    format!("a row has {found} {fields} where {expected} {are} expected")
}

/// Whether a JSON file is one array.
pub async fn is_json_array(
    store: &Arc<dyn ObjectStore>,
    file: &ObjectMeta,
    options: &BTreeMap<String, String>,
) -> Result<bool> {
    let compression = compression_of(file.location.as_ref(), options)?;
    let result = store.get_opts(&file.location, GetOptions::default()).await?;
    let mut pieces = bytes::unpacked(result.payload, compression.into(), false, Count::new())?;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        if let Some(first) = without_mark(&piece).iter().find(|byte| !byte.is_ascii_whitespace()) {
            return Ok(*first == b'[');
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_other_lengths_have_fields() {
        let options = CsvOptions::default();
        for (text, told) in [
            ("a,b\n1,2\n3\n", "a row has 1 field where 2 are expected at line 3"),
            ("a\n1,2,3\n", "a row has 3 fields where 1 is expected at line 2"),
        ] {
            let error = csv_columns(&options, text.as_bytes(), 10).unwrap_err().to_string();
            assert!(error.contains(told), "{error}");
        }
    }
}
