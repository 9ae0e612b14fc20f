//! [`Served`]: an engine behind a Flight SQL server. [`Caller`]: a client that makes each call by itself.

use std::ffi::OsString;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementQuery, CommandStatementUpdate,
    DoPutUpdateResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, IpcMessage, Ticket};
use futures::{StreamExt, TryStreamExt};
use nectarine_engine::{FlightOptions, FlightServer};
use prost::Message;
use prost::bytes::Bytes;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::db::Db;

/// No call of a test takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// A home that is served.
pub struct Served {
    pub db: Db,
    pub server: FlightServer,
}

impl Served {
    /// To everybody.
    pub async fn open() -> Self {
        Self::with(Db::new().await, |options| options.no_auth = true).await
    }

    /// To users.
    pub async fn with_users() -> Self {
        Self::with(Db::new().await, |_| {}).await
    }

    /// As the options say.
    pub async fn with(db: Db, change: impl FnOnce(&mut FlightOptions)) -> Self {
        let mut options = FlightOptions::new("127.0.0.1:0".parse().expect("an address"));
        change(&mut options);
        let server = Box::pin(FlightServer::start(db.engine(), options)).await.expect("a server");
        Self { db, server }
    }

    /// A client on a connection of its own.
    pub async fn caller(&self) -> Caller {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.server.address())).expect("an address");
        let channel = endpoint.timeout(PATIENCE).connect().await.expect("a connection");
        let calls = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        Caller { calls, token: None }
    }

    /// A client who logged in.
    pub async fn user(&self, name: &str, password: &str) -> Caller {
        let mut caller = self.caller().await;
        caller.log_in(name, password).await.expect("a login");
        caller
    }
}

/// A Python with clients of Flight SQL; without one, tests are left out and say so.
#[expect(clippy::print_stderr, reason = "whoever runs the tests should know what was not tested")]
pub fn python() -> Option<OsString> {
    let python = std::env::var_os("NECTARINE_TEST_PYTHON");
    if python.is_none() {
        assert!(std::env::var_os("CI").is_none(), "NECTARINE_TEST_PYTHON is not set: tests/run sets it");
        eprintln!(
            "left out: NECTARINE_TEST_PYTHON names no Python with clients of Flight SQL; tests/run installs them"
        );
    }
    python
}

