//! [`RemoteSession`]: a session of a server, as if it were here.
//!
//! Statements are started with GetFlightInfo and their rows fetched with DoGet; tags, notices, receipts and the parts of errors travel
//! beside them, so that an answer from afar is the same [`Answer`] as one from here. Dropping it cancels the statement there.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::EmptyRecordBatchStream;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::{Fingerprint, QueryId};
use nectarine_planner::reuse::ExtentCounts;
use prost::Message;
use tokio::task::JoinHandle;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};
use url::Url;

use super::service::PROGRESS;
use super::status::{ERROR, Parts};
use super::told::{self, Told, ToldProgress};
use crate::progress::Progress;
use crate::reuse::ReceiptSlot;
use crate::statement::wrap;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Names, Notice, Receipt, Result, Reused};

/// How long to wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How often it is asked how far a statement is; short ones are not asked about at all.
const WATCH_INTERVAL: Duration = Duration::from_millis(300);
/// How often a silent server is asked whether it is still there.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Who connects.
#[derive(Clone, Copy)]
pub enum Login<'a> {
    /// Where no password is asked for.
    Nobody,
    /// A user.
    Password {
        /// Who.
        user: &'a str,
        /// The word.
        password: &'a str,
    },
    /// A service.
    Token(&'a str),
}

// Whoever prints it must not tell the password.
impl fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Password { .. } => "Password",
            Self::Token(_) => "Token",
        })
    }
}

/// A client of a server. Cheap to clone; clones are the same client.
#[derive(Clone)]
pub struct RemoteSession {
    address: Arc<str>,
    calls: FlightServiceClient<Channel>,
    token: Option<AsciiMetadataValue>,
}

