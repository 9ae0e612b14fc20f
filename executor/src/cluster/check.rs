//! [`CheckedStage`]: a task that reads the files that the server saw, or fails.
//!
//! ```text
//!   look at each file: is it the one that was told?  --> run the task --> look again: is it still?
//!        no: the task fails, so does its job, and the server computes the query itself
//! ```
//!
//! Around the whole task, not around each scan: a limit may leave a scan before its end, and its rows count all the same.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::serde::protobuf::{RuntimeStatsReport, ShuffleWritePartition, TaskColumnStats, WindowStateReport};
use ballista_executor::execution_engine::QueryStageExecutor;
use datafusion::common::{DataFusionError, Result, plan_err};
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;
use nectarine_catalog::{CatalogError, SameFiles, Wanted};

use super::told::{ToldFilesExec, files_of};

/// What an executor says of a file that is another one there: by these words the server knows that trying again is of no use.
pub(super) const OTHER_FILE: &str = "does not have the file that the server saw";

/// Another task, with a look at its files before and after.
#[derive(Debug)]
pub(super) struct CheckedStage {
    pub(super) task: Arc<dyn QueryStageExecutor>,
    pub(super) wanted: Vec<Wanted>,
    pub(super) files: SameFiles,
    /// Who runs it.
    pub(super) executor: Arc<str>,
}

/// The files that a plan reads, as they were told. Fails if one was not told of.
pub(super) fn wanted_files(plan: &Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv) -> Result<Vec<Wanted>> {
    let mut wanted = vec![];
    collect(plan, runtime, &mut wanted)?;
    Ok(wanted)
}

fn collect(plan: &Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv, wanted: &mut Vec<Wanted>) -> Result<()> {
    if let Some(told) = plan.downcast_ref::<ToldFilesExec>() {
        let Some(config) = files_of(told.input()) else { return plan_err!("files are told of that nobody reads") };
        for one in told.needed()? {
            let store = match one.is_local() {
                true => None,
                false => Some(runtime.object_store(&config.object_store_url)?),
            };
            wanted.push(Wanted { told: one.clone(), store });
        }
        return Ok(());
    }
    if files_of(plan).is_some() {
        return plan_err!("files are read that nobody told of");
    }
    plan.children().into_iter().try_for_each(|child| collect(child, runtime, wanted))
}

impl CheckedStage {
    fn told(&self, error: CatalogError) -> DataFusionError {
        // Not as it came: some kinds of errors are tried again by Ballista.
        DataFusionError::Execution(format!("executor {} {OTHER_FILE}: {error}", self.executor))
    }
}

impl fmt::Display for CheckedStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.task)
    }
}

#[async_trait]
impl QueryStageExecutor for CheckedStage {
    async fn execute_query_stage(
        &self,
        task_id: usize,
        context: Arc<TaskContext>,
    ) -> Result<Vec<ShuffleWritePartition>> {
        if self.wanted.is_empty() {
            return self.task.execute_query_stage(task_id, context).await;
        }
        let looked = self.files.look(self.wanted.clone()).await.map_err(|error| self.told(error))?;
        let written = self.task.execute_query_stage(task_id, context).await?;
        self.files.look_again(looked).await.map_err(|error| self.told(error))?;
        Ok(written)
    }

    fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
        self.task.collect_plan_metrics()
    }

    fn collect_runtime_stats_reports(&self) -> Vec<RuntimeStatsReport> {
        self.task.collect_runtime_stats_reports()
    }

    fn collect_window_state_reports(&self) -> Result<Vec<WindowStateReport>> {
        self.task.collect_window_state_reports()
    }

    fn collect_column_stats(&self) -> Vec<TaskColumnStats> {
        self.task.collect_column_stats()
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use nectarine_catalog::{Fingerprint, Told};

    use super::*;

    /// A task that writes to a file.
    #[derive(Debug)]
    struct Writes(Option<PathBuf>);

    impl fmt::Display for Writes {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("writes")
        }
    }

    #[async_trait]
    impl QueryStageExecutor for Writes {
        async fn execute_query_stage(&self, _: usize, _: Arc<TaskContext>) -> Result<Vec<ShuffleWritePartition>> {
            if let Some(path) = &self.0 {
                std::fs::write(path, "written to")?;
            }
            Ok(vec![ShuffleWritePartition::default()])
        }

        fn collect_plan_metrics(&self) -> Vec<MetricsSet> {
            vec![]
        }
    }

    fn told(path: &Path) -> Told {
        let bytes = std::fs::read(path).unwrap();
        Told {
            location: Arc::from(url::Url::from_file_path(path).unwrap().as_str()),
            range: None,
            file_bytes: bytes.len() as u64,
            modified_at: 0,
            etag: None,
            fingerprint: Fingerprint::of_bytes(&bytes),
            by_content: true,
            partition_values: Arc::from([]),
        }
    }

    async fn run(told: Told, task: Writes) -> std::result::Result<usize, String> {
        let stage = CheckedStage {
            task: Arc::new(task),
            wanted: vec![Wanted { told, store: None }],
            files: SameFiles::default(),
            executor: Arc::from("here:1"),
        };
        let ran = stage.execute_query_stage(0, Arc::default()).await;
        ran.map(|written| written.len()).map_err(|error| error.strip_backtrace())
    }

    #[tokio::test]
    async fn a_task_that_read_another_file_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "0123").unwrap();
        let told = told(&path);
        assert_eq!(run(told.clone(), Writes(None)).await, Ok(1));
        // While it runs.
        let error = run(told.clone(), Writes(Some(path.clone()))).await.unwrap_err();
        let named = format!("executor here:1 {OTHER_FILE}: \"{}\" was written to while it was read", path.display());
        assert!(error.contains(&named), "{error}");
        // Before.
        std::fs::write(&path, "0124").unwrap();
        let error = run(told.clone(), Writes(None)).await.unwrap_err();
        assert!(error.contains(OTHER_FILE) && error.contains("holds something else"), "{error}");
        std::fs::remove_file(&path).unwrap();
        let error = run(told, Writes(None)).await.unwrap_err();
        assert!(error.contains(OTHER_FILE) && error.contains("is not there"), "{error}");
    }
}
