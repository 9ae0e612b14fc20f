//! Growing, rewritten and broken text files, on a real disk with a clock of our own.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::csv::CsvDialect;
use super::*;
use crate::RACY_NS;

const CSV: TextDialect = TextDialect::Csv(CsvDialect {
    delimiter: b',',
    quote: b'"',
    escape: None,
    terminator: None,
    comment: None,
    truncated_rows: false,
});

struct Log {
    _folder: tempfile::TempDir,
    path: PathBuf,
    dialect: TextDialect,
    known: Vec<TextRange>,
    unfinished: Unfinished,
}

impl Log {
    fn new(dialect: TextDialect, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        fs::write(&path, text).unwrap();
        Self { _folder: folder, path, dialect, known: Vec::new(), unfinished: Unfinished::Nothing }
    }

    fn append(&self, text: &str) {
        fs::OpenOptions::new().append(true).open(&self.path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn write(&self, text: &str) {
        fs::write(&self.path, text).unwrap();
    }

    /// Looks at the file and returns `start..end` of each range, `~` before a tail, `=` before one that was known.
    fn look_at(&mut self, rested: bool) -> Vec<String> {
        self.look_after(if rested { 2 * UNFINISHED_NS } else { 0 }).unwrap()
    }

    /// The same so long after it was modified.
    fn look_after(&mut self, rested_ns: i64) -> io::Result<Vec<String>> {
        let location = Arc::from("file:///log");
        let modified = FileIdentity::of_local(Arc::clone(&location), &fs::metadata(&self.path).unwrap());
        let look = look(&self.path, &location, &self.dialect, &self.known, &[], modified.ctime_ns + rested_ns)?;
        assert!(look.steady);
        let shown = look.ranges.iter().map(|range| {
            let known = self.known.iter().any(|old| old.fingerprint == range.fingerprint);
            let mark = format!("{}{}", if known { "=" } else { "" }, if range.tail { "~" } else { "" });
            range.range.map_or_else(|| format!("{mark}whole"), |bytes| format!("{mark}{}..{}", bytes.start, bytes.end))
        });
        let shown = shown.collect();
        self.known = look.ranges;
        self.unfinished = look.unfinished;
        Ok(shown)
    }

    fn look(&mut self) -> Vec<String> {
        self.look_at(true)
    }
}

#[test]
fn a_growing_log_keeps_its_ranges() {
    let mut log = Log::new(TextDialect::Json, "{\"a\":1}\n{\"a\":2}\n");
    assert_eq!(log.look(), ["0..16"]);
    assert_eq!(log.look(), ["=0..16"]);
    log.append("{\"a\":3}\n");
    assert_eq!(log.look(), ["=0..16", "16..24"]);
    log.append("{\"a\":4}\n{\"a\":5}\n{}");
    assert_eq!(log.look(), ["=0..16", "=16..24", "24..40", "~40..42"]);
    assert_eq!(log.look(), ["=0..16", "=16..24", "=24..40", "=~40..42"], "nothing happened");
    log.append("\n{\"a\":6}\n");
    assert_eq!(log.look(), ["=0..16", "=16..24", "=24..40", "40..51"], "the tail became part of the new range");
}

#[test]
fn nothing_is_cut_off_before_the_first_record() {
    let TextDialect::Csv(plain) = CSV else { return };
    let comments = TextDialect::Csv(CsvDialect { comment: Some(b'#'), ..plain });
    for (dialect, blank) in [(CSV, "\n"), (CSV, "\u{feff}\r\n\n"), (comments, "# begun\n\n#\n")] {
        let mut log = Log::new(dialect, blank);
        let n = blank.len();
        assert_eq!(log.look_at(true), [format!("~0..{n}")], "{blank:?}");
        log.write(&format!("{blank}a,b\n1,2\n"));
        assert_eq!(log.look_at(true), [format!("0..{}", n + 8)], "{blank:?}");
        log.append("3,4\n");
        assert_eq!(log.look_at(true), [format!("=0..{}", n + 8), format!("{}..{}", n + 8, n + 12)], "{blank:?}");
    }
    // Cut by an older version.
    let mut log = Log::new(CSV, "\n");
    log.look_at(true);
    log.known[0].tail = false;
    log.append("a,b\n");
    assert_eq!(log.look_at(true), ["0..5"]);
}

#[test]
fn rewritten_truncated_and_replaced_files_are_new() {
    let mut log = Log::new(TextDialect::Json, "{\"a\":1}\n");
    log.look();
    log.append("{\"a\":2}\n");
    assert_eq!(log.look(), ["=0..8", "8..16"]);
    log.write("{\"a\":9}\n{\"a\":2}\n{\"a\":3}\n");
    assert_eq!(log.look(), ["0..24"], "rewritten and longer");
    log.write("{\"a\":9}\n");
    assert_eq!(log.look(), ["0..8"], "truncated");
    log.write("{\"a\":8}\n");
    assert_eq!(log.look(), ["0..8"], "same size");
    log.write("{\"a\":8}\n");
    assert_eq!(log.look(), ["=0..8"], "same bytes");
    log.write("{\"a\":8}\n{\"a\":7}\n");
    assert_eq!(log.look(), ["=0..8", "8..16"], "rewritten with the same beginning is growth");
    log.write("");
    assert_eq!(log.look(), [""; 0]);
}

#[test]
fn quoted_line_ends_are_not_record_ends() {
    let mut log = Log::new(CSV, "a,b\n1,\"x\ny");
    assert_eq!(log.look_at(false), ["0..4"], "the quoted field is being written");
    log.append("\"\n2,z\n");
    assert_eq!(log.look(), ["=0..4", "4..16"]);
    let lines: Vec<bool> = log.known.iter().map(|range| range.lines).collect();
    assert_eq!(lines, [false, false], "the first look ended in quotes, and the second range holds them");
    log.append("3,z\n");
    assert_eq!(log.look(), ["=0..4", "=4..16", "16..20"]);
    assert!(log.known[2].lines);
}

/// What is behind a quote that is never closed is not one field, and not nothing.
#[test]
fn a_quote_that_is_never_closed() {
    const ALL: [i64; 3] = [0, 2 * RACY_NS, 2 * UNFINISHED_NS];
    // Rows behind the quote: an error, once nobody goes on writing.
    let swallowing = "a,b\n1,2\n3,\"x\n4,5\n6,7\n";
    for (rested_ns, told) in ALL.into_iter().zip([false, true, true]) {
        let mut log = Log::new(CSV, swallowing);
        match log.look_after(rested_ns) {
            Ok(ranges) => {
                assert_eq!((ranges, log.unfinished), (vec!["0..8".to_owned()], Unfinished::Swallows));
                assert!(!told);
            }
            Err(error) => {
                assert!(told, "{error}");
                let expected =
                    "the quote in line 3 (byte 10) is never closed, so everything behind it would be one field";
                assert_eq!((error.kind(), error.to_string().as_str()), (io::ErrorKind::InvalidData, expected));
            }
        }
    }
    // However much is behind it.
    let long = format!("a,b\n1,\"{}", "4,5\n".repeat(5 << 20));
    assert!(Log::new(CSV, &long).look_after(2 * RACY_NS).is_err());
    // In the last line it is the end of a record that is missing, for some time.
    for (rested_ns, told) in ALL.into_iter().zip([false, false, true]) {
        let mut log = Log::new(CSV, "a,b\n1,2\n3,\"x");
        match log.look_after(rested_ns) {
            Ok(ranges) => {
                assert_eq!((ranges, log.unfinished, told), (vec!["0..8".to_owned()], Unfinished::Waits, false))
            }
            Err(error) => assert!(told && error.to_string().contains("line 3 (byte 10) is never closed"), "{error}"),
        }
    }
    // Growth behind a known range: the place is the one in the file.
    let mut log = Log::new(CSV, "a,b\n1,2\n");
    assert_eq!(log.look(), ["0..8"]);
    log.append("3,\"x\n4,5\n");
    let error = log.look_after(2 * RACY_NS).unwrap_err().to_string();
    assert!(error.contains("line 3 (byte 10)"), "{error}");
}

#[test]
fn an_unfinished_record_waits_while_the_file_is_written_to() {
    let mut log = Log::new(CSV, "a,b\n1,2\n3");
    assert_eq!(log.look_at(false), ["0..8"], "fewer fields than the first line");
    assert_eq!(log.look_after(UNFINISHED_NS / 2).unwrap(), ["=0..8"], "the rest may come");
    assert_eq!(log.unfinished, Unfinished::Waits);
    assert_eq!(log.look_at(true), ["=0..8", "~8..9"], "it rested: so it is meant");
    log.append(",4");
    assert_eq!(log.look_at(false), ["=0..8", "~8..11"], "could be whole");
    log.append(",\"");
    assert_eq!(log.look_at(false), ["=0..8"], "inside quotes");

    let mut log = Log::new(TextDialect::Json, "{\"a\":1}\n{\"a\":");
    assert_eq!(log.look_at(false), ["0..8"]);
    log.append("2}");
    assert_eq!(log.look_at(false), ["=0..8", "~8..15"]);

    let mut log = Log::new(TextDialect::Json, "{\"a\":");
    assert_eq!(log.look_at(false), [""; 0]);
}

#[test]
fn json_over_several_lines_is_one_extent() {
    let mut log = Log::new(TextDialect::Json, "{\n \"a\": 1\n}\n");
    assert_eq!(log.look(), ["whole"]);
    assert_eq!(log.look(), ["=whole"]);
    log.append("{\n \"a\": 2\n}\n");
    assert_eq!(log.look(), ["whole"]);
}

#[test]
fn odd_beginnings_and_ends() {
    let check = |text: &str, expected: &[&str]| assert_eq!(Log::new(CSV, text).look(), expected, "{text:?}");
    check("\u{feff}a,b\r\n1,2\r\n", &["0..13"]);
    check("a,b\n", &["0..4"]);
    check("a,b", &["~0..3"]);
    // No record has begun: its first one may be a header.
    check("\n\n", &["~0..2"]);
    check("a\r1\r", &["~0..4"]);
    check("a,b\r\n1,2\r", &["0..5", "~5..9"]);
}

#[test]
fn records_longer_than_the_buffer() {
    let long = format!("a\n\"{}\"\nb", "x\n".repeat(BUFFER_BYTES));
    let mut log = Log::new(CSV, &long);
    let end = long.len() - 1;
    assert_eq!(log.look(), [format!("0..{end}"), format!("~{end}..{}", long.len())]);
    let ByteRange { start, end } = log.known[0].range.unwrap();
    let content = blake3::hash(&long.as_bytes()[start as usize..end as usize]);
    assert_eq!(log.known[0].fingerprint, content_fingerprint("file:///log", 0, content.as_bytes(), &[]));
    let mut file = File::open(&log.path).unwrap();
    for known in &log.known {
        assert!(verify(&mut file, "file:///log", known.range.unwrap(), &known.fingerprint, &[]).unwrap());
    }
    let beyond = ByteRange { start: 0, end: long.len() as u64 + 1 };
    assert!(!verify(&mut file, "file:///log", beyond, &log.known[0].fingerprint, &[]).unwrap());
}

#[test]
fn ranges_do_not_pile_up_for_ever() {
    let mut log = Log::new(TextDialect::Json, "");
    for _ in 0..MAX_RANGES {
        log.append("1\n");
        log.look();
    }
    assert_eq!(log.known.len(), MAX_RANGES);
    log.append("1\n");
    assert_eq!(log.look().len(), 1);
}

/// In release the budget is 500 MB/s; in debug, too little text to tell.
#[test]
fn scanning_is_fast() {
    let n_lines = if cfg!(debug_assertions) { 1 << 10 } else { 1 << 19 };
    let plain = "1234567,some text,2024-01-01T00:00:00,3.14159\n".repeat(n_lines);
    let quoted = "\"1234567\",\"some \"\"text\",\"2024-01-01\",\"3.14\"\n".repeat(n_lines);
    let json = "{\"id\":1234567,\"text\":\"some text\",\"at\":\"2024-01-01\"}\n".repeat(n_lines);
    for (name, dialect, text) in
        [("plain csv", CSV, &plain), ("quoted csv", CSV, &quoted), ("json", TextDialect::Json, &json)]
    {
        let mut log = Log::new(dialect, text);
        let mut best = std::time::Duration::MAX;
        for _ in 0..10 {
            log.known.clear();
            let started = std::time::Instant::now();
            log.look();
            best = best.min(started.elapsed());
        }
        eprintln!("{name}: {:.0} MB/s", text.len() as f64 / 1e6 / best.as_secs_f64());
    }
}
