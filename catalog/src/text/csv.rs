//! [`CsvRecords`]: where CSV records end, as the reader that DataFusion uses sees it.
//!
//! A quote opens a quoted field only at the field's start; inside, a doubled quote or an escaped byte is a letter, and
//! so is the end of a line. Without a terminator of its own, a lone `\r` ends a record too, but is no place to cut.

use super::bytes::{find, find2, rfind};

/// Letters with a meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CsvDialect {
    /// Between fields.
    pub delimiter: u8,
    /// Around fields that hold letters with a meaning.
    pub quote: u8,
    /// Makes the next byte a letter, inside quotes.
    pub escape: Option<u8>,
    /// Ends records, instead of line ends.
    pub terminator: Option<u8>,
    /// Begins lines that are no records.
    pub comment: Option<u8>,
    /// Rows may have fewer fields than the first.
    pub truncated_rows: bool,
}

/// A quoted field that the text ends in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenQuote {
    /// Where the quote is, counted from the first byte that was looked at.
    pub at: u64,
    /// Whether records seem to end behind it: what looks like further rows is inside of the field.
    pub swallows_lines: bool,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self { delimiter: b',', quote: b'"', escape: None, terminator: None, comment: None, truncated_rows: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    RecordStart,
    FieldStart,
    InField,
    Quoted,
    /// A quote inside a quoted field: its end, or the first of two.
    QuoteSeen,
    Escaped,
    Comment,
}

/// Walks through a file in pieces of any size.
#[derive(Debug)]
pub struct CsvRecords {
    dialect: CsvDialect,
    state: State,
    file_start: bool,
    /// Bytes before those that are walked through.
    before: u64,
    quote: OpenQuote,
    inner_ends: bool,
}

impl CsvRecords {
    /// At the start of a record; a byte order mark is no part of a file's first one.
    pub fn new(dialect: CsvDialect, file_start: bool) -> Self {
        let quote = OpenQuote { at: 0, swallows_lines: false };
        Self { dialect, state: State::RecordStart, file_start, before: 0, quote, inner_ends: false }
    }

    /// Offset behind the last record that ends in `bytes`.
    pub fn last_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let skipped = if std::mem::take(&mut self.file_start) { bom_len(bytes) } else { 0 };
        self.before += skipped as u64;
        let last = if self.dialect.comment.is_some() {
            self.slowly(&bytes[skipped..])
        } else {
            self.quickly(&bytes[skipped..])
        };
        self.before += (bytes.len() - skipped) as u64;
        last.map(|end| end + skipped)
    }

    /// The quoted field that everything up to here ends in.
    pub fn open_quote(&self) -> Option<OpenQuote> {
        matches!(self.state, State::Quoted | State::Escaped).then_some(self.quote)
    }

    /// Whether what ends records was found inside of one: who looks for it in the middle of the text may find no record's
    /// end there.
    pub(super) fn has_inner_ends(&self) -> bool {
        self.inner_ends
    }

    fn open(&mut self, at: usize) {
        self.quote = OpenQuote { at: self.before + at as u64, swallows_lines: false };
    }

    /// Takes note of what a quoted field holds.
    fn inside(&mut self, bytes: &[u8]) {
        if !self.quote.swallows_lines && find(bytes, self.cut()).is_some() {
            self.quote.swallows_lines = true;
            self.inner_ends = true;
        }
    }

    /// From quote to quote; what lies between is searched, not walked through.
    fn quickly(&mut self, bytes: &[u8]) -> Option<usize> {
        let CsvDialect { quote, escape, .. } = self.dialect;
        let (mut at, mut last) = (0, None);
        while at < bytes.len() {
            match self.state {
                State::RecordStart | State::FieldStart | State::InField | State::Comment => {
                    let quote_at = find(&bytes[at..], quote).map(|found| at + found);
                    let plain = &bytes[at..quote_at.unwrap_or(bytes.len())];
                    if let Some(end) = rfind(plain, self.cut()) {
                        last = Some(at + end + 1);
                    }
                    if let Some(byte) = plain.last() {
                        self.state = self.after_plain(*byte);
                    }
                    let Some(quote_at) = quote_at else { break };
                    if self.state != State::InField {
                        self.state = State::Quoted;
                        self.open(quote_at);
                    }
                    at = quote_at + 1;
                }
                State::Quoted => {
                    let rest = &bytes[at..];
                    let found = match escape {
                        Some(escape) => find2(rest, quote, escape),
                        None => find(rest, quote),
                    };
                    self.inside(&rest[..found.unwrap_or(rest.len())]);
                    let Some(found) = found else { break };
                    self.state = if rest[found] == quote { State::QuoteSeen } else { State::Escaped };
                    at += found + 1;
                }
                State::QuoteSeen | State::Escaped => {
                    if self.step(bytes[at], at) {
                        last = Some(at + 1);
                    }
                    at += 1;
                    // Where everything is quoted, the next field opens at once.
                    if matches!(self.state, State::FieldStart | State::RecordStart) && bytes.get(at) == Some(&quote) {
                        self.state = State::Quoted;
                        self.open(at);
                        at += 1;
                    }
                }
            }
        }
        last
    }

    /// Byte by byte: comments may hold quotes.
    fn slowly(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut last = None;
        for (at, byte) in bytes.iter().enumerate() {
            if self.step(*byte, at) {
                last = Some(at + 1);
            }
        }
        last
    }

    /// Takes the byte at `at` of a piece; true if a record ends behind it.
    fn step(&mut self, byte: u8, at: usize) -> bool {
        let dialect = self.dialect;
        let before = self.state;
        self.state = match before {
            State::RecordStart if dialect.comment == Some(byte) => State::Comment,
            State::RecordStart | State::FieldStart if byte == dialect.quote => State::Quoted,
            State::RecordStart | State::FieldStart | State::InField => self.after_plain(byte),
            State::Quoted if byte == dialect.quote => State::QuoteSeen,
            State::Quoted if dialect.escape == Some(byte) => State::Escaped,
            State::Quoted | State::Escaped => State::Quoted,
            State::QuoteSeen if byte == dialect.quote => State::Quoted,
            State::QuoteSeen => self.after_plain(byte),
            State::Comment if byte == b'\n' => State::RecordStart,
            State::Comment => State::Comment,
        };
        match (before, self.state) {
            (State::RecordStart | State::FieldStart, State::Quoted) => self.open(at),
            (State::Quoted | State::Escaped, State::Quoted) if byte == self.cut() => self.inside(&[byte]),
            // A comment goes on to the end of its line, whatever ends records.
            (_, State::Comment) if byte == self.cut() => self.inner_ends = true,
            _ => {}
        }
        self.state == State::RecordStart && byte == self.cut()
    }

    fn after_plain(&self, byte: u8) -> State {
        let ends = match self.dialect.terminator {
            Some(terminator) => byte == terminator,
            None => byte == b'\n' || byte == b'\r',
        };
        // The reader looks for the delimiter first.
        if byte == self.dialect.delimiter {
            State::FieldStart
        } else if ends {
            State::RecordStart
        } else {
            State::InField
        }
    }

    fn cut(&self) -> u8 {
        self.dialect.terminator.unwrap_or(b'\n')
    }
}

