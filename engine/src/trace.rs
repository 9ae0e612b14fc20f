//! [`Tracer`]: how long statements and their parts took, for collectors of OpenTelemetry; see `nectarine.trace_endpoint`.
//!
//! ```text
//!   statement            from its text to the end of its rows; the trace has the number of the statement in system.queries
//!     plan               until it could run
//!       look-up          what planning asked of the cache
//!     run                while its rows were made and fetched
//!     publish            writing down what is kept, after the answer has ended
//! ```
//!
//! Sent as OTLP over HTTP, in its JSON form, by a task of its own.
//!
//! Keeps true   a collector that is slow or away costs no statement anything: what does not fit into the queue is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nectarine_catalog::QueryId;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use url::Url;

use crate::{EngineError, ErrorKind, Result};

/// Spans that may wait to be sent.
const QUEUE_MAX: usize = 16_384;
/// Spans in one message.
const BATCH_MAX: usize = 512;
/// How long a span waits for others.
const SEND_EVERY: Duration = Duration::from_secs(1);
/// How long a collector may take.
const SEND_WITHIN: Duration = Duration::from_secs(5);
/// How often trouble is told.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Longer statements are cut.
const SQL_BYTES_MAX: usize = 4096;

/// A span that has ended, as OTLP writes it.
struct Span(Value);

enum Message {
    Span(Span),
    Flush(oneshot::Sender<()>),
}

/// Where spans go. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Tracer {
    sender: mpsc::Sender<Message>,
    n_dropped: Arc<AtomicU64>,
}

impl Tracer {
    /// Sends spans to a collector; `None` if there is no address. `/v1/traces` is put behind an address without a path.
    pub(crate) fn start(endpoint: &str) -> Result<Option<Self>> {
        let endpoint = endpoint.trim();
        if endpoint.is_empty() {
            return Ok(None);
        }
        let url = check(endpoint)?;
        let client = reqwest::Client::builder().timeout(SEND_WITHIN).build();
        let client = client.map_err(|error| unusable(endpoint, &error.to_string()))?;
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(send_all(client, url, receiver));
        Ok(Some(Self { sender, n_dropped: Arc::default() }))
    }

    fn send(&self, span: Value) {
        if self.sender.try_send(Message::Span(Span(span))).is_err()
            && self.n_dropped.fetch_add(1, Ordering::Relaxed).is_multiple_of(10_000)
        {
            tracing::warn!("spans are dropped: the collector is too slow");
        }
    }

    /// Waits until all that ended before was sent, or could not be.
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            let _ = is_done.await;
        }
    }
}

/// The address of a collector.
pub(crate) fn check(endpoint: &str) -> Result<Url> {
    let mut url = Url::parse(endpoint).map_err(|error| unusable(endpoint, &error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(unusable(endpoint, "it is neither http:// nor https://"));
    }
    if url.path() == "/" {
        url.set_path("/v1/traces");
    }
    Ok(url)
}

fn unusable(endpoint: &str, detail: &str) -> EngineError {
    EngineError::new(ErrorKind::Configuration, format!("cannot send traces to \"{endpoint}\""))
        .with_detail(detail.to_string())
        .with_hint("write the address of a collector that takes OTLP over HTTP, such as http://127.0.0.1:4318")
}

async fn send_all(client: reqwest::Client, url: Url, mut receiver: mpsc::Receiver<Message>) {
    let mut told: Option<tokio::time::Instant> = None;
    loop {
        let Some(first) = receiver.recv().await else { return };
        let (mut spans, mut waiting) = (vec![], vec![]);
        let until = tokio::time::Instant::now() + SEND_EVERY;
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Span(Span(span)) => spans.push(span),
                Message::Flush(done) => waiting.push(done),
            }
            if spans.len() >= BATCH_MAX || !waiting.is_empty() {
                break;
            }
            next = tokio::time::timeout_at(until, receiver.recv()).await.ok().flatten();
        }
        if !spans.is_empty()
            && let Err(error) = send(&client, &url, spans).await
            && told.is_none_or(|told| told.elapsed() > TELL_EVERY)
        {
            told = Some(tokio::time::Instant::now());
            tracing::warn!(%error, "cannot send traces");
        }
        waiting.into_iter().for_each(|done| _ = done.send(()));
    }
}

