//! [`TextDialect`]: how a text file is cut into records, told by the table's options and the file's name.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;

use super::bytes::rfind;
use super::csv::{CsvDialect, CsvRecords, OpenQuote, has_record, shape};
use super::{json, read_some};
use crate::location::{Compression, FileKind};
use crate::{ByteRange, ExternalSource, FileFormatKind};

/// A first line or an unfinished record that is longer is taken for what it seems to be.
const LOOK_BYTES: u64 = 16 << 20;

/// Most first lines are shorter.
const FIRST_LINE_BYTES: u64 = 64 << 10;

/// How records end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TextDialect {
    /// Delimited text.
    Csv(CsvDialect),
    /// One JSON value per line.
    Json,
}

/// Where records end, piece by piece.
pub(super) enum Records {
    Csv(CsvRecords),
    Json,
}

impl Records {
    /// Offset behind the last record that ends in `bytes`.
    pub(super) fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Csv(records) => records.last_end(bytes),
            Self::Json => rfind(bytes, b'\n').map(|at| at + 1),
        }
    }

    /// The quoted field that the text up to here ends in.
    pub(super) fn open_quote(&self) -> Option<OpenQuote> {
        match self {
            Self::Csv(records) => records.open_quote(),
            Self::Json => None,
        }
    }

    /// Whether each line end up to here was a record's end.
    pub(super) fn were_lines(&self) -> bool {
        match self {
            Self::Csv(records) => !records.has_inner_ends(),
            Self::Json => true,
        }
    }
}

impl TextDialect {
    /// How a file of the table is cut; `None` if it is not text, or packed, or not made of lines.
    pub(crate) fn of(source: &ExternalSource, file_name: &str) -> Option<Self> {
        Self::for_files(source.format, &source.options, file_name)
    }

    pub(super) fn for_files(
        format: FileFormatKind,
        options: &BTreeMap<String, String>,
        file_name: &str,
    ) -> Option<Self> {
        if compression(options, file_name) != Compression::None {
            return None;
        }
        match format {
            FileFormatKind::Csv => csv(options, file_name).map(Self::Csv),
            FileFormatKind::Json => {
                let lines =
                    option(options, "newline_delimited").is_none_or(|value| !value.eq_ignore_ascii_case("false"));
                lines.then_some(Self::Json)
            }
            FileFormatKind::Parquet | FileFormatKind::Arrow | FileFormatKind::Avro => None,
        }
    }

    pub(super) fn records(&self, file_start: bool) -> Records {
        match self {
            Self::Csv(dialect) => Records::Csv(CsvRecords::new(*dialect, file_start)),
            Self::Json => Records::Json,
        }
    }

    /// Whether the file's lines are records. A JSON document over several lines is not made of lines.
    pub(super) fn can_be_cut(&self, file: &mut File, size: u64) -> io::Result<bool> {
        let whole = ByteRange { start: 0, end: size };
        if let Some(is_cut) = self.is_made_of_lines(&read_some(file, whole, FIRST_LINE_BYTES)?) {
            return Ok(is_cut);
        }
        Ok(self.is_made_of_lines(&read_some(file, whole, LOOK_BYTES)?).unwrap_or(true))
    }

    /// The same for a file that begins like this; `None` if that does not tell.
    pub(super) fn is_made_of_lines(&self, start: &[u8]) -> Option<bool> {
        match self {
            Self::Csv(_) => Some(true),
            Self::Json => json::first_line_is_value(start),
        }
    }

    /// Whether a file's first range has its first record, which may be its header.
    pub(super) fn has_first_record(&self, file: &mut File, first: ByteRange) -> io::Result<bool> {
        let Self::Csv(dialect) = self else { return Ok(true) };
        Ok(has_record(*dialect, &read_some(file, first, FIRST_LINE_BYTES)?)
            || first.len() > LOOK_BYTES
            || (first.len() > FIRST_LINE_BYTES && has_record(*dialect, &read_some(file, first, LOOK_BYTES)?)))
    }

    /// Whether a last record without an end, which no quoted field is open in, could be whole.
    pub(super) fn may_be_record(&self, file: &mut File, tail: ByteRange) -> io::Result<bool> {
        if tail.len() > LOOK_BYTES {
            return Ok(true);
        }
        let bytes = read_some(file, tail, LOOK_BYTES)?;
        let first = read_some(file, ByteRange { start: 0, end: tail.start }, 1 << 20)?;
        Ok(self.may_be_whole(&first, &bytes))
    }

