//! The last record of a text file that has no end, and cannot be whole.
//!
//! ```text
//!   the text ends ..                      modified within 2 s    within 10 min   earlier
//!   in a record that could be whole       a row                  a row           a row
//!   with too few fields, in a JSON value  not there yet          not there yet   a row, which its reader refuses
//!   in a quoted field of one line         not there yet          not there yet   error: the quote is never closed
//!   in a quoted field of several lines    looked at until it     error           error
//!                                         rests or goes on
//! ```
//!
//! Who writes a log fills a buffer and hands on what fits, wherever the last record is then: so half a record may rest for
//! minutes, and is no fault of the records before it. A quote that is never closed is: it makes one field of all rows behind
//! it, and a file that somebody just saved must not lose them because it is young.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use super::csv::OpenQuote;
use super::dialect::TextDialect;
use crate::FileFormatKind;

/// How long the rest of a last record is waited for.
pub(crate) const UNFINISHED_NS: i64 = 600_000_000_000;

/// What became of a last record that cannot be whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unfinished {
    /// There is none.
    Nothing,
    /// It was left out: the rest may come.
    Waits,
    /// It was left out, and what looks like further records with it. Unless the file goes on growing, that is an error.
    Swallows,
}

/// What to say of a quote that is never closed, with the line that it is in.
pub(super) fn never_closed(file: &mut File, quote: OpenQuote) -> io::Result<io::Error> {
    file.seek(SeekFrom::Start(0))?;
    let (mut line, mut left) = (1, quote.at);
    let mut buffer = vec![0; 1 << 16];
    while left > 0 {
        let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let n_read = file.read(&mut buffer[..want])?;
        if n_read == 0 {
            break;
        }
        line += buffer[..n_read].iter().filter(|byte| **byte == b'\n').count() as u64;
        left -= n_read as u64;
    }
    Ok(io::Error::new(io::ErrorKind::InvalidData, quote.message(line)))
}

impl OpenQuote {
    /// What is wrong, for those who know the line.
    pub fn message(&self, line: u64) -> String {
        let Self { at, swallows_lines } = self;
        let inside = if *swallows_lines { ", so everything behind it would be one field" } else { "" };
        format!("the quote in line {line} (byte {at}) is never closed{inside}")
    }
}

/// The records of a local text file's whole text, without a last one that cannot be whole: what a table's columns are told
/// by. Text that is nothing but such a record is left as it is.
pub fn whole_records<'a>(
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    file_name: &str,
    text: &'a [u8],
) -> &'a [u8] {
    let Some(dialect) = TextDialect::for_files(format, options, file_name) else { return text };
    if !dialect.is_made_of_lines(text).unwrap_or(true) {
        return text;
    }
    let mut records = dialect.records(true);
    let end = records.last_end(text).unwrap_or(0);
    let (whole, last) = text.split_at(end);
    let is_whole = last.is_empty() || (records.open_quote().is_none() && dialect.may_be_whole(whole, last));
    if is_whole || whole.is_empty() { text } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_whole_is_left_out() {
        let options = BTreeMap::new();
        let csv = |text: &'static str| {
            let whole = whole_records(FileFormatKind::Csv, &options, "x.csv", text.as_bytes());
            str::from_utf8(whole).unwrap()
        };
        assert_eq!(csv("a,b\n1,2\n3"), "a,b\n1,2\n");
        assert_eq!(csv("a,b\n1,2\n3,4"), "a,b\n1,2\n3,4");
        assert_eq!(csv("a,b\n1,\"x\n3,4\n"), "a,b\n");
        assert_eq!(csv("a,b"), "a,b");
        assert_eq!(csv("\"a"), "\"a");
        let json = |text: &'static str| {
            let whole = whole_records(FileFormatKind::Json, &options, "x.json", text.as_bytes());
            str::from_utf8(whole).unwrap()
        };
        assert_eq!(json("{\"a\":1}\n{\"a\":"), "{\"a\":1}\n");
        assert_eq!(json("{\"a\":1}\n{\"a\":2}"), "{\"a\":1}\n{\"a\":2}");
        assert_eq!(json("{\n\"a\":1}"), "{\n\"a\":1}");
        assert_eq!(json("{\"a\":"), "{\"a\":");
        let packed = whole_records(FileFormatKind::Csv, &options, "x.csv.gz", b"a,b\n1");
        assert_eq!(packed, b"a,b\n1");
    }
}
