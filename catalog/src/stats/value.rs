//! Values of bounds, small enough to compare ten thousand of them without allocating.

use std::cmp::Ordering;

use arrow::datatypes::{DataType, TimeUnit, i256};
use datafusion_common::ScalarValue;

use super::MAX_BOUND_BYTES;

/// One end of a column's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound<'a> {
    pub(super) value: Value<'a>,
    /// Some row holds it.
    pub(super) exact: bool,
}

/// A value, whatever its type calls it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// Integers, booleans, dates, times, timestamps, decimals up to 128 bits.
    Integer(i128),
    /// Decimals of 256 bits.
    Wide(i256),
    /// Never NaN.
    Float(f64),
    /// Strings and binary.
    Bytes(&'a [u8]),
}

/// How a type's values are written; stored, so that a column that changed its type is not misread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    Integer = 1,
    Wide = 2,
    Float = 3,
    Text = 4,
    Binary = 5,
}

impl Class {
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        use DataType::*;
        Some(match data_type {
            Boolean
            | Int8
            | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Date32
            | Date64
            | Time32(_)
            | Time64(_)
            | Timestamp(_, _)
            | Decimal32(_, _)
            | Decimal64(_, _)
            | Decimal128(_, _) => Self::Integer,
            Decimal256(_, _) => Self::Wide,
            Float32 | Float64 => Self::Float,
            Utf8 | LargeUtf8 | Utf8View => Self::Text,
            Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => Self::Binary,
            _ => return None,
        })
    }
}

impl<'a> Value<'a> {
    /// The value of a statistic, if it is one of the column's type.
    pub(super) fn of(scalar: &'a ScalarValue, data_type: &DataType) -> Option<Self> {
        let integer = |value: Option<i128>| value.map(Self::Integer);
        let class = Class::of(data_type)?;
        let same = match class {
            Class::Text => {
                matches!(scalar, ScalarValue::Utf8(_) | ScalarValue::LargeUtf8(_) | ScalarValue::Utf8View(_))
            }
            Class::Binary => true,
            _ => same_meaning(&scalar.data_type(), data_type),
        };
        if !same {
            return None;
        }
        match scalar {
            ScalarValue::Boolean(value) => integer(value.map(i128::from)),
            ScalarValue::Int8(value) => integer(value.map(i128::from)),
            ScalarValue::Int16(value) => integer(value.map(i128::from)),
            ScalarValue::Int32(value)
            | ScalarValue::Date32(value)
            | ScalarValue::Time32Second(value)
            | ScalarValue::Time32Millisecond(value) => integer(value.map(i128::from)),
            ScalarValue::Int64(value)
            | ScalarValue::Date64(value)
            | ScalarValue::Time64Microsecond(value)
            | ScalarValue::Time64Nanosecond(value)
            | ScalarValue::TimestampSecond(value, _)
            | ScalarValue::TimestampMillisecond(value, _)
            | ScalarValue::TimestampMicrosecond(value, _)
            | ScalarValue::TimestampNanosecond(value, _) => integer(value.map(i128::from)),
            ScalarValue::UInt8(value) => integer(value.map(i128::from)),
            ScalarValue::UInt16(value) => integer(value.map(i128::from)),
            ScalarValue::UInt32(value) => integer(value.map(i128::from)),
            ScalarValue::UInt64(value) => integer(value.map(i128::from)),
            ScalarValue::Decimal32(value, _, _) => integer(value.map(i128::from)),
            ScalarValue::Decimal64(value, _, _) => integer(value.map(i128::from)),
            ScalarValue::Decimal128(value, _, _) => integer(*value),
            ScalarValue::Decimal256(value, _, _) => value.map(Self::Wide),
            ScalarValue::Float32(value) => value.map(f64::from).filter(|value| !value.is_nan()).map(Self::Float),
            ScalarValue::Float64(value) => value.filter(|value| !value.is_nan()).map(Self::Float),
            ScalarValue::Utf8(value) | ScalarValue::LargeUtf8(value) | ScalarValue::Utf8View(value) => {
                value.as_deref().map(|value| Self::Bytes(value.as_bytes()))
            }
            ScalarValue::Binary(value)
            | ScalarValue::LargeBinary(value)
            | ScalarValue::BinaryView(value)
            | ScalarValue::FixedSizeBinary(_, value) => value.as_deref().map(Self::Bytes),
            _ => None,
        }
    }

    /// The value as one of the column's type; `None` if it is not.
    pub(super) fn to_scalar(self, data_type: &DataType) -> Option<ScalarValue> {
        match self {
            Self::Integer(value) => integer_scalar(value, data_type),
            Self::Wide(value) => match data_type {
                DataType::Decimal256(precision, scale) => {
                    Some(ScalarValue::Decimal256(Some(value), *precision, *scale))
                }
                _ => None,
            },
            Self::Float(value) => match data_type {
                DataType::Float32 => Some(ScalarValue::Float32(Some(value as f32))),
                DataType::Float64 => Some(ScalarValue::Float64(Some(value))),
                _ => None,
            },
            Self::Bytes(bytes) => bytes_scalar(bytes, data_type),
        }
    }

    /// Order within one type.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(two)) => Some(one.cmp(two)),
            (Self::Wide(one), Self::Wide(two)) => Some(one.cmp(two)),
            (Self::Float(one), Self::Float(two)) => one.partial_cmp(two),
            (Self::Bytes(one), Self::Bytes(two)) => Some(one.cmp(two)),
            _ => None,
        }
    }
}

