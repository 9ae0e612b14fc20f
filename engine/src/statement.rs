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

mod schemas;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::catalog::view::ViewTable;
use datafusion::catalog::{Session as DataFusionSession, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, DataFusionError, Result, plan_err};
use datafusion::datasource::source_as_provider;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_datasource::sink::DataSinkExec;
use nectarine_catalog::{Extent, Fingerprint, Privilege, TableDef, TableId, TableKind, TableName, looks_like_location};
use nectarine_executor::{Commit, ExtentSink, FileDescriber};
use nectarine_planner::{BoundedPlans, StreamTable, Streams, sql};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::access::{Rights, StreamsFor};
use crate::broken_view::BrokenView;
use crate::catalog_view::CatalogView;
use crate::derived::FrozenScan;
use crate::engine::Shared;
use crate::external;
use crate::external_insert;
use crate::job::Step;
use crate::managed::{self, AppendCommit, Sources};
use crate::named::NamedTable;
use crate::reuse::{Read, extents_digest};
use crate::shielded::Shielded;
use crate::show;

use self::schemas::Catalogs;

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
    /// What the statement may do.
    pub(crate) rights: Rights,
    pub(crate) view: Arc<CatalogView>,
    /// How many purges there had been when the statement began: what it makes is published only if there was none since.
    pub(crate) purges: i64,
    /// What is stored, whatever `view` shows of it: another than that in the catalog of a derived table.
    pub(crate) stored: Arc<CatalogView>,
    session_tables: Arc<SessionTables>,
    catalog_name: String,
    pinned: Mutex<HashMap<TableId, Arc<Pinned>>>,
    /// Looks at external tables that were begun before they are asked for.
    ahead: Mutex<HashMap<TableId, Look>>,
    /// External extents that are read, to be looked at again in the end.
    external: Arc<PinnedExternal>,
    /// The derived table whose names these are.
    frozen_for: Option<TableName>,
    /// What derived tables read of streams, to be looked for if it is needed.
    frozen_scans: Arc<Mutex<Vec<FrozenScan>>>,
    /// What was pinned, with the tables.
    reads: Mutex<Vec<(Arc<TableDef>, Extents)>>,
    /// Views that were planned.
    views: Mutex<BTreeMap<TableName, String>>,
    /// Only these extents of some tables, by name.
    only: Mutex<HashMap<TableName, HashSet<Fingerprint>>>,
    located: Mutex<BTreeMap<String, Arc<TableDef>>>,
    /// What names stood for, in views that it reads as well.
    resolved: Mutex<BTreeMap<TableName, Arc<TableDef>>>,
    /// What a CREATE statement is about to make: a name, even if it looks like a location.
    new_name: Option<String>,
    /// Set while the statement is planned and run (information_schema looks tables up when it is read); cleared afterwards
    /// because the state refers back here.
    state: Mutex<Option<Shielded<Arc<SessionState>>>>,
    view_depth: Mutex<usize>,
    /// The statement of a job that this is: what it does to tables ends it in the same transaction.
    step: OnceLock<Arc<Step>>,
}

impl StatementCatalog {
    pub(crate) fn new(
        shared: Arc<Shared>,
        rights: Rights,
        (view, purges): (Arc<CatalogView>, i64),
        session_tables: Arc<SessionTables>,
        catalog_name: String,
        new_name: Option<String>,
    ) -> Arc<Self> {
        Arc::new(Self {
            shared,
            rights,
            stored: Arc::clone(&view),
            view,
            purges,
            session_tables,
            catalog_name,
            pinned: Mutex::default(),
            ahead: Mutex::default(),
            external: Arc::default(),
            frozen_for: None,
            frozen_scans: Arc::default(),
            reads: Mutex::default(),
            views: Mutex::default(),
            only: Mutex::default(),
            located: Mutex::default(),
            resolved: Mutex::default(),
            new_name,
            state: Mutex::default(),
            view_depth: Mutex::default(),
            step: OnceLock::new(),
        })
    }

    /// The catalog of a derived table: what its names stood for, and the extents that there were.
    pub(crate) fn frozen(&self, name: &TableName, view: CatalogView, extents: HashMap<TableId, Extents>) -> Arc<Self> {
        let pinned = extents.into_iter().map(|(id, list)| (id, Arc::new(Pinned::new_with(Some(list)))));
        Arc::new(Self {
            shared: Arc::clone(&self.shared),
            // Its rows are those that whoever made it could read then, as in any table that was filled with them.
            rights: Rights::everything(),
            view: Arc::new(view),
            purges: self.purges,
            stored: Arc::clone(&self.stored),
            session_tables: Arc::default(),
            catalog_name: self.catalog_name.clone(),
            pinned: Mutex::new(pinned.collect()),
            ahead: Mutex::default(),
            external: Arc::clone(&self.external),
            frozen_for: Some(name.clone()),
            frozen_scans: Arc::clone(&self.frozen_scans),
            reads: Mutex::default(),
            views: Mutex::default(),
            only: Mutex::default(),
            located: Mutex::default(),
            resolved: Mutex::default(),
            new_name: None,
            state: Mutex::default(),
            view_depth: Mutex::new(*self.view_depth.lock()),
            step: OnceLock::new(),
        })
    }

