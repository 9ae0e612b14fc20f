//! [`SqliteStore`]: a home's metadata in one SQLite file that any number of processes may open at once.
//!
//! ```text
//!   format        which version a file has; refusing, creating and raising it
//!   asked         the versions, read once for all who ask at the same time
//!   lane          a connection of its own for versions, for reads and for writes; transactions
//!   fault         what went wrong inside, before it is told what was attempted
//!   schemas  tables  extents  known_files  functions  access  queries  cache  purges  reports  jobs   one room of SQL for each kind of record
//! ```
//!
//! Durable      a change of tables, extents, functions or schemas is synced to disk before the call returns. What is
//!              known of files, the query log and the view cache survive the end of a process at any instant, not always
//!              of the machine; then the newest of it is missing, never a part of a call.
//! Concurrent   readers never wait (WAL). Writers queue for the file with `BEGIN IMMEDIATE`, for at most the busy
//!              timeout; there is no upgrade from reading to writing inside a transaction, so none can deadlock.
//! Refuses      a file of a newer version, of another program, or that is damaged; it is left as it was.
//! Driver       sqlx's own for SQLite rather than `Any`: waiting, read-only looks and row buffering have no place in
//!              `Any`'s URL. The SQL keeps to what PostgreSQL shares; `lane` and `format` hold all that is SQLite's.

mod access;
mod asked;
mod cache;
mod extents;
mod fault;
mod format;
mod functions;
mod jobs;
mod known_files;
mod lane;
mod lookups;
mod purges;
mod queries;
mod reports;
mod schemas;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use tokio::sync::Mutex;

use self::asked::AskedVersions;
use self::fault::Fault;
use self::lane::Lane;
use super::{GoneFile, KnownFile, LookupRecord, MetadataStore, QueryRecord, Versions};
use crate::cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, CacheLease, DataScope, DroppedEntries, EntryPart,
    EntryProvenance, EvictionNote, EvictionRecord, EvictionTotals, LookupCount, Pin, PinMoves, PinOutcome, PinSubject,
    ProgramRecord, ProgramRun, Publication, RelativeRecord, SpaceOutcome, SpaceRequest, StoredProgram, UseCount,
};
use crate::{
    Access, AccessChange, DerivedSources, Extent, FileFormatKind, Fingerprint, Function, Job, JobBounds, JobChanged,
    JobEffect, JobId, JobPoint, JobQuery, QueryId, Replace, Report, ReportId, ReportRun, Result, RunPlan, RunQuery,
    RunState, TableDef, TableId, TableName,
};

/// How long to wait for another process's transaction; theirs take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Metadata in an SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    /// Apart from `reader`, so that the question every statement asks never waits for a long list of extents.
    versions: AskedVersions,
    reader: Mutex<Lane>,
    writer: Mutex<Lane>,
}

