//! `nectarine report`: what the statements about reports do, and reports kept as files.

mod apply;

use crate::args::ReportTask;
use crate::exec::{Flow, Shell};
use crate::failure::Result;
use crate::print::{Expanded, View};

/// Does what was asked for.
pub(crate) fn run(shell: &mut Shell, task: &ReportTask) -> anyhow::Result<Flow> {
    Ok(match carry_out(shell, task) {
        Ok(()) => Flow::Done,
        Err(failure) => shell.fail(&failure, None),
    })
}

fn carry_out(shell: &mut Shell, task: &ReportTask) -> Result<()> {
    let view = shell.view.clone();
    match task {
        ReportTask::Ls => {
            let sql = "SELECT r.name AS report, r.schedule, r.time_zone, r.output, \
                       CASE WHEN r.paused THEN 'paused' ELSE 'active' END AS state, r.next_run, l.last_run, l.last_state \
                       FROM system.reports AS r LEFT JOIN (SELECT report, scheduled_for AS last_run, state AS last_state, \
                       row_number() OVER (PARTITION BY report ORDER BY scheduled_for DESC) AS nth FROM system.report_runs) AS l \
                       ON l.report = r.name AND l.nth = 1 ORDER BY r.name";
            shell.print_answer(sql, &view, None).map(drop)
        }
        ReportTask::Show { name } => {
            let sql = format!("SELECT * FROM system.reports WHERE name = {}", quoted(name, '\''));
            let expanded = View { expanded: Expanded::On, ..view.clone() };
            shell.print_answer(&sql, &expanded, None)?;
            let sql = format!(
                "SELECT scheduled_for, state, rows, output, round(elapsed_ms, 1) AS elapsed_ms, reused, \
                 round(saved_ms, 1) AS saved_ms, error FROM system.report_runs WHERE report = {} \
                 ORDER BY scheduled_for DESC LIMIT 10",
                quoted(name, '\'')
            );
            shell.print_answer(&sql, &view, None).map(drop)
        }
        ReportTask::Run { name, time } => {
            let time = time.as_ref().map(|time| format!(" FOR {}", quoted(time, '\''))).unwrap_or_default();
            shell.print_answer(&format!("RUN REPORT {}{time}", quoted(name, '"')), &view, None).map(drop)
        }
        ReportTask::Pause { name } => shell.run_statement(&format!("PAUSE REPORT {}", quoted(name, '"'))),
        ReportTask::Resume { name } => shell.run_statement(&format!("RESUME REPORT {}", quoted(name, '"'))),
        ReportTask::Drop { name } => shell.run_statement(&format!("DROP REPORT {}", quoted(name, '"'))),
        ReportTask::Apply { folder, dry_run, prune } => apply::apply(shell, folder, *dry_run, *prune),
        ReportTask::Diff { folder } => apply::diff(shell, folder),
    }
}

fn quoted(text: &str, quote: char) -> String {
    format!("{quote}{}{quote}", text.replace(quote, &format!("{quote}{quote}")))
}
