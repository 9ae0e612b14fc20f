//! What a statement says of a report, checked and completed.

use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{CatalogError, CatchUp, Concurrency, Location, Privilege, Report, ReportOutput, ReportSpec};
use nectarine_catalog::{TableKind, TableName, looks_like_location};
use nectarine_planner::sql::{
    self, ParseOptions, ReportClauses, ReportTarget, Statement, rename_relations, split_statements,
};
use sqlparser::ast;

use super::parameters::Parameters;
use super::place::{self, Form};
use super::schedule::Schedule;
use crate::command::{StatementRun, is_query};
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
fn statements(run: &StatementRun<'_>, body: &str) -> Result<Vec<String>> {
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

/// Fails if a report could not be run: now, while somebody listens. Who only asks may name reports that come later.
pub(super) async fn check(
    run: &StatementRun<'_>,
    name: &str,
    spec: &ReportSpec,
    others: &[Report],
    dry_run: bool,
) -> Result<()> {
    let schedule = Schedule::parse(&spec.schedule, &spec.time_zone)?;
    let at = schedule.next_after(crate::managed::now_micros()).unwrap_or_default();
    check_depends(name, spec, others, dry_run)?;
    if spec.hook.is_some() {
        run.rights().check_admin("run commands on the server")?;
    }
    let options = ParseOptions::from(run.state.config_options().as_ref());
    for condition in &spec.expect {
        sql::parse(&format!("SELECT ({condition})"), &options)?;
    }
    let parameters = Parameters::new(at, None, &spec.time_zone)?;
    let n_queries = check_statements(spec, &parameters, &options)?;
    let columns = described(run, spec, &parameters, &options).await?;
    match &spec.output {
        ReportOutput::File(pattern) => {
            run.rights().check_admin("write files of the server")?;
            place::fill(pattern, name, at, &spec.time_zone)?;
            if n_queries > 1 && !Form::of(pattern)?.has_sections() {
                return Err(EngineError::new(ErrorKind::Sql, format!("\"{pattern}\" has room for one result"))
                    .with_hint("several queries make sections of an .html or .md file"));
            }
        }
        ReportOutput::Table(table) => {
            let Some(found) = run.catalog.view.tables.get(table) else {
                return Err(CatalogError::TableNotFound { name: table.clone() }.into());
            };
            if !matches!(found.kind, TableKind::Managed { .. }) {
                let message = format!("\"{}\" is a {}, not a table that takes rows", table.name, found.kind.word());
                return Err(EngineError::new(ErrorKind::Sql, message).with_hint("CREATE TABLE makes one"));
            }
            run.rights().check(Privilege::Insert, found)?;
            if n_queries > 1 {
                return Err(EngineError::new(ErrorKind::Sql, "a report that fills a table has one query"));
            }
            if let Some(n_columns) = columns.filter(|n_columns| *n_columns != found.schema.fields().len()) {
                return Err(super::append::other_columns(&table.name, found.schema.fields().len(), n_columns));
            }
        }
    }
    Ok(())
}

/// A report cannot wait for itself, by whatever way.
fn check_depends(name: &str, spec: &ReportSpec, others: &[Report], dry_run: bool) -> Result<()> {
    let find = |wanted: &str| others.iter().find(|other| other.name == wanted && other.name != name);
    let mut seen = vec![];
    let mut next: Vec<(&str, &str)> = spec.depends_on.iter().map(|needed| (needed.as_str(), name)).collect();
    while let Some((needed, by)) = next.pop() {
        if needed == name {
            let message = match by == name {
                true => format!("report \"{name}\" would depend on itself"),
                false => format!("report \"{name}\" would depend on itself, by way of \"{by}\""),
            };
            return Err(EngineError::new(ErrorKind::Sql, message));
        }
        if seen.contains(&needed) {
            continue;
        }
        seen.push(needed);
        match find(needed) {
            Some(other) => {
                next.extend(other.spec.depends_on.iter().map(|needed| (needed.as_str(), other.name.as_str())))
            }
            // Of others it is told when they run.
            None if by == name && !dry_run => {
                return Err(CatalogError::NotFound { what: "report", name: needed.to_string() }.into());
            }
            None => {}
        }
    }
    Ok(())
}

/// Only what can be done twice may come before the last query, which gives the output. How many queries there are.
fn check_statements(spec: &ReportSpec, parameters: &Parameters, options: &ParseOptions) -> Result<usize> {
    let mut n_queries = 0;
    for (at, text) in spec.statements.iter().enumerate() {
        let is_last = at + 1 == spec.statements.len();
        let Some(statement) = sql::parse(&parameters.fill(text), options)? else { continue };
        let is_query = is_query(&statement);
        n_queries += usize::from(is_query);
        if is_last && !is_query {
            return Err(EngineError::new(ErrorKind::Sql, "the last statement of a report is a query")
                .with_detail("its rows are the output"));
        }
        if !is_query && !can_be_repeated(&statement) {
            return Err(EngineError::new(
                ErrorKind::Unsupported,
                format!("a report cannot run \"{}\"", first_words(text)),
            )
            .with_detail("a run that dies is run again: only what can be done twice comes before its query")
            .with_hint(
                "queries, SET, CREATE OR REPLACE TABLE .. AS and REFRESH can; to add rows to a table, use OUTPUT TABLE",
            ));
        }
    }
    Ok(n_queries)
}

fn can_be_repeated(statement: &Statement) -> bool {
    match statement {
        Statement::Refresh(_) => true,
        Statement::CreateView(create) => create.or_replace,
        Statement::DataFusion(statement) => match statement.as_ref() {
            DFStatement::Reset(_) => true,
            DFStatement::Statement(inner) => match inner.as_ref() {
                ast::Statement::Set(_) => true,
                ast::Statement::CreateTable(create) => create.or_replace && create.query.is_some(),
                _ => false,
            },
            _ => false,
        },
        _ => false,
    }
}

/// Plans the queries that need nothing that the report makes itself; how many columns the last one has, if it is among them.
async fn described(
    run: &StatementRun<'_>,
    spec: &ReportSpec,
    parameters: &Parameters,
    options: &ParseOptions,
) -> Result<Option<usize>> {
    let mut columns = None;
    for text in &spec.statements {
        let text = parameters.fill(text);
        match sql::parse(&text, options)? {
            Some(statement) if is_query(&statement) => {
                let described = run.session.describe(&text).await?;
                columns = described.rows.map(|rows| rows.fields().len());
            }
            _ => return Ok(None),
        }
    }
    Ok(columns)
}

fn first_words(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(3).collect();
    words.join(" ")
}

/// `90`, `30s`, `5 minutes`, `2 hours`, in seconds.
pub(super) fn duration_s(text: &str) -> Result<u64> {
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
