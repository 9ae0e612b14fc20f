//! Rows that clients send: parameters, and what is to be ingested.
//!
//! A message that is no Arrow gets an error and nothing else, also where Arrow's reader panics over it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::{RecordBatch as RecordBatchMessage, root_as_message};
use arrow_flight::FlightData;
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::sql::server::PeekableFlightDataStream;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use tonic::Status;

use super::status::malformed;

/// What the rows of one message may take once they are unpacked: the longest messages that clients send are far smaller.
const UNPACKED_BYTES_MAX: i64 = 1 << 30;
/// Rows of one message; more only where its bytes account for them. Columns of nulls take no bytes, whatever they say of themselves.
const ROWS_MAX: i64 = 1 << 20;

/// What parameters of one statement may take.
const PARAMETER_BYTES_MAX: usize = 256 << 20;

/// Rows on their way from a client.
pub(super) struct Incoming {
    pub(super) schema: SchemaRef,
    pub(super) rows: BoxStream<'static, Result<RecordBatch, Status>>,
}

/// The rows of a stream; `None` if there is not even a schema.
pub(super) async fn incoming(stream: PeekableFlightDataStream) -> Result<Option<Incoming>, Status> {
    // The message that only says what is asked for has no Arrow in it.
    let messages = stream.try_filter(|message| std::future::ready(!message.data_header.is_empty()));
    let messages = messages.and_then(|message| std::future::ready(check(&message).map(|()| message)));
    let messages = messages.map_err(|status| FlightError::Tonic(Box::new(status)));
    let decoder = AssertUnwindSafe(FlightDataDecoder::new(messages)).catch_unwind();
    let mut decoded = decoder.map(|message| match message {
        Ok(Ok(message)) => Ok(message.payload),
        Ok(Err(FlightError::Tonic(status))) => Err(*status),
        Ok(Err(error)) => Err(malformed("the rows", error)),
        Err(_) => Err(malformed("the rows", "they are not Arrow")),
    });
    let schema = match decoded.next().await.transpose()? {
        None => return Ok(None),
        Some(DecodedPayload::Schema(schema)) => schema,
        Some(_) => return Err(malformed("the rows", "their schema should come first")),
    };
    let expected = Arc::clone(&schema);
    let rows = decoded.try_filter_map(move |payload| {
        std::future::ready(match payload {
            DecodedPayload::None => Ok(None),
            DecodedPayload::RecordBatch(batch) => Ok(Some(batch)),
            DecodedPayload::Schema(again) if again == expected => Ok(None),
            DecodedPayload::Schema(_) => Err(malformed("the rows", "their schema changes on the way")),
        })
    });
    Ok(Some(Incoming { schema, rows: rows.boxed() }))
}

/// Refuses buffers that are not inside of their message, over which Arrow's reader would panic, and lengths that nothing is behind: the
/// reader would take that much memory before it looks, and a process that gets none ends for all of its clients.
fn check(message: &FlightData) -> Result<(), Status> {
    let root = root_as_message(&message.data_header).map_err(|error| malformed("the rows", error))?;
    let dictionary = root.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    let Some(batch) = root.header_as_record_batch().or(dictionary) else { return Ok(()) };
    let end = message.data_body.len() as i64;
    let is_inside = |offset: i64, length: i64| {
        offset >= 0 && length >= 0 && offset.checked_add(length).is_some_and(|last| last <= end)
    };
    let mut buffers = batch.buffers().into_iter().flatten();
    let mut nodes = batch.nodes().into_iter().flatten();
    let are_buffers = buffers.all(|buffer| is_inside(buffer.offset(), buffer.length()));
    let are_nodes = nodes.all(|node| node.length() >= 0 && (0..=node.length()).contains(&node.null_count()));
    if !are_buffers || !are_nodes || batch.length() < 0 {
        return Err(malformed("the rows", "a buffer is not inside of its message"));
    }
    let bytes = match batch.compression().is_some() {
        true => unpacked_bytes(&batch, &message.data_body)?,
        false => end,
    };
    if bytes > UNPACKED_BYTES_MAX {
        let limit = UNPACKED_BYTES_MAX >> 20;
        return Err(Status::resource_exhausted(format!("the rows of one message may take {limit} MB")));
    }
    // A row of anything but nulls takes a bit at the least.
    let rows_max = bytes.saturating_mul(8).max(ROWS_MAX);
    let lengths = batch.nodes().into_iter().flatten().map(|node| node.length());
    match lengths.chain([batch.length()]).max().is_none_or(|rows| rows <= rows_max) {
        true => Ok(()),
        false => Err(malformed("the rows", "there are more of them than the message has room for")),
    }
}

/// What the buffers of a message say that they are once they are unpacked.
fn unpacked_bytes(batch: &RecordBatchMessage<'_>, body: &[u8]) -> Result<i64, Status> {
    let mut sum = 0_i64;
    for buffer in batch.buffers().into_iter().flatten().filter(|buffer| buffer.length() > 0) {
        let start = buffer.offset() as usize;
        let told = body.get(start..start + 8).filter(|_| buffer.length() >= 8);
        let told = told.and_then(|bytes| bytes.try_into().ok()).map(i64::from_le_bytes);
        sum = match told {
            // It was not worth packing.
            Some(-1) => sum.saturating_add(buffer.length() - 8),
            Some(bytes) if bytes >= 0 => sum.saturating_add(bytes),
            _ => return Err(malformed("the rows", "a packed buffer does not tell its length")),
        };
    }
    Ok(sum)
}

/// All rows of values for a statement's placeholders; `None` if there are no columns.
pub(super) async fn parameters(stream: PeekableFlightDataStream) -> Result<Option<RecordBatch>, Status> {
    let Some(Incoming { schema, mut rows }) = incoming(stream).await? else { return Ok(None) };
    let mut batches = vec![];
    let mut bytes = 0;
    while let Some(batch) = rows.try_next().await? {
        bytes += batch.get_array_memory_size();
        if bytes > PARAMETER_BYTES_MAX {
            let limit = PARAMETER_BYTES_MAX >> 20;
            return Err(Status::resource_exhausted(format!("parameters of one statement may take {limit} MB")));
        }
        batches.push(batch);
    }
    if schema.fields().is_empty() {
        return Ok(None);
    }
    concat_batches(&schema, &batches).map(Some).map_err(|error| malformed("the parameters", error))
}

/// No columns.
pub(super) fn no_columns() -> SchemaRef {
    Arc::new(Schema::empty())
}
