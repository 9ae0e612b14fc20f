//! The shell over the wire: the real program against a server, in plain text and with TLS.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use nectarine_engine::{Login, RemoteSession, TlsOptions};
use nectarine_tests::db::Db;
use nectarine_tests::flight::{Served, python};
use nectarine_tests::program::binary;
use tokio::process::Command;

async fn shell(arguments: &[&str], password: &str) -> (bool, String, String) {
    let mut command = Command::new(binary());
    command.args(arguments).env("NECTARINE_PASSWORD", password).env_remove("NECTARINE_HOME").stdin(Stdio::null());
    let ran = command.output().await.expect("the program starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (ran.status.success(), text(&ran.stdout), text(&ran.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_on_a_server() {
    let served = Served::with_users().await;
    let login = served.server.first_login().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let (user, password) = login.expect("a first login");
    let url = served.server.url();
    let sql = "CREATE TABLE t AS SELECT * FROM generate_series(1, 10) AS s (a); INSERT INTO t VALUES (11), (12); \
               SELECT count(*), sum(a) FROM t; SELECT count(*), sum(a) FROM t";
    let on = |more: &[&str]| -> Vec<String> {
        let mut all = vec!["--connect", &url, "--user", &user];
        all.extend(more);
        all.into_iter().map(str::to_owned).collect()
    };
    let run = async |arguments: Vec<String>, password: &str| {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        shell(&arguments, password).await
    };
    let (ok, rows, said) = run(on(&["--format", "csv", "--no-header", "-c", sql]), &password).await;
    assert!(ok, "{said}");
    assert_eq!(rows, "12,78\n12,78\n");
    let (ok, rows, said) = run(on(&["-v", "-c", "SELECT count(*), sum(a) FROM t"]), &password).await;
    assert!(ok && (rows.clone() + &said).contains("exact hit"), "{rows}\n{said}");
    // Errors are told as at home.
    let (ok, _, said) = run(on(&["-c", "SELECT b FROM t"]), &password).await;
    assert!(!ok && said.contains("LINE 1: SELECT b FROM t"), "{said}");
    let (ok, _, said) = run(on(&["-c", "SELECT 1"]), "wrong password").await;
    assert!(!ok && said.contains("user or password is wrong"), "{said}");
    let (ok, _, said) = shell(&["--connect", &url, "-c", "SELECT 1"], "").await;
    assert!(!ok && said.contains("log in"), "{said}");
    let (ok, _, said) = shell(&["--connect", "grpc://127.0.0.1:1", "-c", "SELECT 1"], "").await;
    assert!(!ok && said.contains("cannot connect"), "{said}");
    let session =
        RemoteSession::connect(&url, None, Login::Password { user: &user, password: &password }).await.unwrap();
    let names = session.names().await.unwrap();
    assert!(names.tables.iter().any(|(schema, table, _)| schema == "public" && table == "t"), "{:?}", names.tables);
}

/// Certificates that Python's cryptography makes.
async fn certificate(folder: &Path, name: &str) -> Option<(PathBuf, PathBuf)> {
    let python = python()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/certificate.py");
    let (certificate, key) = (folder.join(format!("{name}.pem")), folder.join(format!("{name}.key")));
    let made = Command::new(python).arg(script).arg(&certificate).arg(&key).status().await.expect("a script");
    assert!(made.success());
    Some((certificate, key))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let Some((pem, key)) = certificate(folder.path(), "server").await else { return };
    let options =
        |pem: &Path, key: &Path| TlsOptions { certificate: pem.to_owned(), key: key.to_owned(), client_roots: None };
    let served = Served::with(Db::new().await, |wanted| wanted.tls = Some(options(&pem, &key))).await;
    let login = served.server.first_login().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let (user, password) = login.expect("a first login");
    let url = served.server.url();
    assert!(url.starts_with("grpcs://"));
    let session =
        RemoteSession::connect(&url, Some(&pem), Login::Password { user: &user, password: &password }).await.unwrap();
    assert_eq!(session.address(), url);
    // Neither plain text nor a certificate that nobody vouches for.
    let plain = url.replace("grpcs://", "grpc://");
    assert!(RemoteSession::connect(&plain, None, Login::Password { user: &user, password: &password }).await.is_err());
    assert!(RemoteSession::connect(&url, None, Login::Password { user: &user, password: &password }).await.is_err());
    // A new certificate is used by new connections.
    let Some((new_pem, new_key)) = certificate(folder.path(), "new").await else { return };
    std::fs::copy(&new_key, &key).unwrap();
    std::fs::copy(&pem, folder.path().join("old.pem")).unwrap();
    std::fs::copy(&new_pem, &pem).unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    RemoteSession::connect(&url, Some(&new_pem), Login::Password { user: &user, password: &password }).await.unwrap();
    let old = folder.path().join("old.pem");
    assert!(
        RemoteSession::connect(&url, Some(&old), Login::Password { user: &user, password: &password }).await.is_err()
    );
    // One that cannot be read changes nothing.
    std::fs::write(&pem, "nonsense").unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(1200)).await;
    RemoteSession::connect(&url, Some(&new_pem), Login::Password { user: &user, password: &password }).await.unwrap();
    let broken = nectarine_engine::FlightServer::start(served.db.engine(), {
        let mut wanted = nectarine_engine::FlightOptions::new("127.0.0.1:0".parse().unwrap());
        wanted.tls = Some(options(&pem, &key));
        wanted
    });
    assert!(broken.await.unwrap_err().message().contains("cannot read certificates"));
}
