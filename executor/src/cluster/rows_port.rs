//! The port of an executor for rows: Ballista's own service behind a [`Gate`].

use std::sync::Arc;

use arrow_flight::flight_service_server::FlightServiceServer;
use ballista_core::error::BallistaError;
use ballista_core::utils::create_grpc_server;
use ballista_executor::ArrowFlightServerProvider;
use ballista_executor::flight_service::BallistaFlightService;
use tonic::service::interceptor::InterceptedService;

use super::options::MESSAGE_BYTES;
use super::secret::Gate;

/// Serves rows to those whom the gate lets in.
pub(super) fn rows_port(gate: Gate) -> Arc<ArrowFlightServerProvider> {
    Arc::new(move |folder, address, mut shutdown, config| {
        let service = FlightServiceServer::new(BallistaFlightService::new(folder))
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES);
        let guarded = InterceptedService::new(service, gate.clone());
        tokio::spawn(async move {
            let serving = create_grpc_server(&config).add_service(guarded);
            serving.serve_with_shutdown(address, shutdown.recv()).await.map_err(BallistaError::TonicError)
        })
    })
}
