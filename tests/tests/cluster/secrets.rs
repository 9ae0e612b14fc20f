//! Who may join a cluster: nobody from elsewhere without the secret, and with it everybody.

use std::process::Command;

use arrow_flight::Ticket;
use arrow_flight::flight_service_client::FlightServiceClient;
use nectarine_tests::fleet::Fleet;
use nectarine_tests::program::{Ran, binary, clean, finish};
use tonic::transport::Endpoint;
use tonic::{Code, Status};

const VARIABLE: &str = "NECTARINE_CLUSTER_SECRET";
const SECRET: &str = "only for the tests of this file";
const QUERY: &str = "SELECT g, count(*), sum(v) FROM t GROUP BY g ORDER BY g";

/// Runs a program that ends by itself.
fn run(mut command: Command) -> Ran {
    clean(&mut command);
    finish(command, b"")
}

/// Runs a program that refuses to start.
fn refused(command: Command) -> String {
    let Ran { status, stdout, stderr } = run(command);
    assert_eq!(status.code(), Some(1), "{stdout}{stderr}");
    stderr
}

fn table(fleet: &Fleet) {
    std::fs::create_dir_all(fleet.path("t")).expect("a folder");
    for file in 0..4 {
        fleet.rows(&format!(
            "COPY (SELECT value % 97 AS g, value AS v FROM range({file}000, {file}999)) TO '{{dir}}/t/{file}.parquet'"
        ));
    }
    fleet.rows("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{dir}/t/'");
}

#[test]
fn ports_that_others_can_reach_need_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve = |address: &str| {
        let mut command = Command::new(binary());
        command.arg("serve").arg("--home").arg(folder.path().join("home"));
        command.args(["--no-auth", "--no-reports", "--flight", "127.0.0.1:0", "--cluster", address]);
        command
    };
    let executor = |host: &str| {
        let mut command = Command::new(binary());
        command.args(["executor", "--server", "127.0.0.1:1", "--host", host]);
        command
    };
    for command in [serve("0.0.0.0:0"), serve("[::]:0"), executor("0.0.0.0"), executor("192.0.2.1")] {
        let told = refused(command);
        assert!(told.contains("without a secret") && told.contains(VARIABLE), "{told}");
    }
    // Not any secret.
    for mut command in [serve("127.0.0.1:0"), executor("127.0.0.1")] {
        command.env(VARIABLE, "short");
        let told = refused(command);
        assert!(told.contains(VARIABLE) && told.contains("it has 5 letters"), "{told}");
    }
    let mut command = executor("127.0.0.1");
    command.arg("--secret-file").arg(folder.path().join("missing"));
    let told = refused(command);
    assert!(told.contains("cannot read") && told.contains("missing"), "{told}");
    // Everybody sees a command line.
    let mut command = executor("127.0.0.1");
    command.args(["--secret", SECRET]);
    assert_eq!(run(command).status.code(), Some(2));
}

#[test]
fn who_knows_the_secret_computes_and_nobody_else() {
    let mut fleet = Fleet::alone(|command| _ = command.env(VARIABLE, SECRET));
    table(&fleet);
    // One way to know it, and the other.
    let file = fleet.path("secret");
    std::fs::write(&file, format!("{SECRET}\n")).expect("a file");
    fleet.add_with(1, |command| _ = command.env(VARIABLE, SECRET));
    fleet.add_with(1, |command| _ = command.arg("--secret-file").arg(&file));
    fleet.wait_for(2);
    assert_eq!(fleet.there(QUERY, "off"), fleet.here(QUERY, "off"));
    let jobs = fleet.rows("SELECT state, detail FROM system.cluster_jobs");
    assert_eq!(fleet.jobs("finished"), 1, "{jobs}\n{}", fleet.said());
    for (secret, reason) in [
        (Some("only for the tests of that file"), "the secret is not that of this server"),
        (None, "this server asks for a secret, and none was given"),
    ] {
        let mut command = fleet.executor();
        if let Some(secret) = secret {
            command.env(VARIABLE, secret);
        }
        let told = refused(command);
        assert!(told.contains("refused this executor") && told.contains(reason), "{told}");
        fleet.wait_said(reason);
        assert_eq!(fleet.rows("SELECT count(*) FROM system.executors"), "2");
    }
    assert!(!fleet.said().contains(SECRET));
    // Rows on their way are for those who know it, too.
    let port = fleet.rows("SELECT min(port) FROM system.executors");
    let status = asked_by_a_stranger(&format!("http://127.0.0.1:{port}"));
    assert_eq!(status.code(), Code::Unauthenticated, "{status}");
    assert!(status.message().contains("this executor asks for a secret"), "{status}");
}

/// What a port for rows answers.
fn asked_by_a_stranger(url: &str) -> Status {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let endpoint = Endpoint::from_shared(url.to_owned()).expect("it is a URL");
        let mut stranger = FlightServiceClient::new(endpoint.connect().await.expect("it listens"));
        stranger.do_get(Ticket::default()).await.expect_err("a stranger gets nothing")
    })
}

/// On one machine none is needed; who has one expects that the server has it, too.
#[test]
fn a_secret_that_the_server_does_not_have_is_told() {
    let fleet = Fleet::start(1, 1);
    let mut command = fleet.executor();
    command.env(VARIABLE, SECRET);
    let told = refused(command);
    assert!(told.contains("a secret was given, and this server has none"), "{told}");
    assert_eq!(fleet.rows("SELECT count(*) FROM system.executors"), "1");
}
