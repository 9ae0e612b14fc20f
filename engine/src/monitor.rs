//! [`Monitor`]: how a server is, for those who look after it: over plain HTTP, numbers only.
//!
//! ```text
//!   GET /healthz   200 while the process lives
//!   GET /readyz    200 while it takes statements and the metadata store answers, else 503
//!   GET /metrics   counters in the text format of Prometheus
//! ```

use std::convert::Infallible;
use std::fmt::Write;
use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::flight::{FlightServer, Load};
use crate::{Engine, EngineError, ErrorKind, Result};

/// A store that takes longer to tell its version is not ready.
const READY_WITHIN: Duration = Duration::from_secs(2);
/// Who takes longer to ask is not answered.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Those who may ask at a time.
const CONNECTIONS_MAX: usize = 64;

/// A listener that tells how a server is.
#[derive(Debug)]
pub struct Monitor {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Monitor {
    /// Begins to listen.
    pub async fn start(engine: &Engine, server: &FlightServer, address: SocketAddr) -> Result<Self> {
        let cannot = |error: std::io::Error| {
            EngineError::new(ErrorKind::Configuration, format!("cannot listen on {address}"))
                .with_detail(error.to_string())
                .with_source(error)
        };
        let listener = TcpListener::bind(address).await.map_err(cannot)?;
        let address = listener.local_addr().map_err(cannot)?;
        let watched = Watched { engine: engine.clone(), load: server.load() };
        Ok(Self { address, listening: tokio::spawn(listen(listener, watched)) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// What is looked at.
#[derive(Clone)]
struct Watched {
    engine: Engine,
    load: Load,
}

async fn listen(listener: TcpListener, watched: Watched) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = std::sync::Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of files, most likely.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let watched = watched.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| answer(watched.clone(), request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(ASK_WITHIN).keep_alive(false);
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(place);
        });
    }
}

async fn answer(
    watched: Watched,
    request: Request<Incoming>,
) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/healthz") => (StatusCode::OK, "alive\n".to_string()),
        (&Method::GET, "/readyz") => match watched.is_ready().await {
            true => (StatusCode::OK, "ready\n".to_string()),
            false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n".to_string()),
        },
        (&Method::GET, "/metrics") => (StatusCode::OK, watched.metrics()),
        (&Method::GET, _) => (StatusCode::NOT_FOUND, "there are /healthz, /readyz and /metrics\n".to_string()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n".to_string()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let kind = hyper::header::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    Ok(response)
}

impl Watched {
    async fn is_ready(&self) -> bool {
        let version = self.engine.shared().store.catalog_version();
        let answers = tokio::time::timeout(READY_WITHIN, version).await.is_ok_and(|version| version.is_ok());
        answers && !self.load.is_stopping()
    }

    fn metrics(&self) -> String {
        let shared = self.engine.shared();
        let counts = shared.log.counts();
        let (n_running, n_waiting) = self.load.statements();
        let (cache_used, levels) = shared.reuse.caretaker.ledger.usage();
        let memory = shared.template.runtime_env().memory_pool.reserved();
        let mut text = String::new();
        let mut add = |name: &str, kind: &str, help: &str, values: &[(&str, f64)]| {
            let _ = writeln!(text, "# HELP nectarine_{name} {help}\n# TYPE nectarine_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "nectarine_{name}{labels} {value}");
            }
        };
        let states = [
            ("{state=\"finished\"}", counts.finished as f64),
            ("{state=\"failed\"}", counts.failed as f64),
            ("{state=\"cancelled\"}", counts.cancelled as f64),
        ];
        add("statements_total", "counter", "Statements that ended.", &states);
        let hits = [("{reuse=\"exact\"}", counts.exact as f64), ("{reuse=\"partial\"}", counts.partial as f64)];
        add("hits_total", "counter", "Statements that were answered from the cache, in whole or in part.", &hits);
        let saved = counts.saved_us as f64 / 1e6;
        add("saved_seconds_total", "counter", "Computing that was not done again.", &[("", saved)]);
        add("rows_returned_total", "counter", "Rows that statements returned.", &[("", counts.rows as f64)]);
        add("bytes_scanned_total", "counter", "Bytes of extents that were read.", &[("", counts.bytes as f64)]);
        add("statements_running", "gauge", "Statements that compute now.", &[("", n_running as f64)]);
        add("statements_waiting", "gauge", "Statements that wait for their turn.", &[("", n_waiting as f64)]);
        add("clients", "gauge", "Clients with a session.", &[("", self.load.n_clients() as f64)]);
        add("results_open", "gauge", "Results that wait or are being fetched.", &[("", self.load.n_results() as f64)]);
        add("cache_bytes", "gauge", "Bytes of cached results.", &[("", cache_used as f64)]);
        add("cache_budget_bytes", "gauge", "What cached results may take.", &[("", levels.budget as f64)]);
        add("memory_reserved_bytes", "gauge", "Memory that statements have reserved.", &[("", memory as f64)]);
        if let Some(resident) = resident_bytes() {
            add("memory_resident_bytes", "gauge", "Memory of the process.", &[("", resident as f64)]);
        }
        text
    }
}

/// Where the system tells it.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}
