//! `kill -9` on the real binary at any moment: a table has the old or the new rows, never a part.
//!
//! `NECTARINE_FAULT_ROUNDS=500` kills that often; the default is enough for every day.

use std::os::unix::process::ExitStatusExt;
use std::time::{Duration, Instant};

use nectarine_tests::program::{Program, finish};
use rand::{Rng, SeedableRng, rngs::StdRng};
use tempfile::TempDir;

/// Rows that one statement adds.
const ROWS: i64 = 60_000;

fn rounds() -> i64 {
    std::env::var("NECTARINE_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
}

/// A home and a program that writes many small extents, so that there is much to be cut in half.
struct Victim {
    folder: TempDir,
    program: Program,
    random: StdRng,
}

impl Victim {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = Program::on(&folder.path().join("home")).set("extent_bytes_max", "50KB");
        Self { folder, program, random: StdRng::seed_from_u64(seed) }
    }

    /// How long a statement takes if nobody kills it.
    fn time(&self, sql: &str) -> Duration {
        let begun = Instant::now();
        self.program.run(sql).rows();
        begun.elapsed()
    }

    /// Runs a statement and kills it at some moment before it could end; true if it had ended already.
    fn kill(&mut self, sql: &str, time: Duration) -> bool {
        let running = self.program.start(sql);
        // Most of the time goes into starting and writing; the moment of the commit is near the end.
        let share = if self.random.random_bool(0.5) {
            self.random.random_range(0.0..1.1)
        } else {
            self.random.random_range(0.7..1.1)
        };
        std::thread::sleep(time.mul_f64(share));
        let ran = running.kill();
        match ran.status.code() {
            Some(0) => true,
            Some(_) => panic!("it failed by itself: {ran:?}"),
            None => false,
        }
    }

    fn rows(&self, sql: &str) -> String {
        self.program.run(sql).rows()
    }

    /// Every extent that a table names is there, and every file is one.
    fn extents_are_whole(&self) {
        let extents = self.rows("SELECT location, bytes FROM system.extents");
        for line in extents.lines() {
            let (location, bytes) = line.rsplit_once(',').expect("two columns");
            let path = location.strip_prefix("file://").expect("a local file");
            let found = std::fs::metadata(path).unwrap_or_else(|error| panic!("{path}: {error}")).len();
            assert_eq!(found.to_string(), bytes, "{path}");
        }
        // A folder without a lock was killed in its first moment, and holds nothing.
        let temporary: Vec<_> = std::fs::read_dir(self.folder.path().join("home/tmp"))
            .expect("a folder")
            .flatten()
            .filter(|folder| std::fs::remove_dir(folder.path()).is_err())
            .collect();
        assert!(temporary.is_empty(), "the last one that ended well has swept: {temporary:?}");
    }
}

#[test]
fn insert_and_copy_are_whole_or_nothing() {
    let mut victim = Victim::new(1);
    let copied = victim.folder.path().join("rows.csv");
    let make = format!(
        "COPY (SELECT -1 AS round, value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})) TO '{}'",
        copied.display()
    );
    victim.rows(&make);
    victim.rows("CREATE TABLE t (round BIGINT, n BIGINT, s TEXT)");
    let insert = |round: i64| {
        format!("INSERT INTO t SELECT {round}, value, md5(CAST(value AS TEXT)) FROM generate_series(1, {ROWS})")
    };
    let copy = format!("COPY t FROM '{}'", copied.display());
    let insert_time = victim.time(&insert(0));
    let copy_time = victim.time(&copy);
    let (mut copies, mut killed) = (1, 0);
    for round in 1..=rounds() {
        let by_copy = round % 2 == 0;
        let (sql, time) = if by_copy { (copy.clone(), copy_time) } else { (insert(round), insert_time) };
        let ended = victim.kill(&sql, time);
        killed += i64::from(!ended);
        // Whole or not at all.
        let counts =
            victim.rows("SELECT round, count(*), count(DISTINCT n), sum(n) FROM t GROUP BY round ORDER BY round");
        let sum = ROWS * (ROWS + 1) / 2;
        for line in counts.lines() {
            let numbers: Vec<i64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
            let times = numbers[1] / ROWS;
            assert_eq!(numbers[1..], [times * ROWS, ROWS, times * sum], "round {round}: {counts}");
            assert!(times == 1 || numbers[0] == -1, "round {round}: {counts}");
        }
        let count_of = |wanted: i64| {
            counts
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{wanted},"))?.split(',').next()?.parse::<i64>().ok())
                .unwrap_or(0)
        };
        if by_copy {
            let now = count_of(-1) / ROWS;
            assert!(now == copies || now == copies + 1, "round {round}: {counts}");
            assert!(!ended || now == copies + 1, "round {round}: what was answered is there: {counts}");
            copies = now;
        } else {
            assert!(!ended || count_of(round) == ROWS, "round {round}: what was answered is there: {counts}");
        }
        victim.extents_are_whole();
    }
    println!("{killed} of {} were killed", rounds());
    victim.rows("INSERT INTO t VALUES (1000000, 1, 'last')");
    assert_eq!(victim.rows("SELECT s FROM t WHERE round = 1000000"), "last");
}

