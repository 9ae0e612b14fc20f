//! The life of a run: claimed, computed, put in its place, written down.
//!
//! ```text
//!   claim            attempt n + 1, by this process              only one can
//!   rows, bytes      in a hidden file beside the place           dies here: nothing is there, claimed again
//!   digest           written down with the attempt               dies here: nothing is there, claimed again
//!   file             renamed into its place                      dies here: there, known by its digest, only written down
//!   finished         written down                                dies here: done
//! ```

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use nectarine_catalog::{CatalogError, Fingerprint, Report, ReportOutput, ReportRun, RunQuery, RunState, fail_point};

use super::compute::compute;
use super::output::{self, Staged, digest_of};
use super::parameters::Parameters;
use super::place::{self, Form};
use super::render::{Page, render};
use super::{ActiveRun, Reports, hook};
use crate::engine::options;
use crate::holding::LEASE;
use crate::{EngineError, ErrorKind, Result};

/// The longest time between two tries.
const BACKOFF_S_MAX: u64 = 6 * 3600;
/// How often processes may die with a run before it is taken for the cause.
const DEATHS_MAX: i64 = 20;

/// Somebody else has the run by now.
pub(super) fn lost() -> EngineError {
    EngineError::new(ErrorKind::Cancelled, "another process took the run over")
}

