//! [`MemoryStore`]: the twin of `SqliteStore` for tests and throw-away engines; nothing outlives it.
//!
//! Same answers, same errors, same versions: `conformance` holds both to that. Every method looks before it changes
//! anything, under one lock, so a refused call leaves no trace.

mod cache;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use self::cache::Cache;
use super::{
    GoneFile, KnownFile, LookupRecord, MetadataStore, QueryRecord, Versions, closed, no_such_schema, no_such_table,
    table_exists,
};
use crate::cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, DroppedEntries, LookupCount, ProgramRecord, UseCount,
};
use crate::{CatalogError, Extent, Fingerprint, Function, QueryId, Result, TableDef, TableId, TableName};

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
    queries: BTreeMap<QueryId, QueryRecord>,
    cache: Cache,
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
            queries: BTreeMap::new(),
            cache: Cache::default(),
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
        Some(table)
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
        Ok(Versions { catalog: state.version, cache: state.cache.version() })
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
        let dropped = inside.iter().filter_map(|table| state.remove(table)).collect();
        state.schemas.remove(name);
        state.version += 1;
        Ok(dropped)
    }

    async fn tables(&self) -> Result<Vec<TableDef>> {
        Ok(self.state("list tables")?.tables.values().cloned().collect())
    }

    async fn create_table(&self, table: &TableDef, extents: &[Extent], replace: bool) -> Result<Option<TableDef>> {
        let mut state = self.state("create a table")?;
        state.require_schema(&table.name.schema)?;
        if !replace && state.tables.contains_key(&table.name) {
            return Err(table_exists(&table.name));
        }
        let replaced = state.remove(&table.name);
        state.tables.insert(table.name.clone(), table.clone());
        state.extents.insert(table.id, extents.to_vec());
        state.version += 1;
        Ok(replaced)
    }

    async fn drop_table(&self, id: TableId) -> Result<()> {
        let mut state = self.state("drop a table")?;
        let name = state.name_of(id)?;
        state.remove(&name);
        state.version += 1;
        Ok(())
    }

    async fn rename_table(&self, id: TableId, name: &TableName) -> Result<()> {
        let mut state = self.state("rename a table")?;
        let old = state.name_of(id)?;
        state.require_schema(&name.schema)?;
        if old != *name && state.tables.contains_key(name) {
            return Err(table_exists(name));
        }
        if let Some(mut table) = state.tables.remove(&old) {
            table.name = name.clone();
            state.tables.insert(name.clone(), table);
        }
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

    async fn drop_function(&self, name: &str) -> Result<()> {
        let mut state = self.state("drop a function")?;
        if state.functions.remove(name).is_none() {
            return Err(CatalogError::NotFound { what: "function", name: name.to_owned() });
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

    async fn add_cache_entries(&self, entries: &[(CacheEntry, ProgramRecord)]) -> Result<AddedEntries> {
        Ok(self.state("add cache entries")?.cache.add(entries))
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

    async fn close(&self) {
        *self.state.lock() = None;
    }
}
