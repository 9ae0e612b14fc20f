//! One try of a plan on the cluster: sent, watched, cancelled when nobody waits for it any more.
//!
//! Ends early   when a stage is begun again, which Ballista gets wrong; when no executor is left; when nothing runs for a while, as
//!              after a word that was lost; and when nothing changes for very long.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use ballista_core::JobId;
use ballista_core::serde::protobuf::{JobStatus, job_status};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use tokio::sync::mpsc;

use super::check::OTHER_FILE;
use super::graph::{ResultPart, begun_again, counts, result_of, summaries};
use super::server::{Cluster, Inner, JobSummary};

/// Words of Ballista about a job that wait to be read: one that finds no room is lost.
const STATUSES: usize = 1024;

/// How often a job is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Nothing of a job runs for so long: it waits for a word that does not come.
const IDLE_MAX: Duration = Duration::from_secs(15);

/// Nothing changes for so long, whatever runs.
const STILL_MAX: Duration = Duration::from_secs(900);

/// What a job did is there so soon after it has ended.
const GRAPH_WAIT: Duration = Duration::from_secs(5);

/// How far a job is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Stages in all.
    pub stages: usize,
    /// Stages that have ended.
    pub stages_done: usize,
    /// Tasks in all, as far as it is known.
    pub tasks: usize,
    /// Tasks that have ended.
    pub tasks_done: usize,
    /// Tasks that run now.
    pub running: usize,
}

/// Why a try came to nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failed {
    /// Another one may do better.
    Again(String),
    /// It would fail the same way.
    GiveUp(String),
}

/// A try that is under way; dropping it ends it.
pub(super) struct Attempt {
    cluster: Arc<Inner>,
    members: Cluster,
    job: JobId,
    statuses: mpsc::Receiver<JobStatus>,
    summary: JobSummary,
    is_over: bool,
}

impl Attempt {
    /// Sends a plan.
    pub(super) async fn start(
        cluster: &Cluster,
        query: &str,
        number: usize,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<SessionContext>,
    ) -> Result<Self, Failed> {
        let inner = Arc::clone(cluster.inner());
        let (sender, statuses) = mpsc::channel(STATUSES);
        inner.active.fetch_add(1, Ordering::SeqCst);
        let job = match inner.scheduler.submit_physical_plan(query, context, plan, Some(sender)).await {
            Ok(job) => job,
            Err(error) => {
                inner.active.fetch_sub(1, Ordering::SeqCst);
                return Err(Failed::GiveUp(error.to_string()));
            }
        };
        let summary = JobSummary {
            id: job.to_string(),
            query: query.to_owned(),
            attempt: number,
            state: "running",
            detail: None,
            started_at: now(),
            ended_at: None,
            counts: Counts::default(),
            stages: vec![],
        };
        inner.tell(summary.clone());
        Ok(Self { cluster: inner, members: cluster.clone(), job, statuses, summary, is_over: false })
    }

    /// Waits for its end; the places of all its rows, if it is whole.
    pub(super) async fn ended(&mut self, seen: impl Fn(Counts)) -> Result<Vec<ResultPart>, Failed> {
        let mut changed = Instant::now();
        let mut ran = Instant::now();
        let mut is_told = true;
        loop {
            tokio::select! {
                status = self.statuses.recv(), if is_told => match status.and_then(|status| status.status) {
                    Some(status) => if let Some(ended) = self.judge(status).await { return ended },
                    // Nobody will say more; it is looked at below.
                    None => is_told = false,
                },
                () = tokio::time::sleep(LOOK) => {
                    let before = self.summary.counts;
                    self.look(&seen).await?;
                    let counts = self.summary.counts;
                    if counts != before {
                        changed = Instant::now();
                    }
                    if counts.running > 0 || counts != before {
                        ran = Instant::now();
                    }
                    if ran.elapsed() > IDLE_MAX {
                        return Err(Failed::GiveUp("none of its tasks ran for a while".to_owned()));
                    }
                    if changed.elapsed() > STILL_MAX {
                        return Err(Failed::GiveUp("none of its tasks ended for a long time".to_owned()));
                    }
                    // A last word that was lost.
                    let status = self.cluster.scheduler.state.task_manager.get_job_status(&self.job).await;
                    if let Ok(Some(JobStatus { status: Some(status), .. })) = status
                        && let Some(ended) = self.judge(status).await
                    {
                        return ended;
                    }
                }
            }
        }
    }

