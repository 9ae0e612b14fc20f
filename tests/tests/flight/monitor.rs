//! How a server is, over HTTP.

use nectarine_engine::Monitor;
use nectarine_tests::flight::Served;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn get(monitor: &Monitor, path: &str) -> (u16, String) {
    ask(monitor, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await
}

async fn ask(monitor: &Monitor, request: &str) -> (u16, String) {
    let mut socket = TcpStream::connect(monitor.address()).await.expect("an answer");
    socket.write_all(request.as_bytes()).await.expect("an answer");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.expect("an answer");
    let status = answer.split_whitespace().nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_and_figures() {
    let served = Served::open().await;
    let monitor = Monitor::start(served.db.engine(), &served.server, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let mut caller = served.caller().await;
    caller.update("CREATE TABLE t AS SELECT 1 AS a").await.unwrap();
    for _ in 0..3 {
        caller.text("SELECT sum(a) FROM t").await.unwrap();
        served.db.cache().settled().await;
    }
    caller.text("SELECT * FROM nowhere").await.unwrap_err();
    assert_eq!(get(&monitor, "/healthz").await.0, 200);
    assert_eq!(get(&monitor, "/readyz").await.0, 200);
    assert_eq!(get(&monitor, "/else").await.0, 404);
    assert_eq!(ask(&monitor, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n").await.0, 405);
    let (status, text) = get(&monitor, "/metrics").await;
    assert_eq!(status, 200);
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.unwrap_or_else(|| panic!("no {name} in\n{text}")).rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert!(value("nectarine_statements_total{state=\"finished\"}") >= 4.0);
    assert!(value("nectarine_statements_total{state=\"failed\"}") >= 1.0);
    assert!(value("nectarine_hits_total{reuse=\"exact\"}") >= 2.0);
    assert!(value("nectarine_saved_seconds_total") > 0.0);
    assert!(value("nectarine_clients") >= 1.0);
    assert!(value("nectarine_cache_budget_bytes") > 0.0);
    // Not ready once it was told to stop.
    served.server.stop().await;
    assert_eq!(get(&monitor, "/readyz").await.0, 503);
    assert_eq!(get(&monitor, "/healthz").await.0, 200);
}