    /// Makes this a statement of a job.
    pub(crate) fn ends(&self, step: &Arc<Step>) {
        let _ = self.step.set(Arc::clone(step));
    }

    /// The statement of a job that this is.
    pub(crate) fn step(&self) -> Option<Arc<Step>> {
        self.step.get().cloned()
    }

    /// What derived tables would read, since this was last asked.
    pub(crate) fn take_frozen_scans(&self) -> Vec<FrozenScan> {
        std::mem::take(&mut self.frozen_scans.lock())
    }

    /// Extents that are looked at again in the end.
    pub(crate) fn looks_again_at(&self, extents: Extents) {
        self.external.lock().push(extents);
    }

    /// Makes `state` plan against this catalog until the last clone of the guard goes.
    pub(crate) fn plan_with(self: &Arc<Self>, state: &mut SessionState) -> Arc<Planning> {
        let (catalog, rights) = (Arc::clone(self), self.rights.clone());
        state.register_catalog_list(Arc::new(Catalogs { catalog, rights }));
        let state = Arc::new(state.clone());
        *self.state.lock() = Some(Shielded(Arc::clone(&state)));
        Arc::new(Planning { catalog: Arc::clone(self), state: Shielded(state) })
    }

    /// Begins to look at the files of the external tables that a plan reads, all at once and while it is optimized.
    /// Nothing is pinned by it: a table that turns out not to be read is not one that the statement depends on.
    pub(crate) async fn look_ahead(&self, plan: &LogicalPlan) {
        self.begin_looks(plan);
        // No other thread takes the task that was spawned last: it begins when this one lets go, and that would be when all else
        // is planned.
        if !self.ahead.lock().is_empty() {
            tokio::task::yield_now().await;
        }
    }

