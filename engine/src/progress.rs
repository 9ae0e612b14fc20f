//! [`Progress`]: a window on a running statement, shared by who runs it and who shows it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::physical_plan::ExecutionPlan;
use nectarine_executor::{Counts, ScanTotals, file_scan};
use parking_lot::Mutex;

use crate::metrics::PlanMetrics;

/// How far a statement is. Cheap to clone; all clones show the same statement.
#[derive(Clone)]
pub struct Progress {
    state: Arc<Mutex<State>>,
}

struct State {
    started: Instant,
    phase: &'static str,
    plan: Option<Arc<dyn ExecutionPlan>>,
    /// What the scans of the plan will read.
    totals: ScanTotals,
    /// How far the cluster is.
    stages: Counts,
    /// What a server told, of a statement that runs there.
    told: Option<ProgressSnapshot>,
}

/// One look at a running statement.
#[derive(Clone, Debug)]
pub struct ProgressSnapshot {
    /// `planning`, `running`, `done`.
    pub phase: &'static str,
    /// Since the statement began.
    pub elapsed: Duration,
    /// Rows read from extents so far.
    pub rows_scanned: u64,
    /// Bytes of extents read so far.
    pub bytes_scanned: u64,
    /// Bytes of all extents in the plan.
    pub bytes_total: u64,
    /// Files finished so far; of those that are read in pieces, about.
    pub files_done: u64,
    /// Files in the plan.
    pub files_total: u64,
    /// Part of the scans that is done, 0 to 1, where it can be told.
    pub fraction: Option<f64>,
    /// Bytes spilled to disk so far.
    pub bytes_spilled: u64,
    /// On the cluster: stages that have ended.
    pub stages_done: u64,
    /// On the cluster: stages of the plan; 0 in this process.
    pub stages_total: u64,
    /// On the cluster: tasks that have ended.
    pub tasks_done: u64,
    /// On the cluster: tasks, as far as it is known.
    pub tasks_total: u64,
}

impl Progress {
    /// A window on a statement that has not begun.
    pub fn new() -> Self {
        let state = State {
            started: Instant::now(),
            phase: "planning",
            plan: None,
            totals: ScanTotals::default(),
            stages: Counts::default(),
            told: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How far it is now.
    pub fn snapshot(&self) -> ProgressSnapshot {
        let state = self.state.lock();
        if let Some(told) = &state.told {
            return ProgressSnapshot { elapsed: state.started.elapsed(), ..told.clone() };
        }
        let metrics = state.plan.as_ref().map(|plan| PlanMetrics::of(plan.as_ref())).unwrap_or_default();
        let ScanTotals { files, pieces, bytes } = state.totals;
        let done = metrics.files_done.min(pieces);
        let stages = state.stages;
        // Executors do not tell which files they read.
        let fraction = match stages.tasks {
            0 => (pieces > 0).then(|| done as f64 / pieces as f64),
            tasks => Some(stages.tasks_done as f64 / tasks as f64),
        };
        ProgressSnapshot {
            phase: state.phase,
            elapsed: state.started.elapsed(),
            rows_scanned: metrics.rows_scanned,
            bytes_scanned: metrics.bytes_scanned,
            bytes_total: bytes,
            files_done: (done * files).checked_div(pieces).unwrap_or(0),
            files_total: files,
            fraction,
            bytes_spilled: metrics.bytes_spilled,
            stages_done: stages.stages_done as u64,
            stages_total: stages.stages as u64,
            tasks_done: stages.tasks_done as u64,
            tasks_total: stages.tasks as u64,
        }
    }

    pub(crate) fn start(&self) {
        let mut state = self.state.lock();
        state.started = Instant::now();
        state.phase = "planning";
        state.plan = None;
        state.stages = Counts::default();
        state.told = None;
    }

    /// How far the cluster is.
    pub(crate) fn stages(&self, counts: Counts) {
        self.state.lock().stages = counts;
    }

    /// How far it is elsewhere.
    pub(crate) fn told(&self, now: ProgressSnapshot) {
        self.state.lock().told = Some(now);
    }

    pub(crate) fn running(&self, plan: &Arc<dyn ExecutionPlan>) {
        let totals = totals(plan.as_ref());
        let mut state = self.state.lock();
        state.phase = "running";
        state.plan = Some(Arc::clone(plan));
        state.totals = totals;
    }

    pub(crate) fn done(&self) {
        let mut state = self.state.lock();
        state.phase = "done";
        state.plan = None;
        state.stages = Counts::default();
        state.told = None;
    }
}

fn totals(plan: &dyn ExecutionPlan) -> ScanTotals {
    let own = file_scan(plan).map(ScanTotals::of).unwrap_or_default();
    plan.children().into_iter().fold(own, |all, child| all + totals(child.as_ref()))
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}