    async fn judge(&mut self, status: job_status::Status) -> Option<Result<Vec<ResultPart>, Failed>> {
        match status {
            job_status::Status::Successful(_) => Some(self.result().await),
            job_status::Status::Failed(failed) => Some(Err(why(&failed.error))),
            job_status::Status::Queued(_) | job_status::Status::Running(_) => None,
        }
    }

    async fn result(&mut self) -> Result<Vec<ResultPart>, Failed> {
        let until = Instant::now() + GRAPH_WAIT;
        loop {
            let executors = self.cluster.scheduler.state.executor_manager.get_executors_state().await;
            let executors = executors.unwrap_or_default().into_iter().map(|(one, ..)| (one.id.clone(), one)).collect();
            // Between its end and what is kept of it, nothing may be known of a job for a moment.
            match self.cluster.graph(&self.job).await.filter(|graph| graph.is_successful()) {
                Some(graph) => {
                    self.summary.counts = counts(graph.as_ref());
                    self.summary.stages = summaries(graph.as_ref());
                    return result_of(graph.as_ref(), &executors).map_err(Failed::Again);
                }
                None if Instant::now() > until => return Err(Failed::Again("nothing is known of it".to_owned())),
                None => {}
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn look(&mut self, seen: &impl Fn(Counts)) -> Result<(), Failed> {
        if let Some(graph) = self.cluster.graph(&self.job).await {
            self.summary.counts = counts(graph.as_ref());
            self.summary.stages = summaries(graph.as_ref());
            self.cluster.tell(self.summary.clone());
            seen(self.summary.counts);
            if let Some(stage) = begun_again(graph.as_ref()) {
                return Err(Failed::Again(format!("an executor was lost: stage {stage} was begun again")));
            }
        }
        match self.members.cores().await {
            0 => Err(Failed::GiveUp("no executor is left".to_owned())),
            _ => Ok(()),
        }
    }

    /// What is known of it.
    pub(super) fn summary(&self) -> JobSummary {
        self.summary.clone()
    }

    /// Writes down how it ended.
    pub(super) fn over(&mut self, outcome: Result<(), &Failed>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.cluster.active.fetch_sub(1, Ordering::SeqCst);
        let (state, detail) = match outcome {
            Ok(()) => ("finished", None),
            Err(Failed::Again(detail)) => ("again", Some(detail.clone())),
            Err(Failed::GiveUp(detail)) => ("given up", Some(detail.clone())),
        };
        self.summary = JobSummary { state, detail, ended_at: Some(now()), ..self.summary.clone() };
        self.cluster.tell(self.summary.clone());
        if outcome.is_err() {
            self.cluster.cancel(self.job.clone());
        }
        // Rows on the disks of executors are of no more use.
        self.cluster.forget(self.job.clone());
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        self.over(Err(&Failed::GiveUp("nobody waits for it any more".to_owned())));
        self.summary.state = "cancelled";
        self.cluster.tell(self.summary.clone());
    }
}

/// What executors could not do because one of them went may be done again; anything else is left to this process, which tells it
/// better.
fn why(error: &str) -> Failed {
    // It would have the same files the next time, and says so with the executor's name.
    if error.contains(OTHER_FILE) {
        return Failed::GiveUp(error.to_owned());
    }
    let is_loss = ["FetchFailed", "lost", "Executor", "executor", "Connection", "connect", "transport"];
    match is_loss.iter().any(|word| error.contains(word)) {
        true => Failed::Again(error.to_owned()),
        false => Failed::GiveUp(error.to_owned()),
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_tried_again_and_nothing_else() {
        for error in ["FetchFailed(..)", "Executor 7 was lost", "transport error", "Connection refused"] {
            assert!(matches!(why(error), Failed::Again(_)), "{error}");
        }
        let other = format!("executor 10.0.0.2:7 {OTHER_FILE}: \"/a\" is not there");
        for error in ["Divide by zero", "Resources exhausted", &other] {
            assert!(matches!(why(error), Failed::GiveUp(_)), "{error}");
        }
    }
}