    fn begin_looks(&self, plan: &LogicalPlan) {
        let looked = plan.apply_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
            let Ok(provider) = source_as_provider(&scan.source) else { return Ok(TreeNodeRecursion::Continue) };
            if let Some(named) = provider.downcast_ref::<NamedTable>() {
                self.begin_looks(named.query());
            }
            if let Some(stream) = provider.downcast_ref::<StreamTable>()
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

    /// The table of a name, and how many of its extents the statement read, if it did.
    pub(crate) fn read_of(&self, name: &TableName) -> Option<(TableId, usize)> {
        let reads = self.reads.lock();
        let (table, extents) = reads.iter().find(|(table, _)| table.name == *name)?;
        // External files are looked at by themselves.
        table.kind.own_files().map(|_| (table.id, extents.len()))
    }

    /// Tables that the statement read.
    pub(crate) fn tables_read(&self) -> Vec<Arc<TableDef>> {
        self.reads.lock().iter().map(|(table, _)| Arc::clone(table)).collect()
    }

    /// Extents of the tables that the statement read.
    pub(crate) fn extents_read(&self) -> Vec<Arc<[Arc<Extent>]>> {
        self.reads.lock().iter().map(|(_, extents)| Arc::clone(extents)).collect()
    }

    /// Views that the statement read, with their queries.
    pub(crate) fn views_read(&self) -> BTreeMap<TableName, String> {
        self.views.lock().clone()
    }

    /// Lets the statement see only these extents of some tables, as if the others were not there.
    pub(crate) fn restrict(&self, only: HashMap<TableName, HashSet<Fingerprint>>) {
        *self.only.lock() = only;
    }

    /// The same, for who looks at them when all scans have ended.
    pub(crate) fn sources(&self) -> Sources {
        Sources::new(Arc::clone(&self.shared), Arc::clone(&self.external))
    }

    pub(crate) fn session_state(&self) -> Result<Arc<SessionState>> {
        let state = self.state.lock().as_ref().map(|state| Arc::clone(state));
        state.ok_or_else(|| DataFusionError::Internal("a table was looked up after its statement had ended".into()))
    }

    async fn provider(
        self: &Arc<Self>,
        schema: &str,
        name: &str,
        rights: &Rights,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
        if let Some(table) = self.session_tables.get(&TableName::new(schema, name)) {
            return Ok(Some(Arc::clone(table)));
        }
        match self.view.table(schema, name) {
            Some(table) => {
                // Before anything is planned: what cannot be seen is not described either.
                rights.check_sees(table).map_err(wrap)?;
                self.resolved.lock().insert(TableName::new(schema, name), Arc::clone(table));
                self.provider_for(table, rights).await.map(Some)
            }
            // The names of a derived table stood for something when it was made, or stand for nothing: its rights would open any file.
            None if self.frozen_for.is_some() => Ok(None),
            None if looks_like_location(name) && self.new_name.as_deref() != Some(name) => {
                rights.check_admin("read files by their location").map_err(wrap)?;
                let table = self.located(name).await?;
                self.resolved.lock().insert(TableName::new(schema, name), Arc::clone(&table));
                Ok(Some(self.stream_table(&table, rights)?))
            }
            None => Ok(None),
        }
    }

    /// What names in the statement, and in the views that it reads, stood for.
    pub(crate) fn resolved(&self) -> BTreeMap<TableName, Arc<TableDef>> {
        self.resolved.lock().clone()
    }

    /// A table as the statement may use it.
    pub(crate) async fn provider_of(self: &Arc<Self>, table: &Arc<TableDef>) -> Result<Arc<dyn TableProvider>> {
        self.provider_for(table, &self.rights).await
    }

    async fn provider_for(self: &Arc<Self>, table: &Arc<TableDef>, rights: &Rights) -> Result<Arc<dyn TableProvider>> {
        // What is no stream is only read; streams look for themselves whether they are read or written.
        if table.kind.own_files().is_none() && !matches!(table.kind, TableKind::External(_)) {
            rights.check(Privilege::Select, table).map_err(wrap)?;
        }
        let definition = || show::told(table, rights, self.shared.template.config_options());
        match &table.kind {
            TableKind::View { query, default_schema, .. } => {
                self.views.lock().insert(table.name.clone(), query.clone());
                Ok(match self.view_plan(query, default_schema, &rights.of_owner(table)).await? {
                    Ok((plan, _)) => Arc::new(ViewTable::new(plan, definition())),
                    Err(error) => broken(table, definition(), error),
                })
            }
            TableKind::MaterializedView(view) => {
                self.views.lock().insert(table.name.clone(), view.query.clone());
                let planned = self.view_plan(&view.query, &view.default_schema, &rights.of_owner(table)).await?;
                let named = planned.and_then(|(plan, state)| NamedTable::try_new(Arc::clone(table), plan, state));
                Ok(match named {
                    Ok(named) => Arc::new(named.told_as(definition())),
                    Err(error) => broken(table, definition(), error),
                })
            }
            TableKind::Derived(derived) if derived.pinned.is_none() => {
                Ok(match self.derived_table(table, derived).await {
                    Ok(named) => Arc::new(named.told_as(definition())),
                    Err(error) => broken(table, definition(), error),
                })
            }
            TableKind::Managed { .. } | TableKind::External(_) | TableKind::Derived(_) => {
                self.stream_table(table, rights)
            }
        }
    }

    fn stream_table(self: &Arc<Self>, table: &Arc<TableDef>, rights: &Rights) -> Result<Arc<dyn TableProvider>> {
        let mut defaults = vec![];
        if !table.defaults.is_empty() {
            let mut state = self.session_state()?;
            if !reads_as_kept(&state, &self.shared.template) {
                let mut other = SessionState::clone(&state);
                read_as_kept(&mut other, &self.shared.template);
                state = Arc::new(other);
            }
            let no_columns = DFSchema::empty();
            for default in &table.defaults {
                defaults.push((default.column.clone(), state.create_logical_expr(&default.sql, &no_columns)?));
            }
        }
        let streams: Arc<dyn Streams> = Arc::new(StreamsFor { catalog: Arc::clone(self), rights: rights.clone() });
        Ok(Arc::new(StreamTable::new(Arc::clone(table), streams, defaults)))
    }

    /// A view is its text, planned against what there is now, with the rights of who made it. What is wrong with it is told to who reads the view, not to
    /// who lists what there is.
    pub(crate) async fn view_plan(
        self: &Arc<Self>,
        query: &str,
        default_schema: &str,
        rights: &Rights,
    ) -> Result<Result<(LogicalPlan, SessionState)>> {
        let depth = {
            let mut depth = self.view_depth.lock();
            if *depth >= VIEW_DEPTH_MAX {
                return plan_err!("a view stands on itself, or on more than {VIEW_DEPTH_MAX} others");
            }
            *depth += 1;
            *depth
        };
        let mut state = SessionState::clone(self.session_state()?.as_ref());
        state.config_mut().options_mut().catalog.default_schema = default_schema.to_string();
        // A derived table brings its own way of reading, that of the moment when it was made.
        if self.frozen_for.is_none() {
            read_as_kept(&mut state, &self.shared.template);
        }
        let (catalog, rights) = (Arc::clone(self), rights.clone());
        state.register_catalog_list(Arc::new(Catalogs { catalog, rights }));
        let planned = match depth % VIEWS_PER_STACK {
            0 => {
                let (query, state) = (query.to_string(), state.clone());
                let task = SpawnedTask::spawn(async move { Box::pin(text_plan(&state, &query)).await });
                task.join().await.unwrap_or_else(|error| Err(wrap(error)))
            }
            _ => Box::pin(text_plan(&state, query)).await,
        };
        *self.view_depth.lock() -= 1;
        // Views that stand on it walk through it, each time they name it.
        let planned = planned.and_then(|plan| BoundedPlans::check(&plan).map(|()| plan));
        Ok(planned.map(|plan| (plan, state)))
    }

    /// The table that a location in place of a name stands for.
    async fn located(self: &Arc<Self>, location: &str) -> Result<Arc<TableDef>> {
        if let Some(table) = self.located.lock().get(location) {
            return Ok(Arc::clone(table));
        }
        let state = self.session_state()?;
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

fn broken(table: &TableDef, definition: Option<String>, error: DataFusionError) -> Arc<dyn TableProvider> {
    let error = error.context(format!("{} \"{}\"", table.kind.word(), table.name));
    Arc::new(BrokenView::new(Arc::clone(&table.schema), definition, error))
}

/// Whether a session reads SQL as the engine does. `template` is what sessions start from.
pub(crate) fn reads_as_kept(state: &SessionState, template: &SessionState) -> bool {
    state.config_options().sql_parser == template.config_options().sql_parser
}

/// Lets a session read SQL as the engine does: what is kept as a text says the same to everybody, whatever settings he reads his own
/// statements with. Otherwise a reader of a view would choose what its conditions mean.
pub(crate) fn read_as_kept(state: &mut SessionState, template: &SessionState) {
    if !reads_as_kept(state, template) {
        state.config_mut().options_mut().sql_parser = template.config_options().sql_parser.clone();
    }
}

/// The text of a view, read as a statement would be.
async fn text_plan(state: &SessionState, query: &str) -> Result<LogicalPlan> {
    let mut statement = state.sql_to_statement(query, &state.config_options().sql_parser.dialect)?;
    sql::rewrite_query(&mut statement);
    state.statement_to_plan(statement).await
}

/// The extents of an external table now.
pub(crate) async fn look(shared: Arc<Shared>, table: Arc<TableDef>) -> Result<Arc<[Arc<Extent>]>> {
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
                    kind if kind.own_files().is_some() => {
                        self.shared.catalog.extents(table.id, self.stored.version).await.map_err(wrap)?
                    }
                    kind => return plan_err!("{} \"{}\" has no extents", kind.word(), table.name),
                };
                let extents = match self.only.lock().get(&table.name) {
                    Some(only) => extents.iter().filter(|extent| only.contains(&extent.fingerprint)).cloned().collect(),
                    None => extents,
                };
                self.reads.lock().push((Arc::new(table.clone()), Arc::clone(&extents)));
                Ok(extents)
            })
            .await?;
        Ok(Arc::clone(extents))
    }

    fn scans(&self, table: &TableDef, extents: &Arc<[Arc<Extent>]>) {
        if let Some(derived) = &self.frozen_for
            // Its own copy is not a file that others may take away.
            && !matches!(table.kind, TableKind::Derived(_))
        {
            let (table, extents) = (Arc::new(table.clone()), Arc::clone(extents));
            self.frozen_scans.lock().push(FrozenScan { derived: derived.clone(), table, extents });
            return;
        }
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
                let commit: Arc<dyn Commit> = Arc::new(AppendCommit::new(
                    Arc::clone(&self.shared),
                    Arc::clone(table),
                    self.sources(),
                    self.step(),
                ));
                let target = managed::target(&self.shared, table.id, *format, &table.schema, state.config_options())?;
                let sink = ExtentSink::new(table.name.to_string(), target, commit);
                Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
            }
            // The job would not know whether the files came.
            TableKind::External(_) if self.step.get().is_some_and(|step| !step.is_written_down()) => {
                plan_err!("a job cannot insert into external table \"{}\" this way", table.name)
            }
            TableKind::External(source) => {
                external_insert::plan(&self.shared, state, source, table, input, self.sources()).await
            }
            kind => plan_err!("cannot insert into {} \"{}\"", kind.word(), table.name),
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
    state: Shielded<Arc<SessionState>>,
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
