//! [`Session`]: one client; its settings, its prepared statements, its own tables.
//!
//! ```text
//!   text --parse--> statement --refuse--> pinned catalog --plan--> command carried out, or rows on their way
//! ```

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::execution::context::SessionState;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{QueryId, TableName};
use nectarine_planner::sql::{self, ParseOptions};
use parking_lot::{Mutex, RwLock};

use crate::engine::{Shared, options};
use crate::progress::Progress;
use crate::record::Record;
use crate::statement::{SessionTables, StatementCatalog};
use crate::{Answer, Result, command, names};

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
        let mut state = self.inner.state.read().clone();
        let Some(statement) = sql::parse(text, &ParseOptions::from(state.config_options().as_ref()))? else {
            return Ok(command::done(record, ""));
        };
        sql::append_only(&statement, text)?;
        sql::refuse_ignored(&statement, text)?;
        sql::refuse_on_scalar_functions(&statement, text, |name| state.scalar_functions().contains_key(name))?;

        let view = self.inner.shared.catalog.view().await?;
        for function in view.functions(&self.inner.shared.template).await {
            datafusion::execution::FunctionRegistry::register_udf(&mut state, Arc::clone(function))?;
        }
        state.mark_start_execution();
        let catalog_name = state.config_options().catalog.default_catalog.clone();
        let tables = Arc::clone(&self.inner.tables.read());
        let new_name = command::created_name(&statement);
        let catalog = StatementCatalog::new(Arc::clone(&self.inner.shared), view, tables, catalog_name, new_name);
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
        };
        statement_run.run(statement).await
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
