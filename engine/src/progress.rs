//! [`Progress`]: a window on a running statement, shared by who runs it and who shows it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_executor::{Counts, ScanTotals, file_scan};
use parking_lot::Mutex;

use crate::metrics::PlanMetrics;

/// The largest part of a scan that is told before all of its pieces are finished.
const UNFINISHED_MAX: f64 = 0.99;

/// How far a statement is. Cheap to clone; all clones show the same statement.
#[derive(Clone)]
pub struct Progress {
    state: Arc<Mutex<State>>,
}

struct State {
    started: Instant,
    phase: &'static str,
    plan: Option<Arc<dyn ExecutionPlan>>,
    /// The scans of the plan.
    scans: Vec<Scan>,
    /// What they will read together.
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
    /// Part of the scans that is done, 0 to 1, where it can be told: by what they have read, and 1 when all files are finished.
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
            scans: vec![],
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
            0 => fraction(state.scans.iter().map(|scan| (&scan.all, PlanMetrics::of(scan.node.as_ref())))),
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
        state.scans.clear();
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
        let mut scans = vec![];
        add_scans(plan, &mut scans);
        let totals = scans.iter().fold(ScanTotals::default(), |sum, scan| sum + scan.all.totals);
        let mut state = self.state.lock();
        state.phase = "running";
        state.plan = Some(Arc::clone(plan));
        state.scans = scans;
        state.totals = totals;
    }

    pub(crate) fn done(&self) {
        let mut state = self.state.lock();
        state.phase = "done";
        state.plan = None;
        state.scans.clear();
        state.stages = Counts::default();
        state.told = None;
    }
}

/// A scan of a plan.
struct Scan {
    node: Arc<dyn ExecutionPlan>,
    all: ScanAll,
}

/// All that a scan has to read.
struct ScanAll {
    totals: ScanTotals,
    /// Its rows, if they are known.
    rows: u64,
    /// Whether bytes count when they are read; those of some formats count when a file is opened.
    tells_bytes: bool,
}

impl ScanAll {
    fn of(config: &FileScanConfig) -> Self {
        let rows = config.statistics().num_rows.get_value().map_or(0, |rows| *rows as u64);
        let tells_bytes = matches!(config.file_source().file_type(), "parquet" | "csv" | "json");
        Self { totals: ScanTotals::of(config), rows, tells_bytes }
    }

    /// Part of it that was read. Each way to tell falls short: pieces may be few, bytes are only those of the columns that are read, rows
    /// only those that some filters let through.
    fn part_of(&self, read: &PlanMetrics) -> f64 {
        let part = |done: u64, all: u64| if all == 0 { 0.0 } else { done as f64 / all as f64 };
        if read.files_done >= self.totals.pieces {
            return 1.0;
        }
        let pieces = part(read.files_done, self.totals.pieces);
        let bytes = if self.tells_bytes { part(read.bytes_scanned, self.totals.bytes) } else { 0.0 };
        pieces.max(bytes).max(part(read.rows_scanned, self.rows)).min(UNFINISHED_MAX)
    }
}

/// Part of all scans that was read: each counts by its bytes. `None` if there is nothing to read.
fn fraction<'a>(scans: impl Iterator<Item = (&'a ScanAll, PlanMetrics)>) -> Option<f64> {
    let (mut done, mut all) = (0.0, 0.0);
    for (scan, read) in scans.filter(|(scan, _)| scan.totals.pieces > 0) {
        let weight = scan.totals.bytes.max(1) as f64;
        done += weight * scan.part_of(&read);
        all += weight;
    }
    (all > 0.0).then(|| done / all)
}

fn add_scans(plan: &Arc<dyn ExecutionPlan>, scans: &mut Vec<Scan>) {
    if let Some(config) = file_scan(plan.as_ref()) {
        scans.push(Scan { node: Arc::clone(plan), all: ScanAll::of(config) });
    }
    for child in plan.children() {
        add_scans(child, scans);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pieces: u64, bytes: u64, rows: u64) -> ScanAll {
        ScanAll { totals: ScanTotals { files: 1, pieces, bytes }, rows, tells_bytes: true }
    }

    fn read(files_done: u64, bytes_scanned: u64, rows_scanned: u64) -> PlanMetrics {
        PlanMetrics { files_done, bytes_scanned, rows_scanned, ..PlanMetrics::default() }
    }

    #[test]
    fn one_large_file_is_told_by_what_was_read() {
        let large = scan(1, 1_000, 0);
        let told = [0, 10, 500, 990, 1_000, 1_200].map(|bytes| large.part_of(&read(0, bytes, 0)));
        assert_eq!(told, [0.0, 0.01, 0.5, 0.99, 0.99, 0.99]);
        assert_eq!(large.part_of(&read(1, 1_000, 0)), 1.0);
    }

    #[test]
    fn few_columns_are_few_bytes() {
        // A tenth of the bytes is all that is read of it.
        let narrow = scan(4, 1_000, 200);
        assert_eq!(narrow.part_of(&read(0, 50, 100)), 0.5);
        assert_eq!(narrow.part_of(&read(2, 60, 0)), 0.5);
        assert_eq!(narrow.part_of(&read(4, 100, 150)), 1.0);
        // Bytes that count when a file is opened tell nothing.
        let opened = ScanAll { tells_bytes: false, ..scan(1, 1_000, 0) };
        assert_eq!(opened.part_of(&read(0, 1_000, 0)), 0.0);
    }

    #[test]
    fn scans_count_by_their_bytes() {
        let (fact, dimension, nothing) = (scan(2, 900, 0), scan(5, 100, 0), scan(0, 0, 0));
        let of = |of_fact, of_dimension| {
            fraction([(&fact, of_fact), (&dimension, of_dimension), (&nothing, read(0, 0, 0))].into_iter())
        };
        assert_eq!(of(read(0, 0, 0), read(5, 100, 0)), Some(0.1));
        assert_eq!(of(read(1, 450, 0), read(5, 100, 0)), Some(0.55));
        assert_eq!(of(read(2, 900, 0), read(5, 100, 0)), Some(1.0));
        assert_eq!(fraction([(&nothing, read(0, 0, 0))].into_iter()), None);
        // Files that are all empty.
        assert_eq!(fraction([(&scan(2, 0, 0), read(1, 0, 0))].into_iter()), Some(0.5));
    }
}
