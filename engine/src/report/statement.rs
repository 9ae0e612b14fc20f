//! Statements about reports.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeZone};
use datafusion::physical_plan::memory::MemoryStream;
use nectarine_catalog::{CatalogError, Report, ReportId, ReportOutput};
use nectarine_planner::sql::ReportStatement;
use sqlparser::ast::Ident;

use super::check::check;
use super::define::specify;
use super::definition::definition;
use super::rows::{batch, explain_schema, runs_batch, runs_schema, show_create_schema, shown, shown_schema};
use super::run::find;
use super::schedule::parse_zone;
use super::{Reports, Schedule};
use crate::access::Rights;
use crate::command::StatementRun;
use crate::ddl::normal;
use crate::redact::redact;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Notice, Result};

/// Carries one out.
pub(crate) async fn run(run: &StatementRun<'_>, statement: ReportStatement) -> Result<Answer> {
    let store = &run.catalog.shared.store;
    let name_of = |name: &Ident| normal(name, run.state.config_options());
    let reports = Reports::new(Arc::clone(&run.catalog.shared));
    let all = store.reports().await?;
    match statement {
        ReportStatement::Create { name, or_replace, if_not_exists, dry_run, clauses } => {
            let name = checked_name(name_of(&name))?;
            let before = all.iter().find(|report| report.name == name);
            match before {
                Some(_) if if_not_exists => {
                    return Ok(run.noticed("CREATE REPORT", format!("report \"{name}\" already exists, skipping")));
                }
                Some(_) if !or_replace => return Err(CatalogError::AlreadyExists { what: "report", name }.into()),
                Some(before) => check_owns(run.rights(), before)?,
                None => {}
            }
            let spec = specify(run, None, &clauses)?;
            check(run, &name, &spec, &all, dry_run).await?;
            let now = reports.now();
            let report = match before {
                // What it did stays known, and whether it is paused.
                Some(before) => changed(before, Report { spec, ..before.clone() }, now),
                None => Report {
                    id: ReportId::new(),
                    name,
                    spec,
                    owner: run.rights().user().map(str::to_string),
                    paused: false,
                    created_at: now,
                    scheduled_to: now,
                },
            };
            if dry_run {
                let change = match before.map(|before| before.spec == report.spec) {
                    None => "new",
                    Some(false) => "changed",
                    Some(true) => "same",
                };
                let values = [report.name.clone(), change.to_string(), redact(&definition(&report))];
                let columns = values.map(|value| Arc::new(StringArray::from(vec![value])) as ArrayRef);
                return rows(run, batch(explain_schema(), columns.to_vec())?);
            }
            match before {
                Some(_) => store.change_report(&report).await?,
                None => store.create_report(&report).await?,
            }
            Ok(run.noticed_all("CREATE REPORT", notices(run, &report)))
        }
        ReportStatement::Alter { name, if_exists, clauses } => {
            let Some(before) = owned(run, &all, &name_of(&name), if_exists)? else {
                return Ok(run.noticed("ALTER REPORT", format!("report \"{name}\" does not exist, skipping")));
            };
            let spec = specify(run, Some(&before.spec), &clauses)?;
            check(run, &before.name, &spec, &all, false).await?;
            let report = changed(before, Report { spec, ..before.clone() }, reports.now());
            store.change_report(&report).await?;
            Ok(run.noticed_all("ALTER REPORT", notices(run, &report)))
        }
        ReportStatement::Rename { name, if_exists, new_name } => {
            let Some(before) = owned(run, &all, &name_of(&name), if_exists)? else {
                return Ok(run.noticed("ALTER REPORT", format!("report \"{name}\" does not exist, skipping")));
            };
            let new_name = checked_name(name_of(&new_name))?;
            if let Some(other) = all.iter().find(|other| other.spec.depends_on.contains(&before.name)) {
                let message =
                    format!("cannot rename report \"{}\": report \"{}\" depends on it", before.name, other.name);
                return Err(EngineError::new(ErrorKind::Sql, message));
            }
            store.change_report(&Report { name: new_name, ..before.clone() }).await?;
            Ok(run.command("ALTER REPORT"))
        }
        ReportStatement::SetOwner { name, if_exists, owner } => {
            let Some(before) = owned(run, &all, &name_of(&name), if_exists)? else {
                return Ok(run.noticed("ALTER REPORT", format!("report \"{name}\" does not exist, skipping")));
            };
            let owner = name_of(&owner);
            check_runs_as(run.rights(), &owner)?;
            run.rights().check_gives_to(&owner, None)?;
            store.change_report(&Report { owner: Some(owner), ..before.clone() }).await?;
            Ok(run.command("ALTER REPORT"))
        }
        ReportStatement::Drop { names, if_exists } => {
            let names: Vec<String> = names.iter().map(name_of).collect();
            let mut found = vec![];
            for name in &names {
                found.extend(owned(run, &all, name, if_exists)?);
            }
            for report in &found {
                let needs =
                    |other: &&Report| other.spec.depends_on.contains(&report.name) && !names.contains(&other.name);
                if let Some(other) = all.iter().find(needs) {
                    let message =
                        format!("cannot drop report \"{}\": report \"{}\" depends on it", report.name, other.name);
                    return Err(EngineError::new(ErrorKind::Sql, message));
                }
            }
            for report in found {
                store.drop_report(report.id).await?;
            }
            Ok(run.command("DROP REPORT"))
        }
        ReportStatement::Pause { name, paused } => {
            let before = find(&all, &name_of(&name))?;
            check_owns(run.rights(), before)?;
            // Times that passed while it was paused were not missed.
            let scheduled_to = if before.paused && !paused { reports.now() } else { before.scheduled_to };
            store.change_report(&Report { paused, scheduled_to, ..before.clone() }).await?;
            Ok(run.command(if paused { "PAUSE REPORT" } else { "RESUME REPORT" }))
        }
        ReportStatement::Run { name, time } => {
            let report = find(&all, &name_of(&name))?;
            check_owns(run.rights(), report)?;
            let at = match time {
                Some(text) => parse_time(&text, &report.spec.time_zone)?,
                None => reports.now().div_euclid(1_000_000) * 1_000_000,
            };
            let ended = reports.run_for(report, at).await?;
            rows(run, runs_batch(&[(report.name.clone(), ended)])?)
        }
        ReportStatement::Show => {
            let seen: Vec<&Report> = all.iter().filter(|report| may_see(run.rights(), report)).collect();
            rows(run, shown(&seen, reports.now())?)
        }
        ReportStatement::ShowCreate(name) => {
            let report = find(&all, &name_of(&name))?;
            check_owns(run.rights(), report)?;
            let columns: Vec<ArrayRef> = vec![
                Arc::new(StringArray::from(vec![report.name.clone()])),
                Arc::new(StringArray::from(vec![redact(&definition(report))])),
            ];
            rows(run, batch(show_create_schema(), columns)?)
        }
    }
}

