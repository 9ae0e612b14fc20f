//! [`FlightServer`]: listens, and stops.
//!
//! Keeps true   without passwords it listens on this machine only. Stopped, it lets calls that are under way end, for a
//!              while; then they are cancelled. A client that does not answer for some seconds counts as gone, and all that it
//!              held with it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arrow_flight::flight_service_server::FlightServiceServer;
use futures::Stream;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

use super::admission::{Admission, Limits};
use super::client::{ClientKey, Clients};
use super::connection::{Connection, Peer, Transport};
use super::door::Door;
use super::gate::{self, Gate};
use super::guard::Guard;
use super::handles::Handles;
use super::service::Service;
use super::tls::{Tls, TlsOptions};
use crate::access::FIRST_USER;
use crate::{Engine, EngineError, ErrorKind, Result};

/// The largest message of a client; of ours, about a thirtieth of it.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// How often a silent connection is asked whether it is still there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(10);
const PING_PATIENCE: Duration = Duration::from_secs(10);
/// How often what nobody came for is looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// A client that is not heard of for so long has to set its options again.
const CLIENT_IDLE_MAX: Duration = Duration::from_secs(3600);
/// Connections that wait to be served.
const CONNECTIONS_WAITING_MAX: usize = 64;
/// Connections at a time; more are closed as they come.
const CONNECTIONS_MAX: usize = 10_000;
/// Calls on one connection at a time.
const CALLS_PER_CONNECTION_MAX: u32 = 1024;

/// How to serve.
#[derive(Clone, Debug)]
pub struct FlightOptions {
    /// Where to listen; port 0 means any that is free.
    pub address: SocketAddr,
    /// Whether everybody who can connect may do everything. Only on loopback.
    pub no_auth: bool,
    /// Certificates; without them bytes travel as they are, which only loopback, or `plain_text`, allows.
    pub tls: Option<TlsOptions>,
    /// Whether passwords and rows may travel as they are beyond this machine: something else keeps them secret.
    pub plain_text: bool,
    /// How many statements compute at a time; others wait for their turn.
    pub statements_max: usize,
    /// How many of one user, also where there is room for more; those without passwords are told apart by their connections.
    pub user_statements_max: usize,
    /// How many may wait; more are refused.
    pub waiting_max: usize,
    /// How long a login lasts.
    pub token_life: Duration,
    /// How long calls may go on after the server was told to stop.
    pub drain: Duration,
}

impl FlightOptions {
    /// Listens at an address, with passwords.
    pub fn new(address: SocketAddr) -> Self {
        let (token_life, drain) = (Duration::from_secs(12 * 3600), Duration::from_secs(30));
        Self {
            address,
            no_auth: false,
            tls: None,
            plain_text: false,
            statements_max: statements_max(),
            user_statements_max: usize::MAX,
            waiting_max: 10_000,
            token_life,
            drain,
        }
    }
}

/// What a server has to do.
#[derive(Clone)]
pub(crate) struct Load {
    clients: Arc<Clients>,
    handles: Arc<Handles>,
    admission: Arc<Admission>,
    stop: CancellationToken,
}

impl Load {
    /// Statements that compute, and those that wait for their turn.
    pub(crate) fn statements(&self) -> (usize, usize) {
        self.admission.load()
    }

    pub(crate) fn n_clients(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn n_results(&self) -> usize {
        self.handles.n_results()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }
}

impl fmt::Debug for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Load").finish_non_exhaustive()
    }
}

/// A server that is running.
#[derive(Debug)]
pub struct FlightServer {
    address: SocketAddr,
    is_secret: bool,
    first_password: Option<String>,
    drain: Duration,
    load: Load,
    stop: CancellationToken,
    serving: JoinHandle<std::result::Result<(), tonic::transport::Error>>,
}