impl fmt::Debug for RemoteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteSession").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RemoteSession {
    /// Connects to `grpc://host:port`, or with TLS to `grpcs://host:port`, and logs in. `roots` is a PEM file of certificates that are
    /// trusted beside those of the system.
    pub async fn connect(address: &str, roots: Option<&Path>, login: Login<'_>) -> Result<Self> {
        let invalid = |detail: &str| {
            EngineError::new(ErrorKind::Configuration, format!("cannot connect to \"{address}\""))
                .with_detail(detail.to_string())
                .with_hint("write grpc://host:port, or grpcs://host:port for TLS")
        };
        let url = Url::parse(address).map_err(|error| invalid(&error.to_string()))?;
        let scheme = match url.scheme() {
            "grpc" | "grpc+tcp" => "http",
            "grpcs" | "grpc+tls" => "https",
            other => return Err(invalid(&format!("\"{other}\" is not offered"))),
        };
        let host = url.host_str().ok_or_else(|| invalid("there is no host"))?;
        let port = url.port().unwrap_or(32010);
        let endpoint = Endpoint::from_shared(format!("{scheme}://{host}:{port}"));
        let endpoint = endpoint.map_err(|error| invalid(&error.to_string()))?;
        let endpoint =
            endpoint.connect_timeout(CONNECT_WITHIN).http2_keep_alive_interval(PING_INTERVAL).tcp_nodelay(true);
        let endpoint = match scheme {
            "https" => {
                let mut tls = ClientTlsConfig::new().with_native_roots();
                if let Some(path) = roots {
                    let pem = std::fs::read(path).map_err(|error| invalid(&error.to_string()))?;
                    tls = tls.ca_certificate(Certificate::from_pem(pem));
                }
                endpoint.tls_config(tls).map_err(|error| invalid(&error.to_string()))?
            }
            _ => endpoint,
        };
        let channel = endpoint.connect().await.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            EngineError::new(ErrorKind::Io, format!("cannot connect to \"{address}\"")).with_detail(cause)
        })?;
        let calls = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        let mut session = Self { address: Arc::from(address), calls, token: None };
        let scheme_and_words = match login {
            Login::Nobody => return Ok(session),
            Login::Password { user, password } => format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))),
            Login::Token(token) => format!("Bearer {token}"),
        };
        session.log_in(&scheme_and_words).await?;
        Ok(session)
    }

    async fn log_in(&mut self, authorization: &str) -> Result<()> {
        let mut request = Request::new(futures::stream::iter([HandshakeRequest::default()]));
        let header = AsciiMetadataValue::try_from(authorization);
        let header = header.map_err(|_| EngineError::new(ErrorKind::Configuration, "the token is no token"))?;
        request.metadata_mut().insert("authorization", header);
        let response = self.calls.handshake(request).await.map_err(|status| error(&status))?;
        self.token = response.metadata().get("authorization").cloned();
        match self.token.is_some() {
            true => Ok(()),
            false => Err(EngineError::new(ErrorKind::Io, "the server gave no token for the password")),
        }
    }

    /// Where the server is.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    /// Runs one statement, as [`Session::execute_observed`](crate::Session::execute_observed) does.
    pub async fn execute_observed(&self, sql: &str, progress: &Progress) -> Result<Answer> {
        progress.start();
        let name = uuid::Uuid::new_v4().as_simple().to_string();
        let watching = Watching::start(self.clone(), name.clone(), progress.clone());
        let answer = self.start(sql, Some(&name)).await;
        match answer {
            Ok(answer) => Ok(answer.holding(watching)),
            Err(error) => {
                drop(watching);
                progress.done();
                Err(error)
            }
        }
    }

    /// How far a statement is, if it runs and the server tells.
    async fn progress(&self, name: &str) -> Option<ToldProgress> {
        let request = self.request(Action::new(PROGRESS, name.as_bytes().to_vec()));
        let mut answers = self.calls.clone().do_action(request).await.ok()?.into_inner();
        let answer = answers.message().await.ok()??;
        serde_json::from_slice::<Option<ToldProgress>>(&answer.body).ok()?
    }

    async fn start(&self, sql: &str, name: Option<&str>) -> Result<Answer> {
        let command = CommandStatementQuery { query: sql.to_string(), transaction_id: None };
        let mut request = self.request(FlightDescriptor::new_cmd(command.as_any().encode_to_vec()));
        if let Some(name) = name.and_then(|name| AsciiMetadataValue::try_from(name).ok()) {
            request.metadata_mut().insert(told::WATCH, name);
        }
        let mut calls = self.calls.clone();
        let info = calls.get_flight_info(request).await.map_err(|status| error(&status))?.into_inner();
        let told: Told = serde_json::from_slice(&info.app_metadata)
            .map_err(|_| EngineError::new(ErrorKind::Unsupported, format!("\"{}\" is no nectarine", self.address)))?;
        // An empty statement has none.
        let query_id = QueryId::parse(&told.query_id).unwrap_or_else(QueryId::new);
        let notices = told.notices.into_iter().map(|notice| Notice { message: notice.message, hint: notice.hint });
        let receipt = ReceiptSlot::default();
        let (kind, stream) = match (told.tag, told.count) {
            (None, _) => (AnswerKind::Rows, self.fetch(info, receipt.clone()).await?),
            (Some(tag), None) => {
                let nothing = Box::pin(EmptyRecordBatchStream::new(Arc::new(Schema::empty())));
                (AnswerKind::Command { tag }, nothing as SendableRecordBatchStream)
            }
            (Some(tag), Some(count)) => (AnswerKind::Written { tag }, counted(count)?),
        };
        Ok(Answer::new(query_id, kind, notices.collect(), stream).with_receipt(receipt))
    }

    async fn fetch(&self, info: FlightInfo, receipt: ReceiptSlot) -> Result<SendableRecordBatchStream> {
        let incomplete = |what: &str| EngineError::new(ErrorKind::Io, format!("the server told no {what}"));
        let ticket = info.endpoint.first().and_then(|endpoint| endpoint.ticket.clone());
        let ticket = ticket.ok_or_else(|| incomplete("ticket"))?;
        let schema = Arc::new(info.try_decode_schema().map_err(|_| incomplete("columns"))?);
        let request = self.request(ticket);
        let stream = self.calls.clone().do_get(request).await.map_err(|status| error(&status))?.into_inner();
        let messages = with_receipt(stream, receipt).map_err(|status| FlightError::Tonic(Box::new(status)));
        let batches = FlightDataDecoder::new(messages).try_filter_map(|message| {
            std::future::ready(Ok(match message.payload {
                DecodedPayload::RecordBatch(batch) => Some(batch),
                DecodedPayload::Schema(_) | DecodedPayload::None => None,
            }))
        });
        let batches = batches.map_err(|fault| match fault {
            FlightError::Tonic(status) => wrap(error(&status)),
            other => wrap(EngineError::new(ErrorKind::Io, other.to_string())),
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    /// What completion can offer.
    pub async fn names(&self) -> Result<Names> {
        let columns = "SELECT table_schema, table_name, column_name FROM information_schema.columns \
                       ORDER BY table_schema, table_name, ordinal_position";
        let mut names = Names::default();
        for row in self.texts(columns).await? {
            let [schema, table, column] = row.as_slice() else { continue };
            match names.tables.last_mut() {
                Some((last_schema, last_table, columns)) if last_schema == schema && last_table == table => {
                    columns.push(column.clone());
                }
                _ => names.tables.push((schema.clone(), table.clone(), vec![column.clone()])),
            }
        }
        let first = |rows: Vec<Vec<String>>| rows.into_iter().filter_map(|row| row.into_iter().next()).collect();
        names.schemas = first(self.texts("SELECT schema_name FROM information_schema.schemata").await?);
        for row in self.texts("SELECT name, value FROM system.settings").await? {
            let [name, value] = row.as_slice() else { continue };
            if name == "datafusion.catalog.default_schema" {
                names.current_schema.clone_from(value);
            }
            names.settings.push(name.clone());
        }
        let functions = "SELECT DISTINCT routine_name FROM information_schema.routines";
        names.functions = first(self.texts(functions).await?);
        Ok(names)
    }

    /// The rows of a query as texts.
    async fn texts(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        use arrow::util::display::array_value_to_string;
        let batches = self.start(sql, None).await?.collect().await?;
        let mut rows = vec![];
        for batch in &batches {
            for row in 0..batch.num_rows() {
                let cells = batch.columns().iter().map(|column| array_value_to_string(column, row));
                rows.push(cells.collect::<std::result::Result<Vec<_>, _>>()?);
            }
        }
        Ok(rows)
    }
}

/// Asks how far a statement is, until it is dropped.
struct Watching(JoinHandle<()>);

impl Watching {
    fn start(session: RemoteSession, name: String, progress: Progress) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(WATCH_INTERVAL).await;
                // It is not there before it begins, and after it has ended.
                if let Some(told) = session.progress(&name).await {
                    progress.told(told.snapshot());
                }
            }
        }))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The one row of a command that wrote rows.