/// Columns of those that answer with rows.
pub(crate) fn schema(statement: &ReportStatement) -> Option<SchemaRef> {
    match statement {
        ReportStatement::Run { .. } => Some(runs_schema()),
        ReportStatement::Create { dry_run: true, .. } => Some(explain_schema()),
        ReportStatement::Show => Some(shown_schema()),
        ReportStatement::ShowCreate(_) => Some(show_create_schema()),
        _ => None,
    }
}

/// A report that became another: a new schedule begins now, so that it has no past to catch up with.
fn changed(before: &Report, mut report: Report, now: i64) -> Report {
    if (&before.spec.schedule, &before.spec.time_zone) != (&report.spec.schedule, &report.spec.time_zone) {
        report.scheduled_to = now;
    }
    report
}

fn checked_name(name: String) -> Result<String> {
    match name.is_empty() || name.chars().any(char::is_control) {
        true => Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" is no name for a report", name.escape_debug()))),
        false => Ok(name),
    }
}

/// The report of a name, if it may be changed; `None` if there is none and that is no error.
fn owned<'a>(run: &StatementRun<'_>, all: &'a [Report], name: &str, if_exists: bool) -> Result<Option<&'a Report>> {
    match find(all, name) {
        Err(_) if if_exists => Ok(None),
        found => {
            let found = found?;
            check_owns(run.rights(), found)?;
            Ok(Some(found))
        }
    }
}

