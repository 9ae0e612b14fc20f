//! [`Guard`]: stands before every call: who asks, and what happens if we fail him.
//!
//! Keeps true   no call reaches the service without the client whom the door let in. A panic ends the call with an error, not the
//!              connection.
//! Adds         GetSchema and PollFlightInfo, which arrow-flight leaves out of Flight SQL.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow_flight::flight_service_server::FlightService;
use arrow_flight::sql::{Any, Command};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo, HandshakeRequest, HandshakeResponse,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use prost::Message;
use prost::bytes::Bytes;
use tonic::{Code, Request, Response, Status, Streaming};

use super::client::Client;
use super::gate::{Asked, Gate};
use super::service::Service;
use super::status::malformed;

/// The service behind its guard.
pub(super) struct Guard {
    gate: Arc<Gate>,
    service: Service,
}

type Answer<T> = Result<Response<T>, Status>;

impl Guard {
    pub(super) fn new(gate: Arc<Gate>, service: Service) -> Self {
        Self { gate, service }
    }

    /// The request, if it has a client.
    fn admit<T>(request: Request<T>) -> Result<Request<T>, Status> {
        match request.extensions().get::<Arc<Client>>().is_some() {
            true => Ok(request),
            false => Err(Status::unauthenticated("log in first")),
        }
    }
}

/// Ends a call that panics with an error. arrow-flight calls messages that cannot be read internal errors; they are not ours.
async fn caught<T>(call: impl Future<Output = Answer<T>>) -> Answer<T> {
    match AssertUnwindSafe(call).catch_unwind().await {
        Ok(Err(status)) if status.code() == Code::Internal && status.message().starts_with("ParseError") => {
            Err(malformed("the request", status.message()))
        }
        Ok(answer) => answer,
        Err(_) => Err(Status::internal("the call ended in a bug of ours")),
    }
}

/// Refuses what is no command.
fn check(bytes: &Bytes) -> Result<Command, Status> {
    let any = Any::decode(bytes.as_ref()).map_err(|error| malformed("the command", error))?;
    Command::try_from(any).map_err(|error| malformed("the command", error))
}

#[tonic::async_trait]
impl FlightService for Guard {
    type HandshakeStream = BoxStream<'static, Result<HandshakeResponse, Status>>;
    type ListFlightsStream = BoxStream<'static, Result<FlightInfo, Status>>;
    type DoGetStream = BoxStream<'static, Result<FlightData, Status>>;
    type DoPutStream = BoxStream<'static, Result<PutResult, Status>>;
    type DoActionStream = BoxStream<'static, Result<arrow_flight::Result, Status>>;
    type ListActionsStream = BoxStream<'static, Result<ActionType, Status>>;
    type DoExchangeStream = BoxStream<'static, Result<FlightData, Status>>;

    async fn handshake(&self, request: Request<Streaming<HandshakeRequest>>) -> Answer<Self::HandshakeStream> {
        caught(self.gate.handshake(Asked::of(&request)?)).await
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Answer<Self::ListFlightsStream> {
        Self::admit(request)?;
        // Flights are made by statements; there are none to be found.
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<FlightInfo> {
        let request = Self::admit(request)?;
        check(&request.get_ref().cmd)?;
        caught(self.service.get_flight_info(request)).await
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Answer<PollInfo> {
        // Statements are started, not waited for: there is nothing to poll for.
        let info = self.get_flight_info(request).await?;
        let (metadata, info, extensions) = info.into_parts();
        let poll = PollInfo::new().with_info(info).try_with_progress(1.0);
        let poll = poll.map_err(|error| Status::internal(error.to_string()))?;
        Ok(Response::from_parts(metadata, poll, extensions))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Answer<SchemaResult> {
        let request = Self::admit(request)?;
        let command = check(&request.get_ref().cmd)?;
        caught(async {
            let columns = self.service.columns(&command, &request).await?;
            let schema = match columns {
                Some(schema) => schema,
                // The schemas of all others are known without running anything.
                None => self.service.get_flight_info(request).await?.into_inner().schema,
            };
            Ok(Response::new(SchemaResult { schema }))
        })
        .await
    }

    async fn do_get(&self, request: Request<Ticket>) -> Answer<Self::DoGetStream> {
        let request = Self::admit(request)?;
        check(&request.get_ref().ticket)?;
        caught(self.service.do_get(request)).await
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoPutStream> {
        let request = Self::admit(request)?;
        caught(self.service.do_put(request)).await
    }

    async fn do_exchange(&self, request: Request<Streaming<FlightData>>) -> Answer<Self::DoExchangeStream> {
        Self::admit(request)?;
        Err(Status::unimplemented("DoExchange is not offered"))
    }

    async fn do_action(&self, request: Request<Action>) -> Answer<Self::DoActionStream> {
        let request = Self::admit(request)?;
        caught(self.service.do_action(request)).await
    }

    async fn list_actions(&self, request: Request<Empty>) -> Answer<Self::ListActionsStream> {
        let request = Self::admit(request)?;
        caught(self.service.list_actions(request)).await
    }
}
