//! [`Service`]: the calls of Flight SQL. What they do is elsewhere; here is who does it.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::metadata::{SqlInfoData, XdbcTypeInfoData};
use arrow_flight::sql::server::{DoPutError, FlightSqlService, PeekableFlightDataStream};
use arrow_flight::sql::{
    ActionBeginTransactionRequest, ActionBeginTransactionResult, ActionCancelQueryRequest, ActionCancelQueryResult,
    ActionClosePreparedStatementRequest, ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult,
    Any, Command, CommandGetCatalogs, CommandGetCrossReference, CommandGetDbSchemas, CommandGetExportedKeys,
    CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables,
    CommandGetXdbcTypeInfo, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementIngest,
    CommandStatementQuery, CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt, SqlInfo,
    TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightDescriptor,
    FlightEndpoint, FlightInfo, IpcMessage, SchemaAsIpc, Ticket,
};
use futures::StreamExt;
use prost::Message;
use prost::bytes::Bytes;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Request, Response, Status};

use super::admission::{Admission, Party};
use super::client::{Client, Clients};
use super::handles::Handles;
use super::statement::{self, Asked, Started};
use super::status::{internal, malformed, status, unknown_handle};
use super::told::ToldProgress;
use super::{info, ingest, metadata, options, rows, told, types, values, wire};
use crate::access::Who;
use crate::progress::Progress;

const SET_OPTIONS: &str = "SetSessionOptions";
const GET_OPTIONS: &str = "GetSessionOptions";
const CLOSE_SESSION: &str = "CloseSession";
const CANCEL_FLIGHT_INFO: &str = "CancelFlightInfo";
/// Ours.
pub(super) const PROGRESS: &str = "nectarine.Progress";

type Answer<T> = Result<Response<T>, Status>;
type DoGet = <Service as FlightService>::DoGetStream;
type DoPut = <Service as FlightService>::DoPutStream;
type DoAction = <Service as FlightService>::DoActionStream;

/// Flight SQL over an engine.
pub(super) struct Service {
    clients: Arc<Clients>,
    handles: Arc<Handles>,
    admission: Arc<Admission>,
    info: SqlInfoData,
    types: XdbcTypeInfoData,
}

impl Service {
    pub(super) fn new(clients: Arc<Clients>, handles: Arc<Handles>, admission: Arc<Admission>) -> crate::Result<Self> {
        let broken = |error: arrow_flight::error::FlightError| {
            crate::EngineError::new(crate::ErrorKind::Internal, error.to_string())
        };
        let (info, types) = (info::all().map_err(broken)?, types::all().map_err(broken)?);
        Ok(Self { clients, handles, admission, info, types })
    }

    /// The columns of a statement's rows, without running it; `None` for commands that are no statements.
    pub(super) async fn columns<T>(&self, command: &Command, request: &Request<T>) -> Result<Option<Bytes>, Status> {
        let client = client(request)?;
        let described = match command {
            Command::CommandStatementQuery(query) => {
                client.session.describe(&query.query).await.map_err(|error| status(&error))?
            }
            Command::CommandPreparedStatementQuery(query) => {
                self.handles.prepared(&client, &query.prepared_statement_handle)?.described.clone()
            }
            _ => return Ok(None),
        };
        let columns = described.rows.map_or_else(values::no_columns, |columns| wire::schema(&columns));
        schema_bytes(&columns).map(Some)
    }

