//! `CREATE TABLE`, `CREATE TABLE AS`, `CREATE EXTERNAL TABLE`.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::{Constraint, Result as DataFusionResult};
use datafusion::logical_expr::{CreateExternalTable, CreateMemoryTable, Expr};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::unparser::expr_to_sql;
use datafusion_datasource::sink::DataSinkExec;
use nectarine_catalog::{
    CatalogError, ColumnDefault, FileFormatKind, Replace, TableDef, TableId, TableKind, TableName, looks_like_location,
};
use nectarine_executor::ExtentSink;
use nectarine_planner::nullable_values;
use nectarine_planner::sql::{self, ParseOptions};
use parking_lot::Mutex;

use super::check_schema;
use crate::access::Rights;
use crate::command::StatementRun;
use crate::external;
use crate::managed::{self, CreateCommit, now_micros};
use crate::query_memory::task_context;
use crate::reuse::StatementReuse;
use crate::statement::coalesced;
use crate::{Answer, EngineError, ErrorKind, Result, sweep};

/// Creates a managed table, with the rows of a query if there is one.
pub(crate) async fn create_table(run: &StatementRun<'_>, create: CreateMemoryTable) -> Result<Answer> {
    if create.temporary {
        return Err(EngineError::new(ErrorKind::Unsupported, "temporary tables are not offered"));
    }
    let name = run.table_name(&create.name)?;
    let tag = "CREATE TABLE";
    if let Some(answer) = exists(run, &name, create.if_not_exists, create.or_replace, tag)? {
        return Ok(answer);
    }
    run.check_plan(&create.input)?;
    let not_null = not_null_columns(run)?;
    let input = nullable_values(Arc::unwrap_or_clone(create.input))?;
    let reuse = || StatementReuse::new(&run.catalog.shared.reuse, run.state, run.catalog);
    let planned = Box::pin(reuse()?.read_only().plan(&input, false)).await?;
    let reads_entries = planned.findings.is_some_and(|findings| !findings.hits.is_empty());
    let physical = planned.plan;
    // Names come from the logical plan, because physical ones may be simplified away; types are those of the rows.
    let logical = input.schema().inner();
    let rows = physical.schema();
    let fields = logical.fields().iter().zip(rows.fields()).enumerate();
    let fields: Vec<Field> = fields
        .map(|(position, (logical, row))| {
            let field = logical.as_ref().clone().with_data_type(row.data_type().clone());
            // As in PostgreSQL, what the query says of its rows says nothing of those that come later.
            field.with_nullable(!not_null.get(position).is_some_and(|declared| *declared))
        })
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, logical.metadata().clone()));
    unique_names(&schema)?;
    let format = managed::format_for(&schema);
    let keys = |wanted: fn(&Constraint) -> Option<&Vec<usize>>| {
        create.constraints.iter().filter_map(wanted).cloned().collect()
    };
    let owner = run.owner(&name);
    let table = Arc::new(TableDef {
        id: TableId::new(),
        name,
        schema: Arc::clone(&schema),
        kind: TableKind::Managed { format },
        defaults: defaults_of(create.column_defaults.iter().map(|(name, expr)| (name, expr)))?,
        primary_keys: keys(external::primary_key),
        unique_keys: keys(external::unique_key),
        definition: Some(run.text.trim().trim_end_matches(';').to_string()),
        created_at: now_micros(),
        owner,
    });

    let commit = Arc::new(CreateCommit {
        shared: Arc::clone(&run.catalog.shared),
        table: Arc::clone(&table),
        replace: match run.catalog.read_of(&table.name) {
            Some((id, n_extents)) if create.or_replace => Replace::Read { id, n_extents },
            _ => replace(run, &table.name, create.or_replace),
        },
        sources: run.catalog.sources(),
        replaced: Mutex::default(),
        step: run.catalog.step(),
    });
    match write(run, &table, format, &commit, physical).await {
        // What is read from entries takes memory too: once more as if there were none. Nothing was committed.
        Err(error) if reads_entries && error.kind() == ErrorKind::Resources => {
            let physical = Box::pin(reuse()?.off().plan(&input, false)).await?.plan;
            write(run, &table, format, &commit, physical).await?;
        }
        written => written?,
    }
    run.progress.done();
    forget_replaced(run, commit.replaced.lock().take());
    Ok(created(run, tag, &table))
}

/// Which columns are declared NOT NULL, in order. A plan tells it only where there is no query.
fn not_null_columns(run: &StatementRun<'_>) -> Result<Vec<bool>> {
    if let Some(known) = run.not_null {
        return Ok(known.to_vec());
    }
    let options = ParseOptions::from(run.state.config_options().as_ref());
    let statement = sql::parse(run.text, &options)?;
    Ok(statement.map(|statement| statement.not_null_columns()).unwrap_or_default())
}

/// The answer, with what its keys are worth.
fn created(run: &StatementRun<'_>, tag: &str, table: &TableDef) -> Answer {
    match table.primary_keys.is_empty() && table.unique_keys.is_empty() {
        true => run.command(tag),
        false => run.noticed(tag, "PRIMARY KEY and UNIQUE are written down, not checked".to_string()),
    }
}

