//! [`StatementCatalog`]: what one statement sees of the catalog, pinned.
//!
//! ```text
//!   nectarine (catalog)
//!     public, ..          the user's schemas: streams, views, tables that the session registered
//!       'data/*.parquet'  a location instead of a name: a table for this statement only
//!     system              what the engine knows of itself
//!     information_schema  DataFusion's own, over the above
//! ```
//!
//! Keeps true   all scans of one table in one statement read the same extents.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, SchemaProvider, Session as DataFusionSession, TableProvider,
};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DataFusionError, Result, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_datasource::sink::DataSinkExec;
use nectarine_catalog::{Extent, TableDef, TableId, TableKind, TableName, looks_like_location};
use nectarine_executor::{Commit, ExtentSink, FileDescriber};
use nectarine_planner::{StreamTable, Streams};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::broken_view::BrokenView;
use crate::catalog_view::CatalogView;
use crate::engine::Shared;
use crate::external;
use crate::external_insert;
use crate::managed::{self, AppendCommit, Sources};
use crate::reuse::{Read, extents_digest};
use crate::system;

/// How deep views may stand on views; deeper ones go round in circles.
const VIEW_DEPTH_MAX: usize = 64;

/// After so many views that stand on each other planning goes on in a task of its own, which has a stack of its own.
const VIEWS_PER_STACK: usize = 8;

/// The extents of a table, in order.
type Extents = Arc<[Arc<Extent>]>;

/// The extents of a table, once they were asked for.
type Pinned = OnceCell<Extents>;

/// A look at the files of a table, under way.
type Look = SpawnedTask<Result<Extents>>;

/// External extents that a statement reads.
pub(crate) type PinnedExternal = Mutex<Vec<Arc<[Arc<Extent>]>>>;

/// Tables that a session made for itself from code.
pub(crate) type SessionTables = HashMap<TableName, Arc<dyn TableProvider>>;

/// One statement's view of everything.
pub(crate) struct StatementCatalog {
    pub(crate) shared: Arc<Shared>,
    pub(crate) view: Arc<CatalogView>,
    session_tables: Arc<SessionTables>,
    catalog_name: String,
    pinned: Mutex<HashMap<TableId, Arc<Pinned>>>,
    /// Looks at external tables that were begun before they are asked for.
    ahead: Mutex<HashMap<TableId, Look>>,
    /// External extents that are read, to be looked at again in the end.
    external: Arc<PinnedExternal>,
    /// What was pinned, with the tables.
    reads: Mutex<Vec<(Arc<TableDef>, Extents)>>,
    located: Mutex<BTreeMap<String, Arc<TableDef>>>,
    /// What a CREATE statement is about to make: a name, even if it looks like a location.
    new_name: Option<String>,
    /// Set while the statement is planned and run (information_schema looks tables up when it is read); cleared afterwards
    /// because the state refers back here.
    state: Mutex<Option<Arc<SessionState>>>,
    view_depth: Mutex<usize>,
}