    /// Starts a statement, when its turn has come if it is computed here. A client that gives it a name can ask how far it is.
    async fn start<T>(
        &self,
        client: &Client,
        request: &Request<T>,
        sql: &str,
        values: Option<&RecordBatch>,
    ) -> Result<Started, Status> {
        let progress = Progress::new();
        let name = request.metadata().get(told::WATCH).map(|name| Bytes::copy_from_slice(name.as_bytes()));
        let watch = match name.filter(|name| name.len() <= told::WATCH_BYTES_MAX) {
            Some(name) => Some(self.handles.watch(client, name, &progress)?),
            None => None,
        };
        // Rights as of before it was planned: what is taken away meanwhile is looked at again.
        let asked = match &client.who {
            Who::Owner => None,
            Who::User(_) => {
                let view = client.session.recent_view().await.map_err(|error| status(&error))?;
                Some(Asked { sql: sql.to_string(), view })
            }
        };
        let _turn = match statement::is_query(sql) {
            // Its rows are computed when they are fetched.
            true => None,
            false => Some(self.admission.enter(&Party::of(client)).await?),
        };
        let mut started = statement::start(client, sql, values, &progress).await.map_err(|error| status(&error))?;
        started.pending.watch = watch;
        started.pending.asked = asked.filter(|_| started.told.tag.is_none());
        Ok(started)
    }

    /// Runs a statement to its end, when its turn has come; how many rows it wrote, or -1.
    async fn update(&self, client: &Client, sql: &str, values: Option<&RecordBatch>) -> Result<i64, Status> {
        let _turn = self.admission.enter(&Party::of(client)).await?;
        let count = statement::update(client, sql, values).await.map_err(|error| status(&error))?;
        Ok(count.map_or(-1, u64::cast_signed))
    }

    /// Where the rows of a statement can be fetched.
    fn started(&self, client: &Client, started: Started, descriptor: FlightDescriptor) -> Answer<FlightInfo> {
        let Started { told, pending } = started;
        let schema = Arc::clone(&pending.schema);
        let ticket = TicketStatementQuery { statement_handle: self.handles.wait(client, pending)? };
        let ticket = Ticket::new(ticket.as_any().encode_to_vec());
        let flight = FlightInfo::new().try_with_schema(&schema).map_err(internal)?;
        let flight = flight
            .with_endpoint(FlightEndpoint::new().with_ticket(ticket))
            .with_descriptor(descriptor)
            .with_total_records(told.count.map_or(-1, u64::cast_signed))
            .with_app_metadata(serde_json::to_vec(&told).map_err(internal)?);
        let mut response = Response::new(flight);
        name_query(response.metadata_mut(), &told.query_id);
        Ok(response)
    }

    /// The rows behind a handle. If rights were changed since they were asked for, whether they may be had is looked at as if they were
    /// asked for now.
    async fn fetched(&self, client: &Client, handle: &Bytes) -> Answer<DoGet> {
        let (pending, cancel, fetching) = self.handles.fetch(client, handle)?;
        if let Some(asked) = &pending.asked {
            let now = client.session.recent_view().await.map_err(|error| status(&error))?;
            if !Arc::ptr_eq(&now, &asked.view) && !now.allows_as(&asked.view) {
                client.session.check_again(&asked.sql).await.map_err(|error| status(&error))?;
            }
        }
        let query_id = pending.query_id.clone();
        let (admission, party) = (Arc::clone(&self.admission), Party::of(client));
        let mut response = Response::new(rows::messages(pending, cancel, fetching, admission, party));
        name_query(response.metadata_mut(), &query_id);
        Ok(response)
    }

    /// Ends the statement whose rows a flight is about.
    fn cancel(&self, client: &Client, flight: Option<&FlightInfo>) -> Result<CancelStatus, Status> {
        let mut is_there = false;
        for endpoint in flight.into_iter().flat_map(|flight| &flight.endpoint) {
            let Some(ticket) = &endpoint.ticket else { continue };
            let any = Any::decode(ticket.ticket.as_ref()).map_err(|error| malformed("the ticket", error))?;
            let ticket: Option<TicketStatementQuery> = any.unpack().map_err(|error| malformed("the ticket", error))?;
            if let Some(ticket) = ticket {
                is_there |= self.handles.cancel(client, &ticket.statement_handle);
            }
        }
        match is_there {
            true => Ok(CancelStatus::Cancelled),
            // Its rows may have ended meanwhile.
            false => Err(unknown_handle("statement")),
        }
    }
}

