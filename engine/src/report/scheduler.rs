//! The loop: plans the times that have come, begins the runs that are due, takes over those whose process died.
//!
//! Several processes may do so on one home: a time is planned once, and a run has one holder. Nothing is remembered between two
//! looks but which runs this process is at, so that whoever comes next goes on where the last one stopped.

use std::sync::Arc;
use std::time::Duration;

use nectarine_catalog::{Report, ReportRun, RunQuery, RunState};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::policy::{self, Action};
use super::{Reports, Schedule};
use crate::Result;

/// Time between two looks at the clock.
const TICK: Duration = Duration::from_secs(1);
/// How many runs a process is at: each is a statement that uses all processors if it can.
const RUNS_MAX: usize = 4;

/// A loop that goes on until it is stopped.
#[derive(Debug)]
pub struct ReportScheduler {
    stop: CancellationToken,
    going: JoinHandle<()>,
}

impl ReportScheduler {
    /// Ends the loop. Runs that are under way are given up, and taken over by whoever comes next.
    pub async fn stop(self) {
        self.stop.cancel();
        let _ = self.going.await;
    }
}

/// Runs of this process.
struct Desk {
    reports: Reports,
    running: JoinSet<()>,
    turns: Arc<Semaphore>,
}

impl Reports {
    /// Runs reports when their time comes, until somebody says that it is enough.
    pub fn start(&self) -> ReportScheduler {
        let stop = CancellationToken::new();
        let (mut desk, stopped) = (Desk::new(self.clone()), stop.clone());
        let going = tokio::spawn(async move {
            loop {
                if let Err(error) = desk.look().await {
                    tracing::warn!(%error, "cannot look after reports; trying again");
                }
                tokio::select! {
                    () = stopped.cancelled() => break,
                    () = tokio::time::sleep(TICK) => {}
                    Some(_) = desk.running.join_next() => {}
                }
            }
            desk.running.shutdown().await;
        });
        ReportScheduler { stop, going }
    }

    /// Runs all that is due by the engine's clock, and returns when there is nothing more to do: how many runs were begun.
    pub async fn run_due(&self) -> Result<usize> {
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

    /// Writes down the runs of times that have come.
    async fn plan(&self, reports: &mut [Report], now: i64) -> Result<()> {
        for report in reports.iter_mut().filter(|report| !report.paused) {
            let schedule = match Schedule::parse(&report.spec.schedule, &report.spec.time_zone) {
                Ok(schedule) => schedule,
                Err(error) => {
                    // It was one when it was made.
                    tracing::warn!(report = report.name, %error, "a schedule cannot be read");
                    continue;
                }
            };
            if let Some(plan) = policy::plan(report, &schedule, now)
                && self.shared.store.plan_report_runs(&plan).await?
            {
                report.scheduled_to = plan.to;
            }
        }
        Ok(())
    }

    /// Whether a run has to fail because the last one of a report that it needs did.
    async fn failed_before(&self, reports: &[Report], report: &Report, run: &ReportRun) -> Result<Option<String>> {
        for name in &report.spec.depends_on {
            let Some(needed) = reports.iter().find(|other| other.name == *name) else { continue };
            let wanted = RunQuery {
                report: Some(needed.id),
                states: vec![RunState::Finished, RunState::Failed],
                before: Some(run.scheduled_for.saturating_add(1)),
                limit: Some(1),
            };
            let last = self.shared.store.report_runs(&wanted).await?;
            if last.first().is_some_and(|last| last.state == RunState::Failed) {
                return Ok(Some(format!("report \"{name}\", which it depends on, failed")));
            }
        }
        Ok(None)
    }

    async fn end_without(&self, run: &ReportRun, state: RunState, error: String) -> Result<()> {
        let ended = ReportRun { state, error: Some(error), ..run.clone() };
        self.shared.store.change_report_run((run.state, run.attempt), &ended, None).await?;
        Ok(())
    }
}

impl Desk {
    fn new(reports: Reports) -> Self {
        Self { reports, running: JoinSet::new(), turns: Arc::new(Semaphore::new(RUNS_MAX)) }
    }

    /// Does what there is to do now; how many runs were begun.
    async fn look(&mut self) -> Result<usize> {
        let store = &self.reports.shared.store;
        let now = self.reports.now();
        let mut all = store.reports().await?;
        self.reports.plan(&mut all, now).await?;
        let open = RunQuery { states: vec![RunState::Due, RunState::Running], ..RunQuery::default() };
        let mut open = store.report_runs(&open).await?;
        // What waits for its turn here is begun already.
        for run in &mut open {
            if self.reports.shared.active_runs.contains(&(run.report, run.scheduled_for)) {
                run.state = RunState::Running;
                run.holder = Some(self.reports.shared.home.process());
            }
        }
        let mut n_begun = 0;
        for action in policy::decide(&all, &open, now, |run| self.reports.is_abandoned(run, now)) {
            let run = match action {
                Action::Start(run) => run,
                Action::Skip(run, why) => {
                    self.reports.end_without(&run, RunState::Skipped, why).await?;
                    continue;
                }
                Action::Fail(run, why) => {
                    self.reports.end_without(&run, RunState::Failed, why).await?;
                    continue;
                }
            };
            let Some(report) = all.iter().find(|report| report.id == run.report) else { continue };
            if let Some(why) = self.reports.failed_before(&all, report, &run).await? {
                self.reports.end_without(&run, RunState::Failed, why).await?;
                n_begun += 1;
                continue;
            }
            let Some(active) = self.reports.shared.active_runs.take((run.report, run.scheduled_for)) else { continue };
            let (reports, report, turns) = (self.reports.clone(), report.clone(), Arc::clone(&self.turns));
            self.running.spawn(async move {
                // Never closed.
                let Ok(_turn) = turns.acquire().await else { return };
                if let Err(error) = reports.perform(&report, run, active, false).await {
                    tracing::warn!(report = report.name, %error, "a run of a report was given up");
                }
            });
            n_begun += 1;
        }
        Ok(n_begun)
    }
}
