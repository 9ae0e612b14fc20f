//! Nectarine as the database behind a script.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::catalog::CatalogProvider;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_sqllogictest::{
    DFColumnType, DFSqlLogicTestError, convert_batches, convert_schema_to_types, is_spark_path,
};
use nectarine_engine::{AnswerKind, Engine, EngineError, Session, Settings};
use sqllogictest::{AsyncDB, DBOutput};

/// Scripts that bound the memory so that a statement spills. A session of ours bounds its statements, not the runtime of all.
const SPILL: &str = "_spill";
const STOCK_MEMORY: &str = "datafusion.runtime.memory_limit";
const OUR_MEMORY: &str = "nectarine.query_memory";

/// One session on a home of its own.
pub(super) struct Nectarine {
    pub(super) session: Session,
    /// Kept open as long as the session runs.
    pub(super) engine: Engine,
    path: PathBuf,
}

impl Nectarine {
    /// An engine with the functions and tables that the script's own set-up registers in `reference`.
    ///
    /// Without a home everything is kept in memory.
    pub(super) async fn open(
        path: &Path,
        reference: &SessionContext,
        home: Option<&Path>,
    ) -> Result<Self, EngineError> {
        let stock = reference.state();
        let extend = move |builder: SessionStateBuilder| {
            // Two functions may share a name or an alias: those that own all of theirs come last.
            let mut scalar: Vec<_> = stock.scalar_functions().values().cloned().collect();
            scalar.sort_by_key(|f| {
                let owns = |name: &str| stock.scalar_functions().get(name).is_some_and(|named| Arc::ptr_eq(named, f));
                owns(f.name()) && f.aliases().iter().all(|alias| owns(alias))
            });
            let mut aggregate: Vec<_> = stock.aggregate_functions().values().cloned().collect();
            aggregate
                .sort_by_key(|f| stock.aggregate_functions().get(f.name()).is_some_and(|named| Arc::ptr_eq(named, f)));
            let mut window: Vec<_> = stock.window_functions().values().cloned().collect();
            window.sort_by_key(|f| {
                let owns = |name: &str| stock.window_functions().get(name).is_some_and(|named| Arc::ptr_eq(named, f));
                owns(f.name()) && f.aliases().iter().all(|alias| owns(alias))
            });
            builder
                .with_scalar_functions(scalar)
                .with_aggregate_functions(aggregate)
                .with_window_functions(window)
                .with_expr_planners(stock.expr_planners().to_vec())
        };
        // What the scripts assume, and what plans depend on.
        let mut settings = Settings::default()
            .with("datafusion.execution.target_partitions", "4")?
            .with("nectarine.memory_limit", "4GB")?;
        if is_spark_path(path) {
            settings = settings.with("datafusion.sql_parser.dialect", "Spark")?;
        }
        let builder = match home {
            Some(home) => Engine::builder().home(home),
            None => Engine::builder().in_memory(),
        };
        let engine = builder.settings(settings).catalog_name("datafusion").extend(extend).open().await?;
        let session = engine.session();
        register_tables(&session, reference).await;
        Ok(Self { session, engine, path: path.to_path_buf() })
    }
}

/// Copies tables that the script's set-up made in code.
async fn register_tables(session: &Session, reference: &SessionContext) {
    let Some(catalog) = reference.catalog("datafusion") else { return };
    for schema_name in catalog.schema_names() {
        let Some(schema) = CatalogProvider::schema(catalog.as_ref(), &schema_name) else { continue };
        for table_name in schema.table_names() {
            if let Ok(Some(table)) = schema.table(&table_name).await {
                session.register_table(&format!("\"{schema_name}\".\"{table_name}\""), table);
            }
        }
    }
}

#[async_trait]
impl AsyncDB for Nectarine {
    type Error = DFSqlLogicTestError;
    type ColumnType = DFColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DFColumnType>, DFSqlLogicTestError> {
        let other = |error: EngineError| DFSqlLogicTestError::Other(format!("{error}"));
        let sql = match self.path.to_string_lossy().contains(SPILL) {
            true => sql.replace(STOCK_MEMORY, OUR_MEMORY),
            false => sql.to_owned(),
        };
        let answer = self.session.execute(&sql).await.map_err(other)?;
        let is_command = matches!(answer.kind(), AnswerKind::Command { .. });
        let schema = answer.schema();
        let batches = answer.collect().await.map_err(other)?;
        if is_command {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = convert_schema_to_types(schema.fields());
        let rows = convert_batches(&schema, batches, is_spark_path(&self.path))?;
        match rows.is_empty() && types.is_empty() {
            true => Ok(DBOutput::StatementComplete(0)),
            false => Ok(DBOutput::Rows { types, rows }),
        }
    }

    fn engine_name(&self) -> &str {
        "Nectarine"
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn shutdown(&mut self) {}
}
