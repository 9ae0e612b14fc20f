//! Flight SQL: the engine over the wire, for JDBC, ADBC and everything that speaks Arrow.
//!
//! ```text
//!   server      listens, and stops
//!   tls         certificates
//!   connection  what is known of the other side of a socket
//!   door        who asks is seen before what he asks is read
//!   gate        who asks
//!   login       what clients get for their passwords
//!   guard       stands before every call; panics of ours end a call, not the server
//!   service     the calls of Flight SQL
//!   client      one client: its session
//!   admission   how many statements compute at a time
//!   handles     statements that wait for their client: prepared, or with rows to fetch
//!   statement   running what a client asks for
//!   rows        an answer as messages, with its receipt
//!   wire        types as every client reads them
//!   values      rows that clients send
//!   ingest      those rows into a table
//!   metadata    what there is: catalogs, schemas, tables
//!   info        what the server can do
//!   types       what types there are
//!   options     session options
//!   status      errors as gRPC tells them
//!   told        what is said of a statement beside its rows
//!   remote      the other side: a session of a server
//! ```
//!
//! Keeps true   the columns that GetFlightInfo tells are those that DoGet sends. A statement is planned once: GetFlightInfo
//!              starts it and does not wait for its rows, DoGet takes them as fast as the client does.
//!              A handle is of use to nobody but the user who got it.

mod admission;
mod client;
mod connection;
mod door;
mod gate;
mod guard;
mod handles;
mod info;
mod ingest;
mod login;
mod metadata;
mod options;
mod remote;
mod rows;
mod server;
mod service;
mod statement;
mod status;
mod tls;
mod told;
mod types;
mod values;
mod wire;

pub use self::remote::{Login, RemoteSession};
pub(crate) use self::server::Load;
pub use self::server::{FlightOptions, FlightServer};
pub use self::tls::TlsOptions;
