//! [`Progress`]: a window on a running statement, shared by who runs it and who shows it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
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
    bytes_total: u64,
    files_total: u64,
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
    /// Files, or pieces of large ones, finished so far.
    pub files_done: u64,
    /// Files, or pieces of large ones, in the plan.
    pub files_total: u64,
    /// Part of the scans that is done, 0 to 1, where it can be told.
    pub fraction: Option<f64>,
    /// Bytes spilled to disk so far.
    pub bytes_spilled: u64,
}

impl Progress {
    /// A window on a statement that has not begun.
    pub fn new() -> Self {
        let state = State { started: Instant::now(), phase: "planning", plan: None, bytes_total: 0, files_total: 0 };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How far it is now.
    pub fn snapshot(&self) -> ProgressSnapshot {
        let state = self.state.lock();
        let metrics = state.plan.as_ref().map(|plan| PlanMetrics::of(plan.as_ref())).unwrap_or_default();
        let done = metrics.files_done.min(state.files_total);
        let fraction = (state.files_total > 0).then(|| done as f64 / state.files_total as f64);
        ProgressSnapshot {
            phase: state.phase,
            elapsed: state.started.elapsed(),
            rows_scanned: metrics.rows_scanned,
            bytes_scanned: metrics.bytes_scanned,
            bytes_total: state.bytes_total,
            files_done: done,
            files_total: state.files_total,
            fraction,
            bytes_spilled: metrics.bytes_spilled,
        }
    }

    pub(crate) fn start(&self) {
        let mut state = self.state.lock();
        state.started = Instant::now();
        state.phase = "planning";
        state.plan = None;
    }

    pub(crate) fn running(&self, plan: &Arc<dyn ExecutionPlan>) {
        let (files, bytes) = totals(plan.as_ref());
        let mut state = self.state.lock();
        state.phase = "running";
        state.plan = Some(Arc::clone(plan));
        state.files_total = files;
        state.bytes_total = bytes;
    }

    pub(crate) fn done(&self) {
        let mut state = self.state.lock();
        state.phase = "done";
        state.plan = None;
    }
}

/// Files and bytes that the scans of a plan will read.
fn totals(plan: &dyn ExecutionPlan) -> (u64, u64) {
    let mut sum = (0, 0);
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>()
        && let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>()
    {
        for file in config.file_groups.iter().flat_map(|group| group.files()) {
            sum.0 += 1;
            sum.1 += file.effective_size();
        }
    }
    for child in plan.children() {
        let (files, bytes) = totals(child.as_ref());
        sum = (sum.0 + files, sum.1 + bytes);
    }
    sum
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
