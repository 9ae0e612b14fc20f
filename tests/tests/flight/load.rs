//! Many clients at once: queries, appends and cancels side by side. `NECTARINE_LOAD_MINUTES=5` is the long form: 64 clients for five minutes
//! (`NECTARINE_FLIGHT_CLIENTS` for another number), and memory must stay flat; in a release build for its figures. Without it a few
//! seconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_flight::CancelFlightInfoRequest;
use arrow_flight::sql::CommandStatementQuery;
use nectarine_tests::flight::{Caller, Served};
use prost::Message;
use tonic::Code;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Memory of this process, where the system tells it.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}

#[derive(Default)]
struct Told {
    queries: AtomicUsize,
    cancels: AtomicUsize,
    appends: AtomicUsize,
    /// Rows that were certainly there before a query began, and those that may be there when it has ended.
    appended: AtomicI64,
    started: AtomicI64,
    stop: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once() {
    let minutes = number("NECTARINE_LOAD_MINUTES", 0);
    let (n_clients, seconds) = match minutes {
        0 => (number("NECTARINE_FLIGHT_CLIENTS", 12), number("NECTARINE_FLIGHT_SECONDS", 5)),
        _ => (number("NECTARINE_FLIGHT_CLIENTS", 64), 60 * minutes),
    };
    let served = Arc::new(Served::with_users().await);
    let login = served.server.first_login().map(|(user, password)| (user.to_owned(), password.to_owned()));
    let (user, password) = login.expect("a first login");
    let mut admin = served.user(&user, &password).await;
    admin.update("CREATE TABLE fixed AS SELECT a, a % 10 AS g FROM generate_series(1, 10000) AS s (a)").await.unwrap();
    admin.update("CREATE TABLE growing (a BIGINT)").await.unwrap();
    let told = Arc::new(Told::default());
    let mut tasks = vec![];
    for n in 0..n_clients {
        let (served, told) = (Arc::clone(&served), Arc::clone(&told));
        // Logging in is slow on purpose: a token serves many connections.
        let token = admin.token.clone();
        tasks.push(tokio::spawn(async move {
            let mut caller = Caller { token, ..served.caller().await };
            let mut times = vec![];
            let mut round = n;
            while !told.stop.load(Ordering::Relaxed) {
                round += 1;
                one(&mut caller, round, n == 0, &told, &mut times).await;
            }
            times
        }));
    }
    // All that grows once has grown after a third of the time.
    tokio::time::sleep(Duration::from_secs(seconds as u64) / 3).await;
    let warm = resident_bytes();
    tokio::time::sleep(Duration::from_secs(seconds as u64) * 2 / 3).await;
    let last = resident_bytes();
    told.stop.store(true, Ordering::Relaxed);
    let mut times = vec![];
    for task in tasks {
        times.extend(task.await.expect("a client"));
    }
    times.sort();
    let at = |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!(
        "{n_clients} clients, {seconds} s: {} queries, {} appends, {} cancels; {} exact hits, p50 {:?} p99 {:?}; memory {} MB, then {} MB",
        told.queries.load(Ordering::Relaxed),
        told.appends.load(Ordering::Relaxed),
        told.cancels.load(Ordering::Relaxed),
        times.len(),
        at(0.5),
        at(0.99),
        warm >> 20,
        last >> 20,
    );
    // A table that gets an extent with each append takes some.
    assert!(minutes == 0 || last < warm + warm / 5 + (64 << 20), "memory grows: {warm} bytes, then {last}");
    assert!(told.queries.load(Ordering::Relaxed) > n_clients);
    let rows = admin.text("SELECT count(*) FROM growing").await.unwrap();
    assert_eq!(rows, told.appended.load(Ordering::Relaxed).to_string());
}

async fn one(caller: &mut Caller, round: usize, appends: bool, told: &Told, times: &mut Vec<Duration>) {
    match round % 8 {
        0 if appends => {
            told.started.fetch_add(10, Ordering::SeqCst);
            let count =
                caller.update("INSERT INTO growing SELECT * FROM generate_series(1, 10)").await.expect("an answer");
            assert_eq!(count, 10);
            told.appended.fetch_add(10, Ordering::SeqCst);
            told.appends.fetch_add(1, Ordering::Relaxed);
        }
        1 => {
            let before = told.appended.load(Ordering::SeqCst);
            let found = caller.text("SELECT count(*), sum(a) FROM growing").await.expect("an answer");
            let after = told.started.load(Ordering::SeqCst);
            let count: i64 = found.split('|').next().expect("an answer").parse().expect("an answer");
            assert!((before..=after).contains(&count) && count % 10 == 0, "{before} {count} {after}");
        }
        2 => {
            let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3";
            let command = CommandStatementQuery { query: endless.to_owned(), transaction_id: None };
            let info = caller.info(&command).await.expect("an answer");
            let request = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
            caller.action("CancelFlightInfo", request).await.expect("an answer");
            assert_eq!(caller.fetch(&info).await.expect_err("it was cancelled").code(), Code::NotFound);
            told.cancels.fetch_add(1, Ordering::Relaxed);
        }
        3 => {
            // Each its own: computed, not found.
            let sql = format!("SELECT count(*) FROM fixed WHERE a > {}", round % 10_000);
            assert_eq!(caller.text(&sql).await.expect("an answer"), (10_000 - round % 10_000).to_string());
        }
        _ => {
            let started = Instant::now();
            let fetched =
                caller.query("SELECT g, count(*) AS n, sum(a) AS total FROM fixed GROUP BY g ORDER BY g").await;
            let fetched = fetched.expect("an answer");
            if fetched.trailer("nectarine-reuse") == Some("exact") {
                times.push(started.elapsed());
            }
            assert!(fetched.text().starts_with("0|1000|5005000\n1|1000|4996000"), "{}", fetched.text());
        }
    }
    told.queries.fetch_add(1, Ordering::Relaxed);
}

/// A bounded number compute at a time, and nobody is forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_take_turns() {
    let db = nectarine_tests::db::Db::new().await;
    let served = Served::with(db, |options| {
        options.no_auth = true;
        options.statements_max = 1;
    })
    .await;
    let mut endless = served.caller().await;
    let command = |sql: &str| CommandStatementQuery { query: sql.to_owned(), transaction_id: None };
    let info = endless
        .info(&command("SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3"))
        .await
        .unwrap();
    let fetching = tokio::spawn({
        let (mut endless, info) = (endless.clone(), info.clone());
        async move { endless.fetch(&info).await }
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut other = served.caller().await;
    let waiting = tokio::spawn(async move { other.text("SELECT 1").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "two computed at a time");
    let request = CancelFlightInfoRequest::new(info).encode_to_vec();
    endless.action("CancelFlightInfo", request).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), "1");
    assert!(fetching.await.unwrap().is_err());
    // One who does not read what he asked for keeps nobody waiting.
    let info = endless.info(&command("SELECT repeat('x', 1000) FROM generate_series(1, 10000000)")).await.unwrap();
    let request = endless.request(info.endpoint[0].ticket.clone().unwrap());
    let mut stream = endless.calls.do_get(request).await.unwrap().into_inner();
    stream.message().await.unwrap();
    stream.message().await.unwrap();
    let mut other = served.caller().await;
    let answered = tokio::time::timeout(Duration::from_secs(10), other.text("SELECT 1 + 1")).await;
    assert_eq!(answered.expect("it waits for a reader").unwrap(), "2");
}

/// Statements have a bound on their time, where one is set.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_end_in_time() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("SET nectarine.statement_timeout = 1").await.unwrap();
    let started = Instant::now();
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3";
    let error = caller.text(endless).await.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted, "{error}");
    assert!(error.message().contains("longer than 1 seconds"), "{error}");
    let error = caller.update(&format!("CREATE TABLE t AS {endless}")).await.unwrap_err();
    assert!(error.message().contains("longer than 1 seconds"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(20));
    assert_eq!(caller.text("SELECT 1").await.unwrap(), "1");
}
