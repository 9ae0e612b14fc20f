//! Functions written in SQL, from their texts: each after those that it calls.
//!
//! One that cannot be planned any more (what it calls was dropped, or takes other arguments now) keeps its name, and says
//! what is wrong with it to whoever calls it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::plan_err;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, DdlStatement, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use datafusion::sql::parser::Statement as DFStatement;
use nectarine_catalog::Function;
use nectarine_planner::function::{SqlFunction, number_arguments};
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast::{self, visit_expressions};

use crate::ddl::normal;
use crate::{EngineError, ErrorKind, Result};

/// All of them, ready to be called.
pub(crate) async fn plan_functions(functions: &[Function], template: &SessionState) -> Vec<Arc<ScalarUDF>> {
    let mut state = template.clone();
    let mut planned = vec![];
    // By name, so that what is told of a circle does not depend on chance.
    let mut left: BTreeMap<&str, (&Function, BTreeSet<String>)> = functions
        .iter()
        .map(|function| (function.name.as_str(), (function, calls(&state, &function.definition))))
        .collect();
    while !left.is_empty() {
        let ready = |(name, (_, calls)): &(&&str, &(&Function, BTreeSet<String>))| {
            !calls.iter().any(|call| call != **name && left.contains_key(call.as_str()))
        };
        // Those that wait for each other have no order: they are told one by one what they lack.
        let next = left.iter().find(ready).or_else(|| left.iter().next()).map(|(name, _)| *name);
        let Some((function, calls)) = next.and_then(|name| left.remove(name)) else { break };
        let function = match plan_function(&mut state, &function.definition).await {
            Ok(planned) => planned,
            Err(error) => {
                let what = trouble(&state, &function.name, &calls, &left, &error);
                tracing::debug!(name = function.name, %error, "cannot plan a stored function");
                let broken = Arc::new(ScalarUDF::new_from_impl(BrokenFunction::new(&function.name, what)));
                // There is nothing that could refuse it.
                let _ = state.register_udf(Arc::clone(&broken));
                broken
            }
        };
        planned.push(function);
    }
    planned
}

/// The function that a `CREATE FUNCTION` statement describes, made known to `state`.
pub(crate) async fn plan_function(state: &mut SessionState, definition: &str) -> Result<Arc<ScalarUDF>> {
    let options = ParseOptions::from(state.config_options().as_ref());
    let Some(Statement::CreateFunction(create)) = sql::parse(definition, &options)? else {
        return Err(EngineError::new(ErrorKind::Internal, "a stored function is no CREATE FUNCTION statement"));
    };
    let create = ast::Statement::CreateFunction(number_arguments(*create));
    match state.statement_to_plan(DFStatement::Statement(Box::new(create))).await? {
        LogicalPlan::Ddl(DdlStatement::CreateFunction(create)) => {
            let function = Arc::new(SqlFunction::try_new(*create, state)?);
            state.register_udf(Arc::clone(&function))?;
            Ok(function)
        }
        _ => Err(EngineError::new(ErrorKind::Internal, "a function was planned as something else")),
    }
}

/// The names of all functions that the body of a function calls.
pub(crate) fn calls(state: &SessionState, definition: &str) -> BTreeSet<String> {
    let config = state.config_options();
    let mut found = BTreeSet::new();
    if let Ok(Some(Statement::CreateFunction(create))) = sql::parse(definition, &ParseOptions::from(config.as_ref())) {
        let _: ControlFlow<()> = visit_expressions(create.as_ref(), |expr| {
            if let ast::Expr::Function(function) = expr
                && let Some(ident) = function.name.0.last().and_then(|part| part.as_ident())
            {
                found.insert(normal(ident, config));
            }
            ControlFlow::Continue(())
        });
    }
    found
}

/// What is wrong with a function.
fn trouble(
    state: &SessionState,
    name: &str,
    calls: &BTreeSet<String>,
    left: &BTreeMap<&str, (&Function, BTreeSet<String>)>,
    error: &EngineError,
) -> String {
    let is_there = |call: &String| {
        state.scalar_functions().contains_key(call)
            || state.aggregate_functions().contains_key(call)
            || state.window_functions().contains_key(call)
    };
    match calls.iter().find(|call| !is_there(call)) {
        Some(call) if call == name || left.contains_key(call.as_str()) => {
            format!("function \"{name}\" calls itself, by way of \"{call}\"")
        }
        Some(call) => format!("function \"{call}\", which \"{name}\" calls, does not exist"),
        None => format!("function \"{name}\" does not work any more: {error}"),
    }
}

/// A function that only says why it cannot be called.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BrokenFunction {
    name: String,
    trouble: String,
    signature: Signature,
}

impl BrokenFunction {
    fn new(name: &str, trouble: String) -> Self {
        let any = TypeSignature::OneOf(vec![TypeSignature::VariadicAny, TypeSignature::Nullary]);
        let signature = Signature::new(any, Volatility::Volatile);
        Self { name: name.to_string(), trouble, signature }
    }
}

impl ScalarUDFImpl for BrokenFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> datafusion::common::Result<DataType> {
        plan_err!("{}", self.trouble)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> datafusion::common::Result<ColumnarValue> {
        plan_err!("{}", self.trouble)
    }
}