impl Reports {
    /// Claims a run and brings it to its end; `None` if somebody else has it. `is_manual` runs are not tried again, and their
    /// error is the answer.
    ///
    /// Not an async function: its statements may be a part of one that runs a report.
    pub(super) fn perform<'a>(
        &'a self,
        report: &'a Report,
        run: ReportRun,
        active: ActiveRun,
        is_manual: bool,
    ) -> BoxFuture<'a, Result<Option<ReportRun>>> {
        Box::pin(async move {
            // Until the run has ended, however it ends.
            let _active = active;
            let Some(claimed) = self.claim(&run, is_manual).await? else { return Ok(None) };
            fail_point("report_claimed");
            let started = Instant::now();
            let deaths = claimed.attempt - claimed.failures - 1;
            let outcome = match run.state == RunState::Running && !is_manual && deaths > DEATHS_MAX {
                true => Err(EngineError::new(ErrorKind::Resources, "the processes that ran it died")
                    .with_detail(format!("{deaths} of them"))),
                false => self.carry_out(report, &claimed, started).await,
            };
            let ended = match outcome {
                Ok(ended) => ended,
                Err(error) if self.is_finished(&claimed).await => {
                    tracing::debug!(%error, "a run had finished when it failed");
                    return self.run_at(report, claimed.scheduled_for).await;
                }
                Err(error) => self.failed(report, &claimed, &error, started, is_manual).await?,
            };
            if ended.state == RunState::Finished {
                let ReportRun { rows, output, elapsed_ms, reused, .. } = &ended;
                tracing::info!(report = report.name, rows, output, elapsed_ms, reused, "a report was run");
            }
            if !ended.state.is_open() && options(self.shared.template.config_options()).report_hooks {
                hook::call(report, &ended).await;
            }
            Ok(Some(ended))
        })
    }

    async fn claim(&self, run: &ReportRun, is_manual: bool) -> Result<Option<ReportRun>> {
        let now = self.now();
        let taken_over = run.state == RunState::Running;
        let claimed = ReportRun {
            state: RunState::Running,
            attempt: run.attempt + 1,
            failures: if is_manual { 0 } else { run.failures },
            holder: Some(self.shared.home.process()),
            lease_until: Some(now + LEASE.as_micros() as i64),
            started_at: Some(now),
            elapsed_ms: None,
            // What the one before was about to put in its place may be there.
            output: run.output.clone().filter(|_| taken_over),
            digest: run.digest.filter(|_| taken_over),
            rows: run.rows.filter(|_| taken_over),
            reused: run.reused.clone().filter(|_| taken_over),
            saved_ms: run.saved_ms.filter(|_| taken_over),
            error: None,
            ..run.clone()
        };
        let is_ours = self.shared.store.change_report_run((run.state, run.attempt), &claimed, None).await?;
        Ok(is_ours.then_some(claimed))
    }

    /// From a claim to the end.
    async fn carry_out(&self, report: &Report, claimed: &ReportRun, started: Instant) -> Result<ReportRun> {
        if let (Some(target), Some(digest)) = (&claimed.output, claimed.digest)
            && digest_of(&self.shared, target).await == Some(digest)
        {
            let finished = ReportRun {
                state: RunState::Finished,
                lease_until: None,
                elapsed_ms: Some(milliseconds(started)),
                ..claimed.clone()
            };
            return self.finish(claimed, finished).await;
        }
        let work = self.produce(report, claimed, started);
        let work = self.keep(claimed, work);
        let produced = match report.spec.timeout_s {
            0 => work.await?,
            seconds => tokio::time::timeout(Duration::from_secs(seconds), work).await.unwrap_or_else(|_| {
                Err(EngineError::new(ErrorKind::Resources, format!("the run took longer than {seconds} seconds"))
                    .with_hint("ALTER REPORT .. SET TIMEOUT gives it more time"))
            })?,
        };
        let (staged, prepared) = match produced {
            Produced::Appended(finished) => return Ok(finished),
            Produced::Staged(staged, prepared) => (staged, prepared),
        };
        fail_point("report_staged");
        // Before anybody can see it: whoever finds the file knows whose it is. And after it was made sure that the run is ours.
        if !self.shared.store.change_report_run((RunState::Running, claimed.attempt), &prepared, None).await? {
            return Err(lost());
        }
        fail_point("report_prepared");
        staged.publish().await?;
        fail_point("report_placed");
        let finished = ReportRun {
            state: RunState::Finished,
            lease_until: None,
            elapsed_ms: Some(milliseconds(started)),
            ..prepared
        };
        self.finish(claimed, finished).await
    }

    async fn finish(&self, claimed: &ReportRun, finished: ReportRun) -> Result<ReportRun> {
        let is_done =
            self.shared.store.change_report_run((RunState::Running, claimed.attempt), &finished, None).await?;
        fail_point("report_finished");
        if is_done { Ok(finished) } else { Err(lost()) }
    }

    /// Computes the output, as far as nobody can see it; rows of a table are there at the end.
    async fn produce(&self, report: &Report, claimed: &ReportRun, started: Instant) -> Result<Produced> {
        let at = claimed.scheduled_for;
        let zone = &report.spec.time_zone;
        let parameters = Parameters::new(at, self.last_run(report, at).await?, zone)?;
        let computed = Box::pin(compute(&self.shared, report, &parameters)).await?;
        fail_point("report_computed");
        let done = ReportRun {
            rows: i64::try_from(computed.n_rows()).ok(),
            reused: Some(computed.reused().word().to_string()),
            saved_ms: Some(computed.saved_ms()),
            elapsed_ms: Some(milliseconds(started)),
            ..claimed.clone()
        };
        match &report.spec.output {
            ReportOutput::Table(table) => {
                let Some(section) = computed.sections.last() else {
                    return Err(EngineError::new(ErrorKind::Internal, "a report without a query was run"));
                };
                let finished =
                    ReportRun { state: RunState::Finished, lease_until: None, output: Some(table.to_string()), ..done };
                self.append(report, table, section, claimed, finished.clone()).await?;
                Ok(Produced::Appended(finished))
            }
            ReportOutput::File(pattern) => {
                let target = place::fill(pattern, &report.name, at, zone)?;
                self.check_may_write(report).await?;
                let page = Page::new(report, claimed, computed, self.now(), started.elapsed())?;
                let form = Form::of(&target)?;
                let rendered = tokio::task::spawn_blocking(move || render(form, &page)).await;
                let bytes = rendered
                    .map_err(|error| EngineError::new(ErrorKind::Internal, "rendering ended").with_source(error))??;
                let digest = Fingerprint::of_bytes(&bytes);
                let staged = output::stage(&self.shared, &target, bytes).await?;
                let prepared = ReportRun { output: Some(target), digest: Some(digest), ..done };
                Ok(Produced::Staged(staged, prepared))
            }
        }
    }

    /// Files of the server are for administrators, also when they are written in the night.
    async fn check_may_write(&self, report: &Report) -> Result<()> {
        let view = self.shared.catalog.view().await?;
        match report.owner.as_ref().is_none_or(|owner| view.access.is_admin(owner)) {
            true => Ok(()),
            false => Err(EngineError::new(ErrorKind::Denied, "permission denied to write files of the server")
                .with_detail("the owner of the report is no administrator")),
        }
    }

    /// Renews the lease as long as the work goes on.
    async fn keep<T>(&self, claimed: &ReportRun, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(LEASE / 3) => {
                    let until = self.now() + LEASE.as_micros() as i64;
                    let renewed = ReportRun { lease_until: Some(until), ..claimed.clone() };
                    let was = (RunState::Running, claimed.attempt);
                    // A store that does not answer now may do so the next time.
                    if let Ok(false) = self.shared.store.change_report_run(was, &renewed, None).await {
                        return Err(lost());
                    }
                }
            }
        }
    }

    /// Writes down that an attempt failed: to be tried again, or not.
    async fn failed(
        &self,
        report: &Report,
        claimed: &ReportRun,
        error: &EngineError,
        started: Instant,
        is_manual: bool,
    ) -> Result<ReportRun> {
        if error.kind() == ErrorKind::Cancelled {
            return Err(error.clone());
        }
        let failures = claimed.failures + 1;
        let is_last = is_manual || failures > i64::from(report.spec.retries);
        let doubled = report.spec.backoff_s.saturating_mul(1 << (failures - 1).clamp(0, 30));
        let wait = i64::try_from(doubled.min(BACKOFF_S_MAX.max(report.spec.backoff_s))).unwrap_or(i64::MAX);
        let ended = ReportRun {
            state: if is_last { RunState::Failed } else { RunState::Due },
            failures,
            not_before: self.now().saturating_add(wait.saturating_mul(1_000_000)),
            lease_until: None,
            elapsed_ms: Some(milliseconds(started)),
            error: Some(told(error)),
            ..claimed.clone()
        };
        let was = (RunState::Running, claimed.attempt);
        if !self.shared.store.change_report_run(was, &ended, None).await? {
            return Err(lost());
        }
        tracing::info!(report = report.name, failures, error = ended.error, "a run of a report failed");
        match is_manual {
            true => Err(error.clone()),
            false => Ok(ended),
        }
    }

    /// Whether a run finished in the attempt that somebody made.
    pub(super) async fn is_finished(&self, attempt: &ReportRun) -> bool {
        let wanted = RunQuery {
            report: Some(attempt.report),
            before: Some(attempt.scheduled_for.saturating_add(1)),
            limit: Some(1),
            ..RunQuery::default()
        };
        let found = self.shared.store.report_runs(&wanted).await.unwrap_or_default();
        found.iter().any(|run| {
            run.scheduled_for == attempt.scheduled_for
                && run.attempt == attempt.attempt
                && run.state == RunState::Finished
        })
    }

    /// The scheduled time of the last run that finished before one.
    async fn last_run(&self, report: &Report, at: i64) -> Result<Option<i64>> {
        let wanted =
            RunQuery { report: Some(report.id), states: vec![RunState::Finished], before: Some(at), limit: Some(1) };
        Ok(self.shared.store.report_runs(&wanted).await?.first().map(|run| run.scheduled_for))
    }
}

enum Produced {
    /// Hidden bytes, and the run with what is known of them.
    Staged(Staged, ReportRun),
    /// Rows that are in their table, and the run, which has ended.
    Appended(ReportRun),
}

fn milliseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1000.0
}

/// An error in a line.
pub(crate) fn told(error: &EngineError) -> String {
    let mut text = error.message().to_string();
    for more in [error.detail(), error.hint()].into_iter().flatten() {
        text.push_str(&format!("; {more}"));
    }
    text
}

/// The report of a name.
pub(super) fn find<'a>(reports: &'a [Report], name: &str) -> Result<&'a Report> {
    let found = reports.iter().find(|report| report.name == name);
    Ok(found.ok_or_else(|| CatalogError::NotFound { what: "report", name: name.to_string() })?)
}
