//! [`Client`]: someone who asks Nectarine on a home of their own, and is told the processor time of each statement.
//!
//! Processor time is that of the whole process from before the text is parsed until a pause after the last row: planning,
//! reading, verifying, keeping and what the engine does after its answer are in it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use arrow::array::RecordBatch;
use nectarine_engine::{Engine, EngineError, Reused, Session, Settings};
use tempfile::TempDir;

use crate::machine;

/// Lets what is done after an answer end: publishing what a failed statement had finished, the query log.
const PAUSE: Duration = Duration::from_millis(60);

/// Someone with a new home.
pub(crate) struct Client {
    session: Session,
    engine: Engine,
    /// Removed at the end.
    _home: TempDir,
}

/// A statement that was run.
pub(crate) struct Asked {
    pub(crate) cpu: Duration,
    pub(crate) outcome: Result<Vec<RecordBatch>, EngineError>,
    /// What it read from the cache.
    pub(crate) reused: Reused,
    /// How many entries.
    pub(crate) n_entries: usize,
}

impl Client {
    /// On a new home.
    pub(crate) async fn open(partitions: usize) -> Result<Self> {
        let settings = Settings::default().with("datafusion.execution.target_partitions", &partitions.to_string())?;
        let home = TempDir::new()?;
        let engine = Engine::builder().home(home.path()).settings(settings).open().await?;
        Ok(Self { session: engine.session(), engine, _home: home })
    }

    /// Gives a folder of files a name. `stored` is their format with its options.
    pub(crate) async fn create_table(&self, name: &str, columns: &str, stored: &str, folder: &Path) -> Result<()> {
        let (format, options) = stored.split_once(' ').unwrap_or((stored, ""));
        let location = format!("{}/", folder.display()).replace('\'', "''");
        let sql = format!("CREATE EXTERNAL TABLE {name} {columns} STORED AS {format} LOCATION '{location}' {options}");
        self.run(&sql).await.map(drop)
    }

    /// Whether what follows reads and keeps results.
    pub(crate) async fn set_reuse(&self, on: bool) -> Result<()> {
        let mode = if on { "on" } else { "off" };
        self.run(&format!("SET nectarine.reuse = '{mode}'")).await.map(drop)
    }

    /// Runs a statement that must not fail.
    pub(crate) async fn run(&self, sql: &str) -> Result<Vec<RecordBatch>> {
        let answer = self.session.execute(sql).await.with_context(|| sql.to_string())?;
        answer.collect().await.with_context(|| sql.to_string())
    }

    /// Runs a statement to its end or its failure, and measures.
    pub(crate) async fn ask(&self, sql: &str) -> Result<Asked> {
        let before = cpu_time()?;
        let (mut reused, mut n_entries) = (Reused::None, 0);
        let outcome = match self.session.execute(sql).await {
            Ok(answer) => {
                let receipt = answer.receipt();
                let outcome = answer.collect().await;
                let receipt = receipt();
                (reused, n_entries) = (receipt.reused, receipt.entries.len());
                outcome
            }
            Err(error) => Err(error),
        };
        tokio::time::sleep(PAUSE).await;
        Ok(Asked { cpu: cpu_time()?.saturating_sub(before), outcome, reused, n_entries })
    }

    pub(crate) async fn close(self) {
        self.engine.shutdown().await;
    }
}

fn cpu_time() -> Result<Duration> {
    machine::cpu_time().context("this system does not tell how much processor time was used")
}

/// What of `off` was saved, in percent.
pub(crate) fn saved_percent(on: Duration, off: Duration) -> f64 {
    (1.0 - on.as_secs_f64() / off.as_secs_f64()) * 100.0
}
