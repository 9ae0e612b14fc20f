//! What exists: streams and their extents, statistics of extents, and the metadata store that remembers them.
//!
//! ```text
//!   location      what people write to name files: paths, globs, URLs
//!   object_stores where the bytes are
//!   fingerprint   the stable 256-bit name of bytes and of descriptions
//!   table         a named relation: managed or external stream of extents, or a view
//!   named         programs kept by name: materialized views, derived tables, what depends on what
//!   replace       what a new table does with one that has its name
//!   extent        an immutable piece of a stream
//!   stats         what is known of an extent's columns, kept small
//!   identity      how a file is recognised without reading it, and when that is not enough
//!   listing       which files a location names right now
//!   text          byte-range extents of growing text files
//!   tracker       the extents of an external table right now
//!   access        users, roles, and what they may do
//!   report        queries that run by the clock, and their runs
//!   job           statements that somebody left to the servers, and how far they are
//!   cache         the view cache: which results exist, of which program, over which extents
//!   store         the metadata store: one trait, an SQLite home, an in-memory twin
//!   fail_point    places where tests kill the process
//! ```
//!
//! This crate knows no plans: a view or a function is its SQL text here.

mod access;
mod cache;
mod error;
mod extent;
mod fail_point;
mod fingerprint;
mod identity;
mod ids;
mod job;
mod listing;
mod location;
mod named;
mod object_stores;
mod pieces;
mod replace;
mod report;
pub mod stats;
pub mod store;
mod table;
mod text;
mod tracker;

pub use access::{Access, AccessChange, Grant, Privilege, Role, Securable, Token};
pub use cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, CacheLease, DESCRIPTION_BYTES_MAX, DataScope, DroppedEntries,
    EntryInputs, EntryKind, EntryLineage, EntryPart, EntryProvenance, EntrySummary, EvictionNote, EvictionRecord,
    EvictionTotals, ExtentPlace, InputLineage, InputProvenance, Inquiry, LookupCount, NamedText, NewEntry, Pin,
    PinMove, PinMoves, PinOutcome, PinSubject, ProgramRecord, ProgramRun, ProgramSource, Publication, RelativeRecord,
    SpaceOutcome, SpaceRequest, StoredProgram, Totals, UseCount, ViewCache, source_name,
};
pub use error::{CatalogError, Result};
pub use extent::{ByteRange, Extent};
pub use fail_point::fail_point;
pub use fingerprint::{Fingerprint, FingerprintBuilder};
pub use identity::{Clock, FileIdentity, RACY_NS, SystemClock, content_fingerprint};
pub use ids::{JobId, QueryId, ReportId, TableId};
pub use job::{Job, JobBounds, JobChanged, JobEffect, JobPoint, JobQuery, JobResult, JobSpec, JobState};
pub use listing::{ListedFile, infer_partition_columns, list, list_partitioned};
pub use location::{Compression, FileKind, Location, folder_without_links, looks_like_location, object_path};
pub use named::{
    DerivedSource, DerivedSources, DerivedTable, Frozen, FrozenRelation, FrozenStream, MaterializedView, Mentions,
    needs_extents,
};
pub use object_stores::{ObjectStores, SteadyStore, is_store_option, plain_location, store_url};
pub use pieces::in_order;
pub use replace::Replace;
pub use report::{CatchUp, Concurrency, Report, ReportOutput, ReportRun, ReportSpec, RunPlan, RunQuery, RunState};
pub use table::{ColumnDefault, ExternalSource, FileFormatKind, Function, TableDef, TableKind, TableName};
pub use text::{CsvDialect, CsvRecords, OpenQuote, whole_records};
pub use tracker::{Description, ExtentReader, ExtentTracker, Looked, SameFiles, Told, Wanted, table_key};
