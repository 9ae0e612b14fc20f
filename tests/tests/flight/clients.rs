//! Clients that others wrote: ADBC's Flight SQL driver, pyarrow, pandas, polars, SQLAlchemy. `NECTARINE_TEST_PYTHON` names a Python that
//! has them; without it these tests are left out and say so. `tests/run` installs them.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nectarine_tests::flight::{Served, python};
use tokio::process::Command;

/// Runs a script of `tests/clients` against a server.
async fn run(script: &str, served: &Served, login: Option<(&str, &str)>) {
    let Some(python) = python() else { return };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients").join(script);
    let mut command = Command::new(python);
    command.arg(path).arg(format!("grpc://{}", served.server.address()));
    if let Some((user, password)) = login {
        command.args([user, password]);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let ran = tokio::time::timeout(Duration::from_secs(300), command.output()).await;
    let ran = ran.expect("the script hangs").expect("the script starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(ran.status.success(), "{script}\n{}\n{}", text(&ran.stdout), text(&ran.stderr));
    assert!(text(&ran.stdout).trim_end().ends_with("done"), "{script}\n{}", text(&ran.stdout));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adbc_for_everybody() {
    let served = Served::open().await;
    run("adbc.py", &served, None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn adbc_with_a_login() {
    let served = Served::with_users().await;
    let login = served.server.first_login().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let (user, password) = login.expect("a first login");
    run("adbc.py", &served, Some((&user, &password))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pyarrow() {
    let served = Served::with_users().await;
    let login = served.server.first_login().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let (user, password) = login.expect("a first login");
    run("pyarrow_flight.py", &served, Some((&user, &password))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_frames() {
    let served = Served::open().await;
    run("frames.py", &served, None).await;
}
