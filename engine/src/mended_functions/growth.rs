//! [`Growth`]: how large the values of a call would be, told from its arguments.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::{cast, kernels::length::length};
use arrow::datatypes::{DataType, Int64Type, IntervalMonthDayNanoType, TimeUnit};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::ColumnarValue;

/// Bytes of a number, or of an offset to an element.
const NUMBER_BYTES: i128 = 8;

const DAY_NS: i128 = 86_400_000_000_000;

/// The shortest month.
const MONTH_DAYS: i128 = 28;

/// How a function's values grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Growth {
    /// A text, so many times.
    Repeated,
    /// A text of so many letters.
    Padded,
    /// A list of so many elements of one value.
    RepeatedElement,
    /// A list that gets so many elements.
    Resized,
    /// A list from one value to another.
    Series,
    /// A text whose parts become others.
    Replaced,
    /// All texts, one after the other.
    Joined,
}

impl Growth {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "repeat" => Self::Repeated,
            "lpad" | "rpad" => Self::Padded,
            "array_repeat" => Self::RepeatedElement,
            "array_resize" => Self::Resized,
            "range" | "generate_series" => Self::Series,
            "replace" => Self::Replaced,
            "concat" | "concat_ws" => Self::Joined,
            _ => return None,
        })
    }

    /// The largest value of a call and all of them together, in bytes. What cannot be told is nothing.
    pub(super) fn weigh(self, args: &[ColumnarValue], n_rows: usize) -> Result<(u128, u128)> {
        let is_one = args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let n_rows = if is_one { 1 } else { n_rows };
        let weight: Box<dyn Fn(usize) -> i128> = match (self, args) {
            (Self::Repeated, [text, count]) => {
                let (text, count) = (lengths(text)?, numbers(count)?);
                Box::new(move |row| text.at(row).saturating_mul(count.at(row).max(0)))
            }
            (Self::Padded, [_, count, ..]) => {
                let count = numbers(count)?;
                Box::new(move |row| count.at(row))
            }
            (Self::RepeatedElement, [element, count]) => {
                let (element, count) = (value_bytes(element), numbers(count)?);
                Box::new(move |row| (element + NUMBER_BYTES).saturating_mul(count.at(row).max(0)))
            }
            (Self::Resized, [_, count, rest @ ..]) => {
                let (element, count) = (rest.first().map_or(NUMBER_BYTES, value_bytes), numbers(count)?);
                Box::new(move |row| element.saturating_mul(count.at(row).max(0)))
            }
            (Self::Series, [stop]) => {
                let stop = numbers(stop)?;
                Box::new(move |row| stop.at(row).saturating_mul(NUMBER_BYTES))
            }
            (Self::Series, [start, stop]) => {
                let (start, stop) = (numbers(start)?, numbers(stop)?);
                Box::new(move |row| steps(start.at(row), stop.at(row), 1).saturating_mul(NUMBER_BYTES))
            }
            (Self::Series, [start, stop, step]) => {
                let (start, stop, step) = (numbers(start)?, numbers(stop)?, numbers(step)?);
                Box::new(move |row| steps(start.at(row), stop.at(row), step.at(row)).saturating_mul(NUMBER_BYTES))
            }
            (Self::Replaced, [text, part, by]) => {
                let (texts, parts) = (lengths(text)?, lengths(part)?);
                let by = lengths(by)?;
                let count = |row: usize| texts.at(row) / parts.at(row).max(1) + 1;
                let most = (0..n_rows).map(|row| count(row).saturating_mul(by.at(row))).max().unwrap_or(0);
                if most <= super::weighed::SMALL_BYTES as i128 {
                    return Ok((0, 0));
                }
                // Only what might be large is looked through.
                let counts = occurrences(text, part, n_rows)?;
                Box::new(move |row| counts[row].saturating_mul(by.at(row)).saturating_add(texts.at(row)))
            }
            (Self::Joined, args) => {
                let texts = args.iter().map(lengths).collect::<Result<Vec<_>>>()?;
                Box::new(move |row| texts.iter().map(|text| text.at(row)).sum())
            }
            _ => return Ok((0, 0)),
        };
        let mut sum = (0, 0_u128);
        for row in 0..n_rows {
            let bytes = weight(row).max(0).unsigned_abs();
            sum = (bytes.max(sum.0), sum.1.saturating_add(bytes));
        }
        Ok(sum)
    }
}

/// How many values lie between two, about.
fn steps(start: i128, stop: i128, step: i128) -> i128 {
    match step {
        0 => 0,
        step => ((stop - start) / step).max(-1) + 1,
    }
}

/// A number for each row.
enum Numbers {
    Same(i128),
    Each(Int64Array, i128),
    Steps(ArrayRef),
}

impl Numbers {
    fn at(&self, row: usize) -> i128 {
        match self {
            Self::Same(number) => *number,
            Self::Each(numbers, unit) if row < numbers.len() && numbers.is_valid(row) => {
                i128::from(numbers.value(row)) * unit
            }
            Self::Steps(steps) if row < steps.len() && steps.is_valid(row) => {
                let step = steps.as_primitive::<IntervalMonthDayNanoType>().value(row);
                let days = i128::from(step.months) * MONTH_DAYS + i128::from(step.days);
                days * DAY_NS + i128::from(step.nanoseconds)
            }
            Self::Each(..) | Self::Steps(_) => 0,
        }
    }
}

/// Whole numbers as they are; points in time and spans between them in nanoseconds. NULL is 0.
fn numbers(value: &ColumnarValue) -> Result<Numbers> {
    let array = match value {
        ColumnarValue::Array(array) => ArrayRef::clone(array),
        ColumnarValue::Scalar(ScalarValue::Int64(number)) => return Ok(Numbers::Same(number.unwrap_or(0).into())),
        ColumnarValue::Scalar(scalar) => {
            let one = of_array(&scalar.to_array()?)?;
            return Ok(Numbers::Same(one.at(0)));
        }
    };
    of_array(&array)
}

