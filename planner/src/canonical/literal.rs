//! Constants by type and exact bits: `0.0` is not `-0.0`, `1` is not `1::bigint`, NULL has a type.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, Schema};
use arrow::ipc::writer::StreamWriter;
use datafusion::common::{Result, ScalarValue};

use super::encoder::{Encoder, Tag};
use super::types;

/// One constant.
pub(super) fn scalar(value: &ScalarValue) -> Result<Vec<u8>> {
    let mut encoder = Encoder::new(Tag::Literal);
    encoder.bytes(&types::data_type(&value.data_type()));
    if value.is_null() {
        encoder.tag(Tag::None);
        return Ok(encoder.into_bytes());
    }
    encoder.tag(Tag::Some);
    match value {
        ScalarValue::Boolean(Some(value)) => encoder.flag(*value),
        ScalarValue::Int8(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::Int16(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::Int32(Some(value)) | ScalarValue::Date32(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::Int64(Some(value))
        | ScalarValue::Date64(Some(value))
        | ScalarValue::TimestampSecond(Some(value), _)
        | ScalarValue::TimestampMillisecond(Some(value), _)
        | ScalarValue::TimestampMicrosecond(Some(value), _)
        | ScalarValue::TimestampNanosecond(Some(value), _) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::UInt8(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::UInt16(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::UInt32(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::UInt64(Some(value)) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::Float32(Some(value)) => encoder.bytes(&value.to_bits().to_le_bytes()),
        ScalarValue::Float64(Some(value)) => encoder.bytes(&value.to_bits().to_le_bytes()),
        ScalarValue::Decimal128(Some(value), _, _) => encoder.bytes(&value.to_le_bytes()),
        ScalarValue::Utf8(Some(value)) | ScalarValue::LargeUtf8(Some(value)) | ScalarValue::Utf8View(Some(value)) => {
            encoder.text(value)
        }
        ScalarValue::Binary(Some(value))
        | ScalarValue::LargeBinary(Some(value))
        | ScalarValue::BinaryView(Some(value))
        | ScalarValue::FixedSizeBinary(_, Some(value)) => encoder.bytes(value),
        other => encoder.bytes(&as_ipc(other)?),
    };
    Ok(encoder.into_bytes())
}

/// Everything else as Arrow writes it: the same value gives the same bytes.
fn as_ipc(value: &ScalarValue) -> Result<Vec<u8>> {
    let array = value.to_array()?;
    let field = Field::new("c0", array.data_type().clone(), true);
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![array])?;
    let mut writer = StreamWriter::try_new(vec![], &schema)?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?)
}