impl SqliteStore {
    /// Opens the file, or creates it in a folder that exists.
    pub async fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, BUSY_TIMEOUT).await
    }

    /// Opens the file and waits at most `busy_timeout` for other processes, now and in every later call.
    pub async fn open_with(path: &Path, busy_timeout: Duration) -> Result<Self> {
        Self::open_lanes(path, busy_timeout).await.map_err(|fault| fault.while_opening(path))
    }

    async fn open_lanes(path: &Path, busy_timeout: Duration) -> Result<Self, Fault> {
        // Absolute, because SQLite takes names that start with `file:` for URLs.
        let path = std::path::absolute(path).map_err(sqlx::Error::Io)?;
        let options = lane::options(&path, busy_timeout);
        let writer = format::open(&options, &path, busy_timeout).await?;
        let (versions, reader) = futures::try_join!(Lane::open(&options), Lane::open(&options))?;
        Ok(Self {
            path,
            versions: AskedVersions::new(versions),
            reader: Mutex::new(reader),
            writer: Mutex::new(Lane::new(writer)),
        })
    }

    fn tell<T>(&self, attempted: &'static str, outcome: Result<T, Fault>) -> Result<T> {
        outcome.map_err(|fault| fault.during(attempted, &self.path))
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

#[async_trait]
impl MetadataStore for SqliteStore {
    async fn catalog_version(&self) -> Result<i64> {
        let outcome = self.versions.read().await.map(|versions| versions.catalog);
        self.tell("read the catalog version", outcome)
    }

    async fn versions(&self) -> Result<Versions> {
        let outcome = self.versions.read().await;
        self.tell("read the versions", outcome)
    }

    async fn schemas(&self) -> Result<Vec<String>> {
        let outcome = schemas::list(&mut *self.reader.lock().await).await;
        self.tell("list schemas", outcome)
    }

    async fn create_schema(&self, name: &str) -> Result<()> {
        let outcome = schemas::create(&mut *self.writer.lock().await, name).await;
        self.tell("create a schema", outcome)
    }

    async fn drop_schema(&self, name: &str, cascade: bool) -> Result<Vec<TableDef>> {
        let outcome = schemas::drop(&mut *self.writer.lock().await, name, cascade).await;
        self.tell("drop a schema", outcome)
    }

    async fn tables(&self) -> Result<Vec<TableDef>> {
        let outcome = tables::list(&mut *self.reader.lock().await).await;
        self.tell("list tables", outcome)
    }

    async fn create_table(&self, table: &TableDef, extents: &[Extent], replace: Replace) -> Result<Option<TableDef>> {
        let outcome = tables::create(&mut *self.writer.lock().await, table, extents, replace).await;
        self.tell("create a table", outcome)
    }

    async fn pin_derived_table(
        &self,
        id: TableId,
        format: FileFormatKind,
        schema: &SchemaRef,
        extents: &[Extent],
    ) -> Result<bool> {
        let outcome = tables::pin(&mut *self.writer.lock().await, id, format, schema, extents).await;
        self.tell("pin a derived table", outcome)
    }

    async fn drop_tables(&self, ids: &[TableId], cascade: bool) -> Result<Vec<TableDef>> {
        let outcome = tables::drop(&mut *self.writer.lock().await, ids, cascade).await;
        self.tell("drop tables", outcome)
    }

    async fn rename_table(&self, id: TableId, name: &TableName) -> Result<()> {
        let outcome = tables::rename(&mut *self.writer.lock().await, id, name).await;
        self.tell("rename a table", outcome)
    }

    async fn extents(&self, id: TableId) -> Result<Vec<Extent>> {
        let outcome = extents::list(&mut *self.reader.lock().await, id).await;
        self.tell("read extents", outcome)
    }

    async fn append_extents(&self, id: TableId, extents: &[Extent]) -> Result<()> {
        let outcome = extents::append(&mut *self.writer.lock().await, id, extents).await;
        self.tell("append extents", outcome)
    }

    async fn known_files(&self, key: &str) -> Result<Vec<KnownFile>> {
        let outcome = known_files::list(&mut *self.reader.lock().await, key).await;
        self.tell("read known files", outcome)
    }

    async fn save_known_files(&self, key: &str, learnt: &[KnownFile], gone: &[GoneFile]) -> Result<()> {
        let outcome = known_files::save(&mut *self.writer.lock().await, key, learnt, gone).await;
        self.tell("save known files", outcome)
    }

    async fn functions(&self) -> Result<Vec<Function>> {
        let outcome = functions::list(&mut *self.reader.lock().await).await;
        self.tell("list functions", outcome)
    }

    async fn create_function(&self, function: &Function, replace: bool) -> Result<()> {
        let outcome = functions::create(&mut *self.writer.lock().await, function, replace).await;
        self.tell("create a function", outcome)
    }

    async fn drop_function(&self, name: &str, through: &[String], cascade: bool) -> Result<Vec<TableDef>> {
        let outcome = functions::drop(&mut *self.writer.lock().await, name, through, cascade).await;
        self.tell("drop a function", outcome)
    }

    async fn access(&self) -> Result<Access> {
        let outcome = access::read(&mut *self.reader.lock().await).await;
        self.tell("read users and rights", outcome)
    }

    async fn change_access(&self, change: &AccessChange) -> Result<()> {
        let outcome = access::change(&mut *self.writer.lock().await, change).await;
        self.tell("change users and rights", outcome)
    }

    async fn log_queries(&self, queries: &[QueryRecord], keep: usize) -> Result<()> {
        let outcome = queries::log(&mut *self.writer.lock().await, queries, keep).await;
        self.tell("log queries", outcome)
    }

    async fn queries(&self, limit: usize) -> Result<Vec<QueryRecord>> {
        let outcome = queries::list(&mut *self.reader.lock().await, limit).await;
        self.tell("read the query log", outcome)
    }

    async fn lookups(&self, limit: usize) -> Result<Vec<(QueryId, Vec<LookupRecord>)>> {
        let outcome = queries::lookups(&mut *self.reader.lock().await, limit).await;
        self.tell("read look-ups of statements", outcome)
    }

    async fn cache_changes(
        &self,
        since: Option<i64>,
        visit: &mut (dyn FnMut(CacheChange) + Send),
    ) -> Result<CacheChanges> {
        let outcome = cache::changes(&mut *self.reader.lock().await, since, visit).await;
        self.tell("read cache entries", outcome)
    }

    async fn publish(&self, publication: &Publication) -> Result<AddedEntries> {
        let outcome = cache::publish(&mut *self.writer.lock().await, publication).await;
        self.tell("add cache entries", outcome)
    }

    async fn drop_cache_entries(&self, keys: &[Fingerprint], remember: usize) -> Result<DroppedEntries> {
        let outcome = cache::drop(&mut *self.writer.lock().await, keys, remember, None).await;
        self.tell("drop cache entries", outcome)
    }

    async fn cache_entry(&self, key: &Fingerprint) -> Result<Option<CacheEntry>> {
        let outcome = cache::entry(&mut *self.reader.lock().await, key).await;
        self.tell("read a cache entry", outcome)
    }

    async fn cache_entries(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<CacheEntry>> {
        let outcome = cache::page(&mut *self.reader.lock().await, after, limit).await;
        self.tell("read cache entries", outcome)
    }

    async fn cache_neighbours(
        &self,
        inputs: &[Arc<[Fingerprint]>],
        limit: usize,
    ) -> Result<Vec<(CacheEntry, ProgramRecord)>> {
        let outcome = cache::neighbours(&mut *self.reader.lock().await, inputs, limit).await;
        self.tell("read cache entries", outcome)
    }

    async fn cache_program(&self, program: &Fingerprint) -> Result<Option<ProgramRecord>> {
        let outcome = cache::program(&mut *self.reader.lock().await, program).await;
        self.tell("read a program", outcome)
    }

    async fn cache_files_referenced(&self, locations: &[String]) -> Result<Vec<bool>> {
        let outcome = cache::files_referenced(&mut *self.reader.lock().await, locations).await;
        self.tell("read cache entries", outcome)
    }

    async fn save_cache_counts(
        &self,
        uses: &[UseCount],
        lookups: &[LookupCount],
        keep_lookups: Option<usize>,
    ) -> Result<Option<i64>> {
        let outcome = cache::save_counts(&mut *self.writer.lock().await, uses, lookups, keep_lookups).await;
        self.tell("count uses of cache entries", outcome)
    }

    async fn cache_lookups(&self, visit: &mut (dyn FnMut(LookupCount) + Send)) -> Result<()> {
        let outcome = cache::lookups(&mut *self.reader.lock().await, visit).await;
        self.tell("read look-ups", outcome)
    }

    async fn save_relatives(&self, relatives: &[RelativeRecord], keep: usize) -> Result<()> {
        let outcome = cache::save_relatives(&mut *self.writer.lock().await, relatives, keep).await;
        self.tell("write down what programs give", outcome)
    }

    async fn relatives(&self, after: i64, limit: usize) -> Result<(i64, Vec<RelativeRecord>)> {
        let outcome = cache::relatives(&mut *self.reader.lock().await, after, limit).await;
        self.tell("read what programs give", outcome)
    }

    async fn save_program_runs(&self, runs: &[ProgramRun]) -> Result<()> {
        let outcome = cache::save_program_runs(&mut *self.writer.lock().await, runs).await;
        self.tell("write down programs", outcome)
    }

    async fn program_source(&self, source: &Fingerprint) -> Result<Option<StoredProgram>> {
        let outcome = cache::program_source(&mut *self.reader.lock().await, source).await;
        self.tell("read a program", outcome)
    }

    async fn program_sources(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<StoredProgram>> {
        let outcome = cache::program_sources(&mut *self.reader.lock().await, after, limit).await;
        self.tell("read programs", outcome)
    }

    async fn provenance(&self, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>> {
        let outcome = cache::provenance(&mut *self.reader.lock().await, keys).await;
        self.tell("read what cache entries were made of", outcome)
    }

    async fn dependants(&self, scope: &DataScope) -> Result<Vec<Fingerprint>> {
        let outcome = cache::dependants(&mut *self.reader.lock().await, scope).await;
        self.tell("look for dependants", outcome)
    }

    async fn purge(&self, scope: &DataScope, remember: usize, note: &EvictionNote<'_>) -> Result<DroppedEntries> {
        let outcome = cache::purge(&mut *self.writer.lock().await, scope, remember, note).await;
        self.tell("purge", outcome)
    }

    async fn undeleted_parts(&self) -> Result<Vec<EntryPart>> {
        let outcome = purges::parts(&mut *self.reader.lock().await).await;
        self.tell("read which files are to be deleted", outcome)
    }

    async fn undeleted_bytes(&self) -> Result<u64> {
        let outcome = purges::parts_bytes(&mut *self.reader.lock().await).await;
        self.tell("read which files are to be deleted", outcome)
    }

    async fn add_undeleted_parts(&self, parts: &[EntryPart]) -> Result<()> {
        let outcome = purges::add_parts(&mut *self.writer.lock().await, parts).await;
        self.tell("write down which files are to be deleted", outcome)
    }

    async fn forget_undeleted_parts(&self, locations: &[String]) -> Result<()> {
        let outcome = purges::forget_parts(&mut *self.writer.lock().await, locations).await;
        self.tell("forget files that were deleted", outcome)
    }

    async fn dropped_derived_tables(&self) -> Result<Vec<DerivedSources>> {
        let outcome = purges::dropped_derived(&mut *self.reader.lock().await).await;
        self.tell("list dropped derived tables", outcome)
    }

    async fn local_folders(&self) -> Result<Vec<String>> {
        let outcome = cache::local_folders(&mut *self.reader.lock().await).await;
        self.tell("list folders of files", outcome)
    }

    async fn known_files_of(&self, scope: &DataScope) -> Result<Vec<(String, KnownFile)>> {
        let outcome = cache::known_files_of(&mut *self.reader.lock().await, scope).await;
        self.tell("read known files", outcome)
    }

    async fn wipe(&self) -> Result<()> {
        let outcome = self.writer.lock().await.wipe().await;
        self.tell("wipe what was deleted", outcome)
    }

    async fn evict_cache_entries(
        &self,
        keys: &[Fingerprint],
        remember: usize,
        note: &EvictionNote<'_>,
    ) -> Result<DroppedEntries> {
        let outcome = cache::drop(&mut *self.writer.lock().await, keys, remember, Some(note)).await;
        self.tell("evict cache entries", outcome)
    }

    async fn evictions(&self, limit: usize) -> Result<Vec<EvictionRecord>> {
        let outcome = cache::evictions(&mut *self.reader.lock().await, limit).await;
        self.tell("read what was evicted", outcome)
    }

    async fn eviction_totals(&self) -> Result<EvictionTotals> {
        let outcome = cache::eviction_totals(&mut *self.reader.lock().await).await;
        self.tell("read what was evicted", outcome)
    }

    async fn pins(&self) -> Result<Vec<Pin>> {
        let outcome = cache::pins(&mut *self.reader.lock().await).await;
        self.tell("read what is pinned", outcome)
    }

    async fn pin(&self, pin: &Pin, bytes_max: u64) -> Result<PinOutcome> {
        let outcome = cache::pin(&mut *self.writer.lock().await, pin, bytes_max).await;
        self.tell("pin a cache entry", outcome)
    }

    async fn unpin(&self, subject: &PinSubject) -> Result<Option<Pin>> {
        let outcome = cache::unpin(&mut *self.writer.lock().await, subject).await;
        self.tell("unpin a cache entry", outcome)
    }

    async fn move_pins(&self, moves: &PinMoves) -> Result<()> {
        let outcome = cache::move_pins(&mut *self.writer.lock().await, moves).await;
        self.tell("move pins", outcome)
    }

    async fn reserve_cache_space(&self, request: &SpaceRequest) -> Result<SpaceOutcome> {
        let outcome = cache::reserve(&mut *self.writer.lock().await, request).await;
        self.tell("set room aside for cache entries", outcome)
    }

    async fn save_cache_lease(&self, lease: &CacheLease) -> Result<()> {
        let outcome = cache::save_lease(&mut *self.writer.lock().await, lease).await;
        self.tell("renew a lease", outcome)
    }

    async fn drop_cache_lease(&self, holder: &str) -> Result<()> {
        let outcome = cache::drop_lease(&mut *self.writer.lock().await, holder).await;
        self.tell("give up a lease", outcome)
    }

    async fn cache_leases(&self) -> Result<Vec<CacheLease>> {
        let outcome = cache::leases(&mut *self.reader.lock().await).await;
        self.tell("read leases", outcome)
    }

    async fn cache_locations(&self, from: &str, to: &str) -> Result<Vec<(String, Fingerprint)>> {
        let outcome = cache::locations(&mut *self.reader.lock().await, from, to).await;
        self.tell("read cache entries", outcome)
    }

    async fn unused_cache_inputs(
        &self,
        after: Option<&Fingerprint>,
        limit: usize,
    ) -> Result<(Option<Fingerprint>, Vec<Fingerprint>)> {
        let outcome = cache::unused_inputs(&mut *self.reader.lock().await, after, limit).await;
        self.tell("look for extents that no cache entry has", outcome)
    }

    async fn drop_cache_inputs(&self, inputs: &[Fingerprint]) -> Result<usize> {
        let outcome = cache::drop_inputs(&mut *self.writer.lock().await, inputs).await;
        self.tell("delete extents that no cache entry has", outcome)
    }

    async fn reports(&self) -> Result<Vec<Report>> {
        let outcome = reports::list(&mut *self.reader.lock().await).await;
        self.tell("list reports", outcome)
    }

    async fn create_report(&self, report: &Report) -> Result<()> {
        let outcome = reports::create(&mut *self.writer.lock().await, report).await;
        self.tell("create a report", outcome)
    }

    async fn change_report(&self, report: &Report) -> Result<()> {
        let outcome = reports::change(&mut *self.writer.lock().await, report).await;
        self.tell("change a report", outcome)
    }

    async fn drop_report(&self, id: ReportId) -> Result<bool> {
        let outcome = reports::drop(&mut *self.writer.lock().await, id).await;
        self.tell("drop a report", outcome)
    }

    async fn plan_report_runs(&self, plan: &RunPlan) -> Result<bool> {
        let outcome = reports::plan(&mut *self.writer.lock().await, plan).await;
        self.tell("plan runs of a report", outcome)
    }

    async fn report_runs(&self, wanted: &RunQuery) -> Result<Vec<ReportRun>> {
        let outcome = reports::runs(&mut *self.reader.lock().await, wanted).await;
        self.tell("read runs of reports", outcome)
    }

    async fn add_report_run(&self, run: &ReportRun) -> Result<bool> {
        let outcome = reports::begin(&mut *self.writer.lock().await, run).await;
        self.tell("add a run of a report", outcome)
    }

    async fn change_report_run(
        &self,
        was: (RunState, i64),
        run: &ReportRun,
        append: Option<(TableId, &[Extent])>,
    ) -> Result<bool> {
        let outcome = reports::change_run(&mut *self.writer.lock().await, was, run, append).await;
        self.tell("write down a run of a report", outcome)
    }

    async fn submit_job(&self, job: &Job, open_max: JobBounds) -> Result<bool> {
        let outcome = jobs::submit(&mut *self.writer.lock().await, job, open_max).await;
        self.tell("write down a job", outcome)
    }

    async fn jobs(&self, wanted: &JobQuery) -> Result<Vec<Job>> {
        let outcome = jobs::list(&mut *self.reader.lock().await, wanted).await;
        self.tell("read jobs", outcome)
    }

    async fn change_job(&self, was: JobPoint, job: &Job, effect: Option<JobEffect<'_>>) -> Result<Option<JobChanged>> {
        let outcome = jobs::change(&mut *self.writer.lock().await, was, job, effect).await;
        self.tell("write down how far a job is", outcome)
    }

    async fn keep_job(&self, id: JobId, attempt: i64, lease_until: i64) -> Result<bool> {
        let outcome = jobs::keep(&mut *self.writer.lock().await, id, attempt, lease_until).await;
        self.tell("keep a job", outcome)
    }

    async fn drop_job(&self, id: JobId) -> Result<bool> {
        let outcome = jobs::drop(&mut *self.writer.lock().await, id).await;
        self.tell("forget a job", outcome)
    }

    async fn close(&self) {
        // The writer goes last: when it is the file's last connection, SQLite folds the log into the file.
        let closed = [
            self.versions.close().await,
            self.reader.lock().await.close().await,
            self.writer.lock().await.close().await,
        ];
        for error in closed.into_iter().filter_map(Result::err) {
            tracing::warn!(path = %self.path.display(), %error, "the metadata store did not close cleanly");
        }
    }
}
