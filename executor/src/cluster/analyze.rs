//! [`AnalyzeBackend`]: EXPLAIN ANALYZE of a query that runs on executors: what its stages did, in place of its rows.
//!
//! ```text
//!   Cluster   rows=97, tries=2
//!             try 1: an executor was lost: stage 3 was begun again
//!   Stage 1   tasks=2, rows=194, bytes=4096, elapsed=40ms, longest_task=21ms
//!             the plan of its tasks
//! ```

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{TryStreamExt, stream};

use super::graph::{StageShape, stage_shapes};
use super::run::ClusterBackend;
use super::server::{JobSummary, StageSummary};
use super::travel::Stays;
use crate::backend::Backend;

/// Runs plans on executors, and tells how that went.
pub struct AnalyzeBackend {
    cluster: ClusterBackend,
    /// Two columns of text: what a row is about, and what is told of it.
    schema: SchemaRef,
}

impl AnalyzeBackend {
    /// Tells what `cluster` did under the columns of `schema`.
    pub fn new(cluster: ClusterBackend, schema: SchemaRef) -> Self {
        Self { cluster, schema }
    }
}

#[async_trait]
impl Backend for AnalyzeBackend {
    fn name(&self) -> &'static str {
        self.cluster.name()
    }

    fn takes(&self, plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<(), Stays> {
        self.cluster.takes(plan, context)
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let n_cores = self.cluster.cores().await;
        // Without them the times are still there.
        let shapes = stage_shapes(&plan, context.session_config().options(), n_cores).unwrap_or_default();
        let (rows, tried) = self.cluster.run_told(plan, context).await?;
        let n_rows = rows.try_fold(0, |n, batch| async move { Ok(n + batch.num_rows()) }).await?;
        let (about, told): (Vec<String>, Vec<String>) = told(n_rows, &tried, &shapes).into_iter().unzip();
        let columns = [about, told].map(|column| Arc::new(StringArray::from(column)) as ArrayRef);
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns.to_vec())?;
        Ok(Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), stream::iter([Ok(batch)]))))
    }
}

/// Rows of the answer.
fn told(n_rows: usize, tried: &[JobSummary], shapes: &[StageShape]) -> Vec<(String, String)> {
    let mut whole = format!("rows={n_rows}, tries={}", tried.len());
    for job in tried {
        if let Some(detail) = &job.detail {
            whole.push_str(&format!("\ntry {}: {detail}", job.attempt));
        }
    }
    let mut rows = vec![("Cluster".to_owned(), whole)];
    for stage in tried.last().map(|job| job.stages.as_slice()).unwrap_or_default() {
        let plan = shapes.iter().find(|shape| shape.id == stage.id).map_or("", |shape| shape.plan.trim_end());
        rows.push((format!("Stage {}", stage.id), format!("{}\n{plan}", line(stage)).trim_end().to_owned()));
    }
    rows
}

fn line(stage: &StageSummary) -> String {
    let StageSummary { reads, tasks, rows, bytes, elapsed_ms, longest_ms, attempt, .. } = stage;
    let mut line =
        format!("tasks={tasks}, rows={rows}, bytes={bytes}, elapsed={elapsed_ms}ms, longest_task={longest_ms}ms");
    if !reads.is_empty() {
        let reads: Vec<String> = reads.iter().map(ToString::to_string).collect();
        line.push_str(&format!(", reads=[{}]", reads.join(", ")));
    }
    if *attempt > 0 {
        line.push_str(&format!(", begun_again={attempt}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::super::job::Counts;
    use super::*;

    #[test]
    fn tries_and_stages_are_told() {
        let stage = |id, reads: &[usize]| StageSummary {
            id,
            reads: reads.to_vec(),
            state: "finished",
            attempt: 0,
            tasks: 2,
            tasks_done: 2,
            rows: 10,
            bytes: 640,
            elapsed_ms: 7,
            longest_ms: 5,
        };
        let job = |attempt, detail: Option<&str>| JobSummary {
            id: "j".to_owned(),
            query: String::new(),
            attempt,
            state: "finished",
            detail: detail.map(str::to_owned),
            started_at: 0,
            ended_at: None,
            counts: Counts::default(),
            stages: vec![stage(1, &[]), stage(2, &[1])],
        };
        let shape = StageShape { id: 1, reads: vec![], partitions: 2, plan: "Scan\n".to_owned() };
        let found = told(4, &[job(1, Some("an executor was lost")), job(2, None)], &[shape]);
        let expected = [
            ("Cluster", "rows=4, tries=2\ntry 1: an executor was lost"),
            ("Stage 1", "tasks=2, rows=10, bytes=640, elapsed=7ms, longest_task=5ms\nScan"),
            ("Stage 2", "tasks=2, rows=10, bytes=640, elapsed=7ms, longest_task=5ms, reads=[1]"),
        ];
        assert_eq!(found, expected.map(|(about, told)| (about.to_owned(), told.to_owned())));
    }
}
