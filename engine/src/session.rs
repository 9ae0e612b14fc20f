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
use futures::future::BoxFuture;
use nectarine_catalog::{Fingerprint, QueryId, TableName};
use nectarine_executor::{Interrupt, exact_aggregates};
use nectarine_planner::Streams;
use nectarine_planner::reuse::{ExtentCounts, Found, Hit};
use nectarine_planner::sql::{self, ParseOptions, Statement};
use parking_lot::{Mutex, RwLock};

use crate::access::{self, Rights, Who};
use crate::catalog_view::CatalogView;
use crate::compute::Computing;
use crate::deadline::Deadline;
use crate::describe::Described;
use crate::discretion::{Discretion, Places};
use crate::engine::{Shared, options};
use crate::job::Step;
use crate::progress::Progress;
use crate::record::Record;
use crate::reuse::{self, ReceiptSlot, SettingsDigest};
use crate::rows::{Ending, RecordedStream};
use crate::settings::adds_exactly;
use crate::shielded::Shielded;
use crate::statement::{Planning, SessionTables, StatementCatalog, read_as_kept, reads_as_kept};
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Pipes, Result, command, describe, names};

use crate::names::Names;

/// One client of an engine. Cheap to clone; clones are the same client.
#[derive(Clone)]
pub struct Session {
    pub(crate) inner: Arc<SessionInner>,
}

pub(crate) struct SessionInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) who: Who,
    /// Configuration and functions that statements of this session start from.
    pub(crate) state: RwLock<Shielded<SessionState>>,
    /// Statements behind PREPARE, by name. Planned again at each EXECUTE: what they read may have grown.
    pub(crate) prepared: Mutex<HashMap<String, DFStatement>>,
    pub(crate) tables: RwLock<Arc<SessionTables>>,
    /// Settings that this session changed.
    pub(crate) changed: Mutex<BTreeSet<String>>,
    settings: SettingsDigest,
    /// The statement of a job that is being run, if this is a job's session: what it does to tables ends it.
    pub(crate) step: Mutex<Option<Arc<Step>>>,
}

