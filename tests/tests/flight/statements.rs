//! Statements: rows, counts, errors, receipts, cancelling, sessions.

use std::time::{Duration, Instant};

use arrow_flight::sql::{Any, CommandStatementQuery, ProstMessageExt, TicketStatementQuery};
use arrow_flight::{CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor, Ticket};
use nectarine_tests::flight::{Served, schema_of};
use prost::Message;
use tonic::Code;

fn command(sql: &str) -> CommandStatementQuery {
    CommandStatementQuery { query: sql.to_owned(), transaction_id: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_counts_and_receipts() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    assert_eq!(caller.update("CREATE TABLE t (a INT, b VARCHAR NOT NULL)").await.unwrap(), 0);
    assert_eq!(caller.update("INSERT INTO t VALUES (1, 'one'), (2, 'two'), (NULL, 'none')").await.unwrap(), 3);
    assert_eq!(caller.text("SELECT a, b FROM t ORDER BY b").await.unwrap(), "NULL|none\n1|one\n2|two");
    let sql = "SELECT b, sum(a) AS total FROM t GROUP BY b ORDER BY b";
    let first = caller.query(sql).await.unwrap();
    assert_eq!(first.trailer("nectarine-reuse"), Some("none"));
    served.db.cache().settled().await;
    let again = caller.query(sql).await.unwrap();
    assert_eq!(again.text(), first.text());
    assert_eq!(again.trailer("nectarine-reuse"), Some("exact"));
    assert!(again.trailer("nectarine-saved-us").unwrap().parse::<u64>().unwrap() > 0);
    let id = again.trailer("nectarine-query-id").unwrap();
    let logged =
        caller.text(&format!("SELECT state, reuse FROM system.queries WHERE query_id = '{id}'")).await.unwrap();
    assert_eq!(logged, "finished|exact");
    // What is asked for as a query and has no rows.
    let info = caller.info(&command("INSERT INTO t VALUES (4, 'four'), (5, 'five')")).await.unwrap();
    assert_eq!(info.total_records, 2);
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "");
    let told: serde_json::Value = serde_json::from_slice(&info.app_metadata).unwrap();
    assert_eq!((told["tag"].as_str(), told["count"].as_u64()), (Some("INSERT"), Some(2)));
    assert_eq!(caller.query("CREATE VIEW v AS SELECT 1").await.unwrap().schema.fields().len(), 0);
    // A query that is asked for as a command.
    assert_eq!(caller.update("SELECT * FROM t").await.unwrap(), -1);
    assert_eq!(caller.text("").await.unwrap(), "");
    served.server.stop().await;
}