impl FlightServer {
    /// Begins to listen.
    pub async fn start(engine: &Engine, options: FlightOptions) -> Result<Self> {
        let limits = Limits {
            running: options.statements_max,
            running_per_user: options.user_statements_max,
            waiting: options.waiting_max,
        };
        let FlightOptions { address, no_auth, tls, plain_text, token_life, drain, .. } = options;
        if no_auth && !address.ip().is_loopback() {
            let message = format!("cannot serve on {address} without passwords");
            return Err(EngineError::new(ErrorKind::Configuration, message).with_hint(
                "whoever can connect could do everything; without passwords the address must be 127.0.0.1 or [::1]",
            ));
        }
        if tls.is_none() && !plain_text && !address.ip().is_loopback() {
            let message = format!("cannot serve on {address} without TLS");
            return Err(EngineError::new(ErrorKind::Configuration, message)
                .with_detail("passwords and rows would travel in plain text")
                .with_hint("--tls-cert FILE --tls-key FILE; or --plain-text where something else keeps them secret"));
        }
        let is_secret = tls.is_some();
        let tls = tls.map(Tls::open).transpose()?.map(Arc::new);
        let listener = TcpListener::bind(address).await.map_err(|error| cannot_listen(address, error))?;
        let address = listener.local_addr().map_err(|error| cannot_listen(address, error))?;

        let clients = Arc::new(Clients::new(engine.clone()));
        let handles = Arc::new(Handles::default());
        let admission = Admission::new(limits);
        let service = Service::new(Arc::clone(&clients), Arc::clone(&handles), Arc::clone(&admission))?;
        let (gate, first_password) = match no_auth {
            true => (Gate::open(Arc::clone(&clients)), None),
            false => {
                let first_password = gate::first_user(engine).await?;
                (Gate::with_users(Arc::clone(&clients), engine.clone(), token_life)?, first_password)
            }
        };
        let gate = Arc::new(gate);
        let guard = Guard::new(Arc::clone(&gate), service);
        let stop = CancellationToken::new();
        tokio::spawn(sweep(Arc::clone(&clients), Arc::clone(&handles), Arc::clone(&gate), stop.clone()));
        let load = Load { clients: Arc::clone(&clients), handles: Arc::clone(&handles), admission, stop: stop.clone() };
        let incoming = incoming(listener, tls, clients, handles, stop.clone());
        let service = FlightServiceServer::new(guard).max_decoding_message_size(MESSAGE_BYTES_MAX);
        let server = Server::builder()
            .http2_keepalive_interval(Some(PING_INTERVAL))
            .http2_keepalive_timeout(Some(PING_PATIENCE))
            .max_concurrent_streams(Some(CALLS_PER_CONNECTION_MAX))
            .add_service(Door::new(gate, service))
            .serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
        let serving = tokio::spawn(server);
        tracing::info!(%address, "serving Flight SQL");
        Ok(Self { address, is_secret, first_password, drain, load, stop, serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as drivers want it.
    pub fn url(&self) -> String {
        format!("{}://{}", if self.is_secret { "grpcs" } else { "grpc" }, self.address)
    }

    /// The name and password of the administrator that this start made, because there was none.
    pub fn first_login(&self) -> Option<(&str, &str)> {
        self.first_password.as_deref().map(|password| (FIRST_USER, password))
    }

    /// What it has to do, at any time.
    pub(crate) fn load(&self) -> Load {
        self.load.clone()
    }

    /// Takes no more calls, waits for those under way, and cancels what takes too long.
    pub async fn stop(mut self) {
        self.stop.cancel();
        if tokio::time::timeout(self.drain, &mut self.serving).await.is_err() {
            tracing::warn!("calls that had not ended were cancelled");
            self.load.handles.cancel_all();
            self.serving.abort();
            let _ = (&mut self.serving).await;
        }
    }
}

impl Drop for FlightServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A statement uses all processors where it can, and waits for files where it must.
fn statements_max() -> usize {
    std::thread::available_parallelism().map_or(4, |n| n.get() * 4).max(8)
}

fn cannot_listen(address: SocketAddr, error: std::io::Error) -> EngineError {
    EngineError::new(ErrorKind::Configuration, format!("cannot listen on {address}"))
        .with_detail(error.to_string())
        .with_source(error)
}

/// Connections as they come.
fn incoming(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    clients: Arc<Clients>,
    handles: Arc<Handles>,
    stop: CancellationToken,
) -> impl Stream<Item = std::io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(CONNECTIONS_WAITING_MAX);
    tokio::spawn(stop.run_until_cancelled_owned(accept(listener, tls, clients, handles, sender)));
    futures::stream::unfold(receiver, |mut receiver: mpsc::Receiver<Connection>| async move {
        let connection = receiver.recv().await?;
        Some((Ok(connection), receiver))
    })
}

/// Takes connections. One that cannot be taken is no reason to stop, and one that takes its time keeps no other waiting.
async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    clients: Arc<Clients>,
    handles: Arc<Handles>,
    sender: mpsc::Sender<Connection>,
) {
    let mut next_id = 0;
    let n_connections = Arc::new(AtomicUsize::new(0));
    loop {
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot take a connection");
                // Out of files, most likely: some may be closed soon.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if n_connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS_MAX {
            n_connections.fetch_sub(1, Ordering::Relaxed);
            tracing::warn!(%address, "there are {CONNECTIONS_MAX} connections already");
            continue;
        }
        // Small answers must not wait for more.
        let _ = stream.set_nodelay(true);
        let (clients, handles, n_open) = (Arc::clone(&clients), Arc::clone(&handles), Arc::clone(&n_connections));
        let closed = move |id| {
            n_open.fetch_sub(1, Ordering::Relaxed);
            let key = ClientKey::Connection(id);
            clients.close(&key);
            handles.close_client(&key);
        };
        next_id += 1;
        let peer = Peer::new(next_id, address, closed);
        let (tls, sender) = (tls.clone(), sender.clone());
        tokio::spawn(async move {
            let transport = match tls {
                None => Transport::Plain(stream),
                Some(tls) => match tls.accept(stream).await {
                    Ok(stream) => Transport::Tls(Box::new(stream)),
                    Err(error) => {
                        tracing::debug!(%address, %error, "no TLS with a client");
                        return;
                    }
                },
            };
            let _ = sender.send(Connection { transport, peer }).await;
        });
    }
}

/// Forgets what nobody came for.
async fn sweep(clients: Arc<Clients>, handles: Arc<Handles>, gate: Arc<Gate>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(SWEEP_INTERVAL)).await.is_some() {
        handles.expire();
        gate.expire();
        for key in clients.close_idle(CLIENT_IDLE_MAX) {
            handles.close_client(&key);
        }
        tracing::trace!(clients = clients.len(), results = handles.n_results(), "swept");
    }
}
