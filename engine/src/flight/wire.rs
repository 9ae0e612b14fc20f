//! Types as every client reads them.
//!
//! DataFusion's rows may have view types, dictionaries and runs, which older drivers do not know. They are sent as the plain
//! types behind them. That is done here and not in the plan: a plan with other types at its root would be another program, and
//! nothing that the shell computed would be found again.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow::error::ArrowError;

/// The columns as they are sent.
pub(super) fn schema(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// The rows as they are sent; several batches where one would be too large for its types.
pub(super) fn batches(batch: &RecordBatch, schema: &SchemaRef) -> Result<Vec<RecordBatch>, ArrowError> {
    match convert(batch, schema) {
        Ok(batch) => Ok(vec![batch]),
        // Offsets of plain types have 32 bits.
        Err(ArrowError::ComputeError(_) | ArrowError::CastError(_) | ArrowError::OffsetOverflowError(_))
            if batch.num_rows() > 1 =>
        {
            let half = batch.num_rows() / 2;
            let mut first = batches(&batch.slice(0, half), schema)?;
            first.extend(batches(&batch.slice(half, batch.num_rows() - half), schema)?);
            Ok(first)
        }
        Err(error) => Err(error),
    }
}

fn convert(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let column = |(column, field): (&ArrayRef, &FieldRef)| match column.data_type() == field.data_type() {
        true => Ok(Arc::clone(column)),
        false => cast_with_options(column, field.data_type(), &options),
    };
    let columns = batch.columns().iter().zip(schema.fields()).map(column).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
}

fn field(field: &FieldRef) -> FieldRef {
    match plain(field.data_type()) {
        Some(data_type) => Arc::new(Field::clone(field).with_data_type(data_type)),
        None => Arc::clone(field),
    }
}

/// The plain type behind one that is none.
fn plain(data_type: &DataType) -> Option<DataType> {
    let changed = |inner: &FieldRef| plain(inner.data_type()).map(|_| field(inner));
    match data_type {
        DataType::Utf8View => Some(DataType::Utf8),
        DataType::BinaryView => Some(DataType::Binary),
        DataType::Dictionary(_, values) => Some(plain(values).unwrap_or_else(|| values.as_ref().clone())),
        DataType::RunEndEncoded(_, values) => {
            Some(plain(values.data_type()).unwrap_or_else(|| values.data_type().clone()))
        }
        DataType::ListView(inner) => Some(DataType::List(field(inner))),
        DataType::LargeListView(inner) => Some(DataType::LargeList(field(inner))),
        DataType::List(inner) => changed(inner).map(DataType::List),
        DataType::LargeList(inner) => changed(inner).map(DataType::LargeList),
        DataType::FixedSizeList(inner, size) => changed(inner).map(|inner| DataType::FixedSizeList(inner, *size)),
        DataType::Map(entries, is_sorted) => changed(entries).map(|entries| DataType::Map(entries, *is_sorted)),
        DataType::Struct(fields) => {
            let any = fields.iter().any(|field| plain(field.data_type()).is_some());
            any.then(|| DataType::Struct(fields.iter().map(field).collect()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        DictionaryArray, Int32Array, ListArray, RunArray, StringArray, StringViewArray, StructArray, UInt64Array,
    };
    use arrow::buffer::OffsetBuffer;
    use arrow::datatypes::Int32Type;

    #[test]
    fn everything_becomes_plain() {
        let views: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a long text that is no inline view"), None]));
        let dictionary: DictionaryArray<Int32Type> = vec!["x", "y"].into_iter().collect();
        let runs =
            RunArray::<Int32Type>::try_new(&Int32Array::from(vec![2]), &StringArray::from(vec!["same"])).unwrap();
        let inner = Arc::new(Field::new("item", DataType::Utf8View, true));
        let list = ListArray::new(Arc::clone(&inner), OffsetBuffer::from_lengths([1, 1]), Arc::clone(&views), None);
        let fields: Fields = vec![Field::new("v", DataType::Utf8View, true)].into();
        let nested = StructArray::new(fields, vec![Arc::clone(&views)], None);
        let number: ArrayRef = Arc::new(UInt64Array::from(vec![1, 2]));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("views", views),
            ("dictionary", Arc::new(dictionary)),
            ("runs", Arc::new(runs)),
            ("list", Arc::new(list)),
            ("nested", Arc::new(nested)),
            ("number", Arc::clone(&number)),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let sent = schema(&batch.schema());
        let types: Vec<String> = sent.fields().iter().map(|field| field.data_type().to_string()).collect();
        assert!(types.iter().all(|name| !name.contains("View") && !name.contains("Dictionary")), "{types:?}");
        let rows = batches(&batch, &sent).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].schema(), sent);
        // What was plain before is not copied.
        assert!(Arc::ptr_eq(rows[0].column(5), &number));
    }
}
