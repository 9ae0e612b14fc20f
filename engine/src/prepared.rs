//! [`execution`]: what `EXECUTE` runs. Planned anew each time: what it reads may have grown, or be another table by now.
//!
//! Not by way of DataFusion's own store of prepared statements. What goes there is optimized before any rule of ours has seen it, and a
//! constant that is folded then is another: `CAST(1.005 AS DECIMAL(10, 2))` would be 1.00.
//!
//! Keeps true   a prepared statement does what it does when it is written by itself with the arguments in it, as the types that PREPARE
//!              declares. In an INSERT and a CREATE TABLE .. AS, an argument is of the type that its place has.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{DFSchema, ParamValues};
use datafusion::config::ConfigOptions;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, Prepare, Statement as PlanStatement};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_planner::sql;
use sqlparser::ast;

use crate::session::Session;
use crate::statement::StatementCatalog;
use crate::{EngineError, ErrorKind, Result, ddl};

/// A prepared statement with the arguments of an `EXECUTE`.
pub(crate) struct Execution {
    pub(crate) plan: LogicalPlan,
    /// As if it had been written by itself.
    pub(crate) text: String,
    /// Which columns that declares NOT NULL, in order.
    pub(crate) not_null: Vec<bool>,
}

/// What an `EXECUTE` runs.
pub(crate) async fn execution(
    session: &Session,
    catalog: &StatementCatalog,
    state: &SessionState,
    mut execute: DFStatement,
) -> Result<Execution> {
    let Some(name) = name_of(&execute, state.config_options()) else {
        return Err(EngineError::new(ErrorKind::Sql, "EXECUTE needs the name of a prepared statement"));
    };
    let prepared = session.inner.prepared.lock().get(&name).cloned();
    let Some(mut prepared) = prepared else {
        return Err(EngineError::new(ErrorKind::Sql, format!("prepared statement \"{name}\" does not exist")));
    };
    let (text, not_null) = match by_itself(&prepared, &execute) {
        Some(statement) => {
            let text = statement.to_string();
            let statement = sql::Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(statement))));
            (text, statement.not_null_columns())
        }
        None => (prepared.to_string(), vec![]),
    };
    let is_declared = !declared(&prepared).is_empty();
    keep_digits(session, catalog, state, &mut prepared);
    let LogicalPlan::Statement(PlanStatement::Prepare(prepare)) = Box::pin(state.statement_to_plan(prepared)).await?
    else {
        return Err(EngineError::new(ErrorKind::Internal, "PREPARE was planned as something else"));
    };
    let types = types_of(&prepare, is_declared)?;
    sql::exact_arguments(
        &mut execute,
        |position| matches!(types.get(position), Some(Some(data_type)) if data_type.is_decimal()),
    );
    let LogicalPlan::Statement(PlanStatement::Execute(execute)) = Box::pin(state.statement_to_plan(execute)).await?
    else {
        return Err(EngineError::new(ErrorKind::Internal, "EXECUTE was planned as something else"));
    };
    let plan = bound(prepare, &types, is_declared, execute.parameters, state)?;
    Ok(Execution { plan, text, not_null })
}

/// Numbers for DECIMAL columns keep all their digits, in an INSERT that is explained or prepared as well.
pub(crate) fn keep_digits(
    session: &Session,
    catalog: &StatementCatalog,
    state: &SessionState,
    statement: &mut DFStatement,
) {
    let Some(insert) = sql::insert_of(statement) else { return };
    let ast::TableObject::TableName(name) = &insert.table else { return };
    let config = state.config_options();
    // What is wrong with the name is told when the statement is planned.
    let Ok(reference) = ddl::reference(name, config) else { return };
    let Some(table) = catalog.view.tables.get(&session.table_name(&reference)) else { return };
    let last =
        |name: &ast::ObjectName| name.0.last().and_then(|part| part.as_ident()).map(|ident| ddl::normal(ident, config));
    let columns: Vec<Option<String>> = insert.columns.iter().map(last).collect();
    sql::exact_values(insert, |position| {
        let field = match columns.get(position) {
            Some(Some(name)) => table.schema.field_with_name(name).ok(),
            Some(None) => None,
            None if columns.is_empty() => table.schema.fields().get(position).map(AsRef::as_ref),
            None => None,
        };
        field.is_some_and(|field| field.data_type().is_decimal())
    });
}

/// The name that it gives, as PREPARE has it.
fn name_of(execute: &DFStatement, config: &ConfigOptions) -> Option<String> {
    let DFStatement::Statement(execute) = execute else { return None };
    let ast::Statement::Execute { name: Some(name), .. } = execute.as_ref() else { return None };
    match name.0.as_slice() {
        [part] => part.as_ident().map(|ident| ddl::normal(ident, config)),
        _ => Some(name.to_string()),
    }
}

