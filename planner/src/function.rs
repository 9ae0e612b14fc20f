//! [`SqlFunction`]: a function written in SQL, put in place of its calls.
//!
//! ```text
//!   CREATE FUNCTION twice(x INT) RETURNS INT RETURN x * 2
//!   SELECT twice(a + 1)      is planned as      SELECT CAST((a + 1) * 2 AS INT)
//! ```
//!
//! Keeps true   a call means its body with the arguments cast to the declared types, and the result cast to the declared
//!              type; an argument that is not deterministic is evaluated once, however often the body names it.
//! Inlined      where the optimizer runs, so that filters, pruning and fingerprints see through it; elsewhere, and where
//!              calls within calls would grow beyond measure (`f(f(f(x)))` with `x + x`), the body is evaluated as it is.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, Result, exec_err, plan_err};
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, CreateFunction, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;
use sqlparser::ast::{self, visit_expressions_mut};

use crate::decimals::exact_comparisons;
use crate::intervals::compare_intervals;
use crate::kept_casts::{keep_casts, kept_argument};
use crate::steady_rounding::steady;

/// Puts `$1`, `$2`, .. in place of named arguments in the body, which DataFusion's planner would take for columns.
pub fn number_arguments(mut create: ast::CreateFunction) -> ast::CreateFunction {
    let mut names: HashMap<String, usize> = HashMap::new();
    for (position, arg) in create.args.iter_mut().flatten().enumerate() {
        if let Some(name) = arg.name.take() {
            names.insert(normal(&name), position);
        }
    }
    if let Some(body) = &mut create.function_body {
        let _: ControlFlow<()> = visit_expressions_mut(body, |expr| {
            if let ast::Expr::Identifier(ident) = expr
                && let Some(position) = names.get(&normal(ident))
            {
                *expr = ast::Expr::Value(ast::Value::Placeholder(column_name(*position)).into());
            }
            ControlFlow::Continue(())
        });
    }
    create
}

/// An identifier as it is compared.
fn normal(ident: &ast::Ident) -> String {
    match ident.quote_style {
        Some(_) => ident.value.clone(),
        None => ident.value.to_ascii_lowercase(),
    }
}

/// A call stays a call if more expressions would come in its place.
const INLINED_MAX: usize = 1000;

/// A function whose body is an expression over its arguments.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SqlFunction {
    name: String,
    signature: Signature,
    return_type: DataType,
    /// Columns `$1`, `$2`, .. with the declared types.
    arguments: DFSchemaRef,
    /// Coerced, cast to the return type, over `arguments`.
    body: Expr,
    /// How often the body names each argument.
    uses: Vec<usize>,
}

