//! `kill -9` on the real binary while it computes and keeps: an entry is whole or not there, and no query ever fails.
//!
//! `NECTARINE_FAULT_ROUNDS=200` kills that often.

use std::time::{Duration, Instant};

use nectarine_tests::invariance::Random;
use nectarine_tests::program::{Program, finish};

/// Rows of the table.
const ROWS: i64 = 60_000;

fn rounds() -> usize {
    std::env::var("NECTARINE_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(10)
}

/// Statements of one round: others than before, so that there is something to keep, over parts that they share.
fn statements(round: usize) -> Vec<String> {
    vec![
        format!("SELECT n, s FROM t WHERE n % 5 = {} ORDER BY n", round % 5),
        format!("SELECT n % 100 AS g, count(*), sum(n), max(s) FROM t WHERE n > {round} GROUP BY 1 ORDER BY 1"),
        format!(
            "SELECT count(*) FROM (SELECT substr(s, 1, 3) AS p, count(*) AS c FROM t GROUP BY 1) WHERE c > {round}"
        ),
        format!("SELECT a.n, b.s FROM t a JOIN t b ON a.n = b.n + 1 WHERE a.n % 50 = {} ORDER BY 1", round % 50),
        format!("SELECT substr(s, 1, 1) AS p, max(n + {round}) FROM t WHERE n % 2 = 0 GROUP BY 1 ORDER BY 1"),
    ]
}

#[test]
fn entries_are_whole_or_not_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    let program = Program::on(&home).set("extent_bytes_max", "200KB");
    let seed = nectarine_tests::invariance::seed();
    println!("NECTARINE_SEED={seed}");
    let mut random = Random::new(seed);
    program
        .run(&format!(
            "CREATE TABLE t AS SELECT value AS n, md5(CAST(value AS TEXT)) AS s FROM generate_series(1, {ROWS})"
        ))
        .rows();
    let begun = Instant::now();
    program.run(&statements(1000).join("; ")).rows();
    let time = begun.elapsed();

    let mut n_killed = 0;
    for round in 0..rounds() {
        // Under load, from others that compute and publish the same: the one that is killed holds nothing that they need.
        let victim = program.start(&statements(round).join("; "));
        let bystander = round.is_multiple_of(2).then(|| program.start(&statements(round).join("; ")));
        let share = random.between(5, 110) as f64 / 100.0;
        std::thread::sleep(time.mul_f64(share).min(Duration::from_secs(60)));
        let ran = victim.kill();
        match ran.status.code() {
            Some(0) => {}
            Some(_) => panic!("round {round}: it failed by itself: {ran:?}"),
            None => n_killed += 1,
        }
        // While others still write: what is visible is whole.
        verify(&program, round);
        if let Some(bystander) = bystander {
            bystander.wait().rows();
        }
        if round % 5 == 4 {
            // What the dead left is met by other data too.
            program.run(&format!("INSERT INTO t VALUES ({}, 'more')", ROWS + round as i64)).rows();
        }
    }
    println!("{n_killed} of {} were killed", rounds());

    verify(&program, rounds());
    let n_entries = program.run("SELECT count(*) FROM system.cache_entries").rows();
    println!("{n_entries} entries");
    assert_ne!(n_entries, "0");
    // Some rounds at a time, so that one process does not take too long.
    for some in (0..rounds()).collect::<Vec<_>>().chunks(10) {
        let every = some.iter().flat_map(|round| statements(*round)).collect::<Vec<_>>().join("; ");
        let mut answers = vec![];
        for mode in ["off", "read_only", "check", "on", "on"] {
            let ran = program.clone().set("reuse", mode).run(&every);
            assert!(!ran.stderr.contains("damaged"), "{mode}: {}", ran.stderr);
            answers.push((mode, ran.rows()));
        }
        for (mode, answer) in &answers {
            assert!(*answer == answers[0].1, "{mode} answers otherwise than off, in rounds {some:?}");
        }
    }
    // Every entry names parts that are there.
    let locations =
        program.run("SELECT fingerprint, location FROM system.cache_entries WHERE location IS NOT NULL").rows();
    let derived = home.join("derived");
    for line in locations.lines() {
        let (fingerprint, location) = line.split_once(',').expect("two columns");
        let path = location.strip_prefix("file://").map_or_else(|| derived.join(location), std::path::PathBuf::from);
        assert!(path.exists(), "{fingerprint}: {} is not there", path.display());
    }
}

/// Every entry is whole.
fn verify(program: &Program, round: usize) {
    let mut command = program.command();
    command.args(["cache", "verify"]);
    let ran = finish(command, b"");
    assert!(ran.status.success(), "round {round}: {ran:?}");
}
