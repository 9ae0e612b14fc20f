//! A command after a run, where the server allows it (`nectarine.report_hooks`).
//!
//! It learns what happened from its environment: `NECTARINE_REPORT`, `NECTARINE_STATE`, `NECTARINE_OUTPUT`, `NECTARINE_ROWS`,
//! `NECTARINE_SCHEDULED_FOR` (RFC 3339) and `NECTARINE_ERROR`. What it does wrong changes nothing about the run: it is told in
//! the log. A run that is found finished by somebody who took it over may have had its command or not.

use std::process::Stdio;
use std::time::Duration;

use chrono::{DateTime, Utc};
use nectarine_catalog::{Report, ReportRun};
use tokio::process::Command;

/// How long a command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the command of a report, if it has one.
pub(super) async fn call(report: &Report, run: &ReportRun) {
    let Some(hook) = &report.spec.hook else { return };
    let at = DateTime::<Utc>::from_timestamp_micros(run.scheduled_for).unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(hook)
        .env("NECTARINE_REPORT", &report.name)
        .env("NECTARINE_STATE", run.state.word())
        .env("NECTARINE_OUTPUT", run.output.as_deref().unwrap_or_default())
        .env("NECTARINE_ROWS", run.rows.map(|rows| rows.to_string()).unwrap_or_default())
        .env("NECTARINE_SCHEDULED_FOR", at.to_rfc3339())
        .env("NECTARINE_ERROR", run.error.as_deref().unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let ended = match tokio::time::timeout(PATIENCE, command.status()).await {
        Ok(Ok(status)) if status.success() => return,
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took longer than {} seconds", PATIENCE.as_secs()),
    };
    tracing::warn!(report = report.name, hook, ended, "the hook of a report failed");
}
