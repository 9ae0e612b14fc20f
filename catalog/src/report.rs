//! [`Report`]: a query that runs by the clock, and [`ReportRun`]: one scheduled time of it.
//!
//! ```text
//!   due --claimed--> running --+--> finished        there is one output for the scheduled time
//!    ^                         +--> failed          all tries are used up, or somebody else's run failed that it needs
//!    +------ tried again ------+
//!   skipped                                         the time passed while nobody looked, or while another run went on
//! ```
//!
//! Every change of a run names the attempt that it is about: who was believed dead and comes back finds another attempt in
//! its place and changes nothing. What it all means in SQL is the engine's business; here are texts.

use serde::{Deserialize, Serialize};

use crate::{Fingerprint, ReportId, TableName};

/// A report as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Stays through renames and changes.
    pub id: ReportId,
    /// Where users find it; reports have no schemas.
    pub name: String,
    /// What it does.
    pub spec: ReportSpec,
    /// Whose rights it runs with; of none, those of whoever has the home.
    pub owner: Option<String>,
    /// Whether its times pass without runs.
    pub paused: bool,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// Scheduled times up to here have their runs, or will never have one; microseconds since 1970.
    pub scheduled_to: i64,
}

/// What a report does. This is what is written down, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReportSpec {
    /// A cron pattern.
    pub schedule: String,
    /// Whose clock it goes by: a name of the IANA database.
    pub time_zone: String,
    /// Where its rows go.
    pub output: ReportOutput,
    /// Statements in order; the last one is a query.
    pub statements: Vec<String>,
    /// Where names without a schema are looked up.
    pub default_schema: String,
    /// What a page is called; the report's name without one.
    #[serde(default)]
    pub title: Option<String>,
    /// `bar`, `line` or `none`; chosen by the shape of the result without one.
    #[serde(default)]
    pub chart: Option<String>,
    /// How often a failed run is tried again.
    #[serde(default)]
    pub retries: u32,
    /// Time before the first retry, doubled with each one.
    #[serde(default)]
    pub backoff_s: u64,
    /// How long a run may take; 0 for as long as it needs.
    #[serde(default)]
    pub timeout_s: u64,
    /// What becomes of times that passed while nobody looked.
    #[serde(default)]
    pub catch_up: CatchUp,
    /// What becomes of a time that comes while an earlier one still runs.
    #[serde(default)]
    pub concurrency: Concurrency,
    /// Reports whose runs for the same time or earlier must have ended.
    #[serde(default)]
    pub depends_on: Vec<String>,
    /// Conditions on the output, as SQL; one that does not hold fails the run.
    #[serde(default)]
    pub expect: Vec<String>,
    /// A command that is run after each run, where the server allows it.
    #[serde(default)]
    pub hook: Option<String>,
}

/// Where the rows of a report go.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportOutput {
    /// A file for each time: path or URL with `{date}` and the like.
    File(String),
    /// Appended to a managed table.
    Table(TableName),
}

/// What becomes of times that passed while nobody looked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUp {
    /// They are skipped.
    None,
    /// The newest of them is run.
    #[default]
    Last,
    /// All are run, in order.
    All,
}

/// What becomes of a time that comes while an earlier one still runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concurrency {
    /// It waits.
    #[default]
    Queue,
    /// It is skipped.
    Skip,
    /// Both run.
    Allow,
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RunState {
    /// To be run.
    Due,
    /// Somebody is at it.
    Running,
    /// Its output is there.
    Finished,
    /// There is none, and there will be none.
    Failed,
    /// Nobody tried.
    Skipped,
}

impl RunState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Due, Self::Running, Self::Finished, Self::Failed, Self::Skipped];

    /// As it is stored and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// Reads it back.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether it will change by itself.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Due | Self::Running)
    }
}

/// One scheduled time of a report. Times are microseconds since 1970.
#[derive(Clone, PartialEq, Debug)]
pub struct ReportRun {
    /// Whose.
    pub report: ReportId,
    /// The scheduled time: a report has one run for each.
    pub scheduled_for: i64,
    /// How far it is.
    pub state: RunState,
    /// How often somebody began it.
    pub attempt: i64,
    /// How often it failed.
    pub failures: i64,
    /// Not to be begun before.
    pub not_before: i64,
    /// Which process runs it, or did last.
    pub holder: Option<String>,
    /// Until when it is that process's, if nobody can tell whether it lives.
    pub lease_until: Option<i64>,
    /// When it was last begun.
    pub started_at: Option<i64>,
    /// How long the last attempt took.
    pub elapsed_ms: Option<f64>,
    /// Rows of the output.
    pub rows: Option<i64>,
    /// Where the output is.
    pub output: Option<String>,
    /// What the bytes of the output hash to: written down before the file appears, so that whoever comes later knows it.
    pub digest: Option<Fingerprint>,
    /// `none`, `exact` or `partial`.
    pub reused: Option<String>,
    /// What that saved.
    pub saved_ms: Option<f64>,
    /// Why it failed, or was skipped.
    pub error: Option<String>,
}

impl ReportRun {
    /// One that is due.
    pub fn due(report: ReportId, scheduled_for: i64) -> Self {
        Self {
            report,
            scheduled_for,
            state: RunState::Due,
            attempt: 0,
            failures: 0,
            not_before: scheduled_for,
            holder: None,
            lease_until: None,
            started_at: None,
            elapsed_ms: None,
            rows: None,
            output: None,
            digest: None,
            reused: None,
            saved_ms: None,
            error: None,
        }
    }
}

/// Which runs to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RunQuery {
    /// Of this report only.
    pub report: Option<ReportId>,
    /// In these states only; in all of them if it is empty.
    pub states: Vec<RunState>,
    /// Scheduled before this time only.
    pub before: Option<i64>,
    /// At most so many; all if there is none.
    pub limit: Option<usize>,
}

/// How far the times of a report are planned.
#[derive(Clone, PartialEq, Debug)]
pub struct RunPlan {
    /// Whose.
    pub report: ReportId,
    /// What `scheduled_to` was when this was thought of: somebody else may have planned the same.
    pub from: i64,
    /// What it becomes.
    pub to: i64,
    /// New runs; those that are there stay as they are.
    pub runs: Vec<ReportRun>,
    /// How many runs that have ended stay, the newest.
    pub keep: usize,
}