async fn send(client: &reqwest::Client, url: &Url, spans: Vec<Value>) -> reqwest::Result<()> {
    let service = attribute("service.name", &json!({ "stringValue": "nectarine" }));
    let scope = json!({ "name": "nectarine", "version": env!("CARGO_PKG_VERSION") });
    let scope_spans = json!([{ "scope": scope, "spans": spans }]);
    let body = json!({ "resourceSpans": [{ "resource": { "attributes": [service] }, "scopeSpans": scope_spans }] });
    let request = client.post(url.clone()).header("content-type", "application/json").body(body.to_string());
    request.send().await?.error_for_status().map(drop)
}

/// The trace of one statement. Clones are the same trace.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    tracer: Tracer,
    query_id: QueryId,
    root: u64,
    started: u64,
}

/// What is said of a statement when it has ended.
pub(crate) struct Told<'a> {
    pub(crate) user: &'a str,
    pub(crate) sql: &'a str,
    pub(crate) state: &'a str,
    pub(crate) error: Option<&'a str>,
    pub(crate) reuse: Option<&'a str>,
    pub(crate) rows: Option<i64>,
}

impl Trace {
    pub(crate) fn start(tracer: &Tracer, query_id: QueryId) -> Self {
        Self { tracer: tracer.clone(), query_id, root: luck(), started: now() }
    }

    /// A part of the statement that begins now and ends when this is dropped.
    pub(crate) fn part(&self, name: &'static str) -> Part {
        Part { trace: self.clone(), name, id: luck(), parent: self.root, started: now() }
    }

    /// The same, of something that began when the statement did.
    pub(crate) fn part_from_start(&self, name: &'static str) -> Part {
        Part { trace: self.clone(), name, id: luck(), parent: self.root, started: self.started }
    }

    /// The statement has ended.
    pub(crate) fn end(&self, told: &Told<'_>) {
        let text = |text: &str| json!({ "stringValue": cut(text) });
        let mut attributes = vec![
            attribute("db.system.name", &text("nectarine")),
            attribute("db.query.text", &text(told.sql)),
            attribute("user.name", &text(told.user)),
            attribute("nectarine.query_id", &text(&self.query_id.to_string())),
            attribute("nectarine.state", &text(told.state)),
        ];
        attributes.extend(told.reuse.map(|reuse| attribute("nectarine.reuse", &text(reuse))));
        attributes.extend(told.rows.map(|rows| {
            // 64-bit numbers are texts in JSON.
            attribute("db.response.returned_rows", &json!({ "intValue": rows.to_string() }))
        }));
        let status = match told.error {
            Some(error) => json!({ "code": 2, "message": cut(error) }),
            None => json!({}),
        };
        let mut span = self.span("statement", self.root, self.started);
        // Of a server, for a client.
        span["kind"] = json!(2);
        span["attributes"] = Value::Array(attributes);
        span["status"] = status;
        self.tracer.send(span);
    }

    fn span(&self, name: &str, id: u64, started: u64) -> Value {
        json!({
            "traceId": self.query_id.to_string().replace('-', ""),
            "spanId": format!("{id:016x}"),
            "name": name,
            "kind": 1,
            "startTimeUnixNano": started.to_string(),
            "endTimeUnixNano": now().to_string(),
        })
    }
}

/// A part of a statement that goes on.
#[derive(Debug)]
pub(crate) struct Part {
    trace: Trace,
    name: &'static str,
    id: u64,
    parent: u64,
    started: u64,
}

impl Part {
    /// A part of this part.
    pub(crate) fn part(&self, name: &'static str) -> Self {
        Self { trace: self.trace.clone(), name, id: luck(), parent: self.id, started: now() }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut span = self.trace.span(self.name, self.id, self.started);
        span["parentSpanId"] = json!(format!("{:016x}", self.parent));
        self.trace.tracer.send(span);
    }
}

fn attribute(key: &str, value: &Value) -> Value {
    json!({ "key": key, "value": value })
}

fn cut(text: &str) -> &str {
    let end = (0..=SQL_BYTES_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Nanoseconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// A number that is not zero.
fn luck() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked() {
        assert_eq!(check("http://127.0.0.1:4318").unwrap().as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(check("https://c/otlp/v1/traces").unwrap().path(), "/otlp/v1/traces");
        for bad in ["127.0.0.1:4318", "ftp://x", "file:///tmp/x", "http://"] {
            assert!(check(bad).is_err(), "{bad}");
        }
        assert_eq!(cut(&"é".repeat(SQL_BYTES_MAX)).len(), SQL_BYTES_MAX);
    }
}