/// Writes the rows of a plan as the extents of a new table.
async fn write(
    run: &StatementRun<'_>,
    table: &Arc<TableDef>,
    format: FileFormatKind,
    commit: &Arc<CreateCommit>,
    rows: Arc<dyn ExecutionPlan>,
) -> Result<()> {
    let target = managed::target(&run.catalog.shared, table.id, format, &table.schema, run.state.config_options())?;
    let sink = ExtentSink::new(table.name.to_string(), target, Arc::clone(commit) as _);
    let plan = Arc::new(DataSinkExec::new(coalesced(rows), Arc::new(sink), None)) as _;
    run.record.planned(&plan);
    run.progress.running(&plan);
    let stream = execute_stream(plan, task_context(run.state))?;
    datafusion::physical_plan::common::collect(stream).await?;
    Ok(())
}

/// Creates a table over files that others write.
pub(crate) async fn create_external_table(run: &StatementRun<'_>, create: CreateExternalTable) -> Result<Answer> {
    if create.temporary {
        return Err(EngineError::new(ErrorKind::Unsupported, "temporary tables are not offered"));
    }
    run.rights().check_admin("make tables over files of the server")?;
    let name = run.table_name(&create.name)?;
    let tag = "CREATE EXTERNAL TABLE";
    if let Some(answer) = exists(run, &name, create.if_not_exists, create.or_replace, tag)? {
        return Ok(answer);
    }
    let mut table = external::describe(&run.catalog.shared, run.state, name, &create).await?;
    unique_names(&table.schema)?;
    table.definition = Some(with_locations(run.text.trim().trim_end_matches(';'), &create.locations, &table.kind));
    table.owner = run.owner(&table.name);
    let replace = replace(run, &table.name, create.or_replace);
    let replaced = run.catalog.shared.store.create_table(&table, &[], replace).await?;
    forget_replaced(run, replaced);
    Ok(created(run, tag, &table))
}

/// The statement with the places that it was understood to mean.
fn with_locations(text: &str, written: &[String], kind: &TableKind) -> String {
    let TableKind::External(source) = kind else { return text.to_string() };
    let Some(clause) = text.to_ascii_lowercase().find("location") else { return text.to_string() };
    let (before, mut after) = (&text[..clause], text[clause..].to_string());
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    for (written, meant) in written.iter().zip(std::iter::once(&source.location).chain(&source.more_locations)) {
        after = after.replacen(&quoted(written), &quoted(meant), 1);
    }
    format!("{before}{after}")
}

/// Defaults as text, which outlives the plan.
pub(crate) fn defaults_of<'a>(
    defaults: impl Iterator<Item = (&'a String, &'a Expr)>,
) -> DataFusionResult<Vec<ColumnDefault>> {
    defaults
        .map(|(column, expr)| Ok(ColumnDefault { column: column.clone(), sql: expr_to_sql(expr)?.to_string() }))
        .collect()
}

/// Files of a table that was replaced go when nobody can be reading them any more.
pub(super) fn forget_replaced(run: &StatementRun<'_>, replaced: Option<TableDef>) {
    if let Some(table) = replaced
        && table.kind.own_files().is_some()
    {
        sweep::remove_later(run.catalog.shared.home.table(table.id));
    }
}

/// What is replaced is what [`exists`] found there: whose it is and what it is was asked of that, and of nothing else.
pub(super) fn replace(run: &StatementRun<'_>, name: &TableName, or_replace: bool) -> Replace {
    match or_replace {
        true => Replace::Seen(run.catalog.view.tables.get(name).map(|found| found.id)),
        false => Replace::Never,
    }
}

/// An answer if there is nothing to do, an error if the name is taken.
pub(super) fn exists(
    run: &StatementRun<'_>,
    name: &TableName,
    if_not_exists: bool,
    or_replace: bool,
    tag: &str,
) -> Result<Option<Answer>> {
    check_schema(&name.schema)?;
    run.rights().check_create(&name.schema)?;
    if if_not_exists && or_replace {
        return Err(EngineError::new(ErrorKind::Sql, "IF NOT EXISTS and OR REPLACE exclude each other"));
    }
    let Some(found) = run.catalog.view.tables.get(name) else {
        check_is_no_location(run.rights(), name)?;
        return Ok(None);
    };
    if if_not_exists {
        return Ok(Some(run.noticed(tag, format!("\"{}\" already exists, skipping", name.name))));
    }
    if !or_replace {
        return Err(CatalogError::AlreadyExists { what: found.kind.word(), name: name.name.clone() }.into());
    }
    run.rights().check_owns(found)?;
    check_is_no_location(run.rights(), name)?;
    let word = match tag {
        "CREATE EXTERNAL TABLE" => "table".to_string(),
        tag => tag.trim_start_matches("CREATE ").to_ascii_lowercase(),
    };
    if found.kind.word() != word {
        return Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" is a {}", name.name, found.kind.word()))
            .with_hint("drop it first, or choose another name"));
    }
    Ok(None)
}

/// Fails if a name would stand in the way of files: who reads them by their location would read the table instead.
pub(super) fn check_is_no_location(rights: &Rights, name: &TableName) -> Result<()> {
    match looks_like_location(&name.name) {
        // In words: what looks like a path is cut out of what users are told.
        true => rights.check_admin("name tables and views as files are named").map_err(|error| {
            error.with_hint("choose a name without slashes and stars that does not end as a file's does")
        }),
        false => Ok(()),
    }
}

pub(super) fn unique_names(schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name())) {
        Some(twice) => Err(EngineError::new(ErrorKind::Sql, format!("column \"{}\" is there twice", twice.name()))
            .with_hint("give one of them another name with AS")),
        None => Ok(()),
    }
}