impl SqlFunction {
    /// Makes the function that a `CREATE FUNCTION` statement describes.
    pub fn try_new(statement: CreateFunction, state: &SessionState) -> Result<ScalarUDF> {
        let CreateFunction { name, args, return_type, params, .. } = statement;
        if let Some(language) = &params.language
            && !language.value.eq_ignore_ascii_case("sql")
        {
            return plan_err!("functions in language \"{}\" are not offered: write the body in SQL", language.value);
        }
        let Some(body) = params.function_body else {
            return plan_err!("function \"{name}\" has no body: add RETURN ..");
        };
        let args = args.unwrap_or_default();
        if args.iter().any(|arg| arg.default_expr.is_some()) {
            return plan_err!("function \"{name}\": default values of arguments are not offered");
        }
        let by_name: HashMap<String, usize> = args
            .iter()
            .enumerate()
            .filter_map(|(position, arg)| Some((arg.name.as_ref()?.value.clone(), position)))
            .collect();
        let types: Vec<DataType> = args.iter().map(|arg| arg.data_type.clone()).collect();
        let fields: Vec<Field> =
            types.iter().enumerate().map(|(position, t)| Field::new(column_name(position), t.clone(), true)).collect();
        let arguments = Arc::new(DFSchema::try_from(Schema::new(fields))?);

        let mut uses = vec![0_usize; types.len()];
        let mut bind = |id: &str| -> Result<Expr> {
            let word = id.trim_start_matches('$');
            let position = match word.parse::<usize>() {
                Ok(number) => number.checked_sub(1),
                Err(_) => by_name.get(word).copied(),
            };
            match position.filter(|position| *position < types.len()) {
                Some(position) => {
                    uses[position] += 1;
                    Ok(Expr::Column(Column::new_unqualified(column_name(position))))
                }
                None => plan_err!("function \"{name}\" has no argument {id}"),
            }
        };
        let body = body
            .transform(|expr| match &expr {
                Expr::Placeholder(placeholder) => Ok(Transformed::yes(bind(&placeholder.id)?)),
                Expr::Column(column) if column.relation.is_none() && by_name.contains_key(&column.name) => {
                    Ok(Transformed::yes(bind(&column.name)?))
                }
                _ => Ok(Transformed::no(expr)),
            })
            .data()?;
        let has_subquery = body.exists(|expr| {
            Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)))
        })?;
        if has_subquery {
            return plan_err!("function \"{name}\": subqueries in the body are not offered");
        }
        let of_rows = body.exists(|expr| Ok(matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_))))?;
        if of_rows {
            return plan_err!(
                "function \"{name}\": aggregates and window functions in the body are not offered; use them around the function"
            );
        }

        let context = SimplifyContext::builder().with_schema(Arc::clone(&arguments)).build();
        // What rules do to a statement: they do not look into functions.
        let body = steady(exact_comparisons(body, &arguments)?.data)?.data;
        let body = ExprSimplifier::new(context).coerce(body, &arguments)?;
        let body = compare_intervals(body, &arguments)?.data;
        let return_type = match return_type {
            Some(declared) => declared,
            None => body.get_type(&arguments)?,
        };
        let body = keep_casts(body.cast_to(&return_type, &arguments)?, &arguments)?.data;
        // Planning the body once here reports its mistakes when the function is made, not when it is used.
        create_physical_expr(&body, &arguments, state.execution_props(), &PhysicalPlanningContext::default())?;

        let volatility = match params.behavior {
            Some(declared) => declared,
            None if body.is_volatile() => Volatility::Volatile,
            None => Volatility::Immutable,
        };
        let signature = match types.len() {
            0 => Signature::nullary(volatility),
            // Arguments are cast to the declared types when the body is put in place.
            n => Signature::any(n, volatility),
        };
        Ok(ScalarUDF::new_from_impl(Self { name, signature, return_type, arguments, body, uses }))
    }

    /// The body, for those who compare functions.
    pub fn body(&self) -> &Expr {
        &self.body
    }
}

/// How many expressions it is made of.
fn size(expr: &Expr) -> usize {
    let mut n = 0;
    // Counting does not fail.
    let _ = expr.apply(|_| {
        n += 1;
        Ok(TreeNodeRecursion::Continue)
    });
    n
}

fn column_name(position: usize) -> String {
    format!("${}", position + 1)
}

impl ScalarUDFImpl for SqlFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.return_type.clone())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let evaluated_twice = args.iter().zip(&self.uses).any(|(arg, uses)| *uses > 1 && arg.is_volatile());
        let n_inlined = args.iter().zip(&self.uses).map(|(arg, uses)| size(arg).saturating_mul(*uses)).sum::<usize>();
        if evaluated_twice || n_inlined > INLINED_MAX {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let inlined = self
            .body
            .clone()
            // Bottom-up, so that what was put in place is not searched again: it may hold columns of the same name.
            .transform_up(|expr| match &expr {
                Expr::Column(column) if column.relation.is_none() => {
                    let position = (0..args.len()).find(|position| column_name(*position) == column.name);
                    match position {
                        Some(position) => {
                            let wanted = self.arguments.field(position).data_type();
                            let arg = args[position].clone();
                            let given = info.get_data_type(&arg)?;
                            let arg = if given == *wanted { arg } else { kept_argument(arg, &given, wanted) };
                            Ok(Transformed::yes(arg))
                        }
                        None => Ok(Transformed::no(expr)),
                    }
                }
                _ => Ok(Transformed::no(expr)),
            })
            .data()?;
        Ok(ExprSimplifyResult::Simplified(inlined))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let declared = self.arguments.fields().iter().map(|field| field.data_type());
        let columns = args
            .args
            .iter()
            .zip(declared)
            .map(|(arg, wanted)| arg.cast_to(wanted, None)?.to_array(args.number_rows))
            .collect::<Result<Vec<_>>>()?;
        if columns.len() != self.arguments.fields().len() {
            return exec_err!("function \"{}\" takes {} arguments", self.name, self.arguments.fields().len());
        }
        let options = RecordBatchOptions::new().with_row_count(Some(args.number_rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(self.arguments.inner()), columns, &options)?;
        let context = PhysicalPlanningContext::default();
        create_physical_expr(&self.body, &self.arguments, &ExecutionProps::new(), &context)?.evaluate(&batch)
    }
}