/// The zone of a timestamp and the precision of a decimal do not change what its number means; whether it has a zone does.
fn same_meaning(one: &DataType, two: &DataType) -> bool {
    use DataType::{Decimal32, Decimal64, Decimal128, Decimal256, Timestamp};
    match (one, two) {
        (Timestamp(one, one_zone), Timestamp(two, two_zone)) => one == two && one_zone.is_some() == two_zone.is_some(),
        (Decimal32(_, one), Decimal32(_, two))
        | (Decimal64(_, one), Decimal64(_, two))
        | (Decimal128(_, one), Decimal128(_, two))
        | (Decimal256(_, one), Decimal256(_, two)) => one == two,
        _ => one == two,
    }
}

fn integer_scalar(value: i128, data_type: &DataType) -> Option<ScalarValue> {
    use DataType::*;
    let i32 = || i32::try_from(value).ok();
    let i64 = || i64::try_from(value).ok();
    Some(match data_type {
        Boolean => ScalarValue::Boolean(Some(value != 0)),
        Int8 => ScalarValue::Int8(Some(i8::try_from(value).ok()?)),
        Int16 => ScalarValue::Int16(Some(i16::try_from(value).ok()?)),
        Int32 => ScalarValue::Int32(Some(i32()?)),
        Int64 => ScalarValue::Int64(Some(i64()?)),
        UInt8 => ScalarValue::UInt8(Some(u8::try_from(value).ok()?)),
        UInt16 => ScalarValue::UInt16(Some(u16::try_from(value).ok()?)),
        UInt32 => ScalarValue::UInt32(Some(u32::try_from(value).ok()?)),
        UInt64 => ScalarValue::UInt64(Some(u64::try_from(value).ok()?)),
        Date32 => ScalarValue::Date32(Some(i32()?)),
        Date64 => ScalarValue::Date64(Some(i64()?)),
        Time32(TimeUnit::Second) => ScalarValue::Time32Second(Some(i32()?)),
        Time32(TimeUnit::Millisecond) => ScalarValue::Time32Millisecond(Some(i32()?)),
        Time64(TimeUnit::Microsecond) => ScalarValue::Time64Microsecond(Some(i64()?)),
        Time64(TimeUnit::Nanosecond) => ScalarValue::Time64Nanosecond(Some(i64()?)),
        Timestamp(TimeUnit::Second, zone) => ScalarValue::TimestampSecond(Some(i64()?), zone.clone()),
        Timestamp(TimeUnit::Millisecond, zone) => ScalarValue::TimestampMillisecond(Some(i64()?), zone.clone()),
        Timestamp(TimeUnit::Microsecond, zone) => ScalarValue::TimestampMicrosecond(Some(i64()?), zone.clone()),
        Timestamp(TimeUnit::Nanosecond, zone) => ScalarValue::TimestampNanosecond(Some(i64()?), zone.clone()),
        Decimal32(precision, scale) => ScalarValue::Decimal32(Some(i32()?), *precision, *scale),
        Decimal64(precision, scale) => ScalarValue::Decimal64(Some(i64()?), *precision, *scale),
        Decimal128(precision, scale) => ScalarValue::Decimal128(Some(value), *precision, *scale),
        _ => return None,
    })
}

fn bytes_scalar(bytes: &[u8], data_type: &DataType) -> Option<ScalarValue> {
    let text = || std::str::from_utf8(bytes).ok().map(str::to_owned);
    Some(match data_type {
        DataType::Utf8 => ScalarValue::Utf8(Some(text()?)),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(text()?)),
        DataType::Utf8View => ScalarValue::Utf8View(Some(text()?)),
        DataType::Binary => ScalarValue::Binary(Some(bytes.to_vec())),
        DataType::LargeBinary => ScalarValue::LargeBinary(Some(bytes.to_vec())),
        DataType::BinaryView => ScalarValue::BinaryView(Some(bytes.to_vec())),
        // A cut value would not be of the type.
        DataType::FixedSizeBinary(width) if usize::try_from(*width) == Ok(bytes.len()) => {
            ScalarValue::FixedSizeBinary(*width, Some(bytes.to_vec()))
        }
        _ => return None,
    })
}

/// A long value cut so that it is not above the whole; `true` if it was cut.
pub(super) fn cut_down(bytes: &[u8], class: Class) -> (&[u8], bool) {
    if bytes.len() <= MAX_BOUND_BYTES {
        return (bytes, false);
    }
    (&bytes[..boundary(bytes, class)], true)
}

/// A long value cut and raised so that it is above the whole; `None` if nothing short is.
pub(super) fn cut_up(bytes: &[u8], class: Class) -> Option<Vec<u8>> {
    let mut cut = bytes[..boundary(bytes, class)].to_vec();
    if class == Class::Binary {
        while let Some(last) = cut.pop() {
            if last < u8::MAX {
                cut.push(last + 1);
                return Some(cut);
            }
        }
        return None;
    }
    let mut text = String::from_utf8(cut).ok()?;
    while let Some(last) = text.pop() {
        // Letters are ordered as their UTF-8 is; the range of surrogates is empty.
        let next = if u32::from(last) == 0xD7FF { Some('\u{E000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            text.push(next);
            return Some(text.into_bytes());
        }
    }
    None
}

fn boundary(bytes: &[u8], class: Class) -> usize {
    let mut end = MAX_BOUND_BYTES.min(bytes.len());
    // 0b10xx_xxxx continues a letter.
    while class == Class::Text && end > 0 && bytes.get(end).is_some_and(|byte| byte & 0xC0 == 0x80) {
        end -= 1;
    }
    end
}
