//! Cached results in a bucket: the same promises, and a server that is slow, wrong or gone keeps nobody from an answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use nectarine_tests::program::Ran;
use nectarine_tests::s3_server::{Server, run_at};
use object_store::aws::AmazonS3;
use object_store::{ObjectStore, ObjectStoreExt};
use tempfile::TempDir;

const QUERY: &str = "SELECT n % 10 AS k, count(*) AS c, sum(n) AS s FROM t GROUP BY k ORDER BY k";

/// A home whose results are in a bucket; every statement is a process of its own, so that nothing is found in memory.
struct Home {
    _folder: TempDir,
    path: PathBuf,
}

const LOCATION: (&str, &str) = ("cache.location", "s3://results/of/tests");

impl Home {
    fn new(server: &Server) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let home = Self { path: folder.path().join("home"), _folder: folder };
        home.ask(server, "CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 100000)").rows();
        home
    }

    fn ask(&self, server: &Server, sql: &str) -> Ran {
        server.run(&self.path, &[LOCATION], &["-c", sql])
    }

    fn cache(&self, server: &Server, arguments: &[&str]) -> Ran {
        server.run(&self.path, &[LOCATION], &[&["cache"], arguments].concat())
    }

    /// What the last run of the query reused.
    fn reused(&self, server: &Server) -> String {
        let sql = "SELECT reuse FROM system.queries WHERE sql LIKE 'SELECT n %' ORDER BY started_at DESC LIMIT 1";
        self.ask(server, sql).rows()
    }
}

async fn objects(bucket: &AmazonS3) -> Vec<object_store::path::Path> {
    bucket.list(None).map_ok(|meta| meta.location).try_collect().await.expect("a bucket can be listed")
}

async fn wipe(bucket: &AmazonS3) {
    let all = bucket.list(None).map_ok(|meta| meta.location).boxed();
    bucket.delete_stream(all).try_collect::<Vec<_>>().await.expect("a bucket can be emptied");
}

fn files_below(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 }).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_are_kept_and_found_in_a_bucket() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("results");
    let home = Home::new(&server);
    let first = home.ask(&server, QUERY).rows();
    assert_eq!(home.reused(&server), "none");
    let kept = objects(&bucket).await;
    assert!(!kept.is_empty() && kept.iter().all(|path| path.as_ref().starts_with("of/tests/")), "{kept:?}");
    assert_eq!(files_below(&home.path.join("derived")), 0);
    let again = home.ask(&server, QUERY);
    assert!(!again.stderr.contains("computed again"), "{again:?}");
    assert_eq!(again.rows(), first);
    assert_eq!(home.reused(&server), "exact");

    // With another setting it is still found where it is, and new results go elsewhere.
    let elsewhere = server.run(&home.path, &[], &["-c", QUERY]);
    assert!(!elsewhere.stderr.contains("computed again"), "{elsewhere:?}");
    assert_eq!(elsewhere.rows(), first);
    assert_eq!(home.reused(&server), "exact");
    server.run(&home.path, &[], &["-c", &QUERY.replace("10", "11")]).rows();
    assert_ne!(files_below(&home.path.join("derived")), 0);
    assert_eq!(objects(&bucket).await.len(), kept.len());

    // Looking after them.
    let listed = home.cache(&server, &["ls"]).rows();
    assert!(listed.lines().count() >= 2, "{listed}");
    let fingerprint = listed.split(',').next().expect("a first column").to_owned();
    assert!(home.cache(&server, &["show", &fingerprint]).rows().contains(&fingerprint));
    assert!(home.cache(&server, &["stats"]).status.success());
    assert!(home.cache(&server, &["verify"]).stderr.contains("verified"));
    let locations = home.ask(&server, "SELECT location FROM system.cache_entries").rows();
    assert!(locations.contains("s3://results/of/tests/"), "{locations}");
    assert!(home.cache(&server, &["rm", &fingerprint]).status.success());
    assert!(home.cache(&server, &["clear"]).status.success());
    assert_eq!(objects(&bucket).await, []);
    assert_eq!(files_below(&home.path.join("derived")), 0);
    assert_eq!(home.ask(&server, QUERY).rows(), first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_or_damaged_in_a_bucket_is_computed_again() {
    let Some(server) = Server::start(&[]) else { return };
    let bucket = server.bucket("results");
    let home = Home::new(&server);
    let expected = home.ask(&server, QUERY).rows();
    for harm in ["wipe", "cut", "flip"] {
        assert_eq!(home.ask(&server, QUERY).rows(), expected);
        assert_eq!(home.reused(&server), "exact", "before {harm}");
        for path in objects(&bucket).await {
            let mut bytes = bucket.get(&path).await.expect("there").bytes().await.expect("readable").to_vec();
            match harm {
                "cut" => bytes.truncate(bytes.len() / 2),
                _ => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 1;
                }
            }
            bucket.put(&path, bytes.into()).await.expect("an object can be put");
        }
        if harm == "wipe" {
            wipe(&bucket).await;
        }
        let verify = home.cache(&server, &["verify"]);
        assert!(!verify.status.success() && verify.stderr.contains("can not be used"), "{harm}: {verify:?}");
        let ran = home.ask(&server, QUERY);
        assert!(ran.stderr.contains("missing or damaged and is computed again"), "{harm}: {ran:?}");
        assert_eq!(ran.rows(), expected, "{harm}");
    }
}