    /// The same for `last`, in a file that begins with `first`.
    pub(super) fn may_be_whole(&self, first: &[u8], last: &[u8]) -> bool {
        match self {
            Self::Json => json::is_value(last),
            Self::Csv(dialect) => {
                let (n_delimiters, open) = shape(*dialect, last, first.is_empty());
                if open || dialect.truncated_rows || first.is_empty() {
                    return !open;
                }
                n_delimiters >= shape(*dialect, first, true).0
            }
        }
    }
}

/// An option by its name, with or without `format.` before it.
pub(crate) fn option<'a>(options: &'a BTreeMap<String, String>, name: &str) -> Option<&'a str> {
    options.get(&format!("format.{name}")).or_else(|| options.get(name)).map(String::as_str)
}

fn compression(options: &BTreeMap<String, String>, file_name: &str) -> Compression {
    match option(options, "compression") {
        // An unknown word is the reader's to refuse; to us it is not plain text.
        Some(word) => Compression::parse(word).unwrap_or(Compression::Gzip),
        None => Compression::split(file_name).1,
    }
}

fn csv(options: &BTreeMap<String, String>, file_name: &str) -> Option<CsvDialect> {
    let default = CsvDialect::default();
    let letter = |name: &str| option(options, name).map(letter);
    // A letter that is not one byte: who knows what the reader makes of it.
    let required = |name: &str, default: u8| letter(name).map_or(Some(default), |found| found);
    let optional = |name: &str| letter(name).map_or(Some(None), |found| found.map(Some));
    let tab = FileKind::of(file_name).and_then(|kind| kind.delimiter);
    Some(CsvDialect {
        delimiter: required("delimiter", tab.unwrap_or(default.delimiter))?,
        quote: required("quote", default.quote)?,
        escape: optional("escape")?,
        terminator: optional("terminator")?,
        comment: optional("comment")?,
        truncated_rows: option(options, "truncated_rows").is_some_and(|value| value.eq_ignore_ascii_case("true")),
    })
}

fn letter(text: &str) -> Option<u8> {
    match text {
        "\\t" => Some(b'\t'),
        "\\n" => Some(b'\n'),
        "\\r" => Some(b'\r'),
        "\\\\" => Some(b'\\'),
        _ => match text.as_bytes() {
            [byte] => Some(*byte),
            _ => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialect(format: FileFormatKind, options: &[(&str, &str)], name: &str) -> Option<TextDialect> {
        let source = ExternalSource {
            location: String::new(),
            more_locations: Vec::new(),
            format,
            partition_columns: Vec::new(),
            options: options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            content_fingerprint: false,
            order: Vec::new(),
        };
        TextDialect::of(&source, name)
    }

    #[test]
    fn options_and_names_decide() {
        let plain = CsvDialect::default();
        let csv = |options: &[(&str, &str)], name: &str| dialect(FileFormatKind::Csv, options, name);
        assert_eq!(csv(&[], "x.csv"), Some(TextDialect::Csv(plain)));
        assert_eq!(csv(&[], "x.tsv"), Some(TextDialect::Csv(CsvDialect { delimiter: b'\t', ..plain })));
        assert_eq!(
            csv(&[("format.delimiter", ";"), ("quote", "'")], "x.tsv"),
            Some(TextDialect::Csv(CsvDialect { delimiter: b';', quote: b'\'', ..plain }))
        );
        assert_eq!(
            csv(&[("format.escape", "\\")], "x"),
            Some(TextDialect::Csv(CsvDialect { escape: Some(b'\\'), ..plain }))
        );
        assert_eq!(csv(&[], "x.csv.gz"), None);
        assert_eq!(csv(&[("format.compression", "zstd")], "x.csv"), None);
        assert_eq!(csv(&[("compression", "uncompressed")], "x.csv.gz"), Some(TextDialect::Csv(plain)));
        assert_eq!(csv(&[("format.delimiter", "||")], "x.csv"), None);
        assert_eq!(dialect(FileFormatKind::Json, &[], "x.json"), Some(TextDialect::Json));
        assert_eq!(dialect(FileFormatKind::Json, &[("format.newline_delimited", "false")], "x.json"), None);
        assert_eq!(dialect(FileFormatKind::Parquet, &[], "x.parquet"), None);
    }
}
