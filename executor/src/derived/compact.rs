//! A small slice of large buffers without the large buffers.
//!
//! Batches that pass through a plan are often slices: a few rows that keep megabytes alive. Arrow IPC cuts plain
//! buffers to what a slice shows, but writes the buffers of string views and the values of dictionaries whole.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeListArray, GenericByteViewArray,
    GenericListArray, MapArray, MutableArrayData, OffsetSizeTrait, RecordBatch, RecordBatchOptions, StructArray,
    make_array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::filter;
use arrow::datatypes::{ArrowDictionaryKeyType, ArrowNativeType, ByteViewType, DataType};
use arrow::downcast_dictionary_array;
use arrow::error::ArrowError;

/// Waste below this many bytes is not worth a copy.
const WASTE_BYTES_MIN: usize = 64 << 10;

/// What the rows of a batch take by themselves, whatever their buffers hold besides.
pub(crate) fn row_bytes(batch: &RecordBatch) -> usize {
    batch.columns().iter().map(array_bytes).sum()
}

/// The batch, copied if it keeps more than twice its own size alive.
pub(crate) fn unpinned(batch: &RecordBatch, bytes: usize) -> Result<RecordBatch, ArrowError> {
    match batch.get_array_memory_size() > 2 * bytes + WASTE_BYTES_MIN {
        true => map_columns(batch, |column| copy(&compact(column, batch.num_rows())?)),
        false => Ok(batch.clone()),
    }
}

/// The batch as it is best written: views without unused bytes, dictionaries not larger than the rows of the part.
pub(crate) fn for_writing(batch: &RecordBatch, rows_of_part: usize) -> Result<RecordBatch, ArrowError> {
    map_columns(batch, |column| compact(column, rows_of_part))
}

fn map_columns(
    batch: &RecordBatch,
    change: impl Fn(&ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(change).collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(batch.schema(), columns, &options)
}

fn array_bytes(array: &ArrayRef) -> usize {
    let nulls = array.nulls().map_or(0, |nulls| nulls.len().div_ceil(8));
    let bytes = match array.data_type() {
        DataType::Utf8View => 16 * array.len() + array.as_string_view().total_buffer_bytes_used(),
        DataType::BinaryView => 16 * array.len() + array.as_binary_view().total_buffer_bytes_used(),
        DataType::List(_) => list_bytes(array.as_list::<i32>()),
        DataType::LargeList(_) => list_bytes(array.as_list::<i64>()),
        DataType::Map(_, _) => {
            let map = array.as_map();
            let (start, len) = range(map.offsets());
            4 * map.len() + map.entries().slice(start, len).columns().iter().map(array_bytes).sum::<usize>()
        }
        DataType::FixedSizeList(_, _) => array_bytes(array.as_fixed_size_list().values()),
        DataType::Struct(_) => array.as_struct().columns().iter().map(array_bytes).sum(),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary();
            let values = dictionary.values();
            // Values are written once a part, not once a batch: count those that these rows can show.
            let shown = values.len().min(array.len());
            dictionary.keys().to_data().get_slice_memory_size().unwrap_or(8 * array.len())
                + (array_bytes(values) as f64 * shown as f64 / values.len().max(1) as f64) as usize
        }
        _ => array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_array_memory_size()),
    };
    bytes + nulls
}

fn list_bytes<O: OffsetSizeTrait>(list: &GenericListArray<O>) -> usize {
    let (start, len) = range(list.offsets());
    size_of::<O>() * list.len() + array_bytes(&list.values().slice(start, len))
}

/// Where the values of a possibly sliced list begin, and how many there are.
fn range<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let start = offsets.first().map_or(0, |offset| offset.as_usize());
    let end = offsets.last().map_or(0, |offset| offset.as_usize());
    (start, end.saturating_sub(start))
}

