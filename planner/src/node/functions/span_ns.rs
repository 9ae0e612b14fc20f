//! [`span_ns`]: how long an interval is, in nanoseconds, as PostgreSQL compares intervals: a month has 30 days, a day
//! 24 hours.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, Decimal128Array, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Field, FieldRef, Int64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalUnit,
    IntervalYearMonthType, TimeUnit,
};
use datafusion::common::utils::take_function_args;
use datafusion::common::{Result, ScalarValue, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

const DAY_NS: i128 = 86_400_000_000_000;
const MONTH_NS: i128 = 30 * DAY_NS;

/// Wide enough for the longest: 2^31 months are 25 digits.
const PRECISION: u8 = 38;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(SpanNs { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The function, of intervals and durations.
pub(crate) fn span_ns() -> Arc<ScalarUDF> {
    Arc::clone(&FUNCTION)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SpanNs {
    signature: Signature,
}

impl ScalarUDFImpl for SpanNs {
    fn name(&self) -> &str {
        "span_ns"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Decimal128(PRECISION, 0))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Decimal128(PRECISION, 0), nullable)))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = take_function_args(self.name(), args.args)?;
        match value {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(Arc::new(spans(&array)?))),
            ColumnarValue::Scalar(scalar) => {
                let one = spans(&scalar.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&one, 0)?))
            }
        }
    }
}

fn spans(array: &ArrayRef) -> Result<Decimal128Array> {
    let spans = match array.data_type() {
        DataType::Interval(IntervalUnit::YearMonth) => {
            each(array.as_primitive::<IntervalYearMonthType>(), |months| i128::from(months) * MONTH_NS)
        }
        DataType::Interval(IntervalUnit::DayTime) => each(array.as_primitive::<IntervalDayTimeType>(), |span| {
            i128::from(span.days) * DAY_NS + i128::from(span.milliseconds) * 1_000_000
        }),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            each(array.as_primitive::<IntervalMonthDayNanoType>(), |span| {
                i128::from(span.months) * MONTH_NS + i128::from(span.days) * DAY_NS + i128::from(span.nanoseconds)
            })
        }
        DataType::Duration(unit) => {
            let tick_ns = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1000,
                TimeUnit::Nanosecond => 1,
            };
            let ticks = cast(array, &DataType::Int64)?;
            each(ticks.as_primitive::<Int64Type>(), |ticks| i128::from(ticks) * tick_ns)
        }
        DataType::Null => Decimal128Array::new_null(array.len()),
        other => return exec_err!("span_ns() is of intervals, not of {other}"),
    };
    Ok(spans.with_precision_and_scale(PRECISION, 0)?)
}

fn each<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>, ns: impl Fn(T::Native) -> i128) -> Decimal128Array {
    values.unary::<_, Decimal128Type>(ns)
}

#[cfg(test)]
mod tests {
    use arrow::array::{DurationMillisecondArray, IntervalMonthDayNanoArray, IntervalYearMonthArray};
    use arrow::datatypes::IntervalMonthDayNano;

    use super::*;

    fn values(array: ArrayRef) -> Vec<Option<i128>> {
        spans(&array).unwrap().iter().collect()
    }

    #[test]
    fn one_number_for_all_parts() {
        let mixed = IntervalMonthDayNanoArray::from(vec![
            Some(IntervalMonthDayNano::new(0, 1, 0)),
            Some(IntervalMonthDayNano::new(0, 0, 86_400_000_000_000)),
            Some(IntervalMonthDayNano::new(1, -30, 0)),
            Some(IntervalMonthDayNano::new(i32::MIN, i32::MIN, i64::MIN)),
            None,
        ]);
        let least = i128::from(i32::MIN) * (MONTH_NS + DAY_NS) + i128::from(i64::MIN);
        assert_eq!(values(Arc::new(mixed)), [Some(DAY_NS), Some(DAY_NS), Some(0), Some(least), None]);
        assert_eq!(values(Arc::new(IntervalYearMonthArray::from(vec![12]))), [Some(360 * DAY_NS)]);
        assert_eq!(values(Arc::new(DurationMillisecondArray::from(vec![-1]))), [Some(-1_000_000)]);
        assert!(spans(&(Arc::new(Decimal128Array::from(vec![1])) as ArrayRef)).is_err());
    }
}
