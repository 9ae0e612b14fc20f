//! Jobs over a server of the real binary: clients that go, cancels, restarts.

use std::time::{Duration, Instant};

use super::{Server, job, program};

const ENDLESS: &str = "SELECT count(*) FROM big a JOIN big b ON a.k < b.k AND b.k < 0 - a.k";

#[test]
fn a_client_that_goes_leaves_its_job() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    program.run("CREATE TABLE t (a BIGINT)").rows();
    let script = folder.path().join("x.sql");
    std::fs::write(
        &script,
        "INSERT INTO t SELECT value FROM generate_series(1, 1000);\n-- the rest\nSELECT count(*), sum(a) FROM t;\n",
    )
    .expect("written");
    let server = Server::start(&program, &["--no-auth"], None).expect("it is up");
    let id = server.run(&["job", "submit", "-f", &script.display().to_string(), "--name", "loaded"]).rows();
    // The client is gone. Another waits.
    assert_eq!(server.run(&["job", "wait", &id]).rows(), "");
    assert_eq!(server.run(&["job", "result", &id]).rows(), "1000,500500");
    let json = server.run(&["job", "result", &id, "--format", "json"]).rows();
    assert!(json.contains("500500") && json.contains("count"), "{json}");
    assert!(server.run(&["job", "ls"]).rows().contains(",loaded,"));
    assert!(server.run(&["job", "show", &id]).rows().contains("finished"));
    // The same from the home.
    assert_eq!(job(&program, &["result", &id]).rows(), "1000,500500");
    let bad = server.run(&["job", "submit", "-c", "SELEC 1"]).error();
    assert!(bad.contains("statement 1 of the job"), "{bad}");
    let failed = server.run(&["job", "submit", "-c", "SELECT * FROM missing"]).rows();
    let told = server.run(&["job", "wait", &failed]).error();
    assert!(told.contains("is failed") && told.contains("missing"), "{told}");
    server.run(&["job", "drop", &id]).rows();
    assert!(server.run(&["job", "result", &id]).error().contains("does not exist"));
    assert!(job(&program.set("reuse", "off"), &["submit", "-c", "SELECT 1"]).error().contains("--set"));
}

#[test]
fn a_server_that_comes_back_goes_on_within_seconds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    program.run("CREATE TABLE big AS SELECT value AS k FROM generate_series(1, 500000)").rows();
    let mut server = Server::start(&program, &["--no-auth"], None).expect("it is up");
    let id = server.run(&["job", "submit", "-c", "CREATE TABLE made AS SELECT 7 AS a", "-c", ENDLESS]).rows();
    let told = format!("SELECT state, statements_done, attempt FROM system.jobs WHERE job_id = '{id}'");
    let until = Instant::now() + Duration::from_secs(60);
    while program.run(&told).rows() != "running,1,1" {
        assert!(Instant::now() < until, "it does not begin");
        std::thread::sleep(Duration::from_millis(50));
    }
    server.kill();
    assert_eq!(program.run(&told).rows(), "running,1,1", "nobody looks after it");
    let mut server = Server::start(&program, &["--no-auth"], None).expect("it is up");
    let up = server.up;
    let (at, _) = server.after("a job is run").expect("it goes on");
    let after = at.saturating_duration_since(up);
    assert!(after < Duration::from_secs(3), "{after:?}");
    assert_eq!(program.run(&told).rows(), "running,1,2");
    assert_eq!(program.run("SELECT a FROM made").rows(), "7");
    // A cancel from the home reaches the server; waiting ends with it.
    job(&program, &["cancel", &id]).rows();
    assert!(server.run(&["job", "wait", &id]).error().contains("is cancelled"));
    let (at, _) = server.after("a job was cancelled").expect("it notices");
    assert!(at.elapsed() < Duration::from_secs(60));
}

#[test]
fn servers_that_stop_or_run_none() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let program = program(folder.path());
    let id = job(&program, &["submit", "-c", "SELECT 5 AS five"]).rows();
    let server = Server::start(&program, &["--no-auth", "--no-jobs"], None).expect("it is up");
    let early = server.run(&["job", "wait", &id, "--timeout", "1"]).error();
    assert!(early.contains("has not ended yet"), "{early}");
    drop(server);
    let server = Server::start(&program, &["--no-auth"], None).expect("it is up");
    server.run(&["job", "wait", &id]).rows();
    assert_eq!(server.run(&["job", "result", &id]).rows(), "5");
}
