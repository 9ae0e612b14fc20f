//! [`MetadataStore`]: what Nectarine remembers between statements, processes and restarts.
//!
//! One trait; `SqliteStore` keeps a home's `metadata.db`, `MemoryStore` is its twin for tests and throw-away engines.
//! Both pass the same suite (`conformance`). Every method is one transaction: it happened wholly or not at all.
//!
//! Versions: `catalog_version` grows with every committed change of tables, extents, functions, schemas or rights, by any
//! process on the same home; a reader whose version is unchanged may keep what it has in memory. `versions` tells it
//! together with that of the view cache, whose changes can be read one by one: see `cache_changes`.

#[cfg(test)]
mod conformance;
mod memory;
mod sqlite;

#[cfg(test)]
pub(crate) use self::conformance::cache as conformance_cache;
use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;

pub use self::memory::MemoryStore;
pub use self::sqlite::SqliteStore;
use crate::cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, CacheLease, DataScope, DroppedEntries, EntryPart,
    EntryProvenance, EvictionNote, EvictionRecord, EvictionTotals, LookupCount, NewEntry, Pin, PinMoves, PinOutcome,
    PinSubject, ProgramRecord, ProgramRun, Publication, RelativeRecord, SpaceOutcome, SpaceRequest, StoredProgram,
    UseCount,
};
use crate::{
    Access, AccessChange, CatalogError, DerivedSources, Extent, FileFormatKind, Fingerprint, Function, Job, JobBounds,
    JobChanged, JobEffect, JobId, JobPoint, JobQuery, QueryId, Replace, Report, ReportId, ReportRun, Result, RunPlan,
    RunQuery, RunState, TableDef, TableId, TableName,
};

/// Durable metadata of one home.
#[async_trait]
pub trait MetadataStore: fmt::Debug + Send + Sync {
    /// Grows with every committed change of tables, managed extents, functions or schemas; one cheap read.
    async fn catalog_version(&self) -> Result<i64>;
    /// All that tells whether anything changed, in one cheap read.
    async fn versions(&self) -> Result<Versions>;

    /// All schemas, sorted by name; a new store has `public`.
    async fn schemas(&self) -> Result<Vec<String>>;
    /// Fails with `AlreadyExists`.
    async fn create_schema(&self, name: &str) -> Result<()>;
    /// Fails with `NotFound`, or `SchemaNotEmpty` unless `cascade`; returns the tables that went with it, those of other
    /// schemas that depended on them included.
    async fn drop_schema(&self, name: &str, cascade: bool) -> Result<Vec<TableDef>>;

    /// All tables and views, sorted by name.
    async fn tables(&self) -> Result<Vec<TableDef>>;
    /// Adds a table together with its first extents. One that it may [`Replace`] is dropped in the same transaction and
    /// returned: what others committed meanwhile must not be lost, so it has to be the one that was seen, in the hands of the
    /// owner that the new one has (`NotAsSeen`), and to have the extents that were read (`Overtaken`). `AlreadyExists` if
    /// none is to be replaced. `NotFound` if the schema does not exist. `HasDependants` if a derived table needs the extents
    /// of the one that would be replaced (one of the same id stays what it was); `TableNotFound` if the new one stands on
    /// something that is gone.
    async fn create_table(&self, table: &TableDef, extents: &[Extent], replace: Replace) -> Result<Option<TableDef>>;
    /// Gives a derived table files of its own in the place of its program's extents, and leaves all else as it is by now.
    /// False, and nothing happened, if it has some already; `TableNotFound` if it is gone.
    async fn pin_derived_table(
        &self,
        id: TableId,
        format: FileFormatKind,
        schema: &SchemaRef,
        extents: &[Extent],
    ) -> Result<bool>;
    /// Forgets tables and their extents, all or none; `TableNotFound` if one is gone. What is known of an external
    /// location's files stays: it belongs to the location, which another table may read too. With `cascade` everything
    /// that depends on them goes as well; without, that is `HasDependants`. Returns all that went.
    async fn drop_tables(&self, ids: &[TableId], cascade: bool) -> Result<Vec<TableDef>>;
    /// The same for one table on which nothing depends.
    async fn drop_table(&self, id: TableId) -> Result<()> {
        self.drop_tables(&[id], false).await.map(drop)
    }
    /// Gives a table another name, which what entries were made of is known by as well from now on; `AlreadyExists` if taken,
    /// `NotFound` if the schema does not exist, `TableNotFound` if the table is gone, `HasDependants` if a materialized view
    /// knows it by its name.
    async fn rename_table(&self, id: TableId, name: &TableName) -> Result<()>;

