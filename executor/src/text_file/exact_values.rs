//! [`ExactValues`]: values of text files that Arrow's readers would change, exactly as they are written or not at all.
//!
//! ```text
//!                       Arrow's readers                              here
//!   integers of JSON    floats that are cut: 2.9 becomes 2, and      2.0 and 1e3 are whole numbers; 2.9, 1e400 and 300 in a
//!                       9007199254740993.0 another number            column of bytes are errors
//!   decimals            cut to the digits of their column            rounded to them, as a CAST does
//!   booleans of CSV     true and false                               t, f and all that a CAST knows
//! ```
//!
//! Such columns are read as text, which costs little because short texts are kept in place, and parsed afterwards. All
//! others are the reader's.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, BooleanArray, PrimitiveArray, RecordBatch, make_array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::compute::kernels::cast::cast_single_string_to_boolean_default;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType, Field,
    FieldRef, Fields, Int8Type, Int16Type, Int32Type, Int64Type, Schema, SchemaRef, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::Result;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};

use super::written::{OUT_OF_RANGE, Written, rounded};

/// Whose values they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Text {
    Csv,
    Json,
}

/// Such columns of one schema.
#[derive(Clone)]
pub(super) struct ExactValues {
    text: Text,
    wanted: SchemaRef,
    as_read: SchemaRef,
}

impl ExactValues {
    pub(super) fn of(text: Text, wanted: &SchemaRef) -> Self {
        let fields: Fields = wanted.fields().iter().map(|field| text.field(field)).collect();
        let as_read = Schema::new_with_metadata(fields, wanted.metadata().clone());
        Self { text, wanted: Arc::clone(wanted), as_read: Arc::new(as_read) }
    }

    /// The columns as the reader is asked for them.
    pub(super) fn as_read(&self) -> &SchemaRef {
        &self.as_read
    }

    /// Whether there is such a value anywhere.
    fn is_needed(&self) -> bool {
        self.as_read != self.wanted
    }

    /// Rows as they are wanted of rows as they are read.
    pub(super) fn rows(
        self,
        read: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        match self.is_needed() {
            true => read.map(move |batch| self.parsed(&batch?)).boxed(),
            false => read.boxed(),
        }
    }

    fn parsed(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.wanted.fields()).map(|(column, field)| {
            let parsed = parsed(column, field.data_type());
            parsed.map_err(|Refused { what, why }| {
                let told = format!("cannot read {what} in column \"{}\": {why}", field.name());
                match self.text {
                    Text::Csv => ArrowError::CsvError(told),
                    Text::Json => ArrowError::JsonError(told),
                }
            })
        });
        Ok(RecordBatch::try_new(Arc::clone(&self.wanted), columns.collect::<Result<_, ArrowError>>()?)?)
    }
}

impl Text {
    fn field(self, field: &FieldRef) -> FieldRef {
        match self.data_type(field.data_type()) {
            Some(data_type) => Arc::new(field.as_ref().clone().with_data_type(data_type)),
            None => Arc::clone(field),
        }
    }

    /// The type that something with such values in it is read as.
    fn data_type(self, data_type: &DataType) -> Option<DataType> {
        let inner = |field: &FieldRef| self.data_type(field.data_type()).map(|_| self.field(field));
        match data_type {
            decimal if decimal.is_decimal() => Some(DataType::Utf8View),
            integer if integer.is_integer() && self == Self::Json => Some(DataType::Utf8View),
            DataType::Boolean if self == Self::Csv => Some(DataType::Utf8View),
            DataType::List(field) => inner(field).map(DataType::List),
            DataType::LargeList(field) => inner(field).map(DataType::LargeList),
            DataType::FixedSizeList(field, size) => inner(field).map(|field| DataType::FixedSizeList(field, *size)),
            DataType::Map(entries, sorted) => inner(entries).map(|entries| DataType::Map(entries, *sorted)),
            DataType::Struct(fields) => {
                let has_any = fields.iter().any(|field| self.data_type(field.data_type()).is_some());
                has_any.then(|| DataType::Struct(fields.iter().map(|field| self.field(field)).collect()))
            }
            _ => None,
        }
    }
}

