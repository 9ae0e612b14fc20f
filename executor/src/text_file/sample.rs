//! Columns of a text file, told by its first records.
//!
//! Reads as much as it takes for so many records, whole ones: a log whose last line is just being written has columns, too. An
//! array's elements are asked for by DataFusion.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::csv::reader::Format;
use arrow::datatypes::Schema;
use datafusion::common::config::{CsvOptions, TableOptions};
use datafusion::common::{Result, plan_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::physical_plan::metrics::Count;
use futures::StreamExt;
use nectarine_catalog::{CsvDialect, CsvRecords, FileFormatKind, whole_records};
use object_store::{GetOptions, ObjectMeta, ObjectStore};
use regex::Regex;

use super::bytes;
use super::json_order::Order;
use super::json_sample::json_columns;
use super::start::{check, without_mark};
use crate::format::compression_of;

/// Records that are looked at, unless the table says otherwise.
pub(crate) const SAMPLE_RECORDS: usize = 1000;

/// Of the beginnings of so many arrays, and so much of each, names are taken in order.
const ORDER_FILES: usize = 16;
const ORDER_BYTES: usize = 1 << 20;

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
    let mut pieces = bytes::unpacked(result.payload, compression, false, Count::new())?;
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
            _ => json_columns(without_mark(sample), n_records, !has_ended)?,
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
    Ok(format.infer_schema(without_mark(text), Some(n_records))?)
}

/// Columns of files that are arrays, in the order in which they come.
pub(crate) async fn in_order_of_array(
    store: &Arc<dyn ObjectStore>,
    files: &[ObjectMeta],
    options: &BTreeMap<String, String>,
    schema: &Schema,
) -> Result<Schema> {
    let mut order = Order::default();
    for file in files.iter().take(ORDER_FILES) {
        let compression = compression_of(file.location.as_ref(), options)?;
        let result = store.get_opts(&file.location, GetOptions::default()).await?;
        let mut pieces = bytes::unpacked(result.payload, compression.into(), false, Count::new())?;
        let mut text = Vec::new();
        while text.len() < ORDER_BYTES
            && let Some(piece) = pieces.next().await
        {
            text.extend_from_slice(&piece?);
        }
        order.note_array(without_mark(&text));
        if order.knows(schema.fields()) {
            break;
        }
    }
    Ok(Schema::new_with_metadata(order.put(schema.fields()), schema.metadata().clone()))
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