    /// The extents of a managed table, in order; none for other tables. `TableNotFound` if it was dropped, so that a
    /// reader with an old definition never takes a dropped table for an empty one.
    async fn extents(&self, id: TableId) -> Result<Vec<Extent>>;
    /// Adds extents at the end of a managed table. Concurrent calls both land, in some order.
    /// `TableNotFound` if it was dropped meanwhile.
    async fn append_extents(&self, id: TableId, extents: &[Extent]) -> Result<()>;

    /// What was learnt of an external location's files, by position: the records last saved, or none. `key` names the
    /// location and all that decides how its files are read.
    async fn known_files(&self, key: &str) -> Result<Vec<KnownFile>>;
    /// Forgets what is no longer there and saves what was learnt (insert or replace by location and first byte).
    /// Does not change `catalog_version`: other processes learn the same from the files themselves.
    async fn save_known_files(&self, key: &str, learnt: &[KnownFile], gone: &[GoneFile]) -> Result<()>;

    /// All functions, sorted by name.
    async fn functions(&self) -> Result<Vec<Function>>;
    /// With `replace`, one of the same name is replaced; without, `AlreadyExists`.
    async fn create_function(&self, function: &Function, replace: bool) -> Result<()>;
    /// `NotFound` if there is none. With `cascade` the materialized views that call it go as well, and are returned;
    /// without, that is `HasDependants`. `through` are the functions that call it, or call those: their texts are not read
    /// here.
    async fn drop_function(&self, name: &str, through: &[String], cascade: bool) -> Result<Vec<TableDef>>;

    /// Users, roles and rights.
    async fn access(&self) -> Result<Access>;
    /// Makes one change of them, or refuses it; see [`AccessChange`].
    async fn change_access(&self, change: &AccessChange) -> Result<()>;

    /// Writes statements' records (insert or replace by id), with their look-ups, and keeps the newest `keep` of them.
    async fn log_queries(&self, queries: &[QueryRecord], keep: usize) -> Result<()>;
    /// The newest records first, at most `limit`, without their look-ups.
    async fn queries(&self, limit: usize) -> Result<Vec<QueryRecord>>;
    /// What the newest `limit` of the statements that asked the view cache for anything asked for, the newest first.
    /// What cannot be read is left out.
    async fn lookups(&self, limit: usize) -> Result<Vec<(QueryId, Vec<LookupRecord>)>>;