/// A value that is not taken.
struct Refused {
    what: String,
    why: String,
}

fn parsed(read: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Refused> {
    if read.data_type() == wanted {
        return Ok(Arc::clone(read));
    }
    match wanted {
        DataType::Int8 => integers::<Int8Type>(read),
        DataType::Int16 => integers::<Int16Type>(read),
        DataType::Int32 => integers::<Int32Type>(read),
        DataType::Int64 => integers::<Int64Type>(read),
        DataType::UInt8 => integers::<UInt8Type>(read),
        DataType::UInt16 => integers::<UInt16Type>(read),
        DataType::UInt32 => integers::<UInt32Type>(read),
        DataType::UInt64 => integers::<UInt64Type>(read),
        DataType::Decimal32(precision, scale) => decimals::<Decimal32Type>(read, *precision, *scale),
        DataType::Decimal64(precision, scale) => decimals::<Decimal64Type>(read, *precision, *scale),
        DataType::Decimal128(precision, scale) => decimals::<Decimal128Type>(read, *precision, *scale),
        DataType::Decimal256(precision, scale) => decimals::<Decimal256Type>(read, *precision, *scale),
        DataType::Boolean => booleans(read),
        nested => {
            let fields: Vec<&Field> = match nested {
                DataType::List(field)
                | DataType::LargeList(field)
                | DataType::FixedSizeList(field, _)
                | DataType::Map(field, _) => vec![field],
                DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
                other => return Err(unexpected(other)),
            };
            let data = read.to_data();
            let children = data.child_data().iter().zip(fields).map(|(child, field)| {
                let child = parsed(&make_array(child.clone()), field.data_type())?;
                Ok(child.to_data())
            });
            let children: Vec<ArrayData> = children.collect::<Result<_, Refused>>()?;
            let rebuilt = data.into_builder().data_type(nested.clone()).child_data(children).build();
            rebuilt.map(make_array).map_err(|error| Refused { what: nested.to_string(), why: error.to_string() })
        }
    }
}

fn unexpected(data_type: &DataType) -> Refused {
    Refused { what: data_type.to_string(), why: "it is not what the reader was asked for".to_owned() }
}

fn integers<T>(read: &ArrayRef) -> Result<ArrayRef, Refused>
where
    T: ArrowPrimitiveType,
    T::Native: TryFrom<i64> + TryFrom<i128>,
{
    let (values, nulls) = each(read, &T::DATA_TYPE, |text| {
        let value = match short_integer(text.as_bytes()) {
            Some(value) => T::Native::try_from(value).ok(),
            None => T::Native::try_from(whole(text).ok_or("it is not a whole number")?).ok(),
        };
        value.ok_or(OUT_OF_RANGE)
    })?;
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

fn decimals<T: DecimalType>(read: &ArrayRef, precision: u8, scale: i8) -> Result<ArrayRef, Refused> {
    let wanted = T::TYPE_CONSTRUCTOR(precision, scale);
    let (values, nulls) = each(read, &wanted, |text| rounded::<T>(text, precision, scale))?;
    let values = PrimitiveArray::<T>::new(values.into(), nulls).with_precision_and_scale(precision, scale);
    match values {
        Ok(values) => Ok(Arc::new(values)),
        Err(error) => Err(Refused { what: wanted.to_string(), why: error.to_string() }),
    }
}

fn booleans(read: &ArrayRef) -> Result<ArrayRef, Refused> {
    let (values, nulls) = each(read, &DataType::Boolean, |text| match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => cast_single_string_to_boolean_default(other).ok_or("it is neither true nor false"),
    })?;
    Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(values), nulls)))
}

/// A value for each text, whatever for NULLs, and where these are.
fn each<V: Default>(
    read: &ArrayRef,
    wanted: &DataType,
    parse: impl Fn(&str) -> Result<V, &'static str>,
) -> Result<(Vec<V>, Option<NullBuffer>), Refused> {
    let Some(texts) = read.as_string_view_opt() else { return Err(unexpected(read.data_type())) };
    let nulls = texts.nulls().cloned();
    let mut values = Vec::with_capacity(texts.len());
    for position in 0..texts.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(position)) {
            values.push(V::default());
            continue;
        }
        let text = texts.value(position);
        let refused = |why: &str| Refused { what: format!("{} as {wanted}", shown(text)), why: why.to_owned() };
        values.push(parse(text).map_err(refused)?);
    }
    Ok((values, nulls))
}

