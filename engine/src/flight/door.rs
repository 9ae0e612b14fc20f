//! [`Door`]: who asks is seen before a byte of what he asks is read.
//!
//! Keeps true   who has not logged in makes the server keep no message of his, however many and however large they are.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::NamedService;

use super::gate::{Asked, Gate};

/// The one call for those who have not logged in.
const HANDSHAKE: &str = "/arrow.flight.protocol.FlightService/Handshake";

/// A service behind a gate.
#[derive(Clone)]
pub(super) struct Door<S> {
    gate: Arc<Gate>,
    inside: S,
}

impl<S> Door<S> {
    pub(super) fn new(gate: Arc<Gate>, inside: S) -> Self {
        Self { gate, inside }
    }
}

impl<S: NamedService> NamedService for Door<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Door<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inside.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let gate = Arc::clone(&self.gate);
        // The one that was found ready is the one that is called.
        let ready = self.inside.clone();
        let mut inside = std::mem::replace(&mut self.inside, ready);
        Box::pin(async move {
            if request.uri().path() != HANDSHAKE {
                let client = match Asked::of_http(&request) {
                    Ok(asked) => gate.client(asked).await,
                    Err(status) => Err(status),
                };
                match client {
                    Ok(client) => drop(request.extensions_mut().insert(client)),
                    Err(status) => return Ok(status.into_http()),
                }
            }
            inside.call(request).await
        })
    }
}
