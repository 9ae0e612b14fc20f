//! What a statement says of a report, completed.

use nectarine_catalog::{CatchUp, Concurrency, Location, ReportOutput, ReportSpec, TableName, looks_like_location};
use nectarine_planner::sql::{ParseOptions, ReportClauses, ReportTarget, rename_relations, split_statements};

use super::place;
use crate::command::StatementRun;
use crate::ddl::{normal, reference};
use crate::{EngineError, ErrorKind, Result};

/// Time before the first retry, unless it is said.
const BACKOFF_S: u64 = 60;
/// Retries at the most: each is one more hour or so in which a run is neither here nor there.
const RETRIES_MAX: u32 = 100;

/// What a report does after a statement about it; `before` is what it did.
pub(super) fn specify(
    run: &StatementRun<'_>,
    before: Option<&ReportSpec>,
    clauses: &ReportClauses,
) -> Result<ReportSpec> {
    let missing = |clause: &str| {
        EngineError::new(ErrorKind::Sql, format!("a report needs {clause}"))
            .with_hint("CREATE REPORT name SCHEDULE '0 6 * * *' OUTPUT 'name-{date}.html' AS SELECT ..")
    };
    let config = run.state.config_options();
    let mut spec = match before {
        Some(before) => before.clone(),
        None => ReportSpec {
            schedule: clauses.schedule.clone().ok_or_else(|| missing("a SCHEDULE"))?,
            time_zone: "UTC".to_string(),
            output: match &clauses.output {
                Some(target) => output(run, target)?,
                None => return Err(missing("an OUTPUT")),
            },
            statements: vec![],
            default_schema: config.catalog.default_schema.clone(),
            title: None,
            chart: None,
            retries: 0,
            backoff_s: BACKOFF_S,
            timeout_s: 0,
            catch_up: CatchUp::default(),
            concurrency: Concurrency::default(),
            depends_on: vec![],
            expect: vec![],
            hook: None,
        },
    };
    if let Some(schedule) = &clauses.schedule {
        spec.schedule = schedule.trim().to_string();
    }
    if let Some(zone) = &clauses.time_zone {
        spec.time_zone = zone.trim().to_string();
    }
    if let (Some(target), Some(_)) = (&clauses.output, before) {
        spec.output = output(run, target)?;
    }
    if let Some(body) = &clauses.body {
        spec.statements = statements(run, body)?;
        spec.default_schema = config.catalog.default_schema.clone();
    }
    if spec.statements.is_empty() {
        return Err(missing("a query"));
    }
    if let Some(retries) = clauses.retries {
        if retries > RETRIES_MAX {
            return Err(EngineError::new(ErrorKind::Sql, format!("a run is tried again at most {RETRIES_MAX} times")));
        }
        spec.retries = retries;
    }
    if let Some(backoff) = &clauses.backoff {
        spec.backoff_s = duration_s(backoff)?;
    }
    if let Some(timeout) = &clauses.timeout {
        spec.timeout_s = duration_s(timeout)?;
    }
    match clauses.catch_up.as_deref() {
        Some("none") => spec.catch_up = CatchUp::None,
        Some("all") => spec.catch_up = CatchUp::All,
        Some(_) => spec.catch_up = CatchUp::Last,
        None => {}
    }
    match clauses.concurrency.as_deref() {
        Some("skip") => spec.concurrency = Concurrency::Skip,
        Some("allow") => spec.concurrency = Concurrency::Allow,
        Some(_) => spec.concurrency = Concurrency::Queue,
        None => {}
    }
    if let Some(names) = &clauses.depends_on {
        spec.depends_on = names.iter().map(|name| normal(name, config)).collect();
    }
    if let Some(conditions) = &clauses.expect {
        spec.expect.clone_from(conditions);
    }
    if let Some(title) = &clauses.title {
        spec.title = Some(title.clone()).filter(|title| !title.is_empty());
    }
    if let Some(chart) = &clauses.chart {
        spec.chart = Some(chart.clone()).filter(|chart| chart != "auto");
    }
    if let Some(hook) = &clauses.hook {
        spec.hook = Some(hook.clone()).filter(|hook| !hook.is_empty());
    }
    Ok(spec)
}

fn output(run: &StatementRun<'_>, target: &ReportTarget) -> Result<ReportOutput> {
    match target {
        ReportTarget::File(pattern) => place::absolute(pattern).map(ReportOutput::File),
        ReportTarget::Table(name) => {
            run.table_name(&reference(name, run.state.config_options())?).map(ReportOutput::Table)
        }
    }
}

/// The statements of a body, with paths that begin at the root.
pub(crate) fn statements(run: &StatementRun<'_>, body: &str) -> Result<Vec<String>> {
    let options = ParseOptions::from(run.state.config_options().as_ref());
    let base = std::env::current_dir()?;
    let schema = &run.state.config_options().catalog.default_schema;
    let rename = |name: &str| {
        if !looks_like_location(name) || run.catalog.view.tables.contains_key(&TableName::new(schema.as_str(), name)) {
            return None;
        }
        let location = Location::parse(name, &base).ok()?;
        (location.is_local() && location.as_str() != name).then(|| location.to_string())
    };
    let texts = split_statements(body).into_iter().map(|range| &body[range]);
    // What is no SQL is told when it is looked at as a statement.
    Ok(texts.map(|text| rename_relations(text, &options, rename).unwrap_or_else(|_| text.to_string())).collect())
}

/// `90`, `30s`, `5 minutes`, `2 hours`, in seconds.
pub(crate) fn duration_s(text: &str) -> Result<u64> {
    let trimmed = text.trim();
    let digits = trimmed.len() - trimmed.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = trimmed.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3600,
        "d" | "day" | "days" => 86_400,
        _ => 0,
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    seconds.filter(|seconds| factor > 0 && *seconds <= 366 * 86_400).ok_or_else(|| {
        EngineError::new(ErrorKind::Sql, format!("\"{text}\" is no duration"))
            .with_hint("such as '30 seconds' or '2 hours'")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in [("90", 90), ("30s", 30), ("5 minutes", 300), (" 2 hours ", 7200), ("1d", 86_400)] {
            assert_eq!(duration_s(text).unwrap_or_else(|error| panic!("{text}: {error}")), seconds);
        }
        for text in ["", "soon", "5 years", "-1s", "1.5h", "99999999999999999999s", "99999999999 days"] {
            assert!(duration_s(text).is_err(), "{text}");
        }
    }
}
