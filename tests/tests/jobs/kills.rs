//! `kill -9` on a server at each step of a job, and at any moment: no job lost, none run twice, no statement's effect doubled.
//!
//! `NECTARINE_FAULT_ROUNDS=200` kills that often; the default is enough for every day.

use std::time::{Duration, Instant};

use nectarine_tests::program::Program;
use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{Server, job, program};

/// Steps of a job, some of them for the n-th time.
const STEPS: [&str; 16] = [
    "job_claimed",
    "job_statement_begun:2",
    "job_extents:1",
    "job_commit_begun:3",
    "job_committed:1",
    "job_statement_ran:2",
    "job_statement_done:2",
    "job_extents:2",
    "job_commit_begun:4",
    "job_committed:2",
    "job_committed:3",
    "job_commit_begun:6",
    "job_result_staged",
    "job_result_placed",
    "job_commit_begun:7",
    "job_statement_done:6",
];

fn rounds() -> usize {
    std::env::var("NECTARINE_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6)
}

/// A job that writes under its own number, in statements of every manner that is done once.
fn script(number: usize) -> String {
    format!(
        "SET datafusion.execution.batch_size = 100;
         INSERT INTO log SELECT {number}, value FROM generate_series(1, 1000);
         CREATE TABLE made_{number} AS SELECT value + 1000 AS n FROM generate_series(1, 2000);
         INSERT INTO log SELECT {number}, n FROM made_{number};
         DROP VIEW IF EXISTS view_{number};
         SELECT count(*) AS c, count(DISTINCT n) AS d, sum(n) AS s FROM log WHERE job = {number}"
    )
}

const EXPECTED: &str = "3000,3000,4501500";

/// Everything that a job was to do is there, once, and its rows say so. How often it was begun.
fn is_done_once(program: &Program, number: usize, id: &str, after: &str) -> usize {
    let told = program.run(&format!(
        "SELECT state, statements_done, error FROM system.jobs WHERE job_id = '{id}';
         SELECT count(*), count(DISTINCT n), sum(n) FROM log WHERE job = {number};
         SELECT count(*) FROM made_{number};
         SELECT attempt FROM system.jobs WHERE job_id = '{id}'"
    ));
    let told = told.rows();
    let (told, attempts) = told.rsplit_once('\n').unwrap_or_default();
    assert_eq!(told, format!("finished,6,\n{EXPECTED}\n2000"), "{after}");
    assert_eq!(job(program, &["result", id]).rows(), EXPECTED, "{after}");
    attempts.parse().expect("a number")
}

#[test]
fn dying_at_any_step_loses_and_doubles_nothing() {
    // In other builds the points are empty.
    if !cfg!(debug_assertions) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    program.run("CREATE TABLE log (job BIGINT, n BIGINT)").rows();
    for (number, step) in STEPS.into_iter().enumerate() {
        let id = job(&program, &["submit", "-c", &script(number)]).rows();
        // It may die before it says that it is up.
        if let Some(mut server) = Server::start(&program, &["--no-auth"], Some(step)) {
            server.dies();
        }
        let mut server = Server::start(&program, &["--no-auth"], None).expect("it is up");
        job(&program, &["wait", &id, "--timeout", "60"]).rows();
        server.kill();
        let attempts = is_done_once(&program, number, &id, step);
        assert_eq!(attempts, if step == "job_statement_done:6" { 1 } else { 2 }, "{step}");
    }
    assert_eq!(program.run("SELECT count(*), count(DISTINCT job) FROM log").rows(), "48000,16");
}

/// What can be neither repeated nor written down with its end is begun once.
#[test]
fn what_nobody_knows_is_said() {
    if !cfg!(debug_assertions) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    for (step, there) in [("job_statement_begun", "0"), ("job_statement_ran", "1")] {
        let name = step.trim_start_matches("job_");
        let id = job(&program, &["submit", "-c", &format!("CREATE VIEW {name} AS SELECT 1 AS a; SELECT 2")]).rows();
        if let Some(mut server) = Server::start(&program, &["--no-auth"], Some(step)) {
            server.dies();
        }
        let _server = Server::start(&program, &["--no-auth"], None).expect("it is up");
        let told = job(&program, &["wait", &id, "--timeout", "60"]).error();
        assert!(told.contains("nobody knows whether it took effect"), "{step}: {told}");
        let views = format!("SELECT count(*) FROM system.tables WHERE table_name = '{name}'");
        assert_eq!(program.run(&views).rows(), there, "{step}");
    }
    // One that died before it was told was accepted all the same, or was not: never half.
    let mut command = program.command();
    command.env("NECTARINE_FAIL_POINT", "job_submitted").args(["job", "submit", "-c", "SELECT 3"]);
    assert!(!nectarine_tests::program::finish(command, b"").status.success());
    assert_eq!(program.run("SELECT count(*) FROM system.jobs WHERE sql = 'SELECT 3'").rows(), "1");
}

/// A server that is killed again and again, while jobs come in over the wire.
#[test]
fn a_server_that_is_killed_loses_no_job() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    program.run("CREATE TABLE log (job BIGINT, n BIGINT)").rows();
    let mut random = StdRng::seed_from_u64(9);
    let mut accepted: Vec<(usize, String)> = vec![];
    for round in 0..rounds() {
        // Some wait when it starts, so that it dies in the middle of them; one comes over the wire.
        for nth in 0..2 {
            let number = round * 3 + nth;
            accepted.push((number, job(&program, &["submit", "-c", &script(number)]).rows()));
        }
        let mut server = Server::start(&program, &["--no-auth"], None).expect("it is up");
        // Several servers on one home do not take each other's jobs.
        let second = random.random_bool(0.5).then(|| Server::start(&program, &["--no-auth"], None));
        let (url, until) = (server.url.clone(), Instant::now() + Duration::from_millis(random.random_range(0..600)));
        // Clients that lose their server do not know; those that were told must be right.
        let client = std::thread::spawn(move || {
            let number = round * 3 + 2;
            let mut command = std::process::Command::new(nectarine_tests::program::binary());
            command.args(["--connect", &url, "--format", "csv", "--no-header", "job", "submit", "-c", &script(number)]);
            nectarine_tests::program::clean(&mut command);
            let ran = nectarine_tests::program::finish(command, b"");
            ran.status.success().then(|| (number, ran.rows()))
        });
        std::thread::sleep(until.saturating_duration_since(Instant::now()));
        server.kill();
        accepted.extend(client.join().expect("the client ends"));
        drop(second);
    }
    let _server = Server::start(&program, &["--no-auth"], None).expect("it is up");
    let until = Instant::now() + Duration::from_secs(300);
    let open = "SELECT count(*) FROM system.jobs WHERE state IN ('waiting', 'running')";
    while program.run(open).rows() != "0" {
        let told = "SELECT state, statements_done, attempt, error FROM system.jobs WHERE state <> 'finished'";
        assert!(Instant::now() < until, "they do not end: {}", program.run(told).rows());
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut n_interrupted = 0;
    for (number, id) in &accepted {
        n_interrupted += usize::from(is_done_once(&program, *number, id, "kills") > 1);
    }
    println!("{n_interrupted} of {} jobs were interrupted", accepted.len());
    // Those whose client was not told are done as well, and once.
    let all = program.run("SELECT count(*), count(DISTINCT job_id) FROM system.jobs WHERE state = 'finished'").rows();
    let doubled = "SELECT count(*) FROM (SELECT job, count(*) AS c FROM log GROUP BY job) WHERE c <> 3000";
    assert_eq!(program.run(doubled).rows(), "0");
    let n_jobs: usize = all.split(',').next().expect("a number").parse().expect("a number");
    assert!(n_jobs >= accepted.len(), "{all}");
    assert_eq!(program.run("SELECT count(DISTINCT job) FROM log").rows(), n_jobs.to_string(), "each of its own number");
}
