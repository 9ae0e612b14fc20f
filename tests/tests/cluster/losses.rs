//! Executors that are killed, paused and come back: no wrong row, no failed query.
//!
//! `NECTARINE_CLUSTER_KILLS` says how many are lost; a few unless it is set.

use std::time::{Duration, Instant};

use nectarine_tests::fleet::Fleet;

/// Losses unless told otherwise.
const KILLS: usize = 4;

/// Rows of `t`.
const ROWS: usize = 600_000;

fn tables(fleet: &Fleet) {
    std::fs::create_dir_all(fleet.path("t")).expect("a folder");
    for file in 0..8 {
        let n = ROWS / 8;
        let from = file * n;
        fleet.rows(&format!(
            "COPY (SELECT value AS id, value % 1009 AS g, (value * 7919) % 20011 AS v, concat('name ', CAST(value % 130 AS TEXT)) AS name \
             FROM range({from}, {from} + {n})) TO '{{dir}}/t/{file}.parquet'"
        ));
    }
    fleet.rows("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'");
}

/// Queries with a few stages, some of whose rows are counted twice if anything is.
const QUERIES: [&str; 3] = [
    "SELECT c, count(g) AS n, sum(s) AS ss FROM (SELECT g, sum(v) AS s, count(*) AS c FROM t GROUP BY g) GROUP BY c ORDER BY c",
    "SELECT a.name, count(*), sum(b.v) FROM t a JOIN t b ON a.id = b.id WHERE a.v > 5 GROUP BY a.name ORDER BY a.name",
    "SELECT g, count(DISTINCT name), sum(v), count(*) FROM t GROUP BY g ORDER BY g",
];

fn n_kills() -> usize {
    std::env::var("NECTARINE_CLUSTER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS)
}

/// Runs a query on the cluster on a thread of its own, while `meanwhile` happens some time after its beginning.
fn with(fleet: &mut Fleet, sql: &str, after: Duration, meanwhile: impl FnOnce(&mut Fleet)) -> (String, Duration) {
    let mut command = fleet.client();
    command.arg("-c").arg(format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {sql}"));
    let started = Instant::now();
    let asked = std::thread::spawn(move || nectarine_tests::program::finish(command, b""));
    std::thread::sleep(after);
    meanwhile(fleet);
    let ran = asked.join().expect("the client ends");
    assert!(ran.status.success(), "{sql}: {}\nserver: {}", ran.stderr, fleet.said());
    (ran.stdout.trim_end().to_owned(), started.elapsed())
}

#[test]
fn killed_executors_are_not_noticed() {
    let mut fleet = Fleet::start(2, 1);
    tables(&fleet);
    let expected: Vec<String> = QUERIES.iter().map(|sql| fleet.here(sql, "off")).collect();
    let mut slowest = Duration::ZERO;
    for kill in 0..n_kills() {
        let which = kill % QUERIES.len();
        assert_eq!(fleet.there(QUERIES[which], "off"), expected[which]);
        // At another moment each time: while maps run, between stages, while rows are fetched.
        let after = Duration::from_millis(40 + (kill as u64 * 137) % 900);
        let (found, took) = with(&mut fleet, QUERIES[which], after, |fleet| {
            let victim = fleet.alive()[kill % 2];
            fleet.kill(victim);
            fleet.add(1);
        });
        assert_eq!(found, expected[which], "kill {kill}, after {after:?}");
        slowest = slowest.max(took);
        fleet.wait_for(2);
    }
    assert!(slowest < Duration::from_secs(90), "{slowest:?}");
    assert!(fleet.jobs("finished") >= n_kills(), "most of them ran on executors");
}

#[test]
fn without_executors_the_server_computes() {
    let mut fleet = Fleet::start(2, 1);
    tables(&fleet);
    let sql = QUERIES[0];
    let expected = fleet.here(sql, "off");
    let (found, took) = with(&mut fleet, sql, Duration::from_millis(300), |fleet| {
        for executor in fleet.alive() {
            fleet.kill(executor);
        }
    });
    assert_eq!(found, expected);
    assert!(took < Duration::from_secs(60), "{took:?}");
    fleet.wait_for(0);
    // With none from the beginning it says so.
    let ran = fleet.run(&format!("SET nectarine.execution = 'cluster'; SET nectarine.reuse = 'off'; {sql}"));
    assert_eq!(ran.stdout.trim_end(), expected);
    assert!(ran.stderr.contains("there is no executor"), "{}", ran.stderr);
    // One that comes is used.
    fleet.add(2);
    fleet.wait_for(1);
    let n_before = fleet.jobs("finished");
    assert_eq!(fleet.there(sql, "off"), expected);
    assert_eq!(fleet.jobs("finished"), n_before + 1);
}

/// An executor that hangs for longer than the server's patience, and then goes on with what it was at.
#[test]
fn a_paused_executor_is_not_noticed() {
    let mut fleet = Fleet::start(2, 1);
    tables(&fleet);
    let expected: Vec<String> = QUERIES.iter().map(|sql| fleet.here(sql, "off")).collect();
    for (which, sql) in QUERIES.iter().enumerate().take(2) {
        let paused = fleet.alive()[which % 2];
        let (found, took) = with(&mut fleet, sql, Duration::from_millis(250), |fleet| fleet.signal(paused, "STOP"));
        assert_eq!(found, expected[which]);
        assert!(took < Duration::from_secs(90), "{took:?}");
        // While it wakes up, and after.
        fleet.signal(paused, "CONT");
        for _ in 0..2 {
            assert_eq!(fleet.there(sql, "off"), expected[which]);
        }
        fleet.wait_for(2);
        assert_eq!(fleet.there(sql, "off"), expected[which]);
    }
}
