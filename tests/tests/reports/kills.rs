//! `kill -9` on the real binary at each step of a run, and at any moment of a server: no output lost, none doubled, none half.
//!
//! `NECTARINE_FAULT_ROUNDS=200` kills that often; the default is enough for every day.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nectarine_tests::program::{Program, finish};
use rand::{Rng, SeedableRng, rngs::StdRng};

/// Rows of an output, enough for its writing to take a moment.
const ROWS: usize = 5000;

/// Steps of a run with a file, and of one with a table.
const FILE_STEPS: [&str; 7] = [
    "report_claimed",
    "report_computed",
    "report_staged",
    "report_prepared",
    "report_placed",
    "report_commit_begun:3",
    "report_finished",
];
const TABLE_STEPS: [&str; 6] = [
    "report_claimed",
    "report_computed",
    "report_extents",
    "report_commit_begun:2",
    "report_appended",
    "report_commit_begun:1",
];

fn rounds() -> usize {
    std::env::var("NECTARINE_FAULT_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8)
}

fn made(folder: &Path, schedule: &str) -> Program {
    let program = Program::on(&folder.join("home"));
    let rows = format!("SELECT :run_time AS at, value AS n FROM generate_series(1, {ROWS})");
    let sql = format!(
        "CREATE TABLE kept (at TIMESTAMP, n BIGINT);
         CREATE REPORT file SCHEDULE '{schedule}' OUTPUT '{}/out/{{timestamp}}.csv' CATCH UP ALL AS {rows};
         CREATE REPORT rows SCHEDULE '{schedule}' OUTPUT TABLE kept CATCH UP ALL AS {rows};",
        folder.display()
    );
    program.run(&sql).rows();
    program
}

/// A file is whole, and of its own time.
fn is_whole(path: &Path) {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(text.lines().count(), ROWS + 1, "{}", path.display());
    assert!(text.ends_with(&format!(",{ROWS}\n")), "{}", path.display());
}

#[test]
fn dying_at_any_step_leaves_one_output() {
    // In other builds the points are empty.
    if !cfg!(debug_assertions) {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = made(folder.path(), "0 0 1 1 *");
    for (round, step) in FILE_STEPS.into_iter().chain(TABLE_STEPS).enumerate() {
        let (report, time) =
            (if round < FILE_STEPS.len() { "file" } else { "rows" }, format!("2026-01-01 00:{round:02}:00"));
        let run = format!("RUN REPORT {report} FOR '{time}'");
        let mut command = program.command();
        command.env("NECTARINE_FAIL_POINT", step).args(["-c", &run]);
        let ran = finish(command, b"");
        assert_eq!(ran.status.signal(), Some(9), "{report} {step} was not reached: {ran:?}");
        // Whoever comes next takes it over; or finds that it is done.
        let again = program.run(&run);
        let is_done = again.status.success() || again.stderr.contains("has added its rows");
        assert!(is_done, "{report} {step}: {again:?}");
        let state = format!(
            "SELECT state FROM system.report_runs WHERE report = '{report}' ORDER BY scheduled_for DESC LIMIT 1"
        );
        assert_eq!(program.run(&state).rows(), "finished", "{report} {step}");
        match report {
            "file" => is_whole(&folder.path().join(format!("out/20260101T00{round:02}00Z.csv"))),
            _ => {
                let found = program.run(&format!("SELECT count(*), sum(n) FROM kept WHERE at = '{time}'")).rows();
                assert_eq!(found, format!("{ROWS},{}", ROWS * (ROWS + 1) / 2), "{step}");
            }
        }
    }
    let files = std::fs::read_dir(folder.path().join("out")).expect("a folder").flatten();
    let visible = files.filter(|file| !file.file_name().to_string_lossy().starts_with('.')).count();
    assert_eq!(visible, FILE_STEPS.len(), "nothing else appeared");
}

/// A server that is killed again and again, with two reports every second.
#[test]
fn a_server_that_is_killed_leaves_one_output_for_each_time() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = made(folder.path(), "* * * * * *");
    let mut random = StdRng::seed_from_u64(8);
    let serve = || {
        let mut command: Command = program.command();
        command.args(["serve", "--flight", "127.0.0.1:0", "--no-auth"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("a server starts")
    };
    for _ in 0..rounds() {
        let mut server = serve();
        std::thread::sleep(Duration::from_millis(random.random_range(300..2500)));
        server.kill().expect("it can be killed");
        server.wait().expect("it ends");
    }
    // The last one catches up.
    let mut server = serve();
    let deadline = Instant::now() + Duration::from_secs(120);
    let open = "SELECT count(*) FROM system.report_runs WHERE state <> 'finished' OR scheduled_for < now() - INTERVAL '1 hour'";
    std::thread::sleep(Duration::from_secs(2));
    program.run("PAUSE REPORT file; PAUSE REPORT rows").rows();
    program.run("ALTER REPORT file SET SCHEDULE '0 0 1 1 *'; ALTER REPORT rows SET SCHEDULE '0 0 1 1 *'").rows();
    program.run("RESUME REPORT file; RESUME REPORT rows").rows();
    while program.run(open).rows() != "0" {
        assert!(
            Instant::now() < deadline,
            "it does not catch up: {}",
            program
                .run("SELECT report, state, error, attempt FROM system.report_runs WHERE state <> 'finished'")
                .rows()
        );
        std::thread::sleep(Duration::from_millis(200));
    }
    server.kill().expect("it can be killed");
    server.wait().expect("it ends");
    // Every second from the first to the last has its run.
    let gaps = "SELECT report, count(*), CAST(max(scheduled_for) AS BIGINT) - CAST(min(scheduled_for) AS BIGINT) FROM system.report_runs GROUP BY report ORDER BY report";
    for line in program.run(gaps).rows().lines() {
        let numbers: Vec<i64> = line.split(',').skip(1).map(|number| number.parse().expect("a number")).collect();
        assert_eq!((numbers[0] - 1) * 1_000_000, numbers[1], "no second is missing: {line}");
    }
    let n_runs = |report: &str| {
        program.run(&format!("SELECT count(*) FROM system.report_runs WHERE report = '{report}'")).rows()
    };
    let files: Vec<_> = std::fs::read_dir(folder.path().join("out"))
        .expect("a folder")
        .flatten()
        .filter(|file| !file.file_name().to_string_lossy().starts_with('.'))
        .collect();
    files.iter().for_each(|file| is_whole(&file.path()));
    assert_eq!(files.len().to_string(), n_runs("file"), "a file for each time");
    let doubled = "SELECT count(*), min(n), max(n) FROM (SELECT at, count(*) AS n FROM kept GROUP BY at)";
    assert_eq!(program.run(doubled).rows(), format!("{},{ROWS},{ROWS}", n_runs("rows")), "the rows of each time, once");
}
