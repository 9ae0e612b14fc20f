//! [`WholeNumbers`]: integers of JSON files, exactly as they are written or not at all.
//!
//! Arrow's reader parses what is not an integer as a float and cuts it: 2.9 becomes 2, 9007199254740993.0 another number. Here
//! integer columns are read as text, which costs little because short texts are kept in place, and parsed afterwards. `2.0` and
//! `1e3` are whole numbers; 2.9, 1e400 and 300 in a column of bytes are errors.

use std::sync::Arc;

use arrow::array::{Array, ArrayData, ArrayRef, AsArray, PrimitiveArray, RecordBatch, make_array};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, FieldRef, Fields, Int8Type, Int16Type, Int32Type, Int64Type, Schema,
    SchemaRef, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::Result;

/// Integer columns of one schema.
#[derive(Clone)]
pub(super) struct WholeNumbers {
    wanted: SchemaRef,
    as_read: SchemaRef,
}

impl WholeNumbers {
    pub(super) fn of(wanted: &SchemaRef) -> Self {
        let fields: Fields = wanted.fields().iter().map(as_text).collect();
        let as_read = Schema::new_with_metadata(fields, wanted.metadata().clone());
        Self { wanted: Arc::clone(wanted), as_read: Arc::new(as_read) }
    }

    /// The columns as the reader is asked for them.
    pub(super) fn as_read(&self) -> &SchemaRef {
        &self.as_read
    }

    /// Whether there is an integer anywhere.
    pub(super) fn is_needed(&self) -> bool {
        self.as_read != self.wanted
    }

    /// Rows as they are wanted of rows as they were read.
    pub(super) fn read(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        let columns = batch.columns().iter().zip(self.wanted.fields()).map(|(column, field)| {
            let parsed = parsed(column, field.data_type());
            parsed.map_err(|Refused { what, why }| {
                ArrowError::JsonError(format!("cannot read {what} in column \"{}\": {why}", field.name()))
            })
        });
        Ok(RecordBatch::try_new(Arc::clone(&self.wanted), columns.collect::<Result<_, ArrowError>>()?)?)
    }
}

/// A value that is not taken.
struct Refused {
    what: String,
    why: String,
}

fn as_text(field: &FieldRef) -> FieldRef {
    match text_type(field.data_type()) {
        Some(data_type) => Arc::new(field.as_ref().clone().with_data_type(data_type)),
        None => Arc::clone(field),
    }
}

/// The type that something with integers in it is read as.
fn text_type(data_type: &DataType) -> Option<DataType> {
    let inner = |field: &FieldRef| text_type(field.data_type()).map(|_| as_text(field));
    match data_type {
        integer if integer.is_integer() => Some(DataType::Utf8View),
        DataType::List(field) => inner(field).map(DataType::List),
        DataType::LargeList(field) => inner(field).map(DataType::LargeList),
        DataType::FixedSizeList(field, size) => inner(field).map(|field| DataType::FixedSizeList(field, *size)),
        DataType::Map(entries, sorted) => inner(entries).map(|entries| DataType::Map(entries, *sorted)),
        DataType::Struct(fields) => {
            let has_integers = fields.iter().any(|field| text_type(field.data_type()).is_some());
            has_integers.then(|| DataType::Struct(fields.iter().map(as_text).collect()))
        }
        _ => None,
    }
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
    let Some(texts) = read.as_string_view_opt() else { return Err(unexpected(read.data_type())) };
    let nulls: Option<NullBuffer> = texts.nulls().cloned();
    let mut values = Vec::with_capacity(texts.len());
    for position in 0..texts.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(position)) {
            values.push(T::Native::default());
            continue;
        }
        let text = texts.value(position);
        let refused = |why: &str| Refused { what: format!("{} as {}", shown(text), T::DATA_TYPE), why: why.to_owned() };
        let value = match short_integer(text.as_bytes()) {
            Some(value) => T::Native::try_from(value).ok(),
            None => {
                let value = whole(text).ok_or_else(|| refused("it is not a whole number"))?;
                T::Native::try_from(value).ok()
            }
        };
        values.push(value.ok_or_else(|| refused("it is out of range"))?);
    }
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
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

/// The whole number that a text is, in any of the ways to write one; what is larger than all integers is cut to `i128`'s ends.
fn whole(text: &str) -> Option<i128> {
    let (is_negative, unsigned) = match text.as_bytes() {
        [b'-', unsigned @ ..] => (true, unsigned),
        [b'+', unsigned @ ..] => (false, unsigned),
        unsigned => (false, unsigned),
    };
    let (mantissa, exponent) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (before, behind) = match mantissa.iter().position(|byte| *byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &[][..]),
    };
    let mut digits: Vec<u8> = [before, behind].concat();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Where the point is, counted from the first digit.
    let point = exponent.saturating_add(before.len() as i64);
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    if leading == digits.len() {
        return Some(0);
    }
    digits.drain(..leading);
    let point = point.saturating_sub(leading as i64);
    while digits.last() == Some(&b'0') {
        digits.pop();
    }
    if point < digits.len() as i64 {
        return None;
    }
    let largest = if is_negative { i128::MIN } else { i128::MAX };
    if point > 38 {
        return Some(largest);
    }
    digits.resize(usize::try_from(point).ok()?, b'0');
    let mut value: i128 = 0;
    for digit in digits {
        let digit = i128::from(digit - b'0');
        let next = value.checked_mul(10).and_then(|value| value.checked_add(if is_negative { -digit } else { digit }));
        let Some(next) = next else { return Some(largest) };
        value = next;
    }
    Some(value)
}

fn exponent(text: &[u8]) -> Option<i64> {
    let text = str::from_utf8(text).ok()?;
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Whatever is longer is beyond all numbers.
    Some(text.parse().unwrap_or(if text.starts_with('-') { i64::MIN } else { i64::MAX }))
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
        let numbers = WholeNumbers::of(schema);
        let reader = ReaderBuilder::new(Arc::clone(numbers.as_read())).with_coerce_primitive(true);
        let batch = reader.build(text.as_bytes())?.next().expect("rows")?;
        numbers.read(&batch)
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
        assert!(!WholeNumbers::of(&Arc::new(Schema::new(vec![field("f", DataType::Float64)]))).is_needed());
    }
}
