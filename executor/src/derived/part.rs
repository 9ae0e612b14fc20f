//! One part of an entry as bytes.
//!
//! ```text
//!   Arrow IPC stream, LZ4
//!     schema    columns c0..cn, all nullable; metadata: format, entry, part
//!     batches   about 8192 rows each
//! ```
//!
//! Columns are known by position: names hold aliases and are not unique.
//! Keeps true   what `decode` gives is what `encode` was given: length and checksum come first, so that no reader of Arrow
//!              ever sees bytes that nobody wrote; then format, entry, part, types and rows.
//!              A panic of that reader is damage, too.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::CompressionType;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use bytes::Bytes;
use nectarine_catalog::{EntryPart, Fingerprint};

use super::compact;

/// Raised when parts are written differently; older ones are then damaged to us.
const FORMAT: &str = "1";
const FORMAT_KEY: &str = "nectarine.format";
const ENTRY_KEY: &str = "nectarine.entry";
const PART_KEY: &str = "nectarine.part";

/// Small batches are joined up to this many rows: each batch costs some hundred bytes a column.
const BATCH_ROWS: usize = 8192;

/// A part that is ready to be written.
pub(crate) struct Encoded {
    pub(crate) bytes: Bytes,
    pub(crate) rows: u64,
    pub(crate) checksum: Fingerprint,
}

/// The bytes of these batches, which all have the columns of `schema`.
pub(crate) fn encode(
    key: &Fingerprint,
    ordinal: usize,
    schema: &Schema,
    batches: &[RecordBatch],
) -> Result<Encoded, ArrowError> {
    let rows_of_part = batches.iter().map(RecordBatch::num_rows).sum();
    let schema = positional(key, ordinal, schema);
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME))?;
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options)?;
    for batch in joined(&schema, batches)? {
        writer.write(&compact::for_writing(&batch, rows_of_part)?)?;
    }
    let bytes = writer.into_inner()?;
    let checksum = Fingerprint::of_bytes(&bytes);
    Ok(Encoded { bytes: Bytes::from(bytes), rows: rows_of_part as u64, checksum })
}

/// The batches of a part, if it is what `part` says; otherwise what differs. Columns are c0..cn.
pub(crate) fn decode(
    bytes: &[u8],
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: &Schema,
) -> Result<Vec<RecordBatch>, String> {
    guarded(|| rows_of(open(bytes, part, key, ordinal, Some(types))?, part))
}

/// The same for bytes that did not leave memory since they were encoded or verified: their checksum is not computed again,
/// which takes about as long as decoding them.
pub(crate) fn decode_verified(
    bytes: &[u8],
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: &Schema,
) -> Result<Vec<RecordBatch>, String> {
    guarded(|| rows_of(open_verified(bytes, key, ordinal, Some(types))?, part))
}

fn rows_of(reader: StreamReader<&[u8]>, part: &EntryPart) -> Result<Vec<RecordBatch>, String> {
    let batches = reader.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    let rows: u64 = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    match rows == part.rows {
        true => Ok(batches),
        false => Err(format!("it has {rows} rows instead of {}", part.rows)),
    }
}

/// Whether a part is what `part` says, as far as that can be told without decoding its rows; of any types, if none are given.
pub(crate) fn verify(
    bytes: &[u8],
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: Option<&Schema>,
) -> Result<(), String> {
    guarded(|| open(bytes, part, key, ordinal, types).map(drop))
}

/// The batch under the names of `schema`; an error if it has nulls where `schema` has none.
pub(crate) fn relabel(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &options)
}

/// Readers of Arrow check little before they index. The checksum keeps foreign bytes from them; what then still panics
/// is damage all the same.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("reading it panicked".to_owned()))
}

fn open<'a>(
    bytes: &'a [u8],
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: Option<&Schema>,
) -> Result<StreamReader<&'a [u8]>, String> {
    if bytes.len() as u64 != part.bytes {
        return Err(format!("it has {} bytes instead of {}", bytes.len(), part.bytes));
    }
    if Fingerprint::of_bytes(bytes) != part.checksum {
        return Err("its checksum differs".to_owned());
    }
    open_verified(bytes, key, ordinal, types)
}

fn open_verified<'a>(
    bytes: &'a [u8],
    key: &Fingerprint,
    ordinal: usize,
    types: Option<&Schema>,
) -> Result<StreamReader<&'a [u8]>, String> {
    let reader = StreamReader::try_new(bytes, None).map_err(|error| error.to_string())?;
    let schema = reader.schema();
    let expected = metadata(key, ordinal);
    if *schema.metadata() != expected {
        return Err(format!("it says {:?} instead of {expected:?}", schema.metadata()));
    }
    let Some(types) = types else { return Ok(reader) };
    let n_columns = (schema.fields().len(), types.fields().len());
    if n_columns.0 != n_columns.1 {
        return Err(format!("it has {} columns instead of {}", n_columns.0, n_columns.1));
    }
    for (stored, wanted) in schema.fields().iter().zip(types.fields()) {
        if stored.data_type() != wanted.data_type() {
            let (name, stored, wanted) = (stored.name(), stored.data_type(), wanted.data_type());
            return Err(format!("column {name} is {stored} instead of {wanted}"));
        }
    }
    Ok(reader)
}

fn metadata(key: &Fingerprint, ordinal: usize) -> HashMap<String, String> {
    HashMap::from([
        (FORMAT_KEY.to_owned(), FORMAT.to_owned()),
        (ENTRY_KEY.to_owned(), key.to_string()),
        (PART_KEY.to_owned(), ordinal.to_string()),
    ])
}

fn positional(key: &Fingerprint, ordinal: usize, schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().enumerate();
    // Nullability is the reader's: two programs of one key may differ in it.
    let fields: Vec<_> =
        fields.map(|(position, field)| Field::new(format!("c{position}"), field.data_type().clone(), true)).collect();
    Arc::new(Schema::new_with_metadata(fields, metadata(key, ordinal)))
}

/// The batches under the schema of the part, runs of small ones joined.
fn joined(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<RecordBatch>, ArrowError> {
    let batches = batches.iter().map(|batch| relabel(batch, schema)).collect::<Result<Vec<_>, _>>()?;
    let mut joined = Vec::with_capacity(batches.len());
    let mut start = 0;
    while start < batches.len() {
        let mut rows = batches[start].num_rows();
        let mut end = start + 1;
        while end < batches.len() && rows + batches[end].num_rows() <= BATCH_ROWS {
            rows += batches[end].num_rows();
            end += 1;
        }
        let run = &batches[start..end];
        match run.len() {
            1 => joined.push(run[0].clone()),
            // Dictionaries may have too many values together.
            _ => match concat_batches(schema, run) {
                Ok(batch) => joined.push(batch),
                Err(_) => joined.extend_from_slice(run),
            },
        }
        start = end;
    }
    Ok(joined)
}

#[cfg(test)]
mod tests;
