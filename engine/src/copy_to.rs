//! `COPY .. TO`: what the statement leaves unsaid is told by the name of its place.
//!
//! ```text
//!   x.csv  x.parquet  x.ndjson       the format
//!   x.csv.gz  .zst  .bz2  .xz        how the text is compressed
//!   x.tsv                            tabs between fields
//!   STDOUT, /dev/stdout, pipes       CSV
//! ```
//!
//! Keeps true   what was written can be read again by the same name: options that contradict it are refused.

use std::path::Path;

use datafusion::execution::context::SessionState;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::sql::parser::{CopyToStatement, Statement as DFStatement};
use nectarine_catalog::{Compression, FileFormatKind, FileKind};
use nectarine_executor::{CsvText, is_compression, parquet_compression, reader_options};
use nectarine_planner::sql::{ONE_FILE, STANDARD_OUTPUT};
use sqlparser::ast::Value;

use crate::copy_place::is_stream;
use crate::{EngineError, ErrorKind, Result};

/// Completes the statement, if it is a COPY, or explains one. Refuses what could not be read again.
pub(crate) fn prepare(statement: &mut DFStatement) -> Result<()> {
    match statement {
        DFStatement::Explain(explain) => prepare(&mut explain.statement),
        DFStatement::CopyTo(copy) => complete(copy),
        _ => Ok(()),
    }
}

fn complete(copy: &mut CopyToStatement) -> Result<()> {
    let target = copy.target.clone();
    let to_stdout = target == STANDARD_OUTPUT;
    let no_file = to_stdout || is_stream(Path::new(&target));
    let name = match no_file || target.ends_with('/') {
        true => "",
        false => target.rsplit('/').next().unwrap_or(&target),
    };
    let (stem, compression) = Compression::split(name);
    let by_name = FileKind::of(stem);
    let format = match (&copy.stored_as, by_name) {
        (Some(word), _) => FileFormatKind::parse(word).ok_or_else(|| {
            EngineError::new(ErrorKind::Sql, format!("unknown format \"{word}\""))
                .with_hint("choose one of PARQUET, CSV, JSON and ARROW")
        })?,
        (None, Some(kind)) => kind.format,
        (None, None) if no_file => FileFormatKind::Csv,
        (None, None) => {
            let text = format!("cannot tell the format of \"{target}\" from its name");
            return Err(EngineError::new(ErrorKind::Sql, text).with_hint("add STORED AS PARQUET, CSV, JSON or ARROW"));
        }
    };
    // DataFusion would go by the ending where it does not know the word.
    copy.stored_as = Some(format.to_string().to_ascii_uppercase());
    if !copy.partitioned_by.is_empty() && no_file {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" cannot have partitions", shown(&target))));
    }
    if no_file {
        set(copy, ONE_FILE, "true");
    }
    // The name of a folder says nothing of the files in it.
    if compression != Compression::None && copy.partitioned_by.is_empty() {
        check_compression(copy, &target, format, compression)?;
        set(copy, "format.compression", compression.option_value());
    }
    if format == FileFormatKind::Parquet {
        give_levels(copy)?;
    }
    if format == FileFormatKind::Csv {
        if by_name.is_some_and(|kind| kind.delimiter == Some(b'\t')) {
            set(copy, "format.delimiter", "\t");
        }
        if to_stdout {
            // As in PostgreSQL, and as FROM STDIN expects it.
            set(copy, "format.has_header", "false");
        }
    }
    Ok(())
}

/// Nobody has to know that compressions of Parquet have levels.
fn give_levels(copy: &mut CopyToStatement) -> Result<()> {
    for (key, value) in &mut copy.options {
        if let Value::SingleQuotedString(word) = value
            && normal(key).strip_prefix("format.").is_some_and(is_compression)
        {
            *word = parquet_compression(word)?;
        }
    }
    Ok(())
}

/// The place as people write it.
pub(crate) fn shown(target: &str) -> &str {
    if target == STANDARD_OUTPUT { "STDOUT" } else { target }
}

fn check_compression(copy: &CopyToStatement, target: &str, format: FileFormatKind, named: Compression) -> Result<()> {
    let ending = named.option_value();
    if !format.is_text() {
        let text =
            format!("cannot write {} to \"{target}\", whose name says {ending}", format.to_string().to_uppercase());
        return Err(EngineError::new(ErrorKind::Sql, text)
            .with_hint("the format compresses by itself: leave the last ending out"));
    }
    let Some(given) = option(copy, "format.compression") else { return Ok(()) };
    match Compression::parse(&given) {
        Some(given) if given != named => {
            let text = format!(
                "cannot write \"{target}\": its name says {ending}, its compression is {}",
                given.option_value()
            );
            Err(EngineError::new(ErrorKind::Sql, text).with_hint("leave the option or the last ending out"))
        }
        _ => Ok(()),
    }
}