impl Session {
    pub(crate) fn new(shared: Arc<Shared>, who: Who) -> Self {
        let state = shared.template.clone();
        let inner = SessionInner {
            shared,
            who,
            state: RwLock::new(Shielded(state)),
            prepared: Mutex::default(),
            tables: RwLock::default(),
            changed: Mutex::default(),
            settings: SettingsDigest::default(),
            step: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Another session with the same settings, and tables of its own.
    pub(crate) fn fork(&self) -> Self {
        let inner = SessionInner {
            shared: Arc::clone(&self.inner.shared),
            who: self.inner.who.clone(),
            state: RwLock::new(Shielded(self.inner.state.read().clone())),
            prepared: Mutex::default(),
            tables: RwLock::default(),
            changed: Mutex::new(self.inner.changed.lock().clone()),
            settings: SettingsDigest::default(),
            step: Mutex::default(),
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
        self.execute_with(sql, None, progress).await
    }

    /// The same, with values for the statement's placeholders: a column each. Several rows are for `INSERT .. VALUES` only,
    /// which inserts them all at once.
    pub async fn execute_with(&self, sql: &str, values: Option<&RecordBatch>, progress: &Progress) -> Result<Answer> {
        self.execute_in(sql, values, &Pipes::default(), progress).await
    }

    /// The same for a client that has a standard input or output for COPY. Rows that go there have gone when this returns.
    pub async fn execute_piped(&self, sql: &str, pipes: &Pipes, progress: &Progress) -> Result<Answer> {
        self.execute_in(sql, None, pipes, progress).await
    }

    async fn execute_in(
        &self,
        sql: &str,
        values: Option<&RecordBatch>,
        pipes: &Pipes,
        progress: &Progress,
    ) -> Result<Answer> {
        progress.start();
        let login = match &self.inner.who {
            Who::Owner => None,
            Who::User(name) => Some(name.as_ref()),
        };
        let record = Record::start(&self.inner.shared.log, QueryId::new(), sql, &self.user_name(), login);
        let deadline = Deadline::from_now(options(self.inner.state.read().config_options()).statement_timeout);
        // Boxed: the state machine of all statements together is too large for the stack of a caller, and its type for the
        // compiler of one.
        let work: BoxFuture<'_, Result<Answer>> = Box::pin(self.answer(sql, values, pipes, progress, &record));
        let outcome = match deadline {
            None => work.await,
            Some(deadline) => deadline.keep(work).await,
        };
        match outcome {
            Ok(answer) => Ok(answer.until(deadline)),
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
        match &self.inner.who {
            Who::Owner => options(self.inner.state.read().config_options()).user_name,
            Who::User(name) => name.to_string(),
        }
    }

    /// What there is and what is allowed to whom, as of a moment ago.
    pub(crate) async fn recent_view(&self) -> Result<Arc<CatalogView>> {
        Ok(self.inner.shared.catalog.recent_view().await?)
    }

    /// Fails unless a statement whose rows are on their way could be asked for now.
    pub(crate) async fn check_again(&self, sql: &str) -> Result<()> {
        let (view, purges) = self.inner.shared.catalog.view_and_purges().await?;
        let interrupt = Arc::<Interrupt>::default();
        let (session, text, stopped) = (self.clone(), sql.to_string(), Arc::clone(&interrupt));
        let checked: BoxFuture<'static, Result<()>> = Box::pin(async move {
            match session.open(&text, view, purges, stopped).await? {
                Some(opened) => describe::check_again(&session, opened).await,
                None => Ok(()),
            }
        });
        Computing::start(checked, interrupt).await
    }

    /// What may be done here, as of now.
    pub(crate) async fn rights(&self) -> Result<Rights> {
        let view = self.inner.shared.catalog.view().await?;
        Ok(Rights::new(self.inner.who.clone(), Arc::clone(&view.access)))
    }

    /// Schema and name; the session's schema where none is given.
    pub(crate) fn table_name(&self, reference: &TableReference) -> TableName {
        let default = || self.inner.state.read().config_options().catalog.default_schema.clone();
        TableName::new(reference.schema().map_or_else(default, str::to_string), reference.table())
    }

    /// What a statement gives back and what it asks for, without running it.
    pub(crate) async fn describe(&self, sql: &str) -> Result<Described> {
        let (view, purges) = self.inner.shared.catalog.view_and_purges().await?;
        if let Some(key) = self.statement_key(sql, view.version)
            && let Some(known) = self.inner.shared.reuse.fast_path.get(&key)
        {
            return Ok(Described::rows(Arc::clone(&known.schema)));
        }
        let interrupt = Arc::<Interrupt>::default();
        let (session, text, stopped) = (self.clone(), sql.to_string(), Arc::clone(&interrupt));
        let described: BoxFuture<'static, Result<Described>> = Box::pin(async move {
            match session.open(&text, view, purges, stopped).await? {
                Some(opened) => {
                    let catalog = Arc::clone(&opened.catalog);
                    let described = describe::describe(&session, opened).await;
                    described.map_err(|error| Places::hide(&catalog, error))
                }
                None => Ok(Described::default()),
            }
        });
        match Computing::start(described, interrupt).await {
            Ok(described) => Ok(described),
            Err(error) => Err(names::locate(&self.inner, error, sql).await),
        }
    }

