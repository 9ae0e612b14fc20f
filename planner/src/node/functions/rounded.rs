//! [`rounded`]: DataFusion's `round`, whose type is the same at all times.
//!
//! ```text
//!   round(m, 1) of a DECIMAL(9, 2)    as it is written        DECIMAL(9, 1)
//!                                     while types are found   DECIMAL(10, 2): the 1 stands in a cast to INT
//!                                     when it runs            DECIMAL(9, 1)
//! ```
//!
//! DataFusion 55 takes the type from the number of places if it is a constant. What stands beside it was fitted to the
//! type in the middle.
//!
//! Keeps true   values, and the types that a query gives.

use std::sync::{Arc, LazyLock};

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::common::types::{NativeType, logical_float32, logical_float64};
use datafusion::functions::math::round;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, TypeSignature, TypeSignatureClass, Volatility,
};

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Rounded::new(false))));

static OF_COLUMNS: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Rounded::new(true))));

/// The function.
pub fn rounded() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

/// The same where the number of places was no constant when the types were found: it may become one.
pub(crate) fn round_of_columns() -> Arc<ScalarUDF> {
    Arc::clone(&OF_COLUMNS)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounded {
    function: Arc<ScalarUDF>,
    of_columns: bool,
    signature: Signature,
}

impl Rounded {
    fn new(of_columns: bool) -> Self {
        Self { function: round(), of_columns, signature: signature() }
    }
}

/// DataFusion's, but for the number of places: it stays what it is, so that a constant is seen to be one.
fn signature() -> Signature {
    let exact = Coercion::new_exact;
    let numeric = Coercion::new_implicit(
        TypeSignatureClass::Native(logical_float64()),
        vec![TypeSignatureClass::Numeric],
        NativeType::Float64,
    );
    let numbers = [
        exact(TypeSignatureClass::Decimal),
        exact(TypeSignatureClass::Integer),
        exact(TypeSignatureClass::Native(logical_float32())),
        numeric,
    ];
    let ways = numbers.into_iter().flat_map(|number| {
        let places = exact(TypeSignatureClass::Integer);
        [TypeSignature::Coercible(vec![number.clone(), places]), TypeSignature::Coercible(vec![number])]
    });
    Signature::one_of(ways.collect(), Volatility::Immutable)
}

impl ScalarUDFImpl for Rounded {
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
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function.inner().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let ReturnFieldArgs { arg_fields, scalar_arguments } = args;
        let unknown = [scalar_arguments.first().copied().flatten(), None];
        let is_hidden = self.of_columns && scalar_arguments.len() == unknown.len();
        let scalar_arguments = if is_hidden { &unknown[..] } else { scalar_arguments };
        self.function.inner().return_field_from_args(ReturnFieldArgs { arg_fields, scalar_arguments })
    }

    fn is_strict(&self) -> bool {
        self.function.inner().is_strict()
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(places) = args.args.get_mut(1) {
            *places = places.cast_to(&DataType::Int32, None)?;
        }
        self.function.inner().invoke_with_args(args)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.function.inner().evaluate_bounds(input)
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

    fn documentation(&self) -> Option<&Documentation> {
        self.function.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.function.inner().placement(args)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::type_coercion::functions::fields_with_udf;

    use super::*;

    fn field(data_type: DataType) -> FieldRef {
        Arc::new(Field::new("f", data_type, true))
    }

    /// The type of a call, and whether its arguments are cast before it.
    fn planned(function: &ScalarUDF, value: DataType, places: &ScalarValue) -> (DataType, bool) {
        let given = [field(value), field(places.data_type())];
        let fields = fields_with_udf(&given, function).unwrap();
        let scalar_arguments = [None, Some(places)];
        let args = ReturnFieldArgs { arg_fields: &fields, scalar_arguments: &scalar_arguments };
        (function.return_field_from_args(args).unwrap().data_type().clone(), fields != given)
    }

    #[test]
    fn constants_are_not_cast() {
        let decimal = || DataType::Decimal128(9, 2);
        for places in [ScalarValue::Int64(Some(1)), ScalarValue::Int8(Some(1)), ScalarValue::UInt64(Some(1))] {
            assert_eq!(planned(&rounded(), decimal(), &places), (DataType::Decimal128(9, 1), false), "{places:?}");
            let unknown = planned(&round_of_columns(), decimal(), &places);
            assert_eq!(unknown, (DataType::Decimal128(10, 2), false), "{places:?}");
            assert_eq!(planned(&rounded(), DataType::Int16, &places), (DataType::Int16, false), "{places:?}");
            assert_eq!(planned(&rounded(), DataType::Float32, &places), (DataType::Float32, false), "{places:?}");
        }
        // As DataFusion has them.
        for (value, places) in [
            (decimal(), ScalarValue::Int64(Some(-1))),
            (decimal(), ScalarValue::Null),
            (DataType::Null, ScalarValue::Int64(Some(1))),
            (DataType::Float64, ScalarValue::Int64(Some(1))),
            (DataType::UInt64, ScalarValue::Int32(Some(1))),
        ] {
            let (ours, theirs) = (planned(&rounded(), value.clone(), &places), planned(&round(), value, &places));
            assert_eq!(ours.0, theirs.0, "{places:?}");
        }
        let ours = rounded();
        assert!(fields_with_udf(&[field(DataType::Utf8)], &*ours).is_err());
        assert!(fields_with_udf(&[field(decimal()), field(DataType::Float64)], &*ours).is_err());
    }
}
