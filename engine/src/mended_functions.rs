//! [`mended_functions`]: functions of DataFusion with a fault that is mended where they are called.
//!
//! ```text
//!   weighed   make much out of little, with a bound on how much
//!   zoned     say that their times are of a zone, and forget it
//!   rounded   `round` changes its type while it is planned: see `nectarine_planner::node`, executors have it too
//! ```
//!
//! Keeps true   a call gives what the function of that name gives or should have given, or an error that says why not.

mod growth;
mod weighed;
mod zoned;

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionStateDefaults;
use datafusion::execution::context::SessionState;
use datafusion::functions::math::round;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature,
};
use nectarine_planner::node::rounded;

use self::growth::Growth;
use self::weighed::Weighed;

/// Puts them in the places of DataFusion's own; functions of whoever embeds the engine stay.
pub(crate) fn mend_functions(state: &mut SessionState) -> Result<()> {
    let config = Arc::clone(state.config_options());
    for function in mended_functions() {
        // Those that the state has know of its settings already.
        let function = function.inner().with_updated_config(&config).map_or(function, Arc::new);
        let known = state.scalar_functions().get(function.name());
        let is_own = function.inner().downcast_ref::<MendedFunction>().zip(known);
        if is_own.is_some_and(|(mended, known)| mended.function == *known) {
            state.register_udf(function)?;
        }
    }
    let rounds = state.scalar_functions().get(rounded().name());
    if rounds.is_some_and(|known| *known == round()) {
        state.register_udf(rounded())?;
    }
    Ok(())
}

/// Those functions of DataFusion, mended.
pub(crate) fn mended_functions() -> Vec<Arc<ScalarUDF>> {
    let known = SessionStateDefaults::default_scalar_functions();
    let mended = |function: Arc<ScalarUDF>| {
        let mend = Mend::of(function.name())?;
        Some(Arc::new(ScalarUDF::from(MendedFunction { function, mend })))
    };
    known.into_iter().filter_map(mended).collect()
}

/// What is mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mend {
    Size(Weighed),
    Zone,
}

impl Mend {
    fn of(name: &str) -> Option<Self> {
        match zoned::NAMES.contains(&name) {
            true => Some(Self::Zone),
            false => Growth::of(name).map(|growth| Self::Size(Weighed(growth))),
        }
    }
}

/// A function, and what is mended about it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct MendedFunction {
    function: Arc<ScalarUDF>,
    mend: Mend,
}

impl ScalarUDFImpl for MendedFunction {
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
        match self.mend {
            Mend::Size(weighed) => {
                weighed.check(self.name(), &args)?;
                self.function.inner().invoke_with_args(args)
            }
            Mend::Zone => {
                let announced = args.return_field.data_type().clone();
                zoned::with_zone(self.function.inner().invoke_with_args(args)?, &announced)
            }
        }
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let function = Arc::new(self.function.inner().with_updated_config(config)?);
        Some(ScalarUDF::from(Self { function, mend: self.mend }))
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