/// Whether somebody may know of a report: it is his, or his role's.
pub(crate) fn may_see(rights: &Rights, report: &Report) -> bool {
    let Some(user) = rights.user() else { return true };
    rights.is_admin() || report.owner.as_deref().is_some_and(|owner| rights.access().roles_of(user).contains(owner))
}

fn check_owns(rights: &Rights, report: &Report) -> Result<()> {
    match may_see(rights, report) {
        true => Ok(()),
        false => Err(EngineError::new(ErrorKind::Denied, format!("permission denied for report \"{}\"", report.name))
            .with_detail("only its owner, and administrators, may change or run it")),
    }
}

/// A report runs as somebody who can log in.
pub(crate) fn check_runs_as(rights: &Rights, owner: &str) -> Result<()> {
    match rights.access().roles.get(owner) {
        None => Err(CatalogError::NotFound { what: "user", name: owner.to_string() }.into()),
        Some(role) if role.password.is_none() => {
            Err(EngineError::new(ErrorKind::Sql, format!("\"{owner}\" is a role, and a report runs as a user")))
        }
        Some(_) => Ok(()),
    }
}

/// What is allowed and may not be meant.
fn notices(run: &StatementRun<'_>, report: &Report) -> Vec<Notice> {
    let mut notices = vec![];
    if report.spec.hook.is_some() && !crate::engine::options(run.state.config_options()).report_hooks {
        notices.push(Notice {
            message: format!("the hook of report \"{}\" will not be run", report.name),
            hint: Some("start with --set report_hooks=true".to_string()),
        });
    }
    if let (ReportOutput::File(pattern), Ok(schedule)) =
        (&report.spec.output, Schedule::parse(&report.spec.schedule, &report.spec.time_zone))
        && let Some(first) = schedule.next_after(report.scheduled_to)
        && let Some(second) = schedule.next_after(first)
    {
        let name = |at| super::place::fill(pattern, &report.name, at, &report.spec.time_zone).ok();
        if name(first) == name(second) {
            notices.push(Notice {
                message: format!("each run of report \"{}\" replaces the output of the one before", report.name),
                hint: Some("{date}, {hour}, {minute} or {timestamp} in the name keep them apart".to_string()),
            });
        }
    }
    notices
}

/// A time as people write it: by the report's zone, unless it says otherwise.
fn parse_time(text: &str, zone: &str) -> Result<i64> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Ok(time.timestamp_micros());
    }
    let zone = parse_zone(zone)?;
    let formats = ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M"];
    let time = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let time = time.or_else(|| NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_hms_opt(0, 0, 0));
    let Some(time) = time else {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{text}\" is no time"))
            .with_hint("such as '2026-11-17', '2026-11-17 06:00' or '2026-11-17T06:00:00Z'"));
    };
    // One that comes twice is the first of both.
    match zone.from_local_datetime(&time).earliest() {
        Some(time) => Ok(time.timestamp_micros()),
        None => Err(EngineError::new(ErrorKind::Sql, format!("there is no \"{text}\" in {}", zone.name()))
            .with_detail("the clock jumps over it")),
    }
}

fn rows(run: &StatementRun<'_>, batch: RecordBatch) -> Result<Answer> {
    let schema = batch.schema();
    run.record.finished(batch.num_rows() as u64);
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, vec![], Box::pin(stream)))
}