impl StatementCatalog {
    pub(crate) fn new(
        shared: Arc<Shared>,
        view: Arc<CatalogView>,
        session_tables: Arc<SessionTables>,
        catalog_name: String,
        new_name: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            view,
            session_tables,
            catalog_name,
            pinned: Mutex::default(),
            ahead: Mutex::default(),
            external: Arc::default(),
            reads: Mutex::default(),
            located: Mutex::default(),
            new_name,
            state: Mutex::default(),
            view_depth: Mutex::default(),
        })
    }

    /// Makes `state` plan against this catalog until the last clone of the guard goes.
    pub(crate) fn plan_with(self: &Arc<Self>, state: &mut SessionState) -> Arc<Planning> {
        state.register_catalog_list(Arc::new(Catalogs(Arc::clone(self))));
        let state = Arc::new(state.clone());
        *self.state.lock() = Some(Arc::clone(&state));
        Arc::new(Planning { catalog: Arc::clone(self), state })
    }

    /// Begins to look at the files of the external tables that a plan reads, all at once and while it is optimized.
    /// Nothing is pinned by it: a table that turns out not to be read is not one that the statement depends on.
    pub(crate) fn look_ahead(&self, plan: &LogicalPlan) {
        let looked = plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some(stream) = provider.downcast_ref::<StreamTable>()
                && matches!(stream.table().kind, TableKind::External(_))
            {
                let table = stream.table();
                let is_pinned = self.pinned.lock().contains_key(&table.id);
                if !is_pinned {
                    let look = || SpawnedTask::spawn(look(Arc::clone(&self.shared), Arc::clone(table)));
                    self.ahead.lock().entry(table.id).or_insert_with(look);
                }
            }
            Ok(TreeNodeRecursion::Continue)
        });
        // Only the closure above could fail.
        debug_assert!(looked.is_ok());
    }

    /// External extents that the statement reads.
    pub(crate) fn external_extents(&self) -> Vec<Arc<[Arc<Extent>]>> {
        self.external.lock().clone()
    }

    /// Tables that the statement read, and their extents.
    pub(crate) fn reads(&self) -> Vec<Read> {
        let reads = self.reads.lock().clone();
        reads.into_iter().map(|(table, extents)| (table, extents_digest(&extents))).collect()
    }

    /// The same, for who looks at them when all scans have ended.
    pub(crate) fn sources(&self) -> Sources {
        Sources::new(Arc::clone(&self.shared), Arc::clone(&self.external))
    }

    fn state(&self) -> Result<Arc<SessionState>> {
        let state = self.state.lock().clone();
        state.ok_or_else(|| DataFusionError::Internal("a table was looked up after its statement had ended".into()))
    }

    async fn provider(self: &Arc<Self>, schema: &str, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.session_tables.get(&TableName::new(schema, name)) {
            return Ok(Some(Arc::clone(table)));
        }
        match self.view.table(schema, name) {
            Some(table) => self.provider_of(table).await.map(Some),
            None if looks_like_location(name) && self.new_name.as_deref() != Some(name) => {
                Ok(Some(self.stream_table(&self.located(name).await?)?))
            }
            None => Ok(None),
        }
    }

    pub(crate) async fn provider_of(self: &Arc<Self>, table: &Arc<TableDef>) -> Result<Arc<dyn TableProvider>> {
        match &table.kind {
            TableKind::View { query, default_schema } => self.view_table(table, query, default_schema).await,
            _ => self.stream_table(table),
        }
    }

    fn stream_table(self: &Arc<Self>, table: &Arc<TableDef>) -> Result<Arc<dyn TableProvider>> {
        let mut defaults = vec![];
        if !table.defaults.is_empty() {
            let state = self.state()?;
            let no_columns = DFSchema::empty();
            for default in &table.defaults {
                defaults.push((default.column.clone(), state.create_logical_expr(&default.sql, &no_columns)?));
            }
        }
        let streams: Arc<dyn Streams> = Arc::clone(self) as _;
        Ok(Arc::new(StreamTable::new(Arc::clone(table), streams, defaults)))
    }

    /// A view is its text, planned against what there is now.
    async fn view_table(
        self: &Arc<Self>,
        table: &TableDef,
        query: &str,
        default_schema: &str,
    ) -> Result<Arc<dyn TableProvider>> {
        let depth = {
            let mut depth = self.view_depth.lock();
            if *depth >= VIEW_DEPTH_MAX {
                return plan_err!("view \"{}\" stands on itself, or on more than {VIEW_DEPTH_MAX} others", table.name);
            }
            *depth += 1;
            *depth
        };
        let mut state = SessionState::clone(self.state()?.as_ref());
        state.config_mut().options_mut().catalog.default_schema = default_schema.to_string();
        let planned = match depth % VIEWS_PER_STACK {
            0 => {
                let query = query.to_string();
                let task = SpawnedTask::spawn(async move { Box::pin(state.create_logical_plan(&query)).await });
                task.join().await.unwrap_or_else(|error| Err(wrap(error)))
            }
            _ => Box::pin(state.create_logical_plan(query)).await,
        };
        *self.view_depth.lock() -= 1;
        match planned {
            Ok(plan) => Ok(Arc::new(ViewTable::new(plan, table.definition.clone()))),
            // Told to who reads the view, not to who lists what there is.
            Err(error) => {
                let error = error.context(format!("view \"{}\"", table.name));
                Ok(Arc::new(BrokenView::new(Arc::clone(&table.schema), table.definition.clone(), error)))
            }
        }
    }

    /// The table that a location in place of a name stands for.
    async fn located(self: &Arc<Self>, location: &str) -> Result<Arc<TableDef>> {
        if let Some(table) = self.located.lock().get(location) {
            return Ok(Arc::clone(table));
        }
        let state = self.state()?;
        let table = Arc::new(external::locate(&self.shared, &state, location).await?);
        self.located.lock().insert(location.to_string(), Arc::clone(&table));
        Ok(table)
    }
}

impl fmt::Debug for StatementCatalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatementCatalog").field("version", &self.view.version).finish_non_exhaustive()
    }
}

/// The extents of an external table now.
async fn look(shared: Arc<Shared>, table: Arc<TableDef>) -> Result<Arc<[Arc<Extent>]>> {
    let TableKind::External(source) = &table.kind else {
        return plan_err!("table \"{}\" is not external", table.name);
    };
    let config = Arc::clone(shared.template.config_options());
    let describer = FileDescriber::new(shared.object_stores.clone(), config, Arc::clone(&table));
    external::snapshot(&shared, source, &table.schema, &describer).await
}

