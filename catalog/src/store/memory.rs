//! [`MemoryStore`]: the twin of `SqliteStore` for tests and throw-away engines; nothing outlives it.
//!
//! Same answers, same errors, same versions: `conformance` holds both to that. Every method looks before it changes
//! anything, under one lock, so a refused call leaves no trace.

mod cache;
mod jobs;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use self::cache::Cache;
use self::jobs::Jobs;
use self::reports::Reports;
use super::{
    GoneFile, KnownFile, LookupRecord, MetadataStore, QueryRecord, Versions, closed, no_such_schema, no_such_table,
    table_exists,
};
use crate::access::keeps_rights;
use crate::cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, CacheLease, DataScope, DroppedEntries, EntryPart,
    EntryProvenance, EvictionNote, EvictionRecord, EvictionTotals, LookupCount, Pin, PinMoves, PinOutcome, PinSubject,
    ProgramRecord, ProgramRun, Publication, RelativeRecord, SpaceOutcome, SpaceRequest, StoredProgram, UseCount,
};
use crate::{
    Access, AccessChange, CatalogError, DerivedSources, Extent, FileFormatKind, Fingerprint, Function, Grant, Job,
    JobBounds, JobChanged, JobEffect, JobId, JobPoint, JobQuery, QueryId, Replace, Report, ReportId, ReportRun, Result,
    RunPlan, RunQuery, RunState, Securable, TableDef, TableId, TableKind, TableName, named, plain_location,
};

/// Metadata that lives as long as this value.
#[derive(Debug)]
pub struct MemoryStore {
    /// `None` once closed.
    state: Mutex<Option<State>>,
}

#[derive(Debug)]
struct State {
    version: i64,
    schemas: BTreeSet<String>,
    tables: BTreeMap<TableName, TableDef>,
    extents: BTreeMap<TableId, Vec<Extent>>,
    known_files: BTreeMap<String, BTreeMap<(String, u64), KnownFile>>,
    functions: BTreeMap<String, Function>,
    access: Access,
    queries: BTreeMap<QueryId, QueryRecord>,
    cache: Cache,
    reports: Reports,
    jobs: Jobs,
    dropped_derived: BTreeMap<TableId, DerivedSources>,
}

impl MemoryStore {
    /// An empty store with the schema `public`.
    pub fn new() -> Self {
        let state = State {
            version: 1,
            schemas: BTreeSet::from(["public".to_owned()]),
            tables: BTreeMap::new(),
            extents: BTreeMap::new(),
            known_files: BTreeMap::new(),
            functions: BTreeMap::new(),
            access: Access::default(),
            queries: BTreeMap::new(),
            cache: Cache::default(),
            reports: Reports::default(),
            jobs: Jobs::default(),
            dropped_derived: BTreeMap::new(),
        };
        Self { state: Mutex::new(Some(state)) }
    }

