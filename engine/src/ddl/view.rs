//! `CREATE VIEW`: a query kept as text.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::{TableDef, TableId, TableKind};
use nectarine_planner::sql::CreateView;
use sqlparser::ast;

use super::{normal, reference, table};
use crate::command::StatementRun;
use crate::managed::now_micros;
use crate::{Answer, EngineError, ErrorKind, Result};

pub(crate) async fn create_view(run: &StatementRun<'_>, create: CreateView) -> Result<Answer> {
    if create.temporary {
        return Err(EngineError::new(ErrorKind::Unsupported, "temporary views are not offered"));
    }
    let name = run.table_name(&reference(&create.name, run.state.config_options())?)?;
    let tag = "CREATE VIEW";
    if let Some(answer) = table::exists(run, &name, create.if_not_exists, create.or_replace, tag)? {
        return Ok(answer);
    }
    // Planned once now, so that its mistakes are told now, and for the columns that listings show.
    let query = DFStatement::Statement(Box::new(ast::Statement::Query(create.query)));
    let plan = Box::pin(run.state.statement_to_plan(query)).await?;
    let found = plan.schema().inner();
    let mut text = create.query_text;
    let mut schema = Arc::clone(found);
    if !create.columns.is_empty() {
        if create.columns.len() > found.fields().len() {
            return Err(EngineError::new(
                ErrorKind::Sql,
                format!("the query has {} columns, not {}", found.fields().len(), create.columns.len()),
            ));
        }
        let mut names: Vec<String> =
            create.columns.iter().map(|column| normal(column, run.state.config_options())).collect();
        names.extend(found.fields().iter().skip(names.len()).map(|field| field.name().clone()));
        let fields: Vec<Field> =
            found.fields().iter().zip(&names).map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
        schema = Arc::new(Schema::new(fields));
        let quoted: Vec<String> = names.iter().map(|name| format!("\"{}\"", name.replace('"', "\"\""))).collect();
        text = format!("SELECT * FROM ({text}) AS view_columns ({})", quoted.join(", "));
    }
    table::unique_names(&schema)?;
    let table = TableDef {
        id: TableId::new(),
        name,
        schema,
        kind: TableKind::View {
            query: text,
            default_schema: run.state.config_options().catalog.default_schema.clone(),
        },
        defaults: vec![],
        primary_keys: vec![],
        unique_keys: vec![],
        definition: Some(run.text.trim().trim_end_matches(';').to_string()),
        created_at: now_micros(),
    };
    run.catalog.shared.store.create_table(&table, &[], create.or_replace).await?;
    Ok(run.command(tag))
}