#[async_trait]
impl Streams for StatementCatalog {
    async fn extents(&self, table: &TableDef) -> Result<Arc<[Arc<Extent>]>> {
        let cell = Arc::clone(self.pinned.lock().entry(table.id).or_default());
        let extents = cell
            .get_or_try_init(|| async {
                let extents = match &table.kind {
                    TableKind::External(_) => {
                        let ahead = self.ahead.lock().remove(&table.id);
                        match ahead {
                            Some(ahead) => ahead.join().await.unwrap_or_else(|error| Err(wrap(error)))?,
                            None => look(Arc::clone(&self.shared), Arc::new(table.clone())).await?,
                        }
                    }
                    TableKind::Managed { .. } => self.shared.catalog.extents(table.id).await.map_err(wrap)?,
                    TableKind::View { .. } => return plan_err!("view \"{}\" has no extents", table.name),
                };
                self.reads.lock().push((Arc::new(table.clone()), Arc::clone(&extents)));
                Ok(extents)
            })
            .await?;
        Ok(Arc::clone(extents))
    }

    fn scans(&self, table: &TableDef, extents: &Arc<[Arc<Extent>]>) {
        if matches!(table.kind, TableKind::External(_)) {
            let mut external = self.external.lock();
            // A table is scanned twice, or its statement planned twice.
            if !external.iter().any(|known| Arc::ptr_eq(known, extents)) {
                external.push(Arc::clone(extents));
            }
        }
    }

    async fn insert(
        &self,
        state: &dyn DataFusionSession,
        table: &Arc<TableDef>,
        input: Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match &table.kind {
            TableKind::Managed { format } => {
                let commit: Arc<dyn Commit> =
                    Arc::new(AppendCommit::new(Arc::clone(&self.shared), Arc::clone(table), self.sources()));
                let target = managed::target(&self.shared, table.id, *format, &table.schema, state.config_options())?;
                let sink = ExtentSink::new(table.name.to_string(), target, commit);
                Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
            }
            TableKind::External(source) => {
                external_insert::plan(&self.shared, state, source, table, input, self.sources()).await
            }
            TableKind::View { .. } => plan_err!("cannot insert into view \"{}\"", table.name),
        }
    }
}

/// Makes one partition of many, where a sink needs it after all rules have run.
pub(crate) fn coalesced(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.properties().output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

pub(crate) fn wrap(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Lets the statement's state go when the statement has ended: the two refer to each other.
pub(crate) struct Planning {
    catalog: Arc<StatementCatalog>,
    state: Arc<SessionState>,
}

impl Planning {
    pub(crate) fn state(&self) -> &Arc<SessionState> {
        &self.state
    }
}

impl Drop for Planning {
    fn drop(&mut self) {
        *self.catalog.state.lock() = None;
    }
}

/// The list of the one catalog.
#[derive(Debug)]
struct Catalogs(Arc<StatementCatalog>);

impl CatalogProviderList for Catalogs {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        vec![self.0.catalog_name.clone()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == self.0.catalog_name).then(|| Arc::new(Catalog(Arc::clone(&self.0))) as _)
    }
}

/// The one catalog.
#[derive(Debug)]
struct Catalog(Arc<StatementCatalog>);

impl CatalogProvider for Catalog {
    fn schema_names(&self) -> Vec<String> {
        let mut names = self.0.view.schemas.clone();
        names.push(system::SCHEMA.to_string());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == system::SCHEMA {
            return Some(Arc::new(system::SystemSchema::new(Arc::clone(&self.0))));
        }
        let is_known = self.0.view.has_schema(name) || self.0.session_tables.keys().any(|table| table.schema == name);
        is_known.then(|| Arc::new(UserSchema { catalog: Arc::clone(&self.0), name: name.to_string() }) as _)
    }
}

/// One of the user's schemas.
#[derive(Debug)]
struct UserSchema {
    catalog: Arc<StatementCatalog>,
    name: String,
}

#[async_trait]
impl SchemaProvider for UserSchema {
    fn table_names(&self) -> Vec<String> {
        let stored = self.catalog.view.tables.keys();
        let names = stored.chain(self.catalog.session_tables.keys()).filter(|table| table.schema == self.name);
        let mut names: Vec<String> = names.map(|table| table.name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.catalog.provider(&self.name, name).await
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let table = TableName::new(&self.name, name);
        if let Some(table) = self.catalog.session_tables.get(&table) {
            return Ok(Some(table.table_type()));
        }
        Ok(self.catalog.view.tables.get(&table).map(|table| match table.kind {
            TableKind::View { .. } => TableType::View,
            _ => TableType::Base,
        }))
    }

    fn table_exist(&self, name: &str) -> bool {
        let table = TableName::new(&self.name, name);
        self.catalog.session_tables.contains_key(&table) || self.catalog.view.tables.contains_key(&table)
    }
}
