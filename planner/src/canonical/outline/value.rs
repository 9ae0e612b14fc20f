//! Constants and types in words.

use std::io::Cursor;

use arrow::datatypes::{DataType, TimeUnit};
use arrow::ipc::reader::StreamReader;
use datafusion::common::ScalarValue;

use super::super::decoder::Decoder;
use super::super::encoder::Tag;

/// A type by its name; types within types are not told.
pub(super) fn data_type(bytes: &[u8]) -> Option<String> {
    let mut decoder = Decoder::new(bytes);
    decoder.expect(Tag::Type)?;
    match decoder.text()? {
        "Simple" => {
            let name = decoder.text()?.to_string();
            decoder.end()?;
            Some(name)
        }
        nested => Some(nested.to_string()),
    }
}

/// A field by its name, and by its type.
pub(super) fn field(bytes: &[u8]) -> Option<(String, String)> {
    let mut decoder = Decoder::new(bytes);
    decoder.expect(Tag::Field)?;
    let name = decoder.text()?.to_string();
    let mut words = data_type(decoder.bytes()?)?;
    if !decoder.flag()? {
        words.push_str(" NOT NULL");
    }
    for _ in 0..decoder.count()? {
        let (key, value) = (decoder.text()?, decoder.text()?);
        words.push_str(&format!(" {key}={value}"));
    }
    decoder.end()?;
    Some((name, words))
}

/// A constant; the decoder stands behind its tag.
pub(super) fn literal(decoder: &mut Decoder<'_>, exact: bool) -> Option<String> {
    let type_name = data_type(decoder.bytes()?)?;
    let value = match decoder.optional(|decoder| value(decoder, &type_name))? {
        Some(value) => value,
        None => "NULL".to_string(),
    };
    Some(if exact { format!("{value}::{type_name}") } else { value })
}

fn value(decoder: &mut Decoder<'_>, type_name: &str) -> Option<String> {
    if type_name == "Boolean" {
        return decoder.flag().map(|value| value.to_string());
    }
    let bytes = decoder.bytes()?;
    if matches!(type_name, "Utf8" | "LargeUtf8" | "Utf8View") {
        return Some(format!("'{}'", std::str::from_utf8(bytes).ok()?));
    }
    let scalar = match type_name.parse::<DataType>() {
        Ok(data_type) => scalar(&data_type, bytes),
        Err(_) => None,
    };
    let scalar = scalar.or_else(|| from_ipc(bytes));
    // Its bytes are known all the same, and two of them can be told apart.
    Some(scalar.map_or_else(|| format!("x'{}'", hex(bytes)), |scalar| scalar.to_string()))
}

/// The constants that are written by their bits.
fn scalar(data_type: &DataType, bytes: &[u8]) -> Option<ScalarValue> {
    Some(match data_type {
        DataType::Int8 => i8::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Int16 => i16::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Int32 => i32::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Int64 => i64::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt8 => u8::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt16 => u16::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt32 => u32::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::UInt64 => u64::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Float32 => f32::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Float64 => f64::from_le_bytes(bytes.try_into().ok()?).into(),
        DataType::Date32 => ScalarValue::Date32(Some(i32::from_le_bytes(bytes.try_into().ok()?))),
        DataType::Date64 => ScalarValue::Date64(Some(i64::from_le_bytes(bytes.try_into().ok()?))),
        DataType::Decimal128(precision, scale) => {
            ScalarValue::Decimal128(Some(i128::from_le_bytes(bytes.try_into().ok()?)), *precision, *scale)
        }
        DataType::Timestamp(unit, zone) => {
            let value = Some(i64::from_le_bytes(bytes.try_into().ok()?));
            match unit {
                TimeUnit::Second => ScalarValue::TimestampSecond(value, zone.clone()),
                TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone.clone()),
                TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone.clone()),
                TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone.clone()),
            }
        }
        _ => return None,
    })
}

/// The others, as Arrow writes them.
fn from_ipc(bytes: &[u8]) -> Option<ScalarValue> {
    let batch = StreamReader::try_new(Cursor::new(bytes), None).ok()?.next()?.ok()?;
    ScalarValue::try_from_array(batch.columns().first()?, 0).ok()
}

fn hex(bytes: &[u8]) -> String {
    const SHOWN_MAX: usize = 16;
    let digits: String = bytes.iter().take(SHOWN_MAX).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN_MAX { format!("{digits}..") } else { digits }
}