    /// Visits what happened to cache entries after version `since`, or all of them; in the latter case, and where the
    /// store no longer knows what happened since, `Everything` comes first. One snapshot; drops that are remembered are
    /// part of it. Records that cannot be read are left out and counted.
    async fn cache_changes(
        &self,
        since: Option<i64>,
        visit: &mut (dyn FnMut(CacheChange) + Send),
    ) -> Result<CacheChanges>;
    /// Publishes entries, with their programs, all at once. One whose key is there (or came earlier in the same call) is
    /// passed over, unless the record that is there cannot be read: that one is replaced. A program's record is kept, or
    /// replaced if its encoding is another: a fingerprint has one encoding.
    async fn add_cache_entries(&self, entries: &[(CacheEntry, ProgramRecord)]) -> Result<AddedEntries> {
        let new = |(entry, program): &(CacheEntry, ProgramRecord)| NewEntry {
            entry: entry.clone(),
            program: program.clone(),
            lineage: None,
        };
        let entries = entries.iter().map(new).collect();
        self.publish(&Publication { entries, ..Publication::default() }).await
    }
    /// The same with what the entries were made of, and the statement that made them. Nothing is added if something was
    /// purged since the statement began.
    async fn publish(&self, publication: &Publication) -> Result<AddedEntries>;
    /// Drops those entries that are there and remembers the newest `remember` drops of all. Programs stay.
    async fn drop_cache_entries(&self, keys: &[Fingerprint], remember: usize) -> Result<DroppedEntries>;
    /// A whole entry; `Damaged` if it cannot be read.
    async fn cache_entry(&self, key: &Fingerprint) -> Result<Option<CacheEntry>>;
    /// The first `limit` entries after a key, or of all, in the order of their keys; those that cannot be read are left
    /// out, and do not count.
    async fn cache_entries(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<CacheEntry>>;
    /// Entries that a query over these lists of extents may be like, with their programs, the youngest first: the
    /// youngest `limit` over each list, and the youngest `limit` of all. Those that cannot be read are left out.
    async fn cache_neighbours(
        &self,
        inputs: &[Arc<[Fingerprint]>],
        limit: usize,
    ) -> Result<Vec<(CacheEntry, ProgramRecord)>>;
    /// A program; `Damaged` if it cannot be read.
    async fn cache_program(&self, program: &Fingerprint) -> Result<Option<ProgramRecord>>;
    /// For each location whether some entry has a part there.
    async fn cache_files_referenced(&self, locations: &[String]) -> Result<Vec<bool>>;
    /// Adds uses to entries that are there, and look-ups to programs; each entry and program at most once in the lists.
    /// With `keep_lookups` only so many programs' look-ups stay, those looked up last. Returns the version if an entry
    /// was touched.
    async fn save_cache_counts(
        &self,
        uses: &[UseCount],
        lookups: &[LookupCount],
        keep_lookups: Option<usize>,
    ) -> Result<Option<i64>>;
    /// Visits all look-ups that are written down; what cannot be read is left out.
    async fn cache_lookups(&self, visit: &mut (dyn FnMut(LookupCount) + Send)) -> Result<()>;
    /// Writes down which rows programs give. What is known of a program stays; about `keep` programs do, the youngest.
    async fn save_relatives(&self, relatives: &[RelativeRecord], keep: usize) -> Result<()>;
    /// The youngest `limit` programs that were written down after `after`, which is what an earlier call returned, or 0; the
    /// oldest of them first. What cannot be read is left out.
    async fn relatives(&self, after: i64, limit: usize) -> Result<(i64, Vec<RelativeRecord>)>;

    /// Writes down runs of programs; a program and its source that are there stay as they are, and so for ever.
    async fn save_program_runs(&self, runs: &[ProgramRun]) -> Result<()>;
    /// How a program came to be, by the name of its source.
    async fn program_source(&self, source: &Fingerprint) -> Result<Option<StoredProgram>>;
    /// The first `limit` programs that ran, after a source, or of all, in the order of their sources' names. Those that
    /// cannot be read are left out; the pages are over when one is empty.
    async fn program_sources(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<StoredProgram>>;
    /// What these entries were made of, in this order; those that are not there are left out.
    async fn provenance(&self, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>>;
    /// Entries that were made from something in the scope, or from entries that were; sorted.
    async fn dependants(&self, scope: &DataScope) -> Result<Vec<Fingerprint>>;
    /// Drops all dependants of the scope, as [`Self::evict_cache_entries`] does. Statements that began before this publish
    /// nothing any more.
    async fn purge(&self, scope: &DataScope, remember: usize, note: &EvictionNote<'_>) -> Result<DroppedEntries>;
    /// Files of dropped entries that nobody has seen deleted yet, until they are forgotten; sorted by location. Those that
    /// [`Self::purge`] left to delete, and those that were added.
    async fn undeleted_parts(&self) -> Result<Vec<EntryPart>>;
    /// What those files take.
    async fn undeleted_bytes(&self) -> Result<u64>;
    /// Those files could not be deleted; what is known already stays as it is.
    async fn add_undeleted_parts(&self, parts: &[EntryPart]) -> Result<()>;
    /// Those files are gone.
    async fn forget_undeleted_parts(&self, locations: &[String]) -> Result<()>;
    /// What derived tables were made of that were dropped or replaced, sorted by id.
    async fn dropped_derived_tables(&self) -> Result<Vec<DerivedSources>>;
    /// The folders of local files that entries were made of, as full URLs that end in a slash; sorted.
    async fn local_folders(&self) -> Result<Vec<String>>;
    /// What is known of the files of external locations that the scope means, with the key under which it was saved. To be
    /// asked before the scope is purged: where a table's files were is known from its dependants.
    async fn known_files_of(&self, scope: &DataScope) -> Result<Vec<(String, KnownFile)>>;
    /// Takes care that no trace is left of what was deleted since the last purge began, as far as nobody reads it now.
    async fn wipe(&self) -> Result<()>;
    /// As [`Self::drop_cache_entries`], and writes down why in the same transaction; see [`Self::evictions`]. What is pinned
    /// in that moment stays, if the note says so.
    async fn evict_cache_entries(
        &self,
        keys: &[Fingerprint],
        remember: usize,
        note: &EvictionNote<'_>,
    ) -> Result<DroppedEntries>;
    /// What was evicted, the newest first, at most `limit`. An entry that is added again is written down as remade. What
    /// cannot be read is left out.
    async fn evictions(&self, limit: usize) -> Result<Vec<EvictionRecord>>;
    /// What all evictions ever came to.
    async fn eviction_totals(&self) -> Result<EvictionTotals>;
    /// What is pinned, the oldest first. What cannot be read pins nothing.
    async fn pins(&self) -> Result<Vec<Pin>>;
    /// Pins the entry that `pin` names, if it is there and all that is pinned comes to no more than `bytes_max`; another pin
    /// of the same subject is replaced. Its size is taken from the entry. `TableNotFound` if it is a view's and that is gone;
    /// it goes with the view. Raises the catalog's version.
    async fn pin(&self, pin: &Pin, bytes_max: u64) -> Result<PinOutcome>;
    /// Takes a pin away and returns it; `None` if there is none. Raises the catalog's version.
    async fn unpin(&self, subject: &PinSubject) -> Result<Option<Pin>>;
    /// Moves pins of views to entries that are there.
    async fn move_pins(&self, moves: &PinMoves) -> Result<()>;
    /// Sets room aside, if what entries, all leases and files that could not be deleted come to stays within the budget; replaces
    /// the holder's lease.
    async fn reserve_cache_space(&self, request: &SpaceRequest) -> Result<SpaceOutcome>;
    /// Replaces the holder's lease, whatever the budget.
    async fn save_cache_lease(&self, lease: &CacheLease) -> Result<()>;
    /// Forgets a holder; nothing happens if there is none.
    async fn drop_cache_lease(&self, holder: &str) -> Result<()>;
    /// All leases, sorted by holder.
    async fn cache_leases(&self) -> Result<Vec<CacheLease>>;
    /// Files that entries have, with the entry, from one location (included) to another (excluded), byte by byte; in no
    /// order.
    async fn cache_locations(&self, from: &str, to: &str) -> Result<Vec<(String, Fingerprint)>>;
    /// Looks at the first `limit` lists of extents after one, or of all, in the order of their names: the last of them,
    /// and those that no entry has.
    async fn unused_cache_inputs(
        &self,
        after: Option<&Fingerprint>,
        limit: usize,
    ) -> Result<(Option<Fingerprint>, Vec<Fingerprint>)>;
    /// Deletes those of the lists that no entry has; how many.
    async fn drop_cache_inputs(&self, inputs: &[Fingerprint]) -> Result<usize>;

    /// All reports, sorted by name.
    async fn reports(&self) -> Result<Vec<Report>>;
    /// `AlreadyExists` if the name is taken. Neither reports nor runs change the catalog's version.
    async fn create_report(&self, report: &Report) -> Result<()>;
    /// Replaces all but the identifier and the time it was made; what is planned stays planned, if that is later. `NotFound`, or `AlreadyExists` if its new name is taken.
    async fn change_report(&self, report: &Report) -> Result<()>;
    /// Forgets a report and its runs; false if there is none.
    async fn drop_report(&self, id: ReportId) -> Result<bool>;
    /// Adds runs for scheduled times; nothing happens, and the answer is false, if the report is planned up to another time by
    /// now, or gone.
    async fn plan_report_runs(&self, plan: &RunPlan) -> Result<bool>;
    /// Runs, those scheduled last first.
    async fn report_runs(&self, wanted: &RunQuery) -> Result<Vec<ReportRun>>;
    /// Adds a run that is not of the schedule; false if there is one for its time. `NotFound` if the report is gone.
    async fn add_report_run(&self, run: &ReportRun) -> Result<bool>;
    /// Writes a run down, if it is still in that state and attempt; with the rows that it appends to a managed table, in the same
    /// transaction. False, and nothing happened, if somebody else changed it. `TableNotFound` if the table is gone.
    async fn change_report_run(
        &self,
        was: (RunState, i64),
        run: &ReportRun,
        append: Option<(TableId, &[Extent])>,
    ) -> Result<bool>;

    /// Writes down a job that waits; false, and nothing happened, if so many are open already, of everybody or of its owner. Jobs
    /// alone do not change the catalog's version.
    async fn submit_job(&self, job: &Job, open_max: JobBounds) -> Result<bool>;
    /// Jobs, those that were accepted first first.
    async fn jobs(&self, wanted: &JobQuery) -> Result<Vec<Job>>;
    /// Writes down how far a job is, if it is still at that point; with what its statement does to tables, in the same
    /// transaction. `None`, and nothing happened, if somebody else changed it. Errors are those of
    /// [`Self::append_extents`] and [`Self::create_table_from`]; nothing happened then either.
    async fn change_job(&self, was: JobPoint, job: &Job, effect: Option<JobEffect<'_>>) -> Result<Option<JobChanged>>;
    /// Renews the lease of a job that is running in that attempt; false if it is not.
    async fn keep_job(&self, id: JobId, attempt: i64, lease_until: i64) -> Result<bool>;
    /// Forgets a job that has ended; false if there is none.
    async fn drop_job(&self, id: JobId) -> Result<bool>;

    /// Waits for everything committed to be safe and closes the store; later calls fail.
    async fn close(&self);
}

/// What [`MetadataStore::versions`] tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions {
    /// As [`MetadataStore::catalog_version`].
    pub catalog: i64,
    /// Grows with every committed change of cache entries, uses included.
    pub cache: i64,
    /// Grows with every purge; see [`Publication::purges`].
    pub purges: i64,
}

/// A file, or a range of one, of an external table as it was last seen.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownFile {
    /// The extent as it was last pinned.
    pub extent: Extent,
    /// The encoded identity that the file had then; see `identity`.
    pub identity: Vec<u8>,
    /// Whether the file was so fresh then that its identity alone must not be trusted.
    pub racy: bool,
    /// Position in the table.
    pub position: u32,
}

/// Names a record of [`KnownFile`] to forget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GoneFile {
    /// Full URL.
    pub location: String,
    /// First byte of its range; 0 for a whole file.
    pub byte_start: u64,
}

/// One statement, as `system.queries` shows it.
#[derive(Clone, PartialEq, Debug)]
pub struct QueryRecord {
    /// Its identifier.
    pub query_id: QueryId,
    /// Microseconds since 1970.
    pub started_at: i64,
    /// Who asked.
    pub user_name: String,
    /// The statement's text, cut at a bound.
    pub sql: String,
    /// `running`, `finished`, `failed`, `cancelled`. One that runs in a process that is gone was lost.
    pub state: String,
    /// Why it failed.
    pub error: Option<String>,
    /// Wall clock.
    pub elapsed_ms: Option<f64>,
    /// Time the operators computed, over all threads.
    pub cpu_ms: Option<f64>,
    /// Rows the client was given.
    pub rows_returned: Option<i64>,
    /// Bytes read from extents.
    pub bytes_scanned: Option<i64>,
    /// Time until the plan was ready.
    pub planning_ms: Option<f64>,
    /// `none`, `exact` or `partial`.
    pub reuse: Option<String>,
    /// Cache entries that it read.
    pub entries_used: Option<i64>,
    /// What that saved.
    pub saved_ms: Option<f64>,
    /// Extents of the tables that it reads; not known without reuse.
    pub extents_total: Option<i64>,
    /// Those among them that it did not have to read.
    pub extents_reused: Option<i64>,
    /// The process that runs it, by the name that it has in the home; not known of records of format 1.
    pub process: Option<String>,
    /// The user who was logged in; none of whoever has the home.
    pub login: Option<String>,
    /// What it asked the view cache for; see [`MetadataStore::lookups`].
    pub lookups: Vec<LookupRecord>,
}

/// One prefix that a statement asked the view cache for, as `system.lookups` shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LookupRecord {
    /// FP_PD; none of what cannot be recognised.
    pub prefix: Option<Fingerprint>,
    /// FP_P.
    pub program: Option<Fingerprint>,
    /// Whether an entry was read.
    pub is_hit: bool,
    /// Why not, in a few words that are the same for all of a kind.
    pub reason: Option<String>,
    /// What else there is to say about it.
    pub detail: Option<String>,
    /// The top of the prefix in words, cut at a bound.
    pub node: String,
    /// When it was asked for, microseconds since 1970.
    pub asked_at: i64,
}

/// Why a call on a closed store fails.
#[derive(Debug, thiserror::Error)]
#[error("the store is closed")]
struct Closed;

fn closed(attempted: &'static str) -> CatalogError {
    CatalogError::Store { attempted, source: Arc::new(Closed) }
}

/// Nobody remembers what a dropped table was called; callers that do should say it in their own words.
pub(crate) fn no_such_table(id: TableId) -> CatalogError {
    CatalogError::TableNotFound { name: TableName::new("id", id.to_string()) }
}

pub(crate) fn no_such_schema(name: &str) -> CatalogError {
    CatalogError::NotFound { what: "schema", name: name.to_owned() }
}

pub(crate) fn table_exists(name: &TableName) -> CatalogError {
    CatalogError::AlreadyExists { what: "table", name: name.to_string() }
}