/// The client that the guard found.
fn client<T>(request: &Request<T>) -> Result<Arc<Client>, Status> {
    request.extensions().get::<Arc<Client>>().cloned().ok_or_else(|| internal("a call without a client"))
}

fn name_query(metadata: &mut MetadataMap, query_id: &str) {
    if let Ok(value) = AsciiMetadataValue::try_from(query_id) {
        metadata.insert(told::QUERY_ID, value);
    }
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, Status> {
    let message = IpcMessage::try_from(SchemaAsIpc::new(schema, &IpcWriteOptions::default()));
    message.map(|message| message.0).map_err(internal)
}

fn no_transactions(transaction: Option<&Bytes>) -> Result<(), Status> {
    match transaction.is_some_and(|id| !id.is_empty()) {
        true => Err(Status::invalid_argument("this transaction is not known: transactions are not offered")),
        false => Ok(()),
    }
}

/// One message as the answer to an action.
fn one(body: Vec<u8>) -> Answer<DoAction> {
    Ok(Response::new(futures::stream::iter([Ok(arrow_flight::Result::new(body))]).boxed()))
}

#[tonic::async_trait]
impl FlightSqlService for Service {
    type FlightService = Self;

    async fn get_flight_info_statement(
        &self,
        query: CommandStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        no_transactions(query.transaction_id.as_ref())?;
        let client = client(&request)?;
        let started = self.start(&client, &request, &query.query, None).await?;
        self.started(&client, started, request.into_inner())
    }

    async fn get_flight_info_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let client = client(&request)?;
        let prepared = self.handles.prepared(&client, &query.prepared_statement_handle)?;
        let started = self.start(&client, &request, &prepared.sql, prepared.values().as_ref()).await?;
        self.started(&client, started, request.into_inner())
    }

    async fn get_flight_info_catalogs(
        &self,
        query: CommandGetCatalogs,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.into_builder().schema();
        metadata::flight_info(&query, &schema, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_schemas(
        &self,
        query: CommandGetDbSchemas,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.clone().into_builder().schema();
        metadata::flight_info(&query, &schema, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_tables(
        &self,
        query: CommandGetTables,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.clone().into_builder().schema();
        metadata::flight_info(&query, &schema, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_table_types(
        &self,
        query: CommandGetTableTypes,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        let schema = query.into_builder().schema();
        metadata::flight_info(&query, &schema, request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_sql_info(
        &self,
        query: CommandGetSqlInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &self.info.schema(), request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_xdbc_type_info(
        &self,
        query: CommandGetXdbcTypeInfo,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &self.types.schema(), request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_primary_keys(
        &self,
        query: CommandGetPrimaryKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &metadata::primary_keys(), request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_exported_keys(
        &self,
        query: CommandGetExportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &metadata::foreign_keys(), request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_imported_keys(
        &self,
        query: CommandGetImportedKeys,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &metadata::foreign_keys(), request.into_inner()).map(Response::new)
    }

    async fn get_flight_info_cross_reference(
        &self,
        query: CommandGetCrossReference,
        request: Request<FlightDescriptor>,
    ) -> Answer<FlightInfo> {
        metadata::flight_info(&query, &metadata::foreign_keys(), request.into_inner()).map(Response::new)
    }

    async fn do_get_statement(&self, ticket: TicketStatementQuery, request: Request<Ticket>) -> Answer<DoGet> {
        self.fetched(&*client(&request)?, &ticket.statement_handle).await
    }

    async fn do_get_prepared_statement(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<Ticket>,
    ) -> Answer<DoGet> {
        let client = client(&request)?;
        let prepared = self.handles.prepared(&client, &query.prepared_statement_handle)?;
        let started = self.start(&client, &request, &prepared.sql, prepared.values().as_ref()).await?;
        let handle = self.handles.wait(&client, started.pending)?;
        self.fetched(&client, &handle).await
    }

    async fn do_get_catalogs(&self, query: CommandGetCatalogs, request: Request<Ticket>) -> Answer<DoGet> {
        metadata::catalogs(&*client(&request)?, query).map(|batch| Response::new(rows::known(batch)))
    }

    async fn do_get_schemas(&self, query: CommandGetDbSchemas, request: Request<Ticket>) -> Answer<DoGet> {
        metadata::schemas(&*client(&request)?, query).await.map(|batch| Response::new(rows::known(batch)))
    }

    async fn do_get_tables(&self, query: CommandGetTables, request: Request<Ticket>) -> Answer<DoGet> {
        metadata::tables(&*client(&request)?, query).await.map(|batch| Response::new(rows::known(batch)))
    }

    async fn do_get_table_types(&self, query: CommandGetTableTypes, _request: Request<Ticket>) -> Answer<DoGet> {
        metadata::table_types(query).map(|batch| Response::new(rows::known(batch)))
    }

    async fn do_get_sql_info(&self, query: CommandGetSqlInfo, _request: Request<Ticket>) -> Answer<DoGet> {
        let batch = self.info.record_batch(query.info)?;
        Ok(Response::new(rows::known(batch)))
    }

    async fn do_get_xdbc_type_info(&self, query: CommandGetXdbcTypeInfo, _request: Request<Ticket>) -> Answer<DoGet> {
        let batch = self.types.record_batch(query.data_type)?;
        Ok(Response::new(rows::known(batch)))
    }

    async fn do_get_primary_keys(&self, _query: CommandGetPrimaryKeys, _request: Request<Ticket>) -> Answer<DoGet> {
        Ok(Response::new(rows::none(metadata::primary_keys())))
    }

    async fn do_get_exported_keys(&self, _query: CommandGetExportedKeys, _request: Request<Ticket>) -> Answer<DoGet> {
        Ok(Response::new(rows::none(metadata::foreign_keys())))
    }

    async fn do_get_imported_keys(&self, _query: CommandGetImportedKeys, _request: Request<Ticket>) -> Answer<DoGet> {
        Ok(Response::new(rows::none(metadata::foreign_keys())))
    }

    async fn do_get_cross_reference(
        &self,
        _query: CommandGetCrossReference,
        _request: Request<Ticket>,
    ) -> Answer<DoGet> {
        Ok(Response::new(rows::none(metadata::foreign_keys())))
    }

    async fn do_put_error_callback(
        &self,
        _request: Request<PeekableFlightDataStream>,
        error: DoPutError,
    ) -> Answer<DoPut> {
        Err(malformed("the request", error))
    }

    async fn do_put_statement_update(
        &self,
        query: CommandStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        no_transactions(query.transaction_id.as_ref())?;
        self.update(&*client(&request)?, &query.query, None).await
    }

    async fn do_put_statement_ingest(
        &self,
        command: CommandStatementIngest,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let client = client(&request)?;
        match values::incoming(request.into_inner()).await? {
            // No turn is taken: it goes as fast as the client sends, and who sends slowly must keep nobody waiting.
            Some(incoming) => ingest::ingest(&client, command, incoming).await,
            None => Err(malformed("the rows", "there is no schema")),
        }
    }

    async fn do_put_prepared_statement_query(
        &self,
        query: CommandPreparedStatementQuery,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<DoPutPreparedStatementResult, Status> {
        let client = client(&request)?;
        let prepared = self.handles.prepared(&client, &query.prepared_statement_handle)?;
        prepared.bind(values::parameters(request.into_inner()).await?);
        Ok(DoPutPreparedStatementResult { prepared_statement_handle: Some(query.prepared_statement_handle) })
    }

    async fn do_put_prepared_statement_update(
        &self,
        query: CommandPreparedStatementUpdate,
        request: Request<PeekableFlightDataStream>,
    ) -> Result<i64, Status> {
        let client = client(&request)?;
        let prepared = self.handles.prepared(&client, &query.prepared_statement_handle)?;
        let given = values::parameters(request.into_inner()).await?.or_else(|| prepared.values());
        self.update(&client, &prepared.sql, given.as_ref()).await
    }

    async fn do_action_create_prepared_statement(
        &self,
        query: ActionCreatePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<ActionCreatePreparedStatementResult, Status> {
        no_transactions(query.transaction_id.as_ref())?;
        let client = client(&request)?;
        let described = client.session.describe(&query.query).await.map_err(|error| status(&error))?;
        // A statement without rows is told by having no columns at all.
        let dataset_schema = match &described.rows {
            Some(columns) => schema_bytes(&wire::schema(columns))?,
            None => Bytes::new(),
        };
        let parameter_schema = match described.parameters.fields().is_empty() {
            true => Bytes::new(),
            false => schema_bytes(&wire::schema(&described.parameters))?,
        };
        let prepared_statement_handle = self.handles.prepare(&client, query.query, described)?;
        Ok(ActionCreatePreparedStatementResult { prepared_statement_handle, dataset_schema, parameter_schema })
    }

    async fn do_action_close_prepared_statement(
        &self,
        query: ActionClosePreparedStatementRequest,
        request: Request<Action>,
    ) -> Result<(), Status> {
        self.handles.close_prepared(&*client(&request)?, &query.prepared_statement_handle);
        Ok(())
    }

    async fn do_action_begin_transaction(
        &self,
        _query: ActionBeginTransactionRequest,
        _request: Request<Action>,
    ) -> Result<ActionBeginTransactionResult, Status> {
        Err(Status::unimplemented("transactions over several statements are not offered"))
    }

    async fn do_action_cancel_query(
        &self,
        query: ActionCancelQueryRequest,
        request: Request<Action>,
    ) -> Result<ActionCancelQueryResult, Status> {
        let flight = FlightInfo::decode(query.info).map_err(|error| malformed("the flight", error))?;
        let outcome = self.cancel(&*client(&request)?, Some(&flight))?;
        // Flight and Flight SQL number the outcomes alike.
        Ok(ActionCancelQueryResult { result: outcome as i32 })
    }

    async fn do_action_fallback(&self, request: Request<Action>) -> Answer<DoAction> {
        let client = client(&request)?;
        let Action { r#type: kind, body } = request.into_inner();
        match kind.as_str() {
            SET_OPTIONS => {
                let wanted = options::SetRequest::decode(body).map_err(|error| malformed("the options", error))?;
                one(options::set(&client, wanted).await.encode_to_vec())
            }
            GET_OPTIONS => one(options::get(&client).encode_to_vec()),
            CLOSE_SESSION => {
                self.handles.close_client(&client.key);
                self.clients.close(&client.key);
                one(options::CloseResult { status: options::CLOSED }.encode_to_vec())
            }
            PROGRESS => {
                let progress = self.handles.progress(&client, &body).map(ToldProgress::from);
                one(serde_json::to_vec(&progress).map_err(internal)?)
            }
            CANCEL_FLIGHT_INFO => {
                let wanted = CancelFlightInfoRequest::decode(body).map_err(|error| malformed("the flight", error))?;
                let outcome = self.cancel(&client, wanted.info.as_ref())?;
                one(CancelFlightInfoResult::new(outcome).encode_to_vec())
            }
            other => Err(Status::unimplemented(format!("action \"{other}\" is not offered"))),
        }
    }

    async fn list_custom_actions(&self) -> Option<Vec<Result<ActionType, Status>>> {
        let action = |name: &str, description: &str| {
            Ok(ActionType { r#type: name.to_string(), description: description.to_string() })
        };
        Some(vec![
            action(SET_OPTIONS, "Sets options of the session."),
            action(GET_OPTIONS, "Tells the options of the session."),
            action(CLOSE_SESSION, "Ends the session."),
            action(
                PROGRESS,
                "Tells how far the statement is that was started with this name in the header nectarine-watch.",
            ),
            action(CANCEL_FLIGHT_INFO, "Ends a statement whose rows wait or are being fetched."),
        ])
    }

    async fn register_sql_info(&self, _id: i32, _result: &SqlInfo) {}
}
