//! [`bounded_functions`]: functions that make much out of little, with a bound on how much.
//!
//! `repeat('x', 2000000000)` is two gigabytes in a line of text. Values of functions are nobody's reservation: no bound on memory
//! knows of them, and those of constants are computed while planning. So they are weighed before they are made.
//!
//! Keeps true   a call gives what the function of that name gives, or an error that says how large its value would be.
//! Cost         two lengths per row; nothing else for what stays small.

mod growth;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};

use self::growth::Growth;
use crate::engine::options;
use crate::machine;
use crate::settings::{parse_size, query_memory};

/// The most that one value may have.
const VALUE_BYTES_MAX: u64 = 256 << 20;

/// The most that the values of one batch may have together, if memory is not less.
const BATCH_BYTES_MAX: u64 = 1 << 30;

/// What is smaller is not weighed against settings.
const SMALL_BYTES: u128 = 16 << 20;

/// Puts them in the places of DataFusion's own; functions of whoever embeds the engine stay.
pub(crate) fn bound_functions(state: &mut SessionState) -> Result<()> {
    for function in bounded_functions() {
        let known = state.scalar_functions().get(function.name());
        let is_own = function.inner().downcast_ref::<BoundedFunction>().zip(known);
        if is_own.is_some_and(|(bounded, known)| bounded.function == *known) {
            state.register_udf(function)?;
        }
    }
    Ok(())
}

/// Those functions of DataFusion that make much out of little.
pub(crate) fn bounded_functions() -> Vec<Arc<ScalarUDF>> {
    let known = SessionStateDefaults::default_scalar_functions();
    let bounded = |function: Arc<ScalarUDF>| {
        let growth = Growth::of(function.name())?;
        Some(Arc::new(ScalarUDF::from(BoundedFunction { function, growth })))
    };
    known.into_iter().filter_map(bounded).collect()
}

/// A function whose values are weighed before they are made.
#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedFunction {
    function: Arc<ScalarUDF>,
    growth: Growth,
}

impl BoundedFunction {
    fn check(&self, args: &ScalarFunctionArgs) -> Result<()> {
        let (largest, total) = self.growth.weigh(&args.args, args.number_rows)?;
        if total <= SMALL_BYTES {
            return Ok(());
        }
        let memory = memory_bytes(&args.config_options);
        let (value_max, batch_max) = (VALUE_BYTES_MAX.min(memory / 4), BATCH_BYTES_MAX.min(memory));
        let name = self.function.name();
        if largest > u128::from(value_max) {
            return exec_err!("{name}() would make a value of {largest} bytes, and {value_max} are allowed");
        }
        if total > u128::from(batch_max) {
            return exec_err!(
                "{name}() would make {total} bytes for {} rows, and {batch_max} are allowed: a smaller \
                 datafusion.execution.batch_size makes it fewer rows at a time",
                args.number_rows
            );
        }
        Ok(())
    }
}

/// What a statement may use.
fn memory_bytes(config: &ConfigOptions) -> u64 {
    let ours = options(config);
    match query_memory(&ours) {
        Ok(Some(bytes)) => bytes as u64,
        _ => parse_size("nectarine.memory_limit", &ours.memory_limit, machine::memory_bytes()).unwrap_or(u64::MAX),
    }
}

impl ScalarUDFImpl for BoundedFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        self.function.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function.inner().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.function.inner().return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.function.inner().is_strict()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.check(&args)?;
        self.function.inner().invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, context: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.function.inner().simplify(args, context)
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, context: &SimplifyContext) -> Result<PreimageResult> {
        self.function.inner().preimage(args, literal, context)
    }

    fn short_circuits(&self) -> bool {
        self.function.inner().short_circuits()
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.function.inner().evaluate_bounds(input)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.function.inner().propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function.inner().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.function.inner().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.function.inner().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function.inner().coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.function.inner().placement(args)
    }
}
