//! Does it hold: what the integration tests share.

pub mod clock;
pub mod conformance;
pub mod db;
pub mod files;
pub mod fleet;
pub mod flight;
pub mod hook;
pub mod invariance;
pub mod program;
pub mod s3_server;
pub mod small_disk;
pub mod watchdog;
pub mod web_host;
