//! How far a statement is, asked over the wire; and limits on how many there are.

use std::time::{Duration, Instant};

use arrow_flight::CancelFlightInfoRequest;
use arrow_flight::sql::CommandStatementQuery;
use nectarine_engine::{Login, Progress, RemoteSession};
use nectarine_tests::db::Db;
use nectarine_tests::flight::Served;
use prost::Message;
use tonic::Code;

const ENDLESS: &str = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3";

fn command(sql: &str) -> CommandStatementQuery {
    CommandStatementQuery { query: sql.to_owned(), transaction_id: None }
}

/// GetFlightInfo returns when a statement has begun, not when it has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_waits_for_rows_that_are_not_fetched() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let started = Instant::now();
    let info = caller.info(&command(ENDLESS)).await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let cancel = CancelFlightInfoRequest::new(info).encode_to_vec();
    caller.action("CancelFlightInfo", cancel).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn how_far_a_statement_is() {
    let served = Served::open().await;
    let rows: String = (0..2_000).map(|n| format!("{n}\n")).collect();
    for n in 0..8 {
        served.db.file(&format!("part{n}.csv"), format!("a\n{rows}"));
    }
    let files = served.db.path("part*.csv").display().to_string();
    let create = "CREATE EXTERNAL TABLE parts STORED AS CSV";
    served.db.ok(&format!("{create} LOCATION '{files}' OPTIONS ('format.has_header' 'true')")).await;
    let session = RemoteSession::connect(&served.server.url(), None, Login::Nobody).await.unwrap();
    // What is read twice would be computed once, and read from there.
    session.execute_observed("SET nectarine.reuse = 'off'", &Progress::new()).await.unwrap();
    // A query, whose rows are fetched, and a command, which runs before there is anything to fetch.
    let product = "parts AS p CROSS JOIN parts AS q CROSS JOIN generate_series(1, 1000) AS s (c)";
    let sum = "sum((p.a * q.a + c) % 1000)";
    for sql in [format!("SELECT {sum} FROM {product}"), format!("CREATE TABLE t AS SELECT {sum} AS n FROM {product}")] {
        let progress = Progress::new();
        let running = tokio::spawn({
            let (session, progress, sql) = (session.clone(), progress.clone(), sql.clone());
            async move { session.execute_observed(&sql, &progress).await?.collect().await }
        });
        let begun = Instant::now();
        let seen = loop {
            let now = progress.snapshot();
            if now.phase == "running" && now.files_total >= 8 && now.rows_scanned > 0 {
                break now;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{sql}: {now:?}");
            assert!(!running.is_finished(), "{sql}: it was too quick to be watched: {now:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        assert!(seen.fraction.is_some() && seen.elapsed > Duration::ZERO, "{seen:?}");
        running.abort();
        let _ = running.await;
    }
}

/// A name by which a statement is watched is its user's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_watches_others() {
    let served = Served::with_users().await;
    served.db.script("CREATE USER bob PASSWORD 'bob''s password';\nCREATE USER eve PASSWORD 'eve''s password';").await;
    let mut bob = served.user("bob", "bob's password").await;
    let mut eve = served.user("eve", "eve's password").await;
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(
        arrow_flight::sql::ProstMessageExt::as_any(&command(ENDLESS)).encode_to_vec(),
    );
    let mut request = bob.request(descriptor);
    request.metadata_mut().insert("nectarine-watch", "mine".parse().unwrap());
    let info = bob.calls.get_flight_info(request).await.unwrap().into_inner();
    let told = async |caller: &mut nectarine_tests::flight::Caller| {
        let body = caller.action("nectarine.Progress", b"mine".to_vec()).await.unwrap();
        String::from_utf8(body[0].to_vec()).unwrap()
    };
    assert!(told(&mut bob).await.contains("\"phase\""), "{}", told(&mut bob).await);
    assert_eq!(told(&mut eve).await, "null");
    let cancel = CancelFlightInfoRequest::new(info).encode_to_vec();
    bob.action("CancelFlightInfo", cancel).await.unwrap();
    assert_eq!(told(&mut bob).await, "null");
}

/// One user does not take all places, and a queue that is full says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn places_and_queues_are_bounded() {
    let served = Served::with(Db::new().await, |options| {
        options.statements_max = 4;
        options.user_statements_max = 1;
        options.waiting_max = 1;
    })
    .await;
    served.db.script("CREATE USER bob PASSWORD 'bob''s password';\nCREATE USER eve PASSWORD 'eve''s password';").await;
    let mut bob = served.user("bob", "bob's password").await;
    let info = bob.info(&command(ENDLESS)).await.unwrap();
    let fetching = tokio::spawn({
        let (mut bob, info) = (bob.clone(), info.clone());
        async move { bob.fetch(&info).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let waiting = tokio::spawn({
        let mut bob = bob.clone();
        async move { bob.text("SELECT 2").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!waiting.is_finished(), "bob has two places");
    // Others have theirs, and who finds no place to wait is told at once.
    let mut eve = served.user("eve", "eve's password").await;
    assert_eq!(eve.text("SELECT 1").await.unwrap(), "1");
    let full = bob.text("SELECT 3").await.unwrap_err();
    assert_eq!(full.code(), Code::ResourceExhausted, "{full}");
    assert!(full.message().contains("1 statements wait already"), "{full}");
    let cancel = CancelFlightInfoRequest::new(info).encode_to_vec();
    bob.action("CancelFlightInfo", cancel).await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap(), "2");
    assert!(fetching.await.unwrap().is_err());
}
