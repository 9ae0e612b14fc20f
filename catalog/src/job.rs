//! [`Job`]: statements that somebody left to the servers of a home, and how far they are.
//!
//! ```text
//!   waiting --claimed--> running --+--> finished     all statements have
//!      ^                   |       +--> failed       one of them did not, or nobody knows whether it did
//!      +----- let go ------+       +--> cancelled    by its owner; also while it waits
//! ```
//!
//! Every change names the state, the attempt and the number of finished statements that it is about: who was believed dead
//! and comes back finds another attempt in its place and changes nothing. What statements mean is the engine's business;
//! here are texts. (What runs on executors is called a job there, too: those are not written down.)

use serde::{Deserialize, Serialize};

use crate::{Extent, JobId, Replace, TableDef, TableId};

/// A job as it is kept. Times are microseconds since 1970.
#[derive(Clone, PartialEq, Debug)]
pub struct Job {
    /// Names it; later ones sort after earlier ones.
    pub id: JobId,
    /// What it does.
    pub spec: JobSpec,
    /// Whose rights it runs with; of none, those of whoever has the home.
    pub owner: Option<String>,
    /// When it was accepted.
    pub submitted_at: i64,
    /// How far it is.
    pub state: JobState,
    /// How often somebody began it, or went on with it.
    pub attempt: i64,
    /// How often since the last statement finished.
    pub tries: i64,
    /// How many of its statements have finished: the first ones.
    pub n_done: i64,
    /// Whether the statement after those was begun, and is one that must not be begun twice.
    pub begun: bool,
    /// Which process runs it, or did last.
    pub holder: Option<String>,
    /// Until when it is that process's, if nobody can tell whether it lives.
    pub lease_until: Option<i64>,
    /// When it was first begun.
    pub started_at: Option<i64>,
    /// When it came to its end.
    pub ended_at: Option<i64>,
    /// Rows that it leaves.
    pub result: Option<JobResult>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What a job does. This is what is written down, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobSpec {
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
    /// Statements in order.
    pub statements: Vec<String>,
    /// Settings of the session that it came from, with their values, in order.
    #[serde(default)]
    pub settings: Vec<(String, String)>,
    /// Where names without a schema are looked up.
    pub default_schema: String,
    /// How long it may take from its first beginning on; 0 for as long as it needs.
    #[serde(default)]
    pub timeout_s: u64,
}

/// Where the rows of a job are, and what is known of them. Written down as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct JobResult {
    /// The file's name among the results of the home.
    pub file: String,
    /// Which statement gave them, counted from 0.
    pub statement: usize,
    /// How many there are.
    pub rows: u64,
    /// The size of the file.
    pub bytes: u64,
    /// What the file hashes to.
    pub digest: String,
    /// `none`, `exact` or `partial`.
    pub reused: String,
    /// What that saved, microseconds.
    pub saved_us: u64,
    /// Cached results that were read.
    #[serde(default)]
    pub entries: Vec<String>,
    /// Extents that the rows are about, and those among them that were not read.
    #[serde(default)]
    pub extents: Option<(usize, usize)>,
    /// When the newest of them was written.
    #[serde(default)]
    pub data_to: Option<i64>,
}

/// How far a job is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum JobState {
    /// To be run.
    Waiting,
    /// Somebody is at it.
    Running,
    /// All of its statements have finished.
    Finished,
    /// One of them did not, and will not.
    Failed,
    /// Somebody did not want it any more.
    Cancelled,
}

impl JobState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Running, Self::Finished, Self::Failed, Self::Cancelled];

    /// As it is stored and shown.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Reads it back.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether it will change by itself.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Waiting | Self::Running)
    }
}

impl Job {
    /// One that waits.
    pub fn waiting(id: JobId, spec: JobSpec, owner: Option<String>, submitted_at: i64) -> Self {
        Self {
            id,
            spec,
            owner,
            submitted_at,
            state: JobState::Waiting,
            attempt: 0,
            tries: 0,
            n_done: 0,
            begun: false,
            holder: None,
            lease_until: None,
            started_at: None,
            ended_at: None,
            result: None,
            error: None,
        }
    }

    /// Where it is, for who wants to change it.
    pub fn at(&self) -> JobPoint {
        JobPoint { state: self.state, attempt: self.attempt, n_done: self.n_done }
    }
}

/// Where a job is believed to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobPoint {
    /// Its state.
    pub state: JobState,
    /// Its attempt.
    pub attempt: i64,
    /// How many of its statements have finished.
    pub n_done: i64,
}

/// What a statement of a job does to the catalog in the transaction that ends it.
#[derive(Clone, Copy, Debug)]
pub enum JobEffect<'a> {
    /// Adds extents at the end of a managed table.
    Append {
        /// Which one.
        table: TableId,
        /// Its new extents.
        extents: &'a [Extent],
    },
    /// Makes a table; see `MetadataStore::create_table`.
    Create {
        /// The table.
        table: &'a TableDef,
        /// Its first extents.
        extents: &'a [Extent],
        /// What becomes of one that has its name.
        replace: Replace,
    },
}

/// A change of a job that happened.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct JobChanged {
    /// The table that another took the place of.
    pub replaced: Option<TableDef>,
}

/// How many jobs may be open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JobBounds {
    /// Of everybody.
    pub all: usize,
    /// Of the same owner.
    pub of_owner: usize,
}

/// Which jobs to read.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct JobQuery {
    /// This one only.
    pub id: Option<JobId>,
    /// In these states only; in all of them if it is empty.
    pub states: Vec<JobState>,
    /// At most so many, those that were accepted first; all if there is none.
    pub limit: Option<usize>,
}
