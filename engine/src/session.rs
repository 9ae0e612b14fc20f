//! [`Session`]: one client; its settings, its prepared statements, its own tables.
//!
//! ```text
//!   text --parse--> statement --refuse--> pinned catalog --plan--> command carried out, or rows on their way
//! ```

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{Fingerprint, QueryId, TableName};
use nectarine_executor::exact_aggregates;
use nectarine_planner::Streams;
use nectarine_planner::reuse::{ExtentCounts, Found, Hit};
use nectarine_planner::sql::{self, ParseOptions};
use parking_lot::{Mutex, RwLock};

use crate::catalog_view::CatalogView;
use crate::engine::{Shared, options};
use crate::progress::Progress;
use crate::record::Record;
use crate::reuse::{self, ReceiptSlot, SettingsDigest};
use crate::rows::{Ending, RecordedStream};
use crate::settings::adds_exactly;
use crate::statement::{SessionTables, StatementCatalog};
use crate::{Answer, AnswerKind, Result, command, names};

use crate::names::Names;

/// One client of an engine. Cheap to clone; clones are the same client.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
}

pub(crate) struct SessionInner {
    pub(crate) shared: Arc<Shared>,
    /// Configuration and functions that statements of this session start from.
    pub(crate) state: RwLock<SessionState>,
    /// Statements behind PREPARE, by name. Planned again at each EXECUTE: what they read may have grown.
    pub(crate) prepared: Mutex<HashMap<String, DFStatement>>,
    pub(crate) tables: RwLock<Arc<SessionTables>>,
    /// Settings that this session changed.
    pub(crate) changed: Mutex<BTreeSet<String>>,
    settings: SettingsDigest,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let state = shared.template.clone();
        let inner = SessionInner {
            shared,
            state: RwLock::new(state),
            prepared: Mutex::default(),
            tables: RwLock::default(),
            changed: Mutex::default(),
            settings: SettingsDigest::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Runs one statement. Commands are done when this returns; rows of queries come as the answer is read.
    /// Dropping the future or the answer cancels the statement.
    pub async fn execute(&self, sql: &str) -> Result<Answer> {
        self.execute_observed(sql, &Progress::new()).await
    }

    /// The same, with a window on how far it is.
    pub async fn execute_observed(&self, sql: &str, progress: &Progress) -> Result<Answer> {
        progress.start();
        let record = Record::start(&self.inner.shared.log, QueryId::new(), sql, &self.user_name());
        // Boxed: the state machine of all statements together is too large for the stack of a caller.
        match Box::pin(self.run(sql, progress, &record)).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let error = names::locate(&self.inner, error, sql).await;
                record.failed(&error);
                Err(error)
            }
        }
    }

    /// What completion can offer.
    pub async fn names(&self) -> Result<Names> {
        names::all(&self.inner).await
    }

    /// Makes a table known to this session only, under a name or `schema.name`. It is not stored.
    pub fn register_table(&self, name: &str, table: Arc<dyn TableProvider>) {
        let name = self.table_name(&TableReference::from(name));
        let mut tables = self.inner.tables.write();
        let mut changed = SessionTables::clone(&tables);
        changed.insert(name, table);
        *tables = Arc::new(changed);
    }

    /// Forgets a table that was registered from code; false if there is none.
    pub(crate) fn forget_table(&self, name: &TableName) -> bool {
        let mut tables = self.inner.tables.write();
        let mut changed = SessionTables::clone(&tables);
        let found = changed.remove(name).is_some();
        if found {
            *tables = Arc::new(changed);
        }
        found
    }

    /// Whether a table was registered from code.
    pub(crate) fn has_table(&self, name: &TableName) -> bool {
        self.inner.tables.read().contains_key(name)
    }

    fn user_name(&self) -> String {
        options(self.inner.state.read().config_options()).user_name
    }

    /// Schema and name; the session's schema where none is given.
    pub(crate) fn table_name(&self, reference: &TableReference) -> TableName {
        let default = || self.inner.state.read().config_options().catalog.default_schema.clone();
        TableName::new(reference.schema().map_or_else(default, str::to_string), reference.table())
    }

    async fn run(&self, text: &str, progress: &Progress, record: &Record) -> Result<Answer> {
        let started = Instant::now();
        // First of all: whatever is purged from now on, this statement may have read.
        let (view, purges) = self.inner.shared.catalog.view_and_purges().await?;
        let statement_key = self.statement_key(text, view.version);
        if let Some(key) = statement_key
            && let Some(answer) = self.remembered(key, &view, progress, record, started).await
        {
            return Ok(answer);
        }
        // What the statement before this one left behind is there when this one looks.
        if self.inner.shared.reuse.settled().await
            && let Some(key) = statement_key
            && let Some(answer) = self.remembered(key, &view, progress, record, started).await
        {
            return Ok(answer);
        }
        let mut state = self.inner.state.read().clone();
        let Some(statement) = sql::parse(text, &ParseOptions::from(state.config_options().as_ref()))? else {
            return Ok(command::done(record, ""));
        };
        sql::append_only(&statement, text)?;
        sql::refuse_ignored(&statement, text)?;
        sql::refuse_on_scalar_functions(&statement, text, |name| state.scalar_functions().contains_key(name))?;

        for function in view.functions(&self.inner.shared.template).await {
            state.register_udf(Arc::clone(function))?;
        }
        if adds_exactly(&options(state.config_options()).float_sums)? {
            for function in exact_aggregates() {
                state.register_udaf(function)?;
            }
        }
        state.mark_start_execution();
        let catalog_name = state.config_options().catalog.default_catalog.clone();
        let tables = Arc::clone(&self.inner.tables.read());
        let new_name = command::created_name(&statement);
        let is_query = command::is_query(&statement);
        let shared = Arc::clone(&self.inner.shared);
        let catalog = StatementCatalog::new(shared, (view, purges), tables, catalog_name, new_name);
        let planning = catalog.plan_with(&mut state);
        let statement_run = command::StatementRun {
            session: self,
            text,
            catalog: &catalog,
            state: planning.state(),
            planning: &planning,
            progress,
            record,
            started,
            statement_key: statement_key.filter(|_| is_query),
            must_keep: false,
        };
        statement_run.run(statement).await
    }
}