fn counted(count: u64) -> Result<SendableRecordBatchStream> {
    let schema = Arc::new(Schema::new(vec![Field::new("count", DataType::UInt64, false)]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(UInt64Array::from(vec![count]))])?;
    Ok(Box::pin(MemoryStream::try_new(vec![batch], schema, None)?))
}

/// The messages of an answer; at their end, its receipt is written down.
fn with_receipt(
    stream: Streaming<FlightData>,
    receipt: ReceiptSlot,
) -> impl futures::Stream<Item = std::result::Result<FlightData, Status>> + Send {
    futures::stream::unfold(Some((stream, receipt)), |state| async move {
        let (mut stream, receipt) = state?;
        match stream.message().await {
            Ok(Some(message)) => Some((Ok(message), Some((stream, receipt)))),
            Ok(None) => {
                if let Ok(Some(trailers)) = stream.trailers().await {
                    let told = read_receipt(&trailers);
                    receipt.change(|receipt| *receipt = told);
                }
                None
            }
            Err(status) => Some((Err(status), None)),
        }
    })
    .boxed()
}

fn read_receipt(trailers: &MetadataMap) -> Receipt {
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok());
    let number = |name: &str| text(name).and_then(|text| text.parse::<usize>().ok());
    let extents = match (number(told::EXTENTS_TOTAL), number(told::EXTENTS_REUSED)) {
        (Some(total), Some(reused)) => Some(ExtentCounts { total, reused }),
        _ => None,
    };
    Receipt {
        reused: match text(told::REUSE) {
            Some("exact") => Reused::Exact,
            Some("partial") => Reused::Partial,
            _ => Reused::None,
        },
        entries: text(told::ENTRIES)
            .map(|list| list.split(',').filter_map(Fingerprint::parse).collect())
            .unwrap_or_default(),
        saved: Duration::from_micros(number(told::SAVED_US).unwrap_or(0) as u64),
        extents,
        data_to: None,
        kept: number(told::KEPT).unwrap_or(0),
        notices: read_notices(trailers).unwrap_or_default(),
    }
}

/// Notices that were not known before the last row.
fn read_notices(trailers: &MetadataMap) -> Option<Vec<Notice>> {
    let json = trailers.get_bin(told::NOTICES)?.to_bytes().ok()?;
    let notices: Vec<told::ToldNotice> = serde_json::from_slice(&json).ok()?;
    Some(notices.into_iter().map(|told| Notice { message: told.message, hint: told.hint }).collect())
}

/// What the server said, as it was said there.
fn error(status: &Status) -> EngineError {
    let parts = status.metadata().get_bin(ERROR).and_then(|value| value.to_bytes().ok());
    let parts = parts.and_then(|json| serde_json::from_slice::<Parts>(&json).ok());
    if let Some(parts) = parts {
        return parts.into_error();
    }
    let kind = match status.code() {
        Code::Unauthenticated | Code::PermissionDenied => ErrorKind::Denied,
        Code::Cancelled => ErrorKind::Cancelled,
        Code::ResourceExhausted => ErrorKind::Resources,
        Code::InvalidArgument => ErrorKind::Sql,
        Code::Unimplemented => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    };
    EngineError::new(kind, status.message().to_string())
}
