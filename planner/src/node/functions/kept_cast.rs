//! [`kept_cast`]: the value that it is given.
//!
//! DataFusion compares `CAST(x AS INT) = 14` as `x = 14`, in plans as in what it asks of files, whatever the cast cuts
//! off. It does not look into functions.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(KeptCast { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The function.
pub(crate) fn kept_cast() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct KeptCast {
    signature: Signature,
}

impl ScalarUDFImpl for KeptCast {
    fn name(&self) -> &str {
        "kept_cast"
    }

    /// With the type of the cast: keys of joins are columns by these names.
    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [value] = take_function_args(self.name(), args)?;
        Ok(format!("{}({value})", self.name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [data_type] = take_function_args(self.name(), arg_types)?;
        Ok(data_type.clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let [field] = take_function_args(self.name(), args.arg_fields)?;
        Ok(Arc::clone(field))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = take_function_args(self.name(), args.args)?;
        Ok(value)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        match input {
            [value] => Ok((*value).clone()),
            _ => internal_err!("kept_cast has one argument"),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |value| value.sort_properties))
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        Ok(inputs.first().is_some_and(|value| value.preserves_lex_ordering))
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        Ok(inputs.first().is_some_and(|value| value.strictly_order_preserving))
    }
}