/// Answers that need no planning.
impl Session {
    /// Names a statement by all that its answer depends on besides its tables' extents.
    fn statement_key(&self, text: &str, catalog_version: i64) -> Option<Fingerprint> {
        if !self.inner.tables.read().is_empty() {
            return None;
        }
        let settings = self.inner.settings.of(self.inner.state.read().config_options());
        reuse::statement_key(text, &settings, catalog_version)
    }

    /// The answer that the same statement had, if nothing it read has changed. Whatever goes wrong here is no error: the
    /// statement is planned.
    async fn remembered(
        &self,
        key: Fingerprint,
        view: &Arc<CatalogView>,
        progress: &Progress,
        record: &Record,
        started: Instant,
    ) -> Option<Answer> {
        let shared = &self.inner.shared;
        let known = shared.reuse.fast_path.get(&key)?;
        let catalog = StatementCatalog::new(
            Arc::clone(shared),
            // Nothing is published here.
            (Arc::clone(view), 0),
            Arc::default(),
            shared.template.config_options().catalog.default_catalog.clone(),
            None,
        );
        let looks = known.reads.iter().map(|(table, _)| catalog.extents(table));
        let extents = futures::future::try_join_all(looks).await.ok()?;
        if !known.reads.iter().zip(&extents).all(|((_, digest), extents)| reuse::extents_digest(extents) == *digest) {
            return None;
        }
        shared.reuse.refresh().await;
        let found = shared.reuse.cache.lookup(&known.root)?;
        let entry = known
            .entry
            .get_or_try_init(|| async { shared.reuse.cache.entry(&known.root).await.map(|entry| entry.map(Arc::new)) });
        let entry = entry.await.ok()?.clone()?;
        let Some(loaded) = shared.reuse.store.in_memory(&entry, &known.schema) else {
            // Dropped from memory, or published again elsewhere: planned once more, and remembered anew.
            shared.reuse.fast_path.forget(&key);
            return None;
        };
        let batches: Option<Vec<_>> = loaded
            .batches
            .iter()
            .flatten()
            .map(|batch| {
                RecordBatch::try_new_with_options(
                    Arc::clone(&known.schema),
                    batch.columns().to_vec(),
                    &RecordBatchOptions::new().with_row_count(Some(batch.num_rows())),
                )
                .ok()
            })
            .collect();
        let stream = MemoryStream::try_new(batches?, Arc::clone(&known.schema), None).ok()?;
        let found = Found { rows: found.rows, bytes: found.bytes, cost_us: found.cost_us };
        let hit = Hit { key: entry.key, program: entry.program, found, is_root: true };
        record.looked_up(vec![reuse::answered(&hit)]);
        let receipt = ReceiptSlot::default();
        let ending = Ending {
            record: record.clone(),
            progress: progress.clone(),
            // Nothing was read that could have changed meanwhile.
            verify: false,
            catalog,
            planning: None,
            plain: None,
            reuse: shared.reuse.clone(),
            hits: vec![hit],
            extents: Some(ExtentCounts { total: known.n_extents, reused: known.n_extents }),
            keeping: None,
            leader: None,
            receipt: receipt.clone(),
            planning_time: started.elapsed(),
            remember: None,
            ran: None,
        };
        if let Some(source) = known.source {
            shared.reuse.programs.count(source, entry.program);
        }
        let stream = RecordedStream::wrap(Box::pin(stream), ending);
        Some(Answer::new(record.query_id(), AnswerKind::Rows, vec![], stream).with_receipt(receipt))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