/// The server dies between write and read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_gone_fails_no_query() {
    let Some(server) = Server::start(&[]) else { return };
    server.bucket("results");
    let home = Home::new(&server);
    let expected = home.ask(&server, QUERY).rows();
    let endpoint = server.endpoint().to_owned();
    drop(server);
    for _ in 0..2 {
        let begun = Instant::now();
        let ran = run_at(&endpoint, &home.path, &[LOCATION], &["-c", QUERY]);
        assert!(ran.stderr.contains("could not be read and is computed again"), "{ran:?}");
        assert_eq!(ran.rows(), expected);
        assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    }
    // Whoever keeps results in the home replaces what can not be reached.
    let ran = run_at(&endpoint, &home.path, &[], &["-c", QUERY]);
    assert!(ran.stderr.contains("could not be read"), "{ran:?}");
    let ran = run_at(&endpoint, &home.path, &[], &["-c", QUERY]);
    assert!(!ran.stderr.contains("could not be read"), "{ran:?}");
    assert_eq!(ran.rows(), expected);
}

/// Takes connections and does with them what `serve` does.
fn stand_in(serve: fn(std::net::TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A server that takes every request and never answers, and one that answers all of them with errors.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_or_fails_fails_no_query() {
    let Some(server) = Server::start(&[]) else { return };
    server.bucket("results");
    let home = Home::new(&server);
    let expected = home.ask(&server, QUERY).rows();
    let hangs = stand_in(|stream| {
        std::thread::sleep(Duration::from_secs(600));
        drop(stream);
    });
    let fails = stand_in(|mut stream| {
        let mut request = [0; 4096];
        while stream.read(&mut request).is_ok_and(|n| n > 0) {
            let answer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    });
    for address in [hangs, fails] {
        let endpoint = format!("http://{address}");
        let begun = Instant::now();
        let ran = run_at(&endpoint, &home.path, &[LOCATION], &["-c", QUERY]);
        assert!(ran.stderr.contains("could not be read and is computed again"), "{ran:?}");
        assert_eq!(ran.rows(), expected);
        assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
        // What is new can not be kept; that is all. Closing the home waits a little for it.
        let begun = Instant::now();
        let other = QUERY.replace("10", &format!("{}", 20 + address.port() % 50));
        let ran = run_at(&endpoint, &home.path, &[LOCATION], &["-c", &other]);
        assert!(ran.status.success() && !ran.stderr.contains("computed again"), "{ran:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "it took {:?}", begun.elapsed());
    }
    // The entry was not the worse for it.
    assert_eq!(home.ask(&server, QUERY).rows(), expected);
    assert_eq!(home.reused(&server), "exact");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_that_can_not_be_are_told_when_the_home_opens() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let home = folder.path().join("home");
    for location in ["http://host/x", "s3://user:hushhush@bucket/x", "ftp://host/x", ""] {
        let ran = run_at("http://127.0.0.1:1", &home, &[("cache.location", location)], &["-c", "SELECT 1"]);
        let error = ran.error();
        assert!(error.contains("cannot keep results at") && !error.contains("hushhush"), "{location}: {error}");
    }
    // A folder of one's own.
    let other = folder.path().join("other");
    let settings = [("cache.location", other.to_str().expect("a path"))];
    let ask = |sql: &str| run_at("http://127.0.0.1:1", &home, &settings, &["-c", sql]).rows();
    ask("CREATE TABLE t AS SELECT value AS n FROM generate_series(1, 100000)");
    assert_eq!(ask(QUERY), ask(QUERY));
    assert_ne!(files_below(&other), 0);
    assert_eq!(files_below(&home.join("derived")), 0);
    let reused = "SELECT reuse FROM system.queries WHERE sql LIKE 'SELECT n %' ORDER BY started_at";
    assert_eq!(ask(reused), "none\nexact");
}
