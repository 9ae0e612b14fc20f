//! `RUN REPORT`: a run that somebody asks for, and waits for.

use nectarine_catalog::{Report, ReportOutput, ReportRun, RunState};

use super::Reports;
use crate::{EngineError, ErrorKind, Result};

impl Reports {
    /// `RUN REPORT`: for one time, now, by whoever asks.
    pub(crate) async fn run_for(&self, report: &Report, at: i64) -> Result<ReportRun> {
        let busy = || {
            EngineError::new(ErrorKind::Sql, format!("report \"{}\" is being run for that time", report.name))
                .with_hint("system.report_runs tells how far it is")
        };
        let run = match self.run_at(report, at).await? {
            Some(run) => run,
            None => {
                let run = ReportRun::due(report.id, at);
                self.shared.store.add_report_run(&run).await?;
                self.run_at(report, at).await?.unwrap_or(run)
            }
        };
        if run.state == RunState::Running && !self.is_abandoned(&run, self.now()) {
            return Err(busy());
        }
        if let (RunState::Finished, ReportOutput::Table(table)) = (run.state, &report.spec.output) {
            let message = format!("report \"{}\" has added its rows for that time", report.name);
            return Err(EngineError::new(ErrorKind::Sql, message)
                .with_detail(format!("they would be in \"{}\" twice", table.name)));
        }
        let active = self.shared.active_runs.take((run.report, run.scheduled_for)).ok_or_else(busy)?;
        match self.perform(report, run, active, true).await? {
            Some(ended) => Ok(ended),
            None => Err(busy()),
        }
    }
}
