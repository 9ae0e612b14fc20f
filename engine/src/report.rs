//! Reports: queries that run by the clock, each scheduled time with one output.
//!
//! ```text
//!   statement    CREATE, ALTER, DROP, PAUSE, RESUME, RUN, SHOW
//!   define       what a statement says, completed: a report
//!   check        whether it could be run
//!   definition   the statement that makes it
//!   rows         reports and runs as rows
//!   schedule     cron patterns in a time zone
//!   place        where a time's output goes, and in which form
//!   parameters   :run_date, :run_time, :last_run
//!   policy       which runs begin now
//!   scheduler    the loop: plans times, begins runs
//!   run          the life of a run
//!   manual       a run that somebody asks for
//!   compute      its rows
//!   output       bytes to their place
//!   append       rows to a table
//!   render       rows to bytes: CSV, JSON, Parquet, Markdown, HTML
//!   hook         a command afterwards
//!   file         a report as a file with a header
//! ```
//!
//! ```text
//!   scheduled time --planned--> due --claimed--> rows --> hidden file --> digest written down --> file in place --> finished
//!                                                 `----> extents --------> appended and finished in one transaction
//! ```
//!
//! Keeps true   a scheduled time has one output, whoever dies where: a claim is a change of the run's attempt, which only one can
//!              make; a file appears whole and replaces what an earlier attempt left; a file that appeared before its run was
//!              written down is recognised by its digest; rows of a table come with the end of their run, or not at all. A report
//!              runs with its owner's rights, as they are when it runs.

mod append;
mod check;
mod compute;
mod define;
mod definition;
mod file;
mod hook;
mod manual;
mod output;
mod parameters;
mod place;
mod policy;
mod render;
mod rows;
mod run;
mod schedule;
mod scheduler;
mod statement;

use std::sync::Arc;

use nectarine_catalog::{Report, ReportId, ReportRun, RunQuery};

pub(crate) use self::define::{duration_s, statements};
pub(crate) use self::definition::definition;
pub use self::file::report_from_file;
pub(crate) use self::rows::{batch, next_run, output_text, runs_batch, runs_schema};
pub(crate) use self::run::told;
pub(crate) use self::schedule::Schedule;
pub use self::scheduler::ReportScheduler;
pub(crate) use self::statement::{check_runs_as, may_see, run, schema};

use crate::Result;
use crate::engine::Shared;
use crate::holding::{Active, Held, is_abandoned};

/// A run, by its report and scheduled time.
pub(crate) type RunKey = (ReportId, i64);

/// Runs that this process is at.
pub(crate) type ActiveRuns = Active<RunKey>;
type ActiveRun = Held<RunKey>;

/// The reports of a home. Cheap to clone.
#[derive(Clone)]
pub struct Reports {
    shared: Arc<Shared>,
}

impl Reports {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Microseconds since 1970, by the clock of the engine.
    fn now(&self) -> i64 {
        self.shared.reuse.clock.now_ns().div_euclid(1000)
    }

    /// The run for one time, if there is one.
    async fn run_at(&self, report: &Report, at: i64) -> Result<Option<ReportRun>> {
        let wanted = RunQuery {
            report: Some(report.id),
            before: Some(at.saturating_add(1)),
            limit: Some(1),
            ..RunQuery::default()
        };
        let found = self.shared.store.report_runs(&wanted).await?;
        Ok(found.into_iter().find(|run| run.scheduled_for == at))
    }

    /// Whether a run that somebody began is nobody's any more.
    fn is_abandoned(&self, run: &ReportRun, now: i64) -> bool {
        is_abandoned(&self.shared.home, run.holder.as_deref(), run.lease_until, now, || {
            self.shared.active_runs.contains(&(run.report, run.scheduled_for))
        })
    }
}

impl std::fmt::Debug for Reports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reports").finish_non_exhaustive()
    }
}
