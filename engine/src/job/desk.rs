//! The loop: begins jobs that wait, goes on with those whose process died, forgets old ones.
//!
//! Several processes may do so on one home: a job has one holder. Nothing is remembered between two looks but which jobs this process
//! is at, so that whoever comes next goes on where the last one stopped.

use std::time::Duration;

use nectarine_catalog::{Job, JobQuery, JobState};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Jobs, policy, result};
use crate::Result;
use crate::engine::options;
use crate::managed::now_micros;

/// Time between two looks.
const TICK: Duration = Duration::from_millis(500);
/// Time between two looks for what is old.
const TIDY: Duration = Duration::from_secs(600);
/// How many jobs that have ended are kept, whatever their age.
const ENDED_KEPT: usize = 10_000;

/// A loop that goes on until it is stopped.
#[derive(Debug)]
pub struct JobRunner {
    stop: CancellationToken,
    going: JoinHandle<()>,
}

impl JobRunner {
    /// Ends the loop. Jobs that are under way are let go: whoever comes next goes on with them.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.going.await;
    }
}

/// Jobs of this process.
struct Desk {
    jobs: Jobs,
    running: JoinSet<()>,
    jobs_max: usize,
}

impl Jobs {
    /// Runs jobs as they come, until somebody says that it is enough.
    pub fn start(&self) -> JobRunner {
        let stop = CancellationToken::new();
        let (mut desk, stopped) = (Desk::new(self.clone()), stop.clone());
        let going = tokio::spawn(async move {
            let mut tidied: Option<Instant> = None;
            loop {
                if let Err(error) = desk.look().await {
                    tracing::warn!(%error, "cannot look after jobs; trying again");
                }
                if tidied.is_none_or(|tidied| tidied.elapsed() > TIDY) {
                    tidied = Some(Instant::now());
                    if let Err(error) = desk.jobs.tidy().await {
                        tracing::warn!(%error, "cannot forget old jobs; trying again later");
                    }
                }
                tokio::select! {
                    () = stopped.cancelled() => break,
                    () = tokio::time::sleep(TICK) => {}
                    Some(_) = desk.running.join_next() => {}
                }
            }
            desk.running.shutdown().await;
            if let Err(error) = desk.jobs.let_go().await {
                // They are known to be nobody's by this process's lock.
                tracing::warn!(%error, "jobs were not let go");
            }
        });
        JobRunner { stop, going }
    }

    /// Runs all jobs that wait, and returns when there is nothing more to do: how many were begun.
    pub async fn run_waiting(&self) -> Result<usize> {
        let mut desk = Desk::new(self.clone());
        let mut n_begun = 0;
        loop {
            match desk.look().await? {
                0 if desk.running.is_empty() => return Ok(n_begun),
                n => n_begun += n,
            }
            while desk.running.join_next().await.is_some() {}
        }
    }

    /// Lets others go on at once with what this process was at, and does not count it as a death.
    async fn let_go(&self) -> Result<()> {
        let process = self.shared.home.process();
        for job in self.in_state(JobState::Running, None).await? {
            if job.holder.as_deref() == Some(process.as_str()) && !self.shared.active_jobs.contains(&job.id) {
                let waiting =
                    Job { state: JobState::Waiting, tries: (job.tries - 1).max(0), lease_until: None, ..job.clone() };
                self.shared.store.change_job(job.at(), &waiting, None).await?;
            }
        }
        Ok(())
    }

    /// Forgets jobs that ended long ago, and files that no job names.
    async fn tidy(&self) -> Result<()> {
        // Files first: one that comes later is of a job that is running by then, or names it.
        let files = result::list(&self.shared).await;
        let jobs = self.shared.store.jobs(&JobQuery::default()).await?;
        let is_needed = |job: &Job, file: &str| {
            job.state == JobState::Running || job.result.as_ref().is_some_and(|result| result.file == file)
        };
        for (id, file) in files {
            if !jobs.iter().any(|job| job.id == id && is_needed(job, &file)) {
                let path = self.shared.home.jobs().join(&file);
                let _ = tokio::task::spawn_blocking(move || std::fs::remove_file(path)).await;
            }
        }
        let keep = options(self.shared.template.config_options()).job_keep_days as i64;
        let oldest = now_micros().saturating_sub(keep.saturating_mul(86_400_000_000));
        let mut ended: Vec<&Job> = jobs.iter().filter(|job| !job.state.is_open()).collect();
        ended.sort_by_key(|job| std::cmp::Reverse(job.ended_at));
        let is_old = |nth: usize, job: &Job| nth >= ENDED_KEPT || job.ended_at.is_some_and(|at| at < oldest);
        for (_, job) in ended.into_iter().enumerate().filter(|(nth, job)| is_old(*nth, job)) {
            self.shared.store.drop_job(job.id).await?;
            result::remove(&self.shared, job.result.as_ref()).await;
        }
        Ok(())
    }

    async fn in_state(&self, state: JobState, limit: Option<usize>) -> Result<Vec<Job>> {
        Ok(self.shared.store.jobs(&JobQuery { states: vec![state], limit, ..JobQuery::default() }).await?)
    }
}

impl Desk {
    fn new(jobs: Jobs) -> Self {
        let jobs_max = options(jobs.shared.template.config_options()).jobs_max.max(1);
        Self { jobs, running: JoinSet::new(), jobs_max }
    }

    /// Begins what there is to begin now; how many.
    async fn look(&mut self) -> Result<usize> {
        while self.running.try_join_next().is_some() {}
        let n_free = self.jobs_max.saturating_sub(self.running.len());
        if n_free == 0 {
            return Ok(0);
        }
        let running = self.jobs.in_state(JobState::Running, None).await?;
        // Some of those that wait may be in hand here, and not claimed yet.
        let waiting = self.jobs.in_state(JobState::Waiting, Some(2 * self.jobs_max)).await?;
        let active = &self.jobs.shared.active_jobs;
        let chosen = policy::begin(
            &running,
            &waiting,
            n_free,
            |job| self.jobs.is_abandoned(job),
            |job| active.contains(&job.id),
        );
        let mut n_begun = 0;
        for job in chosen {
            let Some(held) = self.jobs.shared.active_jobs.take(job.id) else { continue };
            let jobs = self.jobs.clone();
            self.running.spawn(async move {
                let id = job.id;
                if let Err(error) = jobs.perform(job, held).await {
                    tracing::warn!(job = %id, %error, "a job was given up, and will be gone on with");
                }
            });
            n_begun += 1;
        }
        Ok(n_begun)
    }
}
