//! What an Arrow file says of itself, before anyone believes it: a file with a footer, or a stream.
//!
//! Arrow's reader takes lengths as they are written: a damaged one makes it ask for more memory than there is, which ends
//! the process, and a damaged footer makes DataFusion take the file for a stream, with its first letters for a length.

mod rows;

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow_ipc::convert::{fb_to_schema, try_schema_from_ipc_buffer};
use arrow_ipc::reader::read_footer_length;
use arrow_ipc::root_as_footer;
use datafusion::common::Result;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

pub(crate) use self::rows::arrow_morselizer;

const MAGIC: &[u8] = b"ARROW1";
/// Magic letters and padding.
const HEAD_BYTES: u64 = 8;
/// The length of the footer and magic letters.
const TAIL_BYTES: u64 = 10;
const CONTINUATION: [u8; 4] = [0xff; 4];

/// How a file is laid out.
enum Layout {
    /// With a footer, which says what is where.
    File(SchemaRef),
    /// One message after another; the first, of so many bytes, says the columns.
    Stream(u64),
}

/// The columns of a file.
pub(crate) async fn columns(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<SchemaRef> {
    match layout(store, file).await? {
        Layout::File(schema) => Ok(schema),
        Layout::Stream(bytes) => {
            let message = store.get_range(&file.location, 0..bytes).await?;
            // Some of what a message can hold makes the library panic.
            let read = catch_unwind(AssertUnwindSafe(|| try_schema_from_ipc_buffer(&message)));
            let schema = read.map_err(|_| damaged("its first message is damaged"))?;
            Ok(schema.map_err(|error| damaged(&format!("its first message is damaged: {error}")))?.into())
        }
    }
}

/// The layout of a file whose lengths make sense.
async fn layout(store: &dyn ObjectStore, file: &ObjectMeta) -> Result<Layout> {
    if file.size < HEAD_BYTES {
        return Err(damaged("it is too short"));
    }
    let head = store.get_range(&file.location, 0..HEAD_BYTES).await?;
    if !head.starts_with(MAGIC) {
        return first_message(&head, file.size).map(Layout::Stream);
    }
    if file.size < HEAD_BYTES + TAIL_BYTES {
        return Err(damaged("it is too short"));
    }
    let tail = store.get_range(&file.location, file.size - TAIL_BYTES..file.size).await?;
    let tail: [u8; TAIL_BYTES as usize] = tail[..].try_into().map_err(|_| damaged("it is too short"))?;
    let footer_bytes = read_footer_length(tail)? as u64;
    if footer_bytes > file.size - HEAD_BYTES - TAIL_BYTES {
        return Err(damaged("its footer is longer than the file"));
    }
    let end = file.size - TAIL_BYTES;
    let footer = store.get_range(&file.location, end - footer_bytes..end).await?;
    // Some of what a footer can hold makes the library panic.
    let read = catch_unwind(AssertUnwindSafe(|| check_footer(&footer, file.size)));
    read.unwrap_or_else(|_| Err(damaged("its footer is damaged"))).map(Layout::File)
}

fn check_footer(footer: &[u8], size: u64) -> Result<SchemaRef> {
    let footer = root_as_footer(footer).map_err(|error| damaged(&format!("its footer is damaged: {error}")))?;
    let batches = footer.recordBatches().into_iter().flatten();
    for block in batches.chain(footer.dictionaries().into_iter().flatten()) {
        let parts = [block.offset(), i64::from(block.metaDataLength()), block.bodyLength()];
        let end = parts.into_iter().try_fold(0_u64, |end, part| end.checked_add(u64::try_from(part).ok()?));
        if end.is_none_or(|end| end > size) {
            return Err(damaged("its footer names bytes that it does not have"));
        }
    }
    let schema: Schema = footer.schema().map(fb_to_schema).ok_or_else(|| damaged("its footer has no schema"))?;
    Ok(schema.into())
}

/// Where the first message of a stream ends.
fn first_message(head: &[u8], size: u64) -> Result<u64> {
    let number = |at: usize| head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let (before, length) = match number(0) {
        Some(CONTINUATION) => (8, number(4)),
        length => (4, length),
    };
    let length = length.map(i32::from_le_bytes).and_then(|length| u64::try_from(length).ok());
    match length.map(|length| before + length) {
        Some(end) if end <= size => Ok(end),
        _ => Err(damaged("it is neither a file nor a stream of Arrow")),
    }
}

fn damaged(text: &str) -> datafusion::error::DataFusionError {
    ArrowError::IpcError(format!("not a readable arrow file: {text}")).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use arrow::ipc::writer::{FileWriter, StreamWriter};
    use arrow::record_batch::RecordBatch;
    use object_store::memory::InMemory;
    use object_store::path::Path;

    use super::*;

    async fn told(bytes: &[u8]) -> Result<SchemaRef> {
        let (store, path) = (InMemory::new(), Path::from("x.arrow"));
        store.put(&path, bytes.to_vec().into()).await?;
        columns(&store, &store.head(&path).await?).await
    }

    #[tokio::test]
    async fn lengths_are_not_believed() {
        let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..100));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let mut file = FileWriter::try_new(vec![], &batch.schema()).unwrap();
        file.write(&batch).unwrap();
        let whole = file.into_inner().unwrap();
        assert_eq!(told(&whole).await.unwrap(), batch.schema());
        let mut stream = StreamWriter::try_new(vec![], &batch.schema()).unwrap();
        stream.write(&batch).unwrap();
        let streamed = stream.into_inner().unwrap();
        assert_eq!(told(&streamed).await.unwrap(), batch.schema());
        // Bytes that are gone from the middle: the footer is fine, its blocks are not there.
        let mut cut = whole.clone();
        cut.drain(8..whole.len() / 2);
        assert!(told(&cut).await.is_err());
        for whole in [&whole, &streamed] {
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 0xff;
                // An error or an answer.
                let _ = told(&bytes).await;
            }
        }
        for text in ["", "ARROW1", "ARROW1..ARROW1", "a,b\n1,2\n3,4\n"] {
            assert!(told(text.as_bytes()).await.is_err(), "{text}");
        }
    }
}