    fn state(&self, attempted: &'static str) -> Result<MappedMutexGuard<'_, State>> {
        MutexGuard::try_map(self.state.lock(), Option::as_mut).map_err(|_| closed(attempted))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn name_of(&self, id: TableId) -> Result<TableName> {
        let table = self.tables.values().find(|table| table.id == id);
        table.map(|table| table.name.clone()).ok_or_else(|| no_such_table(id))
    }

    fn require_schema(&self, name: &str) -> Result<()> {
        if self.schemas.contains(name) { Ok(()) } else { Err(no_such_schema(name)) }
    }

    fn remove(&mut self, name: &TableName) -> Option<TableDef> {
        let table = self.tables.remove(name)?;
        self.extents.remove(&table.id);
        self.cache.unpin(&PinSubject::View(table.id));
        self.access.grants.retain(|grant| grant.on != Securable::Table(table.id));
        self.dropped_derived.extend(DerivedSources::of(&table).map(|sources| (table.id, sources)));
        Some(table)
    }

    fn all_tables(&self) -> Vec<TableDef> {
        self.tables.values().cloned().collect()
    }

    /// Forgets tables that are there, in the order of their names.
    fn remove_all(&mut self, ids: &BTreeSet<TableId>) -> Vec<TableDef> {
        let names = self.tables.values().filter(|table| ids.contains(&table.id)).map(|table| table.name.clone());
        let names: Vec<TableName> = names.collect();
        names.iter().filter_map(|name| self.remove(name)).collect()
    }

    fn create_table(&mut self, table: &TableDef, extents: &[Extent], replace: Replace) -> Result<Option<TableDef>> {
        self.require_schema(&table.name.schema)?;
        replace.check(table, self.tables.get(&table.name))?;
        if let Some((id, n_extents)) = replace.read()
            && self.extents.get(&id).map_or(0, Vec::len) != n_extents
        {
            return Err(CatalogError::Overtaken { name: table.name.clone() });
        }
        let tables = self.all_tables();
        if let Some(old) = self.tables.get(&table.name) {
            named::may_replace(&tables, old, table.id)?;
        }
        named::stands(&tables, table)?;
        let kept: Vec<Grant> = match self.tables.get(&table.name).filter(|old| keeps_rights(old, table)) {
            Some(old) => {
                let is_on_old = |grant: &&Grant| grant.on == Securable::Table(old.id);
                let grants = self.access.grants.iter().filter(is_on_old).cloned();
                grants.map(|grant| Grant { on: Securable::Table(table.id), ..grant }).collect()
            }
            None => vec![],
        };
        let replaced = self.remove(&table.name);
        self.access.grants.extend(kept);
        // One that took another form is not gone.
        self.dropped_derived.remove(&table.id);
        self.tables.insert(table.name.clone(), table.clone());
        self.extents.insert(table.id, extents.to_vec());
        self.version += 1;
        Ok(replaced)
    }

    fn newest_queries(&self) -> Vec<&QueryRecord> {
        let mut queries: Vec<_> = self.queries.values().collect();
        queries.sort_by_key(|query| std::cmp::Reverse((query.started_at, query.query_id)));
        queries
    }
}

#[async_trait]
impl MetadataStore for MemoryStore {
    async fn catalog_version(&self) -> Result<i64> {
        Ok(self.state("read the catalog version")?.version)
    }

    async fn versions(&self) -> Result<Versions> {
        let state = self.state("read the versions")?;
        Ok(Versions { catalog: state.version, cache: state.cache.version(), purges: state.cache.purges() })
    }

    async fn schemas(&self) -> Result<Vec<String>> {
        Ok(self.state("list schemas")?.schemas.iter().cloned().collect())
    }

    async fn create_schema(&self, name: &str) -> Result<()> {
        let mut state = self.state("create a schema")?;
        if !state.schemas.insert(name.to_owned()) {
            return Err(CatalogError::AlreadyExists { what: "schema", name: name.to_owned() });
        }
        state.version += 1;
        Ok(())
    }

    async fn drop_schema(&self, name: &str, cascade: bool) -> Result<Vec<TableDef>> {
        let mut state = self.state("drop a schema")?;
        state.require_schema(name)?;
        let inside: Vec<_> = state.tables.keys().filter(|table| table.schema == name).cloned().collect();
        if !inside.is_empty() && !cascade {
            return Err(CatalogError::SchemaNotEmpty { name: name.to_owned(), n_tables: inside.len() });
        }
        let ids: Vec<TableId> =
            inside.iter().filter_map(|table| state.tables.get(table).map(|table| table.id)).collect();
        let ids = named::dropped_with(&state.all_tables(), &ids, cascade)?;
        let dropped = state.remove_all(&ids);
        state.schemas.remove(name);
        state.access.grants.retain(|grant| grant.on != Securable::Schema(name.to_owned()));
        state.access.schema_owners.remove(name);
        state.version += 1;
        Ok(dropped)
    }

    async fn tables(&self) -> Result<Vec<TableDef>> {
        Ok(self.state("list tables")?.tables.values().cloned().collect())
    }

    async fn create_table(&self, table: &TableDef, extents: &[Extent], replace: Replace) -> Result<Option<TableDef>> {
        self.state("create a table")?.create_table(table, extents, replace)
    }

    async fn pin_derived_table(
        &self,
        id: TableId,
        format: FileFormatKind,
        schema: &SchemaRef,
        extents: &[Extent],
    ) -> Result<bool> {
        let mut state = self.state("pin a derived table")?;
        let table = state.tables.values_mut().find(|table| table.id == id).ok_or_else(|| no_such_table(id))?;
        let TableKind::Derived(derived) = &mut table.kind else { return Err(no_such_table(id)) };
        if derived.pinned.is_some() {
            return Ok(false);
        }
        derived.pinned = Some(format);
        table.schema = Arc::clone(schema);
        state.extents.insert(id, extents.to_vec());
        state.version += 1;
        Ok(true)
    }

    async fn drop_tables(&self, ids: &[TableId], cascade: bool) -> Result<Vec<TableDef>> {
        let mut state = self.state("drop tables")?;
        for id in ids {
            state.name_of(*id)?;
        }
        let ids = named::dropped_with(&state.all_tables(), ids, cascade)?;
        let dropped = state.remove_all(&ids);
        state.version += 1;
        Ok(dropped)
    }

    async fn rename_table(&self, id: TableId, name: &TableName) -> Result<()> {
        let mut state = self.state("rename a table")?;
        let old = state.name_of(id)?;
        state.require_schema(&name.schema)?;
        if old != *name && state.tables.contains_key(name) {
            return Err(table_exists(name));
        }
        if let Some(table) = state.tables.get(&old).filter(|_| old != *name) {
            named::may_rename(&state.all_tables(), table)?;
        }
        if let Some(mut table) = state.tables.remove(&old) {
            table.name = name.clone();
            state.tables.insert(name.clone(), table);
        }
        // Results know it by its name as well, also when it is gone.
        state.cache.rename_table(id, &name.to_string());
        state.version += 1;
        Ok(())
    }

    async fn extents(&self, id: TableId) -> Result<Vec<Extent>> {
        let state = self.state("read extents")?;
        state.extents.get(&id).cloned().ok_or_else(|| no_such_table(id))
    }

    async fn append_extents(&self, id: TableId, extents: &[Extent]) -> Result<()> {
        let mut state = self.state("append extents")?;
        let all = state.extents.get_mut(&id).ok_or_else(|| no_such_table(id))?;
        all.extend_from_slice(extents);
        state.version += 1;
        Ok(())
    }

    async fn known_files(&self, key: &str) -> Result<Vec<KnownFile>> {
        let state = self.state("read known files")?;
        let known = state.known_files.get(key);
        let mut files: Vec<_> = known.into_iter().flat_map(BTreeMap::values).cloned().collect();
        // Stable: files of one position stay in the order of their place.
        files.sort_by_key(|file| file.position);
        Ok(files)
    }

    async fn save_known_files(&self, key: &str, learnt: &[KnownFile], gone: &[GoneFile]) -> Result<()> {
        let mut state = self.state("save known files")?;
        let known = state.known_files.entry(key.to_owned()).or_default();
        for file in gone {
            known.remove(&(file.location.clone(), file.byte_start));
        }
        for file in learnt {
            let byte_start = file.extent.range.map_or(0, |range| range.start);
            known.insert((file.extent.location.to_string(), byte_start), file.clone());
        }
        if known.is_empty() {
            state.known_files.remove(key);
        }
        Ok(())
    }

    async fn functions(&self) -> Result<Vec<Function>> {
        Ok(self.state("list functions")?.functions.values().cloned().collect())
    }

    async fn create_function(&self, function: &Function, replace: bool) -> Result<()> {
        let mut state = self.state("create a function")?;
        if !replace && state.functions.contains_key(&function.name) {
            return Err(CatalogError::AlreadyExists { what: "function", name: function.name.clone() });
        }
        state.functions.insert(function.name.clone(), function.clone());
        state.version += 1;
        Ok(())
    }

    async fn drop_function(&self, name: &str, through: &[String], cascade: bool) -> Result<Vec<TableDef>> {
        let mut state = self.state("drop a function")?;
        if !state.functions.contains_key(name) {
            return Err(CatalogError::NotFound { what: "function", name: name.to_owned() });
        }
        let tables = state.all_tables();
        let callers = named::callers(&tables, name, through);
        if !cascade && !callers.is_empty() {
            return Err(named::refused_function(name, &tables, &callers));
        }
        let dropped = state.remove_all(&named::with_dependants(&tables, &callers));
        state.functions.remove(name);
        state.version += 1;
        Ok(dropped)
    }

    async fn access(&self) -> Result<Access> {
        Ok(self.state("read users and rights")?.access.clone())
    }

    async fn change_access(&self, change: &AccessChange) -> Result<()> {
        let mut state = self.state("change users and rights")?;
        let (tables, schemas) = (state.all_tables(), state.schemas.iter().cloned().collect::<Vec<_>>());
        state.access.apply(change, &tables, &schemas)?;
        if let AccessChange::SetOwner { of, owner } = change {
            let tables = state.tables.values_mut().filter(|table| of.contains(&Securable::Table(table.id)));
            tables.for_each(|table| table.owner.clone_from(owner));
        }
        state.version += 1;
        Ok(())
    }

    async fn log_queries(&self, queries: &[QueryRecord], keep: usize) -> Result<()> {
        let mut state = self.state("log queries")?;
        state.queries.extend(queries.iter().map(|query| (query.query_id, query.clone())));
        let too_old: Vec<_> = state.newest_queries().iter().skip(keep).map(|query| query.query_id).collect();
        state.queries.retain(|id, _| !too_old.contains(id));
        Ok(())
    }

    async fn queries(&self, limit: usize) -> Result<Vec<QueryRecord>> {
        let state = self.state("read the query log")?;
        let bare = |query: &QueryRecord| QueryRecord { lookups: vec![], ..query.clone() };
        Ok(state.newest_queries().into_iter().take(limit).map(bare).collect())
    }

    async fn lookups(&self, limit: usize) -> Result<Vec<(QueryId, Vec<LookupRecord>)>> {
        let state = self.state("read look-ups of statements")?;
        let asking = state.newest_queries().into_iter().filter(|query| !query.lookups.is_empty());
        Ok(asking.take(limit).map(|query| (query.query_id, query.lookups.clone())).collect())
    }

    async fn cache_changes(
        &self,
        since: Option<i64>,
        visit: &mut (dyn FnMut(CacheChange) + Send),
    ) -> Result<CacheChanges> {
        Ok(self.state("read cache entries")?.cache.changes(since, visit))
    }

    async fn publish(&self, publication: &Publication) -> Result<AddedEntries> {
        Ok(self.state("add cache entries")?.cache.publish(publication))
    }

    async fn drop_cache_entries(&self, keys: &[Fingerprint], remember: usize) -> Result<DroppedEntries> {
        Ok(self.state("drop cache entries")?.cache.drop(keys, remember))
    }

    async fn cache_entry(&self, key: &Fingerprint) -> Result<Option<CacheEntry>> {
        Ok(self.state("read a cache entry")?.cache.entry(key))
    }

    async fn cache_entries(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<CacheEntry>> {
        Ok(self.state("read cache entries")?.cache.page(after, limit))
    }

    async fn cache_neighbours(
        &self,
        inputs: &[Arc<[Fingerprint]>],
        limit: usize,
    ) -> Result<Vec<(CacheEntry, ProgramRecord)>> {
        Ok(self.state("read cache entries")?.cache.neighbours(inputs, limit))
    }

    async fn cache_program(&self, program: &Fingerprint) -> Result<Option<ProgramRecord>> {
        Ok(self.state("read a program")?.cache.program(program))
    }

    async fn cache_files_referenced(&self, locations: &[String]) -> Result<Vec<bool>> {
        Ok(self.state("read cache entries")?.cache.files_referenced(locations))
    }

    async fn save_cache_counts(
        &self,
        uses: &[UseCount],
        lookups: &[LookupCount],
        keep_lookups: Option<usize>,
    ) -> Result<Option<i64>> {
        Ok(self.state("count uses of cache entries")?.cache.save_counts(uses, lookups, keep_lookups))
    }

    async fn cache_lookups(&self, visit: &mut (dyn FnMut(LookupCount) + Send)) -> Result<()> {
        self.state("read look-ups")?.cache.lookups(visit);
        Ok(())
    }

    async fn save_relatives(&self, relatives: &[RelativeRecord], keep: usize) -> Result<()> {
        self.state("write down what programs give")?.cache.save_relatives(relatives, keep);
        Ok(())
    }

    async fn relatives(&self, after: i64, limit: usize) -> Result<(i64, Vec<RelativeRecord>)> {
        Ok(self.state("read what programs give")?.cache.relatives(after, limit))
    }

    async fn save_program_runs(&self, runs: &[ProgramRun]) -> Result<()> {
        self.state("write down programs")?.cache.save_program_runs(runs);
        Ok(())
    }

    async fn program_source(&self, source: &Fingerprint) -> Result<Option<StoredProgram>> {
        Ok(self.state("read a program")?.cache.program_source(source))
    }

    async fn program_sources(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<StoredProgram>> {
        Ok(self.state("read programs")?.cache.program_sources(after, limit))
    }

    async fn provenance(&self, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>> {
        Ok(self.state("read what cache entries were made of")?.cache.provenance(keys))
    }

    async fn dependants(&self, scope: &DataScope) -> Result<Vec<Fingerprint>> {
        Ok(self.state("look for dependants")?.cache.dependants(scope))
    }

    async fn purge(&self, scope: &DataScope, remember: usize, note: &EvictionNote<'_>) -> Result<DroppedEntries> {
        Ok(self.state("purge")?.cache.purge(scope, remember, note))
    }

    async fn undeleted_parts(&self) -> Result<Vec<EntryPart>> {
        Ok(self.state("read which files are to be deleted")?.cache.undeleted_parts())
    }

    async fn undeleted_bytes(&self) -> Result<u64> {
        Ok(self.state("read which files are to be deleted")?.cache.undeleted_bytes())
    }

    async fn add_undeleted_parts(&self, parts: &[EntryPart]) -> Result<()> {
        self.state("write down which files are to be deleted")?.cache.add_undeleted_parts(parts);
        Ok(())
    }

    async fn forget_undeleted_parts(&self, locations: &[String]) -> Result<()> {
        self.state("forget files that were deleted")?.cache.forget_undeleted_parts(locations);
        Ok(())
    }

    async fn dropped_derived_tables(&self) -> Result<Vec<DerivedSources>> {
        let state = self.state("list dropped derived tables")?;
        let mut dropped: Vec<_> = state.dropped_derived.values().cloned().collect();
        dropped.sort_by_key(|derived| derived.id.to_string());
        Ok(dropped)
    }

    async fn local_folders(&self) -> Result<Vec<String>> {
        Ok(self.state("list folders of files")?.cache.local_folders())
    }

    async fn known_files_of(&self, scope: &DataScope) -> Result<Vec<(String, KnownFile)>> {
        let state = self.state("read known files")?;
        let is_meant = state.cache.files_of(scope);
        let all = state.known_files.iter().flat_map(|(key, files)| files.values().map(move |file| (key, file)));
        let meant = all.filter(|(_, file)| is_meant(&plain_location(&file.extent.location)));
        Ok(meant.map(|(key, file)| (key.clone(), file.clone())).collect())
    }

    async fn wipe(&self) -> Result<()> {
        self.state("wipe what was deleted").map(drop)
    }

    async fn evict_cache_entries(
        &self,
        keys: &[Fingerprint],
        remember: usize,
        note: &EvictionNote<'_>,
    ) -> Result<DroppedEntries> {
        Ok(self.state("evict cache entries")?.cache.evict(keys, remember, note))
    }

    async fn evictions(&self, limit: usize) -> Result<Vec<EvictionRecord>> {
        Ok(self.state("read what was evicted")?.cache.evictions(limit))
    }

    async fn eviction_totals(&self) -> Result<EvictionTotals> {
        Ok(self.state("read what was evicted")?.cache.eviction_totals())
    }

    async fn pins(&self) -> Result<Vec<Pin>> {
        Ok(self.state("read what is pinned")?.cache.pins())
    }

    async fn pin(&self, pin: &Pin, bytes_max: u64) -> Result<PinOutcome> {
        let mut state = self.state("pin a cache entry")?;
        if let PinSubject::View(table) = pin.subject {
            state.name_of(table)?;
        }
        let outcome = state.cache.pin(pin, bytes_max);
        state.version += i64::from(matches!(outcome, PinOutcome::Pinned { .. }));
        Ok(outcome)
    }

    async fn unpin(&self, subject: &PinSubject) -> Result<Option<Pin>> {
        let mut state = self.state("unpin a cache entry")?;
        let pin = state.cache.unpin(subject);
        state.version += i64::from(pin.is_some());
        Ok(pin)
    }

    async fn move_pins(&self, moves: &PinMoves) -> Result<()> {
        self.state("move pins")?.cache.move_pins(moves);
        Ok(())
    }

    async fn reserve_cache_space(&self, request: &SpaceRequest) -> Result<SpaceOutcome> {
        Ok(self.state("set room aside for cache entries")?.cache.reserve(request))
    }

    async fn save_cache_lease(&self, lease: &CacheLease) -> Result<()> {
        self.state("renew a lease")?.cache.save_lease(lease);
        Ok(())
    }

    async fn drop_cache_lease(&self, holder: &str) -> Result<()> {
        self.state("give up a lease")?.cache.drop_lease(holder);
        Ok(())
    }

    async fn cache_leases(&self) -> Result<Vec<CacheLease>> {
        Ok(self.state("read leases")?.cache.leases())
    }

    async fn cache_locations(&self, from: &str, to: &str) -> Result<Vec<(String, Fingerprint)>> {
        Ok(self.state("read cache entries")?.cache.locations_between(from, to))
    }

    async fn unused_cache_inputs(
        &self,
        _after: Option<&Fingerprint>,
        _limit: usize,
    ) -> Result<(Option<Fingerprint>, Vec<Fingerprint>)> {
        // Entries hold their lists themselves.
        drop(self.state("look for extents that no cache entry has")?);
        Ok((None, vec![]))
    }

    async fn drop_cache_inputs(&self, _inputs: &[Fingerprint]) -> Result<usize> {
        drop(self.state("delete extents that no cache entry has")?);
        Ok(0)
    }

    async fn reports(&self) -> Result<Vec<Report>> {
        Ok(self.state("list reports")?.reports.all())
    }

    async fn create_report(&self, report: &Report) -> Result<()> {
        self.state("create a report")?.reports.create(report)
    }

    async fn change_report(&self, report: &Report) -> Result<()> {
        self.state("change a report")?.reports.change(report)
    }

    async fn drop_report(&self, id: ReportId) -> Result<bool> {
        Ok(self.state("drop a report")?.reports.drop(id))
    }

    async fn plan_report_runs(&self, plan: &RunPlan) -> Result<bool> {
        Ok(self.state("plan runs of a report")?.reports.plan(plan))
    }

    async fn report_runs(&self, wanted: &RunQuery) -> Result<Vec<ReportRun>> {
        Ok(self.state("read runs of reports")?.reports.runs(wanted))
    }

    async fn add_report_run(&self, run: &ReportRun) -> Result<bool> {
        self.state("add a run of a report")?.reports.add(run)
    }

    async fn change_report_run(
        &self,
        was: (RunState, i64),
        run: &ReportRun,
        append: Option<(TableId, &[Extent])>,
    ) -> Result<bool> {
        let mut state = self.state("write down a run of a report")?;
        if !state.reports.is_at(was, run) {
            return Ok(false);
        }
        if let Some((table, extents)) = append {
            state.name_of(table)?;
            state.extents.entry(table).or_default().extend_from_slice(extents);
            state.version += 1;
        }
        state.reports.write(run);
        Ok(true)
    }

    async fn submit_job(&self, job: &Job, open_max: JobBounds) -> Result<bool> {
        Ok(self.state("write down a job")?.jobs.submit(job, open_max))
    }

    async fn jobs(&self, wanted: &JobQuery) -> Result<Vec<Job>> {
        Ok(self.state("read jobs")?.jobs.list(wanted))
    }

    async fn change_job(&self, was: JobPoint, job: &Job, effect: Option<JobEffect<'_>>) -> Result<Option<JobChanged>> {
        let mut state = self.state("write down how far a job is")?;
        if !state.jobs.is_at(was, job.id) {
            return Ok(None);
        }
        let mut changed = JobChanged::default();
        match effect {
            Some(JobEffect::Append { table, extents }) => {
                state.name_of(table)?;
                state.extents.entry(table).or_default().extend_from_slice(extents);
                state.version += 1;
            }
            Some(JobEffect::Create { table, extents, replace }) => {
                changed.replaced = state.create_table(table, extents, replace)?;
            }
            None => {}
        }
        state.jobs.write(job);
        Ok(Some(changed))
    }

    async fn keep_job(&self, id: JobId, attempt: i64, lease_until: i64) -> Result<bool> {
        Ok(self.state("keep a job")?.jobs.keep(id, attempt, lease_until))
    }

    async fn drop_job(&self, id: JobId) -> Result<bool> {
        Ok(self.state("forget a job")?.jobs.drop(id))
    }

    async fn close(&self) {
        *self.state.lock() = None;
    }
}
