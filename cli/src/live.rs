//! [`Live`]: one line on stderr that shows how far a long statement is, and vanishes when it is done.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use nectarine_engine::ProgressSnapshot;

use crate::units;

/// A statement this quick needs no line.
const QUIET: Duration = Duration::from_millis(500);

/// How often the line changes.
pub(crate) const PERIOD: Duration = Duration::from_millis(100);

/// The line, visible or not.
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    enabled: bool,
}

impl Live {
    pub(crate) fn new(enabled: bool) -> Self {
        Self { bar: None, enabled }
    }

    /// Shows the statement as it is now.
    pub(crate) fn show(&mut self, now: &ProgressSnapshot) {
        if !self.enabled || now.elapsed < QUIET {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            // Not `wide_msg`: a line filled to its end wraps when the terminal echoes ^C, and could not be taken away.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
                bar.set_style(style);
            }
            bar
        });
        bar.set_message(describe(now));
        bar.tick();
    }

    /// Takes the line away, so that something else can be written.
    pub(crate) fn hide(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.hide();
    }
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
    if now.files_total > 0 {
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
    }
}