/// Delimiters in the first record of `bytes`, and whether it ends inside quotes.
pub(crate) fn shape(dialect: CsvDialect, bytes: &[u8], file_start: bool) -> (usize, bool) {
    let mut records = CsvRecords::new(dialect, false);
    let mut n_delimiters = 0;
    let mut begun = false;
    for (at, byte) in bytes[if file_start { bom_len(bytes) } else { 0 }..].iter().enumerate() {
        records.step(*byte, at);
        n_delimiters += usize::from(records.state == State::FieldStart);
        begun |= !matches!(records.state, State::RecordStart | State::Comment);
        if begun && records.state == State::RecordStart {
            return (n_delimiters, false);
        }
    }
    (n_delimiters, matches!(records.state, State::Quoted | State::Escaped))
}

/// Whether a record begins in `bytes`, with which a file begins: blank lines and comments are none.
pub(super) fn has_record(dialect: CsvDialect, bytes: &[u8]) -> bool {
    let mut records = CsvRecords::new(dialect, false);
    bytes[bom_len(bytes)..].iter().enumerate().any(|(at, byte)| {
        records.step(*byte, at);
        !matches!(records.state, State::RecordStart | State::Comment)
    })
}

fn bom_len(bytes: &[u8]) -> usize {
    if bytes.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::csv::ReaderBuilder;
    use arrow::datatypes::{DataType, Field, Schema};

    use super::*;

    fn last_end(dialect: CsvDialect, text: &[u8], piece: usize) -> Option<usize> {
        let mut records = CsvRecords::new(dialect, true);
        let mut last = None;
        for (nth, bytes) in text.chunks(piece).enumerate() {
            last = records.last_end(bytes).map(|end| nth * piece + end).or(last);
        }
        last
    }

    #[test]
    fn records_end_outside_of_quotes() {
        let plain = CsvDialect::default();
        let escape = CsvDialect { escape: Some(b'\\'), ..plain };
        let semicolon = CsvDialect { terminator: Some(b';'), ..plain };
        let comment = CsvDialect { comment: Some(b'#'), ..plain };
        let cases: [(CsvDialect, &str, Option<usize>); 16] = [
            (plain, "", None),
            (plain, "a,b", None),
            (plain, "a,b\n", Some(4)),
            (plain, "a,b\r\nc", Some(5)),
            (plain, "a\n\"x\ny\n", Some(2)),
            (plain, "a\n\"x\ny\"\n", Some(8)),
            (plain, "a\n\"x\"\"\ny\"\nz", Some(10)),
            (plain, "5\" disk\nb", Some(8)),
            (plain, "a\"\nb\"\nc", Some(6)),
            (plain, "\u{feff}\"a\nb\"\n", Some(9)),
            (escape, "\"a\\\"\n\"\nb", Some(7)),
            (escape, "\"a\\\\\"\nb", Some(6)),
            (semicolon, "a\n;b", Some(3)),
            (comment, "#\"x\n\"a\nb\"", Some(4)),
            (comment, "a#\"\nb", Some(4)),
            (plain, "\"a\"x\n\"y", Some(5)),
        ];
        for (dialect, text, expected) in cases {
            for piece in [1, 2, 3, 7, 1000] {
                assert_eq!(last_end(dialect, text.as_bytes(), piece), expected, "{text:?} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn shapes() {
        let plain = CsvDialect::default();
        assert_eq!(shape(plain, b"a,b,c\n1,2", true), (2, false));
        assert_eq!(shape(plain, b"\n\na,\"b,\nc\"\n", true), (1, false));
        assert_eq!(shape(plain, b"1,\"x", false), (1, true));
        assert_eq!(shape(plain, b"1,\"x\"", false), (1, false));
        let comment = CsvDialect { comment: Some(b'#'), ..plain };
        assert_eq!(shape(comment, b"# a,b,c\nx,y\n", true), (1, false));
    }

    /// Rows that the reader makes of a text; fields are unlimited, so every row is legal.
    fn rows(dialect: CsvDialect, text: &[u8]) -> Vec<Vec<String>> {
        const WIDTH: usize = 12;
        let fields: Vec<Field> = (0..WIDTH).map(|n| Field::new(n.to_string(), DataType::Utf8, true)).collect();
        let mut builder = ReaderBuilder::new(Arc::new(Schema::new(fields)))
            .with_truncated_rows(true)
            .with_quote(dialect.quote)
            .with_delimiter(dialect.delimiter);
        if let Some(escape) = dialect.escape {
            builder = builder.with_escape(escape);
        }
        if let Some(terminator) = dialect.terminator {
            builder = builder.with_terminator(terminator);
        }
        if let Some(comment) = dialect.comment {
            builder = builder.with_comment(comment);
        }
        let mut rows = Vec::new();
        for batch in builder.build(text).unwrap() {
            let batch = batch.unwrap();
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|column| {
                    arrow::array::AsArray::as_string::<i32>(column.as_ref())
                        .iter()
                        .map(|cell| cell.unwrap_or("").to_owned())
                        .collect::<Vec<_>>()
                })
                .collect();
            rows.extend((0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
        }
        rows
    }

    /// The reader is the judge: both sides of every cut, read apart, give the rows of the whole.
    #[test]
    fn a_cut_changes_no_row() {
        let plain = CsvDialect::default();
        let dialects = [
            plain,
            CsvDialect { escape: Some(b'\\'), ..plain },
            CsvDialect { terminator: Some(b';'), ..plain },
            CsvDialect { comment: Some(b'#'), ..plain },
            CsvDialect { quote: b'\'', delimiter: b'\t', ..plain },
        ];
        let letters = b"a\",\n\r'\\;#\tb\n\n\"\"";
        let mut seed: u64 = 1;
        let mut random = move |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % below
        };
        let mut n_cuts = 0;
        for nth in 0..20_000 {
            let dialect = dialects[nth % dialects.len()];
            let text: Vec<u8> = (0..1 + random(24)).map(|_| letters[random(letters.len())]).collect();
            if text.iter().filter(|byte| **byte == dialect.delimiter).count() > 10 {
                continue;
            }
            let piece = 1 + random(9);
            let slow = CsvRecords::new(dialect, true).slowly(&text);
            assert_eq!(last_end(dialect, &text, piece), slow, "{:?}", String::from_utf8_lossy(&text));
            let Some(cut) = slow else { continue };
            n_cuts += 1;
            let mut apart = rows(dialect, &text[..cut]);
            apart.extend(rows(dialect, &text[cut..]));
            assert_eq!(apart, rows(dialect, &text), "{dialect:?} {:?} cut at {cut}", String::from_utf8_lossy(&text));
        }
        assert!(n_cuts > 5_000, "{n_cuts}");
    }
}