/// The value of an option, however its name is written.
fn option(copy: &CopyToStatement, name: &str) -> Option<String> {
    let found = copy.options.iter().find(|(key, _)| normal(key) == name)?;
    match &found.1 {
        Value::SingleQuotedString(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Sets an option that was not given.
fn set(copy: &mut CopyToStatement, name: &str, value: &str) {
    if !copy.options.iter().any(|(key, _)| normal(key) == name) {
        copy.options.push((name.to_string(), Value::SingleQuotedString(value.to_string())));
    }
}

fn normal(key: &str) -> String {
    let key = key.to_ascii_lowercase();
    if key.contains('.') { key } else { format!("format.{key}") }
}

/// Fails for options that no file can be written with. DataFusion does not say which option it was.
pub(crate) fn check_options(copy: &CopyTo, state: &SessionState) -> Result<()> {
    let Some(format) = FileFormatKind::parse(&copy.file_type.get_ext()) else { return Ok(()) };
    let of_format = copy.options.iter().filter(|(key, _)| key.starts_with("format."));
    let options = of_format.map(|(key, value)| (key.clone(), value.clone())).collect();
    let options = reader_options(state.config_options(), format, &options)?;
    if format == FileFormatKind::Csv {
        CsvText::new(&options.csv)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nectarine_planner::sql::{ParseOptions, Statement, parse};

    use super::*;

    fn completed(sql: &str) -> Result<String> {
        let Ok(Some(Statement::DataFusion(mut statement))) = parse(sql, &ParseOptions::default()) else {
            panic!("{sql}")
        };
        prepare(&mut statement)?;
        Ok(statement.to_string())
    }

    #[test]
    fn names_tell_what_was_not_said() {
        for (sql, expected) in [
            ("COPY t TO 'x.csv'", "COPY t TO x.csv STORED AS CSV"),
            ("COPY t TO 'x.CSV.GZ'", "COPY t TO x.CSV.GZ STORED AS CSV OPTIONS ('format.compression' 'gzip')"),
            (
                "COPY t TO 'd/x.gz' STORED AS JSON",
                "COPY t TO d/x.gz STORED AS JSON OPTIONS ('format.compression' 'gzip')",
            ),
            (
                "COPY t TO 'x.csv.zst' OPTIONS (compression zstd)",
                "COPY t TO x.csv.zst STORED AS CSV OPTIONS ('format.compression' 'zstd')",
            ),
            (
                "COPY t TO 'x.csv' OPTIONS (compression gzip)",
                "COPY t TO x.csv STORED AS CSV OPTIONS ('format.compression' 'gzip')",
            ),
            ("COPY t TO 'x.tsv'", "COPY t TO x.tsv STORED AS CSV OPTIONS ('format.delimiter' '\t')"),
            (
                "COPY t TO 'x.tsv' OPTIONS (delimiter ';')",
                "COPY t TO x.tsv STORED AS CSV OPTIONS ('format.delimiter' ';')",
            ),
            ("COPY t TO 'x.jsonl'", "COPY t TO x.jsonl STORED AS JSON"),
            (
                "COPY t TO 'x.parquet' (COMPRESSION zstd)",
                "COPY t TO x.parquet STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)', 'copy.one_file' 'true')",
            ),
            (
                "COPY t TO 'x.parquet' OPTIONS ('format.compression' 'GZIP', 'format.compression::a' 'brotli')",
                "COPY t TO x.parquet STORED AS PARQUET OPTIONS ('format.compression' 'gzip(6)', 'format.compression::a' 'brotli(1)')",
            ),
            (
                "COPY t TO 'x.parquet' OPTIONS (compression 'zstd(9)')",
                "COPY t TO x.parquet STORED AS PARQUET OPTIONS ('format.compression' 'zstd(9)')",
            ),
            ("COPY t TO 'd.gz/' STORED AS CSV", "COPY t TO d.gz/ STORED AS CSV"),
            (
                "COPY t TO STDOUT",
                "COPY t TO stdout:// STORED AS CSV OPTIONS ('copy.one_file' 'true', 'format.has_header' 'false')",
            ),
            (
                "COPY t TO STDOUT (HEADER)",
                "COPY t TO stdout:// STORED AS CSV OPTIONS ('format.has_header' 'true', 'copy.one_file' 'true')",
            ),
        ] {
            assert_eq!(completed(sql).unwrap(), expected, "{sql}");
        }
        for (sql, expected) in [
            ("COPY t TO 'x.csv.gz' OPTIONS (compression zstd)", "its name says gzip, its compression is zstd"),
            ("COPY t TO 'x.csv.gz' (compression uncompressed)", "its name says gzip, its compression is uncompressed"),
            ("COPY t TO 'x.parquet.gz'", "cannot write PARQUET to \"x.parquet.gz\", whose name says gzip"),
            ("COPY t TO 'x.gz' STORED AS ARROW", "cannot write ARROW to"),
            ("COPY t TO 'x.gz'", "cannot tell the format of \"x.gz\" from its name"),
            ("COPY t TO 'x' (FORMAT text)", "unknown format \"TEXT\""),
            ("COPY t TO 'x.parquet' (COMPRESSION lzma)", "unknown compression \"lzma\" for Parquet"),
            ("COPY t TO 'x.parquet' (COMPRESSION 'zstd(')", "unknown compression \"zstd(\" for Parquet"),
            ("COPY t TO 'x.parquet' (COMPRESSION 'zstd(99)')", "unknown compression \"zstd(99)\" for Parquet"),
            ("COPY t TO 'x.parquet' (COMPRESSION 'snappy(1)')", "unknown compression \"snappy(1)\" for Parquet"),
            ("COPY t TO STDOUT STORED AS CSV PARTITIONED BY (a)", "\"STDOUT\" cannot have partitions"),
        ] {
            let error = completed(sql).unwrap_err().to_string();
            assert!(error.contains(expected), "{sql}: {error}");
        }
    }
}