/// The types that PREPARE declares, if it does.
fn declared(prepared: &DFStatement) -> &[ast::DataType] {
    let DFStatement::Statement(prepared) = prepared else { return &[] };
    match prepared.as_ref() {
        ast::Statement::Prepare { data_types, .. } => data_types,
        _ => &[],
    }
}

/// Fails if PREPARE declares another number of types than its statement has parameters.
pub(crate) fn check_types(prepared: &DFStatement, plan: &LogicalPlan) -> Result<()> {
    let n_types = declared(prepared).len();
    if n_types == 0 {
        return Ok(());
    }
    let n_parameters = plan.get_parameter_names()?.len();
    if n_types != n_parameters {
        let message = format!("Prepare specifies {n_types} data types but query has {n_parameters} parameters");
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    Ok(())
}

/// The type of each parameter: declared, or told by where it stands. Not all places tell one.
fn types_of(prepare: &Prepare, is_declared: bool) -> Result<Vec<Option<DataType>>> {
    if is_declared {
        return Ok(prepare.fields.iter().map(|field| Some(field.data_type().clone())).collect());
    }
    let found = prepare.input.get_parameter_fields()?;
    let numbers = found.keys().filter_map(|name| name.strip_prefix('$')?.parse::<usize>().ok());
    let n_parameters = numbers.max().unwrap_or(0);
    let type_of = |number: usize| Some(found.get(&format!("${number}"))?.as_ref()?.data_type().clone());
    Ok((1..=n_parameters).map(type_of).collect())
}

/// The prepared statement by itself, with arguments in it.
fn by_itself(prepared: &DFStatement, execute: &DFStatement) -> Option<ast::Statement> {
    let (DFStatement::Statement(prepared), DFStatement::Statement(execute)) = (prepared, execute) else { return None };
    let ast::Statement::Prepare { statement, data_types, .. } = prepared.as_ref() else { return None };
    let ast::Statement::Execute { parameters, .. } = execute.as_ref() else { return None };
    let mut statement = statement.as_ref().clone();
    sql::fill_placeholders(&mut statement, parameters, data_types);
    Some(statement)
}

/// The plan with arguments in place of its placeholders.
fn bound(
    prepare: Prepare,
    types: &[Option<DataType>],
    is_declared: bool,
    arguments: Vec<Expr>,
    state: &SessionState,
) -> Result<LogicalPlan> {
    let Prepare { name, input, .. } = prepare;
    if types.len() != arguments.len() {
        let (expected, given) = (types.len(), arguments.len());
        let message = format!("prepared statement \"{name}\" expects {expected} parameters, {given} were given");
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    let input = Arc::unwrap_or_clone(input);
    if input.get_parameter_names()?.is_empty() {
        return Ok(input);
    }
    let context = SimplifyContext::builder()
        .with_schema(Arc::new(DFSchema::empty()))
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    let simplifier = ExprSimplifier::new(context);
    let must_cast = is_declared || writes(&input);
    let mut values = vec![];
    for (position, argument) in arguments.into_iter().enumerate() {
        let Expr::Literal(value, metadata) = simplifier.simplify(argument)? else {
            let message = format!("argument {} of EXECUTE is not a constant", position + 1);
            return Err(EngineError::new(ErrorKind::Unsupported, message));
        };
        let value = ScalarAndMetadata::new(value, metadata);
        values.push(match types.get(position).and_then(Option::as_ref) {
            Some(data_type) if must_cast => value.cast_storage_to(data_type)?,
            Some(data_type) => same_number(&value, data_type).unwrap_or(value),
            None => value,
        });
    }
    Ok(input.replace_params_with_values(&ParamValues::List(values))?)
}

/// Whether its rows go into columns: these were planned with the types that the parameters have.
fn writes(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Dml(_) | LogicalPlan::Ddl(_) => true,
        LogicalPlan::Analyze(analyze) => writes(&analyze.input),
        LogicalPlan::Explain(explain) => writes(&explain.plan),
        _ => false,
    }
}

/// The number in that type, if it can say it. Another one is compared as it was written, and so is all that is no number.
fn same_number(value: &ScalarAndMetadata, data_type: &DataType) -> Option<ScalarAndMetadata> {
    let written = value.value().data_type();
    if !written.is_numeric() || !data_type.is_numeric() {
        return None;
    }
    let cast = value.cast_storage_to(data_type).ok()?;
    let back = cast.value().cast_to(&written).ok()?;
    (back == *value.value()).then_some(cast)
}