fn of_array(array: &ArrayRef) -> Result<Numbers> {
    let unit = match array.data_type() {
        DataType::Interval(_) => {
            let whole = DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano);
            return Ok(Numbers::Steps(cast(array, &whole)?));
        }
        DataType::Date32 => DAY_NS,
        DataType::Date64 | DataType::Timestamp(TimeUnit::Millisecond, _) => 1_000_000,
        DataType::Timestamp(TimeUnit::Second, _) => 1_000_000_000,
        DataType::Timestamp(TimeUnit::Microsecond, _) => 1000,
        DataType::Timestamp(TimeUnit::Nanosecond, _) => 1,
        kind if kind.is_integer() => 1,
        _ => return Ok(Numbers::Same(0)),
    };
    let array = match array.data_type() {
        DataType::Date32 => cast(array, &DataType::Int32)?,
        _ => ArrayRef::clone(array),
    };
    Ok(Numbers::Each(cast(&array, &DataType::Int64)?.as_primitive::<Int64Type>().clone(), unit))
}

/// Bytes of texts; of all else nothing is told.
fn lengths(value: &ColumnarValue) -> Result<Numbers> {
    match value {
        ColumnarValue::Scalar(scalar) => {
            let text = scalar.try_as_str().flatten();
            Ok(Numbers::Same(text.map_or(0, |text| text.len() as i128)))
        }
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => of_array(&length(array)?),
            _ => Ok(Numbers::Same(0)),
        },
    }
}

/// Bytes of one value of an argument, on average.
fn value_bytes(value: &ColumnarValue) -> i128 {
    match value {
        ColumnarValue::Scalar(scalar) => match scalar.try_as_str() {
            Some(text) => text.map_or(0, str::len) as i128,
            None => scalar.size() as i128,
        },
        ColumnarValue::Array(array) => (array.get_buffer_memory_size() / array.len().max(1)) as i128,
    }
}

/// How often one text is in another, row by row.
fn occurrences(text: &ColumnarValue, part: &ColumnarValue, n_rows: usize) -> Result<Vec<i128>> {
    let texts = |value: &ColumnarValue| cast(&value.to_array(n_rows)?, &DataType::LargeUtf8).map_err(Into::into);
    let (text, part): (Result<ArrayRef>, Result<ArrayRef>) = (texts(text), texts(part));
    let (text, part) = (text?, part?);
    let pairs = text.as_string::<i64>().iter().zip(part.as_string::<i64>().iter());
    let count = |(text, part): (Option<&str>, Option<&str>)| match (text, part) {
        (Some(text), Some(part)) if !part.is_empty() => text.matches(part).count() as i128,
        // Between all letters, and around them.
        (Some(text), Some(_)) => text.chars().count() as i128 + 1,
        _ => 0,
    };
    Ok(pairs.map(count).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, StringArray};

    use super::*;

    fn text(text: &str) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::from(text))
    }

    fn number(number: i64) -> ColumnarValue {
        ColumnarValue::Scalar(ScalarValue::from(number))
    }

    #[test]
    fn constants() {
        let weigh = |name: &str, args: &[ColumnarValue]| Growth::of(name).unwrap().weigh(args, 1).unwrap().0;
        assert_eq!(weigh("repeat", &[text("ab"), number(2_000_000_000)]), 4_000_000_000);
        assert_eq!(weigh("repeat", &[text("ab"), number(-1)]), 0);
        assert_eq!(weigh("repeat", &[ColumnarValue::Scalar(ScalarValue::Utf8(None)), number(i64::MAX)]), 0);
        assert_eq!(weigh("lpad", &[text("a"), number(7)]), 7);
        assert_eq!(weigh("range", &[number(100)]), 800);
        assert_eq!(weigh("generate_series", &[number(1), number(100)]), 800);
        assert_eq!(weigh("generate_series", &[number(100), number(1), number(-1)]), 800);
        assert_eq!(weigh("generate_series", &[number(1), number(100), number(-1)]), 0);
        assert_eq!(weigh("range", &[number(i64::MIN), number(i64::MAX), number(1)]), (1 << 67));
        assert_eq!(weigh("array_repeat", &[text("abcd"), number(10)]), 120);
        assert_eq!(weigh("concat", &[text("ab"), text("c"), number(5)]), 3);
        let (x, y) = ("x".repeat(10_000), "y".repeat(10_000));
        assert_eq!(weigh("replace", &[text(&x), text("x"), text(&y)]), 100_010_000);
        assert_eq!(weigh("replace", &[text(&x), text("z"), text(&y)]), 10_000, "there is none");
    }

    #[test]
    fn rows_and_times() {
        let texts = ColumnarValue::Array(Arc::new(StringArray::from(vec![Some("a"), None, Some("abc")])));
        let (largest, total) = Growth::Repeated.weigh(&[texts, number(10)], 3).unwrap();
        assert_eq!((largest, total), (30, 40));
        let day = |day| ColumnarValue::Array(Arc::new(Date32Array::from(vec![day])));
        let step = |months, days, ns| ColumnarValue::Scalar(ScalarValue::new_interval_mdn(months, days, ns));
        let series = |step| Growth::Series.weigh(&[day(0), day(28), step], 1).unwrap().0;
        assert_eq!(series(step(0, 1, 0)), 29 * 8);
        assert_eq!(series(step(1, 0, 0)), 2 * 8);
        assert_eq!(series(step(0, 0, 1)), (28 * DAY_NS as u128 + 1) * 8);
    }
}
