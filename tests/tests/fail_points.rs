//! `kill -9` at each step of publishing a cached result, on the real binary: afterwards the home opens, every entry that is
//! visible is whole, and nobody reads a half one.
//!
//! All deaths happen in one home, one after the other, so that whatever the dead leave is met by those who come later.

use std::os::unix::process::ExitStatusExt;

use nectarine_tests::program::{Program, finish};
use tempfile::TempDir;

/// Enough for several parts: about 64 bytes each.
const ROWS: usize = 130_000;

/// What is there after a death.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Left {
    /// No entry of the statement.
    Nothing,
    /// All of them.
    All,
}

/// Where a first run dies, and what it leaves. The last part of three is the answer's own.
const PUBLISHING: [(&str, Left); 17] = [
    ("part_staged", Left::Nothing),
    ("part_half", Left::Nothing),
    ("part_written", Left::Nothing),
    ("part_flushed", Left::Nothing),
    ("part_renamed", Left::Nothing),
    ("part_staged:2", Left::Nothing),
    ("part_half:2", Left::Nothing),
    ("part_flushed:2", Left::Nothing),
    ("part_renamed:2", Left::Nothing),
    ("part_half:3", Left::Nothing),
    ("part_renamed:3", Left::Nothing),
    ("entry_finished", Left::Nothing),
    ("commit_begun", Left::Nothing),
    ("commit_done", Left::All),
    ("entry_published", Left::All),
    ("part_written:2", Left::Nothing),
    ("part_written:3", Left::Nothing),
];

/// Where a run dies that replaces what is there.
const REPLACING: [(&str, Left); 6] = [
    ("part_half", Left::All),
    ("entry_finished", Left::All),
    ("drop_begun", Left::All),
    ("drop_done", Left::Nothing),
    ("entry_replaced", Left::Nothing),
    ("commit_begun", Left::Nothing),
];

struct Home {
    _folder: TempDir,
    program: Program,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // Groups are kept at first sight, however fast they were computed: which points are reached must not depend on that.
        let program = Program::on(&folder.path().join("home")).set("cache.threshold", "1");
        let table = format!(
            "CREATE TABLE t AS SELECT value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})"
        );
        program.run(&table).rows();
        Self { _folder: folder, program }
    }

    /// Runs a statement that dies at a point.
    fn die(&self, point: &str, mode: &str, sql: &str) {
        let mut command = self.program.clone().set("reuse", mode).command();
        command.env("NECTARINE_FAIL_POINT", point).args(["-c", sql]);
        let ran = finish(command, b"");
        assert_eq!(ran.status.signal(), Some(9), "{point} was not reached: {ran:?}");
    }

    /// All entries are whole; how many there are.
    fn verified(&self) -> usize {
        let mut command = self.program.command();
        command.args(["cache", "verify"]);
        let ran = finish(command, b"");
        assert!(ran.status.success(), "{ran:?}");
        let words: Vec<&str> = ran.stderr.split_whitespace().collect();
        let number = words.iter().find_map(|word| word.parse().ok());
        number.unwrap_or_else(|| panic!("it says how many: {ran:?}"))
    }

    fn run(&self, sql: &str) -> String {
        let ran = self.program.run(sql);
        assert!(!ran.stderr.contains("damaged") && !ran.stderr.contains("could not be read"), "{ran:?}");
        ran.rows()
    }

    /// The statement answers the same in all modes, and what is kept is what is computed.
    fn answers(&self, sql: &str) {
        let modes = ["off", "read_only", "check", "on", "check"];
        let script: Vec<_> = modes.iter().map(|mode| format!("SET nectarine.reuse = '{mode}'; {sql}")).collect();
        let answers = self.run(&script.join("; "));
        let mut lines: Vec<&str> = answers.lines().collect();
        assert_eq!(lines.len(), modes.len(), "{answers}");
        lines.dedup();
        assert_eq!(lines.len(), 1, "{sql}: {answers}");
        // And what was kept is read by another process.
        assert_eq!(self.run(sql), lines[0]);
    }
}

/// Two entries: groups of two parts, and the answer above them.
fn statement(round: usize) -> String {
    format!(
        "SELECT count(*), sum(n), max(s), sum(c) FROM (SELECT n, s, count(*) AS c FROM t WHERE n > {round} GROUP BY n, s)"
    )
}

#[test]
fn dying_at_any_point_of_publishing_leaves_whole_entries() {
    // In other builds the points are empty.
    if !cfg!(debug_assertions) {
        return;
    }
    let home = Home::new();
    let mut n_entries = home.verified();
    for (round, (point, left)) in PUBLISHING.into_iter().enumerate() {
        let sql = statement(round);
        home.die(point, "on", &sql);
        let n_left = home.verified() - n_entries;
        assert_eq!(n_left, if left == Left::All { 3 } else { 0 }, "{point}");
        home.answers(&sql);
        n_entries = home.verified();
    }
    for (round, (point, left)) in REPLACING.into_iter().enumerate() {
        let sql = statement(1000 + round);
        home.answers(&sql);
        let before = home.verified();
        home.die(point, "refresh", &sql);
        let n_lost = before - home.verified();
        assert_eq!(n_lost, if left == Left::All { 0 } else { 3 }, "{point}");
        home.answers(&sql);
        assert_eq!(home.verified(), before, "{point}");
    }
}
