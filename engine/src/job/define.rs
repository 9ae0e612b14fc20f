//! What is accepted as a job: statements that can be read and will mean the same wherever they run, and what they need to know of the
//! session that they come from.

use std::path::Path;

use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{JobSpec, Location};
use nectarine_planner::sql::{
    self, AccessStatement, JobStatement, ParseOptions, STANDARD_INPUT, STANDARD_OUTPUT, Statement,
};

use crate::command::StatementRun;
use crate::report::{duration_s, statements};
use crate::{EngineError, ErrorKind, Result};

/// How many statements a job has at the most, and how long their texts are together.
const STATEMENTS_MAX: usize = 10_000;
const TEXT_BYTES_MAX: usize = 4 << 20;
/// How long a name may be.
const NAME_BYTES_MAX: usize = 200;

/// Kept apart.
const DEFAULT_SCHEMA: &str = "datafusion.catalog.default_schema";

/// What a statement asks for, as it is kept.
pub(super) fn specify(
    run: &StatementRun<'_>,
    name: Option<String>,
    timeout: Option<&str>,
    body: &str,
) -> Result<JobSpec> {
    let sql = |message: String| EngineError::new(ErrorKind::Sql, message);
    if body.len() > TEXT_BYTES_MAX {
        return Err(EngineError::new(ErrorKind::Resources, "the job is too large")
            .with_detail(format!("its text has more than {} MB", TEXT_BYTES_MAX >> 20))
            .with_hint("COPY .. FROM reads rows from files"));
    }
    if name.as_ref().is_some_and(|name| name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control)) {
        return Err(sql(format!("a name has at most {NAME_BYTES_MAX} bytes, and no control characters")));
    }
    let statements = statements(run, body)?;
    let options = ParseOptions::from(run.state.config_options().as_ref());
    let mut kept = vec![];
    for (at, text) in statements.into_iter().enumerate() {
        let which = |error: EngineError| in_statement(&error, at, &text);
        let Some(statement) = sql::parse(&text, &options).map_err(|error| which(error.into()))? else { continue };
        check(&statement, &text).map_err(which)?;
        kept.push(text);
    }
    match kept.len() {
        0 => return Err(sql("the job has no statement".to_string())),
        n if n > STATEMENTS_MAX => return Err(sql(format!("a job has at most {STATEMENTS_MAX} statements"))),
        _ => {}
    }
    let config = run.state.config_options();
    Ok(JobSpec {
        name: name.filter(|name| !name.is_empty()),
        statements: kept,
        settings: settings(run),
        default_schema: config.catalog.default_schema.clone(),
        timeout_s: timeout.map(duration_s).transpose()?.unwrap_or(0),
    })
}

/// An error in a statement of the job: positions in it mean nothing in the text around it.
fn in_statement(error: &EngineError, at: usize, text: &str) -> EngineError {
    let words: Vec<&str> = text.split_whitespace().take(6).collect();
    let mut detail = format!("in statement {} of the job: {} ..", at + 1, words.join(" "));
    if let Some(more) = error.detail() {
        detail = format!("{more}; {detail}");
    }
    let told = EngineError::new(error.kind(), error.message()).with_detail(detail);
    match error.hint() {
        Some(hint) => told.with_hint(hint),
        None => told,
    }
}

/// Settings that the session changed.
fn settings(run: &StatementRun<'_>) -> Vec<(String, String)> {
    let changed = run.session.inner.changed.lock().clone();
    let mut entries = run.state.config_options().entries();
    entries.retain(|entry| changed.contains(&entry.key) && entry.key != DEFAULT_SCHEMA);
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    entries.into_iter().filter_map(|entry| Some((entry.key, entry.value?))).collect()
}

/// Fails for what a job cannot run, whenever it does.
fn check(statement: &Statement, text: &str) -> Result<()> {
    sql::append_only(statement, text)?;
    sql::refuse_ignored(statement, text)?;
    let refused = |message: &str| EngineError::new(ErrorKind::Unsupported, message);
    match statement {
        Statement::Job(JobStatement::Submit { .. }) => {
            Err(refused("a job cannot submit jobs").with_hint("put the statements into this one"))
        }
        Statement::Access(AccessStatement::Create(create)) if create.password.is_some() => Err(secret()),
        Statement::Access(AccessStatement::Alter(alter)) if alter.password.is_some() => Err(secret()),
        Statement::Access(AccessStatement::CreateToken { .. }) => Err(secret()),
        Statement::CopyFrom(copy) if copy.source == STANDARD_INPUT => Err(no_client("STDIN")),
        Statement::CopyFrom(copy) => absolute(&copy.source),
        Statement::DataFusion(statement) => check_places(statement),
        _ => Ok(()),
    }
}

fn check_places(statement: &DFStatement) -> Result<()> {
    match statement {
        DFStatement::Explain(explain) => check_places(&explain.statement),
        DFStatement::CopyTo(copy) if copy.target == STANDARD_OUTPUT => Err(no_client("STDOUT")),
        DFStatement::CopyTo(copy) => absolute(&copy.target),
        DFStatement::CreateExternalTable(create) => create.locations.iter().try_for_each(|location| absolute(location)),
        _ => Ok(()),
    }
}

/// A job may run in another folder than the one it was submitted in.
fn absolute(name: &str) -> Result<()> {
    // What it means does not depend on where one stands.
    let from = |base: &str| Location::parse_name(name, Path::new(base)).ok().map(|location| location.to_string());
    match from("/a") == from("/b") {
        true => Ok(()),
        false => Err(EngineError::new(ErrorKind::Sql, format!("\"{name}\" does not begin at the root"))
            .with_detail("a job may run in another folder than the one that it is submitted in")
            .with_hint("write the whole path, or a URL")),
    }
}

fn secret() -> EngineError {
    EngineError::new(ErrorKind::Unsupported, "a job cannot have secrets")
        .with_detail("its statements and its rows are written down as they are")
}

fn no_client(what: &str) -> EngineError {
    EngineError::new(ErrorKind::Unsupported, format!("a job has no {what}"))
        .with_detail("it runs when nobody is there")
        .with_hint("name a file")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(sql: &str) -> Option<String> {
        let statement = sql::parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
        check(&statement.expect("a statement"), sql).err().map(|error| error.message().to_string())
    }

    #[test]
    fn what_needs_somebody_or_some_place_is_refused() {
        for sql in [
            "COPY t FROM STDIN",
            "COPY t TO STDOUT",
            "COPY t FROM 'x.csv'",
            "COPY t TO 'x.csv'",
            "EXPLAIN ANALYZE COPY t TO 'x.csv'",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'x'",
            "SUBMIT JOB AS SELECT 1",
            "CREATE USER u PASSWORD 'p'",
            "DELETE FROM t",
        ] {
            assert!(refused(sql).is_some(), "{sql}");
        }
        for sql in [
            "COPY t FROM '/x/*.csv'",
            "COPY t TO 's3://b/x.csv'",
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/x/'",
            "SHOW JOBS",
            "SELECT 1",
        ] {
            assert_eq!(refused(sql), None, "{sql}");
        }
    }
}