/// At most so many letters of a value are told.
const SHOWN_MAX: usize = 60;

fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("'{}..'", &text[..end]),
        None => format!("'{text}'"),
    }
}

/// Digits, and few enough of them. Nearly all numbers are such.
fn short_integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value = 0;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if is_negative { -value } else { value })
}

/// The whole number that a text is, in any of the ways to write one; what is larger than all integers is cut to
/// `i128`'s ends.
fn whole(text: &str) -> Option<i128> {
    let number = Written::of(text)?;
    let mut digits: Vec<u8> = number.digits().collect();
    if digits.is_empty() {
        return Some(0);
    }
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if number.point < digits.len() as i64 {
        return None;
    }
    let largest = if number.is_negative { i128::MIN } else { i128::MAX };
    if number.point > 38 {
        return Some(largest);
    }
    digits.resize(usize::try_from(number.point).ok()?, 0);
    let mut value: i128 = 0;
    for digit in digits {
        let digit = i128::from(digit);
        let next =
            value.checked_mul(10).and_then(|value| value.checked_add(if number.is_negative { -digit } else { digit }));
        let Some(next) = next else { return Some(largest) };
        value = next;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use arrow::json::ReaderBuilder;

    use super::*;

    #[test]
    fn ways_to_write_a_whole_number() {
        for (text, value) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("-0.000e9", Some(0)),
            ("2.0", Some(2)),
            ("-2.50e1", Some(-25)),
            ("1e3", Some(1000)),
            ("1200E-2", Some(12)),
            ("0.0012e4", Some(12)),
            ("9007199254740993.0", Some(9_007_199_254_740_993)),
            ("18446744073709551615", Some(18_446_744_073_709_551_615)),
            ("1e400", Some(i128::MAX)),
            ("-1e99999999999999999999", Some(i128::MIN)),
            ("1e-99999999999999999999", None),
            ("2.9", None),
            ("1e-1", None),
            ("", None),
            ("-", None),
            (".", None),
            ("1e", None),
            ("1e+", None),
            ("true", None),
            ("1 ", None),
            ("0x1", None),
        ] {
            assert_eq!(whole(text), value, "{text}");
        }
        for text in ["7", "-7", "123456789012345678", "-123456789012345678"] {
            assert_eq!(short_integer(text.as_bytes()).map(i128::from), whole(text), "{text}");
        }
        for text in ["", "-", "1.0", "+1", "1234567890123456789"] {
            assert_eq!(short_integer(text.as_bytes()), None, "{text}");
        }
    }

    fn read(schema: &SchemaRef, text: &str) -> Result<RecordBatch> {
        let values = ExactValues::of(Text::Json, schema);
        let reader = ReaderBuilder::new(Arc::clone(values.as_read())).with_coerce_primitive(true);
        let batch = reader.build(text.as_bytes())?.next().expect("rows")?;
        values.parsed(&batch)
    }

    fn stock(schema: &SchemaRef, text: &str) -> RecordBatch {
        ReaderBuilder::new(Arc::clone(schema)).build(text.as_bytes()).unwrap().next().unwrap().unwrap()
    }

    #[test]
    fn whole_numbers_are_those_of_the_reader() {
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
        let nested = DataType::Struct(vec![field("n", DataType::Int16), field("t", DataType::Utf8)].into());
        let schema = Arc::new(Schema::new(vec![
            field("i8", DataType::Int8),
            field("u64", DataType::UInt64),
            field("i64", DataType::Int64),
            field("f", DataType::Float64),
            field("list", DataType::List(Arc::new(field("item", nested.clone())))),
            field("nested", nested),
        ]));
        let text = r#"{"i8":-128,"u64":18446744073709551615,"i64":-9223372036854775808,"f":2.9,"list":[{"n":1},null,{"n":2.0,"t":"x"}]}
            {"i8":null,"u64":"5","list":[],"nested":{"n":7,"t":"y"}}
            {"list":null,"nested":null,"f":1}
            {"nested":{"n":null},"i64":1e3}"#;
        assert_eq!(read(&schema, text).unwrap(), stock(&schema, text));
        for (text, told) in [
            (r#"{"i64":2.9}"#, "cannot read '2.9' as Int64 in column \"i64\": it is not a whole number"),
            (r#"{"i8":128}"#, "cannot read '128' as Int8 in column \"i8\": it is out of range"),
            (r#"{"u64":-1}"#, "cannot read '-1' as UInt64 in column \"u64\": it is out of range"),
            (r#"{"i64":9223372036854775808}"#, "out of range"),
            (r#"{"i64":true}"#, "cannot read 'true'"),
            (
                r#"{"list":[{"n":1},{"n":1.5}]}"#,
                "cannot read '1.5' as Int16 in column \"list\": it is not a whole number",
            ),
            (r#"{"nested":{"n":70000}}"#, "in column \"nested\""),
        ] {
            let error = read(&schema, text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
        let floats = Arc::new(Schema::new(vec![field("f", DataType::Float64)]));
        assert!(!ExactValues::of(Text::Json, &floats).is_needed() && !ExactValues::of(Text::Csv, &floats).is_needed());
    }

    #[test]
    fn decimals_are_rounded_wherever_they_are() {
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
        let nested = DataType::Struct(vec![field("d", DataType::Decimal32(9, 1))].into());
        let schema = Arc::new(Schema::new(vec![
            field("d", DataType::Decimal128(20, 2)),
            field("list", DataType::List(Arc::new(field("item", DataType::Decimal64(18, 2))))),
            field("nested", nested),
            field("wide", DataType::Decimal256(76, 0)),
        ]));
        let text = r#"{"d":1.995,"list":[1.005,null,"-1.005"],"nested":{"d":0.05},"wide":1e3}
            {"d":-5e-3}"#;
        let rounded = r#"{"d":2.00,"list":[1.01,null,-1.01],"nested":{"d":0.1},"wide":1000}
            {"d":-0.01}"#;
        assert_eq!(read(&schema, text).unwrap(), stock(&schema, rounded));
        for (text, told) in [
            (r#"{"d":"x"}"#, "cannot read 'x' as Decimal128(20, 2) in column \"d\": it is not a number"),
            (r#"{"d":true}"#, "cannot read 'true' as"),
            (
                r#"{"nested":{"d":99999999.95}}"#,
                "cannot read '99999999.95' as Decimal32(9, 1) in column \"nested\": it is out of",
            ),
        ] {
            let error = read(&schema, text).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn csv_leaves_integers_to_its_reader() {
        let field = |name: &str, data_type: DataType| Field::new(name, data_type, true);
        let schema = Arc::new(Schema::new(vec![
            field("i", DataType::Int64),
            field("d", DataType::Decimal128(10, 1)),
            field("b", DataType::Boolean),
        ]));
        let values = ExactValues::of(Text::Csv, &schema);
        assert_eq!(values.as_read().field(0).data_type(), &DataType::Int64);
        let read = |text: &str| -> Result<RecordBatch> {
            let reader = arrow::csv::ReaderBuilder::new(Arc::clone(values.as_read()));
            values.parsed(&reader.build(text.as_bytes())?.next().expect("rows")?)
        };
        let batch = read("1,0.05,t\n2,,F\n3,-0.25,true\n,1e1,\n").unwrap();
        let decimals = batch.column(1).as_primitive::<Decimal128Type>();
        assert_eq!(decimals.iter().collect::<Vec<_>>(), [Some(1), None, Some(-3), Some(100)]);
        let booleans = batch.column(2).as_boolean();
        assert_eq!(booleans.iter().collect::<Vec<_>>(), [Some(true), Some(false), Some(true), None]);
        let error = read("1,1,maybe\n").unwrap_err().to_string();
        assert!(error.contains("cannot read 'maybe' as Boolean in column \"b\": it is neither"), "{error}");
    }
}