    /// From memory, if the same was asked before; otherwise by threads that compute.
    async fn answer(
        &self,
        text: &str,
        values: Option<&RecordBatch>,
        pipes: &Pipes,
        progress: &Progress,
        record: &Record,
    ) -> Result<Answer> {
        let started = Instant::now();
        // First of all: whatever is purged from now on, this statement may have read.
        let (view, purges) = self.inner.shared.catalog.view_and_purges().await?;
        let statement_key = if values.is_some() { None } else { self.statement_key(text, view.version) };
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
        let interrupt = Arc::<Interrupt>::default();
        let (session, text, values, stopped) =
            (self.clone(), text.to_string(), values.cloned(), Arc::clone(&interrupt));
        let (pipes, progress, record) = (pipes.clone(), progress.clone(), record.clone());
        let work: BoxFuture<'static, Result<Answer>> = Box::pin(async move {
            let version = view.version;
            let Some(opened) = session.open(&text, view, purges, stopped).await? else {
                return Ok(command::done(&record, ""));
            };
            let Opened { statement, catalog, planning, settings } = opened;
            // Somebody may have changed the session since it was looked for: what it is planned with is what it is known by.
            let planned_as = settings.and_then(|settings| session.named(&text, &settings, version));
            let statement_key = statement_key.filter(|key| planned_as == Some(*key));
            let statement_run = command::StatementRun {
                session: &session,
                text: &text,
                not_null: None,
                values: values.as_ref(),
                pipes: &pipes,
                catalog: &catalog,
                state: planning.state(),
                planning: &planning,
                progress: &progress,
                record: &record,
                started,
                statement_key: statement_key.filter(|_| command::is_query(&statement)),
                must_keep: false,
            };
            statement_run.run(statement).await.map_err(|error| Places::hide(&catalog, error))
        });
        Ok(Computing::start(work, Arc::clone(&interrupt)).await?.computed(interrupt))
    }

    async fn open(
        &self,
        text: &str,
        view: Arc<CatalogView>,
        purges: i64,
        interrupt: Arc<Interrupt>,
    ) -> Result<Option<Opened>> {
        let rights = Rights::new(self.inner.who.clone(), Arc::clone(&view.access));
        rights.check_user()?;
        let mut state = self.inner.state.read().clone();
        let settings = self.inner.settings.of(state.config_options());
        state.config_mut().set_extension(interrupt);
        let Some(statement) = sql::parse(text, &ParseOptions::from(state.config_options().as_ref()))? else {
            return Ok(None);
        };
        access::check_statement(&rights, &statement)?;
        if keeps_text(&statement) && !reads_as_kept(&state, &self.inner.shared.template) {
            read_as_kept(&mut state, &self.inner.shared.template);
            check_same_meaning(text, &statement, &state)?;
        }
        if !rights.is_admin() {
            Discretion::put_into(&mut state);
        }
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
        let settings = tables.is_empty().then_some(settings);
        let new_name = command::created_name(&statement);
        let shared = Arc::clone(&self.inner.shared);
        let catalog = StatementCatalog::new(shared, rights, (view, purges), tables, catalog_name, new_name);
        if let Some(step) = self.inner.step.lock().as_ref() {
            catalog.ends(step);
        }
        let planning = catalog.plan_with(&mut state);
        Ok(Some(Opened { statement, catalog, planning, settings }))
    }
}

/// A statement that was read, with what it takes to plan it.
pub(crate) struct Opened {
    pub(crate) statement: Statement,
    pub(crate) catalog: Arc<StatementCatalog>,
    pub(crate) planning: Arc<Planning>,
    /// The digest of the settings that it is planned with, unless it may read tables that only its session has.
    settings: Option<Fingerprint>,
}

/// Whether a statement's text is kept, to be read again for others.
fn keeps_text(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::CreateView(_) | Statement::CreateDerived(_) | Statement::CreateFunction(_) | Statement::Report(_)
    )
}

/// Fails if a text that is kept is another statement to those who read it later, which is what `state` does.
fn check_same_meaning(text: &str, statement: &Statement, state: &SessionState) -> Result<()> {
    match sql::parse(text, &ParseOptions::from(state.config_options().as_ref())) {
        Ok(Some(again)) if again == *statement => Ok(()),
        _ => {
            let message = "what is kept is read with the settings of the engine, and this is another statement then";
            let dialect = state.config_options().sql_parser.dialect;
            Err(EngineError::new(ErrorKind::Sql, message)
                .with_detail(format!("the dialect of the engine is \"{dialect}\""))
                .with_hint("RESET datafusion.sql_parser.dialect, and write it as that dialect has it"))
        }
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
        self.named(text, &settings, catalog_version)
    }

    fn named(&self, text: &str, settings: &Fingerprint, catalog_version: i64) -> Option<Fingerprint> {
        reuse::statement_key(text, settings, catalog_version, &self.inner.who)
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
            // Nothing is looked up by name here: the key says who may have this answer.
            Rights::new(self.inner.who.clone(), Arc::clone(&view.access)),
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
        let looking = record.part("look-up");
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
        drop(looking);
        record.found();
        Some(Answer::new(record.query_id(), AnswerKind::Rows, vec![], stream).with_receipt(receipt))
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
