//! Traces arrive at a collector of OpenTelemetry; one that is away costs nothing.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nectarine_tests::db::Db;
use nectarine_tests::flight::Served;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Takes what is sent, and keeps the spans.
async fn collector() -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let spans = Arc::new(Mutex::new(vec![]));
    let kept = Arc::clone(&spans);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            tokio::spawn(async move {
                let mut bytes = vec![];
                loop {
                    let mut more = [0; 65536];
                    match socket.read(&mut more).await {
                        Ok(0) | Err(_) => return,
                        Ok(n) => bytes.extend_from_slice(&more[..n]),
                    }
                    let Some((head, body)) = parted(&bytes) else { continue };
                    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
                    assert!(head.to_lowercase().contains("content-type: application/json"), "{head}");
                    let message: Value = serde_json::from_slice(body).expect("JSON");
                    let scope = &message["resourceSpans"][0];
                    assert_eq!(scope["resource"]["attributes"][0]["value"]["stringValue"], "nectarine");
                    kept.lock()
                        .expect("nobody panics with it")
                        .extend(scope["scopeSpans"][0]["spans"].as_array().expect("spans").clone());
                    bytes.clear();
                    let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
                    let _ = socket.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (address, spans)
}

/// Head and body, if both are there.
fn parted(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())?;
    let body = &bytes[end + 4..];
    (body.len() >= length).then(|| (head, &body[..length]))
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let found = span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key)?;
    found["value"]["stringValue"].as_str().or_else(|| found["value"]["intValue"].as_str())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spans_arrive() {
    let (address, spans) = collector().await;
    let db = Db::with(&[("trace_endpoint", &address)]).await;
    let served = Served::with(db, |options| options.no_auth = true).await;
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t AS SELECT a, a % 3 AS g FROM generate_series(1, 1000) AS s (a)").await.unwrap();
    let sql = "SELECT g, sum(a) FROM t GROUP BY g";
    for _ in 0..2 {
        caller.query(sql).await.unwrap();
        served.db.cache().settled().await;
    }
    caller.text("SELECT nothing FROM t").await.unwrap_err();
    served.db.engine().shutdown().await;
    let spans = spans.lock().unwrap().clone();
    let of = |id: &Value| -> Vec<&Value> { spans.iter().filter(|span| span["traceId"] == *id).collect() };
    let statements: Vec<&Value> = spans.iter().filter(|span| attribute(span, "db.query.text") == Some(sql)).collect();
    assert_eq!(statements.len(), 2, "{spans:#?}");
    let mut reuse: Vec<_> = statements.iter().map(|span| attribute(span, "nectarine.reuse").unwrap()).collect();
    reuse.sort_unstable();
    assert_eq!(reuse, ["exact", "none"]);
    for statement in statements {
        assert_eq!(attribute(statement, "db.response.returned_rows"), Some("3"));
        let id = attribute(statement, "nectarine.query_id").unwrap().replace('-', "");
        assert_eq!(statement["traceId"], id.as_str());
        let parts = of(&statement["traceId"]);
        let part = |name: &str| parts.iter().find(|span| span["name"] == name).copied();
        let number = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        for span in &parts {
            assert!(number(span, "startTimeUnixNano") <= number(span, "endTimeUnixNano"), "{span}");
            assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        }
        let (plan, run) = (part("plan").expect("a plan"), part("run").expect("a run"));
        assert_eq!(plan["parentSpanId"], statement["spanId"]);
        assert_eq!(run["parentSpanId"], statement["spanId"]);
        assert_eq!(part("look-up").expect("a look-up")["parentSpanId"], plan["spanId"]);
        let publishes = attribute(statement, "nectarine.reuse") == Some("none");
        assert_eq!(part("publish").is_some(), publishes);
    }
    let failed: Vec<&Value> = spans.iter().filter(|span| span["status"]["code"] == 2).collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert!(failed[0]["status"]["message"].as_str().unwrap().contains("nothing"), "{}", failed[0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_is_away() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let db = Db::with(&[("trace_endpoint", &address)]).await;
    let started = Instant::now();
    for n in 0..20 {
        assert_eq!(db.ok(&format!("SELECT {n}")).await, n.to_string());
    }
    assert!(db.err("SET nectarine.trace_endpoint = 'http://x'").await.contains("read when the home is opened"));
    db.engine().shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let folder = Arc::new(tempfile::tempdir().unwrap());
    let refused = Db::open(folder, &[("trace_endpoint", "localhost:4318")]).await.err().expect("no address");
    assert!(refused.message().contains("cannot send traces"), "{refused:?}");
}