/// A client.
#[derive(Clone)]
pub struct Caller {
    pub calls: FlightServiceClient<Channel>,
    pub token: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub struct Fetched {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub trailers: MetadataMap,
}

impl Caller {
    /// A request with the token, if there is one.
    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let header = format!("Bearer {token}").parse().expect("a header");
            request.metadata_mut().insert("authorization", header);
        }
        request
    }

    /// Logs in and keeps the token.
    pub async fn log_in(&mut self, name: &str, password: &str) -> Result<(), Status> {
        use std::fmt::Write;
        let mut request = Request::new(futures::stream::iter([HandshakeRequest::default()]));
        let mut text = String::new();
        write!(text, "Basic {}", base64(format!("{name}:{password}").as_bytes())).expect("text");
        request.metadata_mut().insert("authorization", text.parse().expect("a header"));
        let response = self.calls.handshake(request).await?;
        let header = response.metadata().get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
        let payload = response.into_inner().try_next().await?.expect("an answer").payload;
        let token = String::from_utf8(payload.to_vec()).expect("text");
        assert_eq!(header, Some(format!("Bearer {token}")));
        self.token = Some(token);
        Ok(())
    }

    /// GetFlightInfo.
    pub async fn info(&mut self, command: &impl ProstMessageExt) -> Result<FlightInfo, Status> {
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let request = self.request(descriptor);
        Ok(self.calls.get_flight_info(request).await?.into_inner())
    }

    /// DoGet.
    pub async fn get(&mut self, ticket: Ticket) -> Result<Fetched, Status> {
        let request = self.request(ticket);
        let mut stream = self.calls.do_get(request).await?.into_inner();
        let mut messages = vec![];
        while let Some(message) = stream.message().await? {
            messages.push(message);
        }
        let trailers = stream.trailers().await?.unwrap_or_default();
        decode(messages, trailers).await
    }

    /// The rows behind a flight, whose columns must be those that it told.
    pub async fn fetch(&mut self, info: &FlightInfo) -> Result<Fetched, Status> {
        let [endpoint] = info.endpoint.as_slice() else { panic!("one endpoint expected: {info:?}") };
        let fetched = self.get(endpoint.ticket.clone().expect("a ticket")).await?;
        assert_eq!(
            *fetched.schema,
            info.clone().try_decode_schema().expect("a schema"),
            "told and sent columns differ"
        );
        for batch in &fetched.batches {
            assert_eq!(batch.schema(), fetched.schema);
        }
        Ok(fetched)
    }

    /// Runs a query.
    pub async fn query(&mut self, sql: &str) -> Result<Fetched, Status> {
        let info = self.info(&CommandStatementQuery { query: sql.to_owned(), transaction_id: None }).await?;
        self.fetch(&info).await
    }

    /// Its rows, values between bars, in one line.
    pub async fn text(&mut self, sql: &str) -> Result<String, Status> {
        self.query(sql).await.map(|fetched| fetched.text())
    }

    /// Runs a command; how many rows it wrote.
    pub async fn update(&mut self, sql: &str) -> Result<i64, Status> {
        let command = CommandStatementUpdate { query: sql.to_owned(), transaction_id: None };
        self.put(&command, None).await.map(|results| updated(&results))
    }

    /// DoPut.
    pub async fn put(
        &mut self,
        command: &impl ProstMessageExt,
        rows: Option<(SchemaRef, Vec<RecordBatch>)>,
    ) -> Result<Vec<Bytes>, Status> {
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let messages = match rows {
            None => vec![FlightData::new().with_descriptor(descriptor)],
            Some((schema, batches)) => {
                let batches = futures::stream::iter(batches.into_iter().map(Ok::<_, FlightError>));
                let encoder =
                    FlightDataEncoderBuilder::new().with_schema(schema).with_flight_descriptor(Some(descriptor));
                encoder.build(batches).try_collect().await.expect("messages")
            }
        };
        let request = self.request(futures::stream::iter(messages));
        let results = self.calls.do_put(request).await?.into_inner();
        results.map_ok(|result| result.app_metadata).try_collect().await
    }

    /// DoAction.
    pub async fn action(&mut self, name: &str, body: Vec<u8>) -> Result<Vec<Bytes>, Status> {
        let request = self.request(Action::new(name, body));
        let results = self.calls.do_action(request).await?.into_inner();
        results.map_ok(|result| result.body).try_collect().await
    }

    /// CreatePreparedStatement.
    pub async fn prepare(&mut self, sql: &str) -> Result<ActionCreatePreparedStatementResult, Status> {
        let request = ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
        let results = self.action("CreatePreparedStatement", request.as_any().encode_to_vec()).await?;
        let any = Any::decode(results[0].clone()).expect("an answer");
        Ok(any.unpack().expect("a message").expect("a prepared statement"))
    }

    /// ClosePreparedStatement.
    pub async fn close(&mut self, handle: &Bytes) -> Result<(), Status> {
        let request = ActionClosePreparedStatementRequest { prepared_statement_handle: handle.clone() };
        self.action("ClosePreparedStatement", request.as_any().encode_to_vec()).await.map(drop)
    }

    /// Binds values and runs a prepared query.
    pub async fn query_prepared(&mut self, handle: &Bytes, values: Option<RecordBatch>) -> Result<Fetched, Status> {
        let command = CommandPreparedStatementQuery { prepared_statement_handle: handle.clone() };
        if let Some(values) = values {
            self.put(&command, Some((values.schema(), vec![values]))).await?;
        }
        let info = self.info(&command).await?;
        self.fetch(&info).await
    }

    /// Runs a prepared command with values.
    pub async fn update_prepared(&mut self, handle: &Bytes, values: Option<RecordBatch>) -> Result<i64, Status> {
        let command = CommandPreparedStatementUpdate { prepared_statement_handle: handle.clone() };
        let rows = values.map(|values| (values.schema(), vec![values]));
        self.put(&command, rows).await.map(|results| updated(&results))
    }
}

impl Fetched {
    /// Rows in lines, values between bars.
    pub fn text(&self) -> String {
        crate::db::rows_text(&self.batches)
    }

    /// A trailer.
    pub fn trailer(&self, name: &str) -> Option<&str> {
        self.trailers.get(name).and_then(|value| value.to_str().ok())
    }
}

fn updated(results: &[Bytes]) -> i64 {
    DoPutUpdateResult::decode(results[0].clone()).expect("a count").record_count
}

/// A schema as prepared statements tell it.
pub fn schema_of(bytes: &Bytes) -> Schema {
    match bytes.is_empty() {
        true => Schema::empty(),
        false => Schema::try_from(IpcMessage(bytes.clone())).expect("a schema"),
    }
}

async fn decode(messages: Vec<FlightData>, trailers: MetadataMap) -> Result<Fetched, Status> {
    use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
    let mut decoder = FlightDataDecoder::new(futures::stream::iter(messages.into_iter().map(Ok)));
    let mut schema = None;
    let mut batches = vec![];
    while let Some(message) = decoder.next().await {
        match message.expect("a message").payload {
            DecodedPayload::Schema(told) => schema = Some(told),
            DecodedPayload::RecordBatch(batch) => batches.push(batch),
            DecodedPayload::None => {}
        }
    }
    Ok(Fetched { schema: schema.expect("a schema"), batches, trailers })
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().enumerate().fold(0_u32, |sum, (at, byte)| sum | u32::from(*byte) << (16 - 8 * at));
        for at in 0..4 {
            text.push(match at <= chunk.len() {
                true => char::from(DIGITS[(number >> (18 - 6 * at)) as usize & 63]),
                false => '=',
            });
        }
    }
    text
}
