//! Who decides: the home, sessions, and the life of a statement from text to rows.
//!
//! ```text
//!   Engine    one open home: metadata store, memory, object stores, settings
//!   Session   one client: its settings, current schema, prepared statements
//!   Answer    rows of one statement, with progress and notices
//! ```
//!
//! This crate is the only one that composes the others; `cli` and `tests` know nothing below it.

mod access;
mod answer;
mod broken_view;
mod caretaker;
mod catalog_view;
mod cluster;
mod collector;
mod command;
mod compute;
mod copy_from;
mod copy_place;
mod copy_to;
mod ddl;
mod deadline;
mod dependencies;
mod derived;
mod describe;
mod discretion;
mod engine;
mod error;
mod eviction;
mod external;
mod external_insert;
mod flight;
mod functions;
mod hive_values;
mod holding;
mod holding_store;
mod home;
mod job;
mod listing;
mod machine;
mod managed;
mod memory;
mod mended_functions;
mod mends;
mod metrics;
mod monitor;
mod named;
mod names;
mod noting_store;
mod only_views;
mod parameters;
mod pins;
mod pipes;
mod plan_text;
mod prepared;
mod progress;
mod provenance;
mod query_log;
mod query_memory;
mod record;
mod redact;
mod relations;
mod report;
mod reuse;
mod rows;
mod session;
mod settings;
mod shielded;
mod show;
mod staging;
mod statement;
mod stores;
mod stream_store;
mod sweep;
mod system;
mod trace;
mod unfinished;
mod use_schema;
mod warm;

pub use answer::{Answer, AnswerKind, Notice};
pub use cluster::{Executor, cluster_secret, run_executor};
pub use collector::Collected;
pub use engine::{Engine, EngineBuilder};
pub use error::{EngineError, ErrorKind, NameHints, Result};
pub use eviction::{EvictionCandidate, EvictionPolicy, Evictions, Levels, evict};
pub use flight::{FlightOptions, FlightServer, Login, RemoteSession, TlsOptions};
pub use home::default_home;
pub use job::{JobRunner, Jobs};
pub use mends::{Mend, Rules};
pub use monitor::Monitor;
pub use names::Names;
pub use pipes::{Pipes, reads_standard_input};
pub use progress::{Progress, ProgressSnapshot};
pub use report::{ReportScheduler, Reports, report_from_file};
pub use reuse::{CacheAdmin, CacheStats, Receipt, Reused};
pub use session::Session;
pub use settings::{SettingDoc, Settings};
pub use warm::Warmed;

// For those who tell the time to an engine.
pub use nectarine_catalog::{Clock, SystemClock};

// For those who simulate what is kept: the decision is the planner's own.
pub use nectarine_planner::canonical::PrefixKind;
pub use nectarine_planner::reuse::{AdmissionPolicy, Inquiry};

// Where executors come to.
pub use nectarine_executor::{ClusterOptions, Secret};

// CSV has one form, whoever writes it.
pub use nectarine_executor::CsvText;

// The text of statements is the planner's business; those who read scripts need only these.
pub use nectarine_planner::reuse::ExtentCounts;
pub use nectarine_planner::sql::{is_complete, split_statements};
