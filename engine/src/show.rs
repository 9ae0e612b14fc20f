//! `SHOW CREATE TABLE` and the like.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{CatalogError, TableDef, TableKind};
use nectarine_planner::sql::{self, ParseOptions, ShowCreate, Statement};
use sqlparser::ast::{self, Ident, ObjectName};

use crate::access::Rights;
use crate::command::StatementRun;
use crate::derived::gone;
use crate::discretion::without_locations;
use crate::redact::redact;
use crate::{Answer, AnswerKind, Notice, Result, ddl};

pub(crate) async fn create(run: &StatementRun<'_>, show: ShowCreate) -> Result<Answer> {
    let name = run.table_name(&ddl::reference(&show.name, run.state.config_options())?)?;
    let Some(table) = run.catalog.view.tables.get(&name) else {
        return Err(CatalogError::TableNotFound { name }.into());
    };
    run.rights().check_sees(table)?;
    let catalog = &run.state.config_options().catalog.default_catalog;
    let values = [
        catalog.clone(),
        name.schema.clone(),
        name.name.clone(),
        redact(&match run.rights().sees_inside(table) {
            true => definition(table, run.state.config_options()),
            false => outside(table, run.state.config_options(), run.catalog.shared.template.config_options()),
        }),
    ];
    let schema = schema();
    let arrays = values.into_iter().map(|value| Arc::new(StringArray::from(vec![value])) as _).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    run.record.finished(1);
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    let notices = lost(run, table).await?.into_iter().collect();
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, notices, Box::pin(stream)))
}

/// Columns of `SHOW CREATE`.
pub(crate) fn schema() -> SchemaRef {
    let names = ["table_catalog", "table_schema", "table_name", "definition"];
    Arc::new(Schema::new(names.map(|name| Field::new(name, DataType::Utf8, false)).to_vec()))
}

/// Tells of a derived table that it could not be computed again.
async fn lost(run: &StatementRun<'_>, table: &TableDef) -> Result<Option<Notice>> {
    let (n_extents, files) = gone(run.catalog, table).await?;
    let Some(first) = files.first() else { return Ok(None) };
    if !run.rights().is_admin() {
        return Ok(None);
    }
    let message = format!(
        "{} files that \"{}\" was made from are gone or changed (it has {n_extents} extents), the first of them \"{first}\"",
        files.len(),
        table.name.name
    );
    let hint =
        format!("as long as its rows are kept, ALTER DERIVED TABLE {} SET PINNED makes a copy of them", table.name);
    Ok(Some(Notice { message, hint: Some(hint) }))
}

/// The same for who may read the table and no more: where files of the server are is not his to know.
fn outside(table: &TableDef, config: &ConfigOptions, template: &ConfigOptions) -> String {
    match table.kind {
        TableKind::External(_) => columns(table),
        _ => without_locations(&definition(table, config), template).unwrap_or_else(|| columns(table)),
    }
}

/// What lists of views tell of one to somebody: how it was made, as far as that is his to know.
pub(crate) fn told(table: &TableDef, rights: &Rights, template: &ConfigOptions) -> Option<String> {
    let text = table.definition.as_ref()?;
    match rights.sees_inside(table) {
        true => Some(text.clone()),
        false => Some(without_locations(text, template).unwrap_or_else(|| columns(table))),
    }
}

/// The statement that made it, or one that would.
fn definition(table: &TableDef, config: &ConfigOptions) -> String {
    if let Some(text) = &table.definition {
        return renamed(text, table, config).unwrap_or_else(|| text.clone());
    }
    if let Some((query, _)) = table.kind.as_view() {
        return format!("CREATE {} {} AS {query}", table.kind.word().to_ascii_uppercase(), table.name);
    }
    columns(table)
}

/// Its columns as a statement.
fn columns(table: &TableDef) -> String {
    let columns: Vec<String> =
        table.schema.fields().iter().map(|field| format!("{} {}", field.name(), field.data_type())).collect();
    format!("CREATE TABLE {} ({})", table.name, columns.join(", "))
}

/// The statement with the name of now, if the one that it was made with is gone; `None` if it is still the same.
fn renamed(text: &str, table: &TableDef, config: &ConfigOptions) -> Option<String> {
    let name = &table.name;
    let is_current = |given: &ObjectName| {
        ddl::reference(given, config)
            .is_ok_and(|given| given.table() == name.name && given.schema().is_none_or(|schema| schema == name.schema))
    };
    let now = || match name.schema == config.catalog.default_schema {
        true => ObjectName::from(vec![ident(&name.name)]),
        false => ObjectName::from(vec![ident(&name.schema), ident(&name.name)]),
    };
    match sql::parse(text, &ParseOptions::from(config)).ok()?? {
        Statement::DataFusion(statement) => match *statement {
            DFStatement::Statement(mut inner) => match inner.as_mut() {
                ast::Statement::CreateTable(create) if !is_current(&create.name) => {
                    create.name = now();
                    Some(inner.to_string())
                }
                _ => None,
            },
            DFStatement::CreateExternalTable(mut create) if !is_current(&create.name) => {
                create.name = now();
                Some(DFStatement::CreateExternalTable(create).to_string())
            }
            _ => None,
        },
        Statement::CreateDerived(create) if !is_current(&create.name) => {
            let columns: Vec<String> = create.columns.iter().map(ToString::to_string).collect();
            let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
            Some(format!("CREATE DERIVED TABLE {}{columns} AS {}", now(), create.query_text))
        }
        Statement::CreateView(create) if !is_current(&create.name) => {
            let columns: Vec<String> = create.columns.iter().map(ToString::to_string).collect();
            let columns = if columns.is_empty() { String::new() } else { format!(" ({})", columns.join(", ")) };
            let what = if create.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
            Some(format!("CREATE {what} {}{columns} AS {}", now(), create.query_text))
        }
        _ => None,
    }
}

/// Quoted only where it must be.
fn ident(word: &str) -> Ident {
    let is_plain = word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && word.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    match is_plain {
        true => Ident::new(word),
        false => Ident::with_quote('"', word),
    }
}
