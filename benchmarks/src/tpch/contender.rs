//! [`Contender`]: one of the two engines, ready to run the queries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use nectarine_engine::{Engine, ExtentCounts, Session, Settings};
use tempfile::TempDir;

use super::data::{Table, TpchData};

/// An engine that knows the eight tables.
pub(crate) enum Contender {
    Stock(SessionContext),
    Nectarine {
        session: Session,
        engine: Engine,
        keeping: Keeping,
        /// Removed at the end.
        _home: TempDir,
    },
}

/// What Nectarine does with results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Computes, and keeps nothing.
    Off,
    /// Keeps results, and forgets everything before each run.
    Cold,
    /// Keeps and reuses them.
    On,
}

/// One run of one query.
pub(crate) struct Run {
    /// From the text to a plan that can be run.
    pub(crate) planning: Duration,
    /// From the text to the last row.
    pub(crate) total: Duration,
    pub(crate) rows: Vec<RecordBatch>,
    /// How many extents it is about; of Nectarine with reuse only.
    pub(crate) extents: Option<ExtentCounts>,
}

impl Contender {
    /// DataFusion as it comes, over listing tables. Only the memory pool is not its default but the kind that Nectarine
    /// uses: both account for memory in the same way.
    pub(crate) async fn stock(data: &TpchData, partitions: usize, memory_bytes: u64) -> Result<Self> {
        let config = SessionConfig::new().with_target_partitions(partitions);
        let pool = FairSpillPool::new(memory_bytes as usize);
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::new(pool)).build_arc()?;
        let context = SessionContext::new_with_config_rt(config, runtime);
        for table in Table::ALL {
            context.register_parquet(table.name(), data.location(table), ParquetReadOptions::default()).await?;
        }
        Ok(Self::Stock(context))
    }

    /// Nectarine on a new home, with external tables.
    pub(crate) async fn nectarine(
        data: &TpchData,
        partitions: usize,
        memory_bytes: u64,
        keeping: Keeping,
    ) -> Result<Self> {
        let settings = Settings::default()
            .with("datafusion.execution.target_partitions", &partitions.to_string())?
            .with("nectarine.memory_limit", &memory_bytes.to_string())?
            .with("nectarine.reuse", if keeping == Keeping::Off { "off" } else { "on" })?;
        let home = TempDir::new()?;
        let engine = Engine::builder().home(home.path()).settings(settings).open().await?;
        let session = engine.session();
        for table in Table::ALL {
            let location = data.location(table).replace('\'', "''");
            let sql = format!("CREATE EXTERNAL TABLE {} STORED AS PARQUET LOCATION '{location}'", table.name());
            session.execute(&sql).await?.collect().await?;
        }
        Ok(Self::Nectarine { session, engine, keeping, _home: home })
    }

    /// Forgets what was kept, if anything was.
    pub(crate) async fn forget(&self) {
        if let Self::Nectarine { engine, .. } = self {
            engine.cache().clear().await;
        }
    }

    pub(crate) async fn run(&self, sql: &str) -> Result<Run> {
        if let Self::Nectarine { keeping: Keeping::Cold, .. } = self {
            self.forget().await;
        }
        let started = Instant::now();
        let mut extents = None;
        let (planning, rows) = match self {
            Self::Stock(context) => {
                let frame = context.sql(sql).await?;
                let task = Arc::new(frame.task_ctx());
                let plan = frame.create_physical_plan().await?;
                let planning = started.elapsed();
                (planning, collect(plan, task).await?)
            }
            Self::Nectarine { session, .. } => {
                let answer = session.execute(sql).await?;
                let planning = started.elapsed();
                let receipt = answer.receipt();
                let rows = answer.collect().await?;
                extents = receipt().extents;
                (planning, rows)
            }
        };
        Ok(Run { planning, total: started.elapsed(), rows, extents })
    }

    pub(crate) async fn shutdown(&self) {
        if let Self::Nectarine { engine, .. } = self {
            engine.shutdown().await;
        }
    }
}