/// Types that drivers do not know are sent as those that they do; told and sent columns are the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn types_survive() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    for sql in [
        "SELECT arrow_cast('x', 'Utf8View') AS v, arrow_cast('y', 'Dictionary(Int32, Utf8)') AS d, NULL AS n",
        "SELECT 1::tinyint, 2::smallint, 3::int, 4::bigint, 5.5::real, 6.5::double, 7.25::decimal(10,2), true",
        "SELECT DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.678', TIME '03:04:05', INTERVAL '1 day', X'00ff'",
        "SELECT [1, 2, NULL] AS l, {'a': 1, 'b': 'x'} AS s, ['p', 'q'] AS texts",
        "SELECT * FROM (VALUES (1)) AS v (a) WHERE a > 1",
        "SELECT 18446744073709551615::bigint unsigned AS u, '2026-01-02T03:04:05Z'::timestamptz AS z",
        "SHOW nectarine.reuse",
        "EXPLAIN SELECT 1",
        "SELECT count(*) FROM information_schema.tables",
        "SELECT * FROM system.settings LIMIT 1",
    ] {
        let fetched = caller.query(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let types: Vec<String> = fetched.schema.fields().iter().map(|field| field.data_type().to_string()).collect();
        assert!(!types.iter().any(|name| name.contains("View") || name.contains("Dictionary")), "{sql}: {types:?}");
        let described = caller.request(FlightDescriptor::new_cmd(command(sql).as_any().encode_to_vec()));
        let described = caller.calls.get_schema(described).await.unwrap().into_inner();
        let described = schema_of(&described.schema);
        let names = |schema: &arrow::datatypes::Schema| -> Vec<String> {
            schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect()
        };
        assert_eq!(names(&described), names(&fetched.schema), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_say_what_to_do() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE things (a INT)").await.unwrap();
    for (sql, code, words) in [
        ("SELEC 1", Code::InvalidArgument, "expected an SQL statement"),
        ("SELECT * FROM thing", Code::InvalidArgument, "hint: did you mean"),
        ("SELECT 1/0", Code::InvalidArgument, "zero"),
        ("DELETE FROM things", Code::Unimplemented, "append-only"),
        ("BEGIN", Code::Unimplemented, "transaction"),
        ("SELECT $1", Code::InvalidArgument, "$1"),
    ] {
        let error = match caller.query(sql).await {
            Ok(fetched) => panic!("{sql}: {fetched:?}"),
            Err(error) => error,
        };
        assert_eq!(error.code(), code, "{sql}: {error}");
        assert!(error.message().contains(words), "{sql}: {error}");
        assert!(error.metadata().get_bin("nectarine-error-bin").is_some(), "{sql}");
    }
}

/// A statement that is cancelled, or whose client goes, ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_statements_end() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let endless = "SELECT count(*) FROM generate_series(1, 1000000000000) AS s (a) WHERE a % 7 = 3";
    let running = "SELECT count(*) FROM system.queries WHERE state = 'running' AND sql LIKE '%generate_series%' \
                   AND sql NOT LIKE '%system.queries%'";
    // While its rows are fetched, and while they wait.
    for is_fetched in [true, false] {
        let info = caller.info(&command(endless)).await.unwrap();
        let fetching = is_fetched.then(|| {
            let (mut other, info) = (caller.clone(), info.clone());
            tokio::spawn(async move { other.fetch(&info).await })
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(caller.text(running).await.unwrap(), "1");
        let request = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
        let outcome = caller.action("CancelFlightInfo", request.clone()).await.unwrap();
        let outcome = CancelFlightInfoResult::decode(outcome[0].clone()).unwrap();
        assert_eq!(outcome.status, CancelStatus::Cancelled as i32);
        if let Some(fetching) = fetching {
            assert_eq!(fetching.await.unwrap().unwrap_err().code(), Code::Cancelled);
        }
        assert_eq!(caller.action("CancelFlightInfo", request).await.unwrap_err().code(), Code::NotFound);
        assert_eq!(caller.fetch(&info).await.unwrap_err().code(), Code::NotFound);
        ends(&mut caller, running).await;
    }
    // Its client goes: while it fetches, and with the whole connection.
    let mut other = served.caller().await;
    let info = other.info(&command(endless)).await.unwrap();
    let fetching = tokio::time::timeout(Duration::from_millis(200), other.fetch(&info)).await;
    assert!(fetching.is_err(), "it ended");
    ends(&mut caller, running).await;
    let mut other = served.caller().await;
    other.info(&command(endless)).await.unwrap();
    drop(other);
    ends(&mut caller, running).await;
}

async fn ends(caller: &mut nectarine_tests::flight::Caller, running: &str) {
    let started = Instant::now();
    while caller.text(running).await.expect("an answer") != "0" {
        assert!(started.elapsed() < Duration::from_secs(5), "a cancelled statement goes on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Nothing is computed far ahead of who reads it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_are_waited_for() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let info = caller.info(&command("SELECT a, repeat('x', 100) FROM generate_series(1, 100000000) AS s (a)")).await;
    let ticket = info.unwrap().endpoint[0].ticket.clone().unwrap();
    let request = caller.request(ticket);
    let mut stream = caller.calls.do_get(request).await.unwrap().into_inner();
    let mut bytes = 0;
    for _ in 0..5 {
        bytes += stream.message().await.unwrap().unwrap().data_body.len();
    }
    assert!(bytes > 0);
    let memory = memory_bytes();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let grown = memory_bytes().saturating_sub(memory);
    assert!(grown < 200 << 20, "{grown} bytes were computed that nobody asked for");
    assert!(stream.message().await.unwrap().is_some());
}

fn memory_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/statm").expect("the memory of this process");
    let pages: usize = status.split_whitespace().nth(1).expect("a number").parse().expect("a number");
    pages * 4096
}

/// Each client has settings of his own; options set and tell them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_and_their_options() {
    let served = Served::open().await;
    let (mut one, mut two) = (served.caller().await, served.caller().await);
    one.update("CREATE SCHEMA zoo").await.unwrap();
    one.update("CREATE TABLE zoo.ape AS SELECT 7 AS a").await.unwrap();
    one.update("SET nectarine.reuse = 'off'").await.unwrap();
    assert_eq!(one.text("SHOW nectarine.reuse").await.unwrap(), "nectarine.reuse|off");
    assert_eq!(two.text("SHOW nectarine.reuse").await.unwrap(), "nectarine.reuse|on");
    let outcome =
        one.action("SetSessionOptions", options::set(&[("schema", "zoo"), ("catalog", "nectarine")])).await.unwrap();
    assert_eq!(options::errors(&outcome[0]), []);
    assert_eq!(one.text("SELECT a FROM ape").await.unwrap(), "7");
    assert!(two.text("SELECT a FROM ape").await.is_err());
    let wrong =
        options::set(&[("schema", "nowhere"), ("catalog", "x"), ("nonsense", "1"), ("nectarine.nonsense", "1")]);
    let outcome = one.action("SetSessionOptions", wrong).await.unwrap();
    let expected = [("catalog", 2), ("nectarine.nonsense", 1), ("nonsense", 1), ("schema", 2)];
    assert_eq!(options::errors(&outcome[0]), expected.map(|(name, code)| (name.to_owned(), code)));
    let told = options::get(&one.action("GetSessionOptions", vec![]).await.unwrap()[0]);
    assert_eq!(told["schema"], "zoo");
    assert_eq!(told["nectarine.reuse"], "off");
    one.action("CloseSession", vec![]).await.unwrap();
    assert_eq!(one.text("SHOW nectarine.reuse").await.unwrap(), "nectarine.reuse|on");
}

/// Commands need not be fetched to their end, however many there are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_of_commands_may_be_left() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    for _ in 0..1_100 {
        caller.info(&command("SET nectarine.reuse = 'on'")).await.unwrap();
    }
    let info = caller.info(&command("SELECT 1 AS a")).await.unwrap();
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "1");
}