/// Drops what the array's views and dictionaries hold besides what is shown.
fn compact(array: &ArrayRef, rows_of_part: usize) -> Result<ArrayRef, ArrowError> {
    Ok(match array.data_type() {
        DataType::Utf8View => compact_view(array.as_string_view(), array),
        DataType::BinaryView => compact_view(array.as_binary_view(), array),
        DataType::Dictionary(_, _) => {
            // A dictionary that serves many batches is written once; one per batch would be larger.
            match array.as_any_dictionary().values().len() > 2 * rows_of_part {
                true => {
                    let dictionary: &dyn Array = array.as_ref();
                    downcast_dictionary_array!(
                        dictionary => Arc::new(used_values(dictionary)?) as ArrayRef,
                        _ => Arc::clone(array)
                    )
                }
                false => Arc::clone(array),
            }
        }
        DataType::List(_) if needs_care(array.data_type()) => compact_list(array.as_list::<i32>(), rows_of_part)?,
        DataType::LargeList(_) if needs_care(array.data_type()) => compact_list(array.as_list::<i64>(), rows_of_part)?,
        DataType::Map(field, ordered) if needs_care(array.data_type()) => {
            let map = array.as_map();
            let (start, len) = range(map.offsets());
            let entries: ArrayRef = Arc::new(map.entries().slice(start, len));
            let entries = compact(&entries, rows_of_part)?.as_struct().clone();
            let offsets = from_zero(map.offsets());
            Arc::new(MapArray::try_new(Arc::clone(field), offsets, entries, map.nulls().cloned(), *ordered)?)
        }
        DataType::FixedSizeList(field, size) if needs_care(array.data_type()) => {
            let list = array.as_fixed_size_list();
            let values = compact(list.values(), rows_of_part)?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, list.nulls().cloned())?)
        }
        DataType::Struct(fields) if needs_care(array.data_type()) => {
            let rows = array.as_struct();
            let columns =
                rows.columns().iter().map(|column| compact(column, rows_of_part)).collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, rows.nulls().cloned(), rows.len())?)
        }
        _ => Arc::clone(array),
    })
}

/// Whether a view or a dictionary is in there.
fn needs_care(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView | DataType::Dictionary(_, _) => true,
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => needs_care(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| needs_care(field.data_type())),
        _ => false,
    }
}

fn compact_view<T: ByteViewType>(view: &GenericByteViewArray<T>, array: &ArrayRef) -> ArrayRef {
    let held: usize = view.data_buffers().iter().map(|buffer| buffer.len()).sum();
    match held > 2 * view.total_buffer_bytes_used() + 1024 {
        true => Arc::new(view.gc()),
        false => Arc::clone(array),
    }
}

fn compact_list<O: OffsetSizeTrait>(list: &GenericListArray<O>, rows_of_part: usize) -> Result<ArrayRef, ArrowError> {
    let (start, len) = range(list.offsets());
    let values = compact(&list.values().slice(start, len), rows_of_part)?;
    let field = match list.data_type() {
        DataType::List(field) | DataType::LargeList(field) => Arc::clone(field),
        other => return Err(ArrowError::InvalidArgumentError(format!("{other} is no list"))),
    };
    let offsets = from_zero(list.offsets());
    Ok(Arc::new(GenericListArray::<O>::try_new(field, offsets, values, list.nulls().cloned())?))
}

fn from_zero<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> OffsetBuffer<O> {
    match offsets.first() {
        Some(first) if *first != O::zero() => {
            OffsetBuffer::new(offsets.iter().map(|offset| *offset - *first).collect::<Vec<_>>().into())
        }
        _ => offsets.clone(),
    }
}

/// The dictionary without values that no row shows.
fn used_values<K: ArrowDictionaryKeyType>(dictionary: &DictionaryArray<K>) -> Result<DictionaryArray<K>, ArrowError> {
    let used = dictionary.occupancy();
    let mut new_keys = vec![K::Native::default(); dictionary.values().len()];
    for (new, old) in used.set_indices().enumerate() {
        new_keys[old] = K::Native::from_usize(new)
            .ok_or_else(|| ArrowError::ComputeError("a smaller dictionary has larger keys".to_owned()))?;
    }
    // Keys of null rows may be anything.
    let keys = dictionary.keys().unary(|key| new_keys.get(key.as_usize()).copied().unwrap_or_default());
    // A filter keeps the buffers of views.
    let values = compact(&filter(dictionary.values(), &BooleanArray::new(used, None))?, keys.len())?;
    DictionaryArray::try_new(keys, values)
}

/// The same values in buffers of their own, where Arrow knows how to.
fn copy(array: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !is_copyable(array.data_type()) {
        return Ok(Arc::clone(array));
    }
    let data = array.to_data();
    let mut copy = MutableArrayData::new(vec![&data], false, data.len());
    copy.try_extend(0, 0, data.len())?;
    Ok(make_array(copy.freeze()))
}

/// The others are rare, and Arrow panics on some of them.
fn is_copyable(data_type: &DataType) -> bool {
    match data_type {
        DataType::ListView(_) | DataType::LargeListView(_) | DataType::RunEndEncoded(_, _) | DataType::Union(_, _) => {
            false
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => is_copyable(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_copyable(field.data_type())),
        DataType::Dictionary(_, values) => is_copyable(values),
        _ => true,
    }
}
