//! [`Live`]: one line on stderr that shows how far a long statement is, and vanishes when it is done.

use std::io::Write;
use std::time::Duration;

use nectarine_engine::ProgressSnapshot;

use crate::terminal::Terminal;
use crate::units;

/// A statement this quick needs no line.
const QUIET: Duration = Duration::from_millis(500);

/// How often the line changes.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// What turns while the statement runs.
const SPINNER: [char; 8] = ['⠋', '⠙', '⠸', '⠴', '⠦', '⠇', '⠏', '⠹'];

/// To the beginning of the line, and nothing behind it. The line is never filled to its end: what the terminal echoes for
/// Ctrl-C then stands on it and goes with it.
const CLEAR: &str = "\r\x1b[2K";

/// The line, visible or not.
pub(crate) struct Live {
    terminal: Option<Terminal>,
    /// How often it was drawn since it was last taken away.
    n_drawn: usize,
}

impl Live {
    /// Nothing is shown without a terminal.
    pub(crate) fn new(terminal: Option<Terminal>) -> Self {
        Self { terminal, n_drawn: 0 }
    }

    /// Shows the statement as it is now.
    pub(crate) fn show(&mut self, now: &ProgressSnapshot) {
        let Some(terminal) = &self.terminal else { return };
        if now.elapsed < QUIET {
            return;
        }
        let room = terminal.size().map_or(80, |(columns, _)| columns).saturating_sub(6);
        let text: String = describe(now).chars().take(room).collect();
        draw(&format!("{CLEAR}{} {text}", SPINNER[self.n_drawn % SPINNER.len()]));
        self.n_drawn += 1;
    }

    /// Takes the line away, so that something else can be written.
    pub(crate) fn hide(&mut self) {
        if self.n_drawn > 0 {
            draw(CLEAR);
            self.n_drawn = 0;
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.hide();
    }
}

/// A reader who went away is no reason to stop.
fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// `42 %, 12 of 30 files, 1.2 M rows, 310 MB/s, 3.20 s, 4.00 s to go`.
fn describe(now: &ProgressSnapshot) -> String {
    let mut parts = Vec::new();
    if now.bytes_scanned == 0 && now.rows_scanned == 0 && now.files_total == 0 {
        parts.push(now.phase.to_owned());
    }
    if let Some(fraction) = now.fraction {
        parts.push(format!("{:.0} %", fraction.clamp(0.0, 1.0) * 100.0));
    }
    if now.stages_total > 0 {
        parts.push(format!("{} of {} stages", now.stages_done, now.stages_total));
        parts.push(format!("{} of {} tasks", now.tasks_done, now.tasks_total));
    } else if now.files_total > 0 {
        parts.push(format!("{} of {} files", now.files_done, now.files_total));
    }
    if now.rows_scanned > 0 {
        parts.push(format!("{} rows", units::count(now.rows_scanned)));
    }
    let seconds = now.elapsed.as_secs_f64();
    if now.bytes_scanned > 0 && seconds > 0.0 {
        parts.push(format!("{}/s", units::bytes((now.bytes_scanned as f64 / seconds) as u64)));
    }
    if now.bytes_spilled > 0 {
        parts.push(format!("{} spilled", units::bytes(now.bytes_spilled)));
    }
    parts.push(units::duration(now.elapsed));
    if let Some(left) = now.fraction.and_then(|fraction| time_left(now.elapsed, fraction)) {
        parts.push(format!("{} to go", units::duration(left)));
    }
    parts.join(", ")
}

/// As long again as the part that is missing, once enough is done to tell.
fn time_left(elapsed: Duration, fraction: f64) -> Option<Duration> {
    if !(0.01..1.0).contains(&fraction) {
        return None;
    }
    let left = elapsed.as_secs_f64() * (1.0 - fraction) / fraction;
    Duration::try_from_secs_f64(left).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> ProgressSnapshot {
        ProgressSnapshot {
            phase: "planning",
            elapsed: Duration::from_secs(3),
            rows_scanned: 0,
            bytes_scanned: 0,
            bytes_total: 0,
            files_done: 0,
            files_total: 0,
            fraction: None,
            bytes_spilled: 0,
            stages_done: 0,
            stages_total: 0,
            tasks_done: 0,
            tasks_total: 0,
        }
    }

    #[test]
    fn the_line_says_what_is_known() {
        assert_eq!(describe(&snapshot()), "planning, 3.00 s");
        let running = ProgressSnapshot {
            phase: "running",
            rows_scanned: 1_200_000,
            bytes_scanned: 930_000_000,
            bytes_total: 1_240_000_000,
            files_done: 12,
            files_total: 30,
            fraction: Some(0.75),
            ..snapshot()
        };
        assert_eq!(describe(&running), "75 %, 12 of 30 files, 1.2 M rows, 310 MB/s, 3.00 s, 1.00 s to go");
        let tasks = ProgressSnapshot { stages_total: 3, stages_done: 1, tasks_total: 8, tasks_done: 4, ..snapshot() };
        let tasks = ProgressSnapshot { fraction: Some(0.5), files_total: 30, ..tasks };
        assert_eq!(describe(&tasks), "50 %, 1 of 3 stages, 4 of 8 tasks, 3.00 s, 3.00 s to go");
    }
}
