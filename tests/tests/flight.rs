//! Flight SQL, call by call: an engine behind a server in this process, and clients on real connections.

mod clients;
mod hostile;
mod ingest;
mod jdbc;
mod load;
mod metadata;
mod monitor;
mod prepared;
mod remote;
mod statements;
mod tokens;
mod traces;
mod users;
mod watched;