/// Killed while it clears up after itself: the next process recognises what is left, at once.
#[test]
fn what_a_clearing_process_left_is_swept() {
    let victim = Victim::new(5);
    victim.rows("CREATE TABLE t (n BIGINT)");
    for visit in 1..=3 {
        let mut command = victim.program.command();
        command.env("NECTARINE_FAIL_POINT", format!("temporary_removed:{visit}"));
        command.args(["-c", "INSERT INTO t SELECT value FROM generate_series(1, 10)"]);
        let ran = finish(command, b"");
        // There are as many visits as there were folders to remove.
        assert!(ran.status.signal() == Some(9) || visit > 1 && ran.status.success(), "{visit}: {ran:?}");
        assert_eq!(victim.rows("SELECT count(*) FROM t"), (visit * 10).to_string());
        victim.extents_are_whole();
    }
}

/// Files in the folder of an external table: whole or hidden.
#[test]
fn insert_into_files_is_whole_or_nothing() {
    let mut victim = Victim::new(4);
    let folder = victim.folder.path().join("e");
    victim.rows(&format!(
        "CREATE EXTERNAL TABLE e (round BIGINT, s TEXT) STORED AS CSV LOCATION '{}/'",
        folder.display()
    ));
    let insert =
        |round: i64| format!("INSERT INTO e SELECT {round}, md5(CAST(value AS TEXT)) FROM generate_series(1, {ROWS})");
    let time = victim.time(&insert(0));
    for round in 1..=rounds().div_euclid(2).max(1) {
        let ended = victim.kill(&insert(round), time);
        let counts = victim.rows("SELECT round, count(*), count(DISTINCT s) FROM e GROUP BY round ORDER BY round");
        for line in counts.lines() {
            assert!(line.ends_with(&format!(",{ROWS},{ROWS}")), "round {round}: {counts}");
        }
        assert!(!ended || counts.lines().any(|line| line.starts_with(&format!("{round},"))), "round {round}: {counts}");
    }
}

#[test]
fn a_table_is_made_and_replaced_whole_or_not_at_all() {
    let mut victim = Victim::new(2);
    victim.rows("CREATE TABLE kept AS SELECT 42 AS a");
    let replace = |round: i64| {
        format!(
            "CREATE OR REPLACE TABLE t AS SELECT {round} AS round, value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})"
        )
    };
    let time = victim.time(&replace(0));
    let mut current = 0;
    for round in 1..=rounds().div_euclid(2).max(1) {
        let ended = victim.kill(&replace(round), time);
        let found = victim.rows("SELECT min(round), max(round), count(*), sum(n) FROM t");
        let expected = |round: i64| format!("{round},{round},{ROWS},{}", ROWS * (ROWS + 1) / 2);
        assert!(found == expected(round) || !ended && found == expected(current), "round {round}: {found}");
        if found == expected(round) {
            current = round;
        }
        let ended = victim
            .kill(&format!("CREATE TABLE made_{round} AS SELECT value AS n FROM generate_series(1, {ROWS})"), time);
        match victim.program.run(&format!("SELECT count(*) FROM made_{round}")) {
            ran if ran.status.success() => assert_eq!(ran.rows(), ROWS.to_string()),
            ran => assert!(!ended && ran.error().contains("does not exist")),
        }
        victim.extents_are_whole();
        assert_eq!(victim.rows("SELECT a FROM kept"), "42");
    }
}

/// A home that is being made.
#[test]
fn a_home_is_made_or_made_again() {
    let mut random = StdRng::seed_from_u64(3);
    let first = tempfile::tempdir().expect("a temporary folder");
    let begun = Instant::now();
    Program::on(&first.path().join("home")).run("CREATE TABLE t AS SELECT 1 AS a").rows();
    let time = begun.elapsed();
    for round in 0..rounds() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = Program::on(&folder.path().join("home"));
        let running = program.start("CREATE TABLE t AS SELECT 1 AS a");
        std::thread::sleep(time.mul_f64(random.random_range(0.0..1.0)));
        drop(running.kill());
        let found = program.run("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a; SELECT a FROM t").rows();
        assert_eq!(found, "1", "round {round}");
    }
}
