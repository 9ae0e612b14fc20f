//! Whether a report could be run: what is wrong with it is told while somebody listens.

use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{CatalogError, Privilege, Report, ReportOutput, ReportSpec, TableKind};
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast;

use super::append::other_columns;
use super::parameters::Parameters;
use super::place::{self, Form};
use super::schedule::Schedule;
use crate::command::{StatementRun, is_query};
use crate::{EngineError, ErrorKind, Result};

/// Fails if it could not. Who only asks may name reports that come later.
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
                return Err(other_columns(&table.name, found.schema.fields().len(), n_columns));
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
                ast::Statement::Set(_) | ast::Statement::Use(_) => true,
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