/// Tickets are for their user, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_are_used_once() {
    let served = Served::open().await;
    let mut caller = served.caller().await;
    let info = caller.info(&command("SELECT 1 AS a")).await.unwrap();
    assert_eq!(caller.fetch(&info).await.unwrap().text(), "1");
    assert_eq!(caller.fetch(&info).await.unwrap_err().code(), Code::NotFound);
    let any = Any::decode(info.endpoint[0].ticket.clone().unwrap().ticket).unwrap();
    let ticket: TicketStatementQuery = any.unpack().unwrap().unwrap();
    assert_eq!(ticket.statement_handle.len(), 16);
    let mut forged = ticket.statement_handle.to_vec();
    forged[3] ^= 1;
    let forged = TicketStatementQuery { statement_handle: forged.into() };
    let error = caller.get(Ticket::new(forged.as_any().encode_to_vec())).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

/// The messages of session options, which arrow-flight does not have.
mod options {
    use std::collections::{BTreeMap, HashMap};

    use prost::Message;
    use prost::bytes::Bytes;

    #[derive(Clone, PartialEq, Message)]
    struct Value {
        #[prost(string, optional, tag = "1")]
        text: Option<String>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Options {
        #[prost(map = "string, message", tag = "1")]
        options: HashMap<String, Value>,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Code {
        #[prost(int32, tag = "1")]
        value: i32,
    }

    #[derive(Clone, PartialEq, Message)]
    struct Errors {
        #[prost(map = "string, message", tag = "1")]
        errors: HashMap<String, Code>,
    }

    pub(super) fn set(options: &[(&str, &str)]) -> Vec<u8> {
        let value = |text: &str| Value { text: Some(text.to_owned()) };
        let options = options.iter().map(|(name, text)| ((*name).to_owned(), value(text))).collect();
        Options { options }.encode_to_vec()
    }

    pub(super) fn errors(bytes: &Bytes) -> Vec<(String, i32)> {
        let errors = Errors::decode(bytes.clone()).expect("errors").errors;
        let mut errors: Vec<_> = errors.into_iter().map(|(name, code)| (name, code.value)).collect();
        errors.sort();
        errors
    }

    pub(super) fn get(bytes: &Bytes) -> BTreeMap<String, String> {
        let options = Options::decode(bytes.clone()).expect("options").options;
        options.into_iter().filter_map(|(name, value)| Some((name, value.text?))).collect()
    }
}
