//! [`ArrowRows`]: rows of Arrow files, of either layout, by the names of their columns.
//!
//! ```text
//!   begins with ARROW1    a footer says where batches are    by DataFusion's opener, a range of the batches each
//!   begins otherwise      one message after another          by whoever has its first range, from start to end
//! ```
//!
//! A folder may hold both. DataFusion's source takes all files of a scan for one layout, and columns for those at the same
//! places: a file that has them in another order would swap them.
//!
//! Cost   the beginning and the footer of a file are read once more for each range of it; all columns of a stream are
//!        decoded.

use std::io::Read;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_ipc::reader::StreamDecoder;
use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{ArrowOpener, ArrowSource, FileOpenFuture, FileOpener, FileSource};
use datafusion::physical_expr_adapter::{BatchAdapter, BatchAdapterFactory};
use datafusion_datasource::morsel::Morselizer;
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, GetResultPayload, ObjectStore};

use super::{Layout, layout};
use crate::nullable::NullableColumns;
use crate::text_file::OpenerMorselizer;

/// Bytes of a local file that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// What reads the files of an Arrow source; `None` for other sources.
pub(crate) fn arrow_morselizer(
    source: &dyn FileSource,
    store: &Arc<dyn ObjectStore>,
) -> Result<Option<Box<dyn Morselizer>>> {
    if !source.is::<ArrowSource>() {
        return Ok(None);
    }
    let Some(projection) = source.projection() else { return Ok(None) };
    let file_schema = source.table_schema().file_schema();
    let projection = SplitProjection::new(file_schema, projection);
    let wanted = Arc::new(file_schema.project(&projection.file_indices)?);
    let opener = ArrowRows { wanted, store: Arc::clone(store) };
    let opener = ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)?;
    Ok(Some(Box::new(OpenerMorselizer::new(opener))))
}

/// Opens files of one source.
#[derive(Clone)]
struct ArrowRows {
    wanted: SchemaRef,
    store: Arc<dyn ObjectStore>,
}

impl FileOpener for ArrowRows {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let Self { wanted, store } = self.clone();
        Ok(Box::pin(async move {
            let layout = layout(store.as_ref(), &file.object_meta).await?;
            match layout {
                Layout::File(schema) => {
                    let fit = Fit::new(&schema, &wanted)?;
                    let rows = ArrowOpener::new_file_opener(store, Some(fit.columns.clone())).open(file)?.await?;
                    Ok(rows.map(move |batch| fit.adapted(batch?)).boxed())
                }
                // There is no way into the middle of it.
                Layout::Stream(_) if file.range.as_ref().is_some_and(|range| range.start > 0) => {
                    Ok(stream::empty().boxed())
                }
                Layout::Stream(_) => {
                    let result = store.get_opts(&file.object_meta.location, GetOptions::default()).await?;
                    Ok(streamed(pieces(result.payload), wanted))
                }
            }
        }))
    }
}

/// How the columns of a file become those that are wanted.
struct Fit {
    /// Places of those that the file has.
    columns: Vec<usize>,
    /// What brings them into order, fills in those that it lacks, and casts.
    adapter: Option<BatchAdapter>,
}

impl Fit {
    fn new(found: &Schema, wanted: &SchemaRef) -> Result<Self> {
        let places = wanted.fields().iter().filter_map(|field| found.index_of(field.name()).ok());
        let columns: Vec<usize> = places.collect();
        let read = Arc::new(found.project(&columns)?);
        let adapter = match read.fields() == wanted.fields() {
            true => None,
            false => {
                let adapters = BatchAdapterFactory::new(Arc::clone(wanted));
                Some(adapters.with_adapter_factory(Arc::new(NullableColumns)).make_adapter(&read)?)
            }
        };
        Ok(Self { columns, adapter })
    }

    /// A batch that has only the file's columns that are wanted.
    fn adapted(&self, batch: RecordBatch) -> Result<RecordBatch> {
        match &self.adapter {
            Some(adapter) => adapter.adapt_batch(&batch),
            None => Ok(batch),
        }
    }
}

/// The bytes of a file, from its start.
fn pieces(payload: GetResultPayload) -> BoxStream<'static, Result<Bytes>> {
    match payload {
        GetResultPayload::File(mut file, _) => {
            let next = move || {
                let mut piece = Vec::new();
                match file.by_ref().take(PIECE_BYTES).read_to_end(&mut piece) {
                    Ok(0) => None,
                    Ok(_) => Some(Ok(Bytes::from(piece))),
                    Err(error) => Some(Err(DataFusionError::from(error))),
                }
            };
            stream::iter(std::iter::from_fn(next)).boxed()
        }
        GetResultPayload::Stream(bytes) => bytes.map_err(DataFusionError::from).boxed(),
    }
}

/// What of a stream was read so far.
struct Reading {
    pieces: BoxStream<'static, Result<Bytes>>,
    /// Takes no length for true that no bytes come for.
    decoder: StreamDecoder,
    piece: Buffer,
    wanted: SchemaRef,
    /// Known with the first batch.
    fit: Option<Fit>,
}

fn streamed(pieces: BoxStream<'static, Result<Bytes>>, wanted: SchemaRef) -> BoxStream<'static, Result<RecordBatch>> {
    let reading =
        Reading { pieces, decoder: StreamDecoder::new(), piece: Buffer::from(Bytes::new()), wanted, fit: None };
    let batches = stream::try_unfold(reading, |mut reading| async move {
        let batch = reading.next().await?;
        Ok::<_, DataFusionError>(batch.map(|batch| (batch, reading)))
    });
    batches.boxed()
}

impl Reading {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.decoder.decode(&mut self.piece)? {
                let fit = match self.fit.take() {
                    Some(fit) => fit,
                    None => Fit::new(&batch.schema(), &self.wanted)?,
                };
                let batch = fit.adapted(batch.project(&fit.columns)?)?;
                self.fit = Some(fit);
                return Ok(Some(batch));
            }
            match self.pieces.next().await {
                Some(piece) => self.piece = Buffer::from(piece?),
                None => {
                    self.decoder.finish()?;
                    return Ok(None);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, AsArray, Int32Array, Int64Array, StringArray};
    use arrow::datatypes::{DataType, Field, Int64Type};
    use arrow::ipc::writer::{FileWriter, StreamWriter};
    use object_store::memory::InMemory;
    use object_store::path::Path;
    use object_store::{ObjectStoreExt, PutPayload};

    use super::*;

    fn file(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = FileWriter::try_new(vec![], &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    fn stream(batches: &[RecordBatch]) -> Vec<u8> {
        let mut writer = StreamWriter::try_new(vec![], &batches[0].schema()).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    async fn read(bytes: Vec<u8>, wanted: &SchemaRef, ranges: &[(i64, i64)]) -> Result<Vec<RecordBatch>> {
        let (store, path) = (Arc::new(InMemory::new()), Path::from("x.arrow"));
        store.put(&path, PutPayload::from(bytes)).await?;
        let meta = store.head(&path).await?;
        let rows = ArrowRows { wanted: Arc::clone(wanted), store };
        let mut batches = vec![];
        for (start, end) in ranges {
            let file = PartitionedFile::new_from_meta(meta.clone()).with_range(*start, *end);
            batches.extend(rows.open(file)?.await?.try_collect::<Vec<_>>().await?);
        }
        Ok(batches)
    }

    #[tokio::test]
    async fn either_layout_by_name() {
        let ints = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let texts = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
        let batch = |a: Vec<i64>, b: Vec<i64>, t: Vec<&str>| {
            RecordBatch::try_from_iter([("b", ints(b)), ("t", texts(t)), ("a", ints(a))]).unwrap()
        };
        let batches = [batch(vec![1, 2], vec![10, 20], vec!["x", "y"]), batch(vec![3], vec![30], vec!["z"])];
        let wanted = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("lacking", DataType::Utf8, true),
            Field::new("b", DataType::Int64, true),
        ]));
        for bytes in [file(&batches), stream(&batches)] {
            // All of its batches once, wherever it is cut.
            let size = i64::try_from(bytes.len()).unwrap();
            for ranges in [vec![(0, size)], vec![(0, 10), (10, size)], vec![(0, size / 2), (size / 2, size)]] {
                let read = read(bytes.clone(), &wanted, &ranges).await.unwrap();
                let values = |column: usize| {
                    let of = |batch: &RecordBatch| batch.column(column).as_primitive::<Int64Type>().values().to_vec();
                    read.iter().flat_map(of).collect::<Vec<_>>()
                };
                assert_eq!((values(0), values(2)), (vec![1, 2, 3], vec![10, 20, 30]), "{ranges:?}");
                assert!(read.iter().all(|batch| batch.column(1).null_count() == batch.num_rows()));
            }
            let none = Arc::new(Schema::empty());
            let counted = read(bytes.clone(), &none, &[(0, size)]).await.unwrap();
            assert_eq!(counted.iter().map(RecordBatch::num_rows).sum::<usize>(), 3);
        }
    }

    #[tokio::test]
    async fn a_cut_or_damaged_stream_is_an_error() {
        let column: ArrayRef = Arc::new(Int32Array::from_iter_values(0..100));
        let batch = RecordBatch::try_from_iter([("n", column)]).unwrap();
        let bytes = stream(std::slice::from_ref(&batch));
        let schema = batch.schema();
        let all = [(0, i64::MAX)];
        assert_eq!(read(bytes.clone(), &schema, &all).await.unwrap(), [batch]);
        // The last eight bytes say that nothing follows.
        for n_bytes in [9, 100, bytes.len() - 9, bytes.len() - 100] {
            assert!(read(bytes[..n_bytes].to_vec(), &schema, &all).await.is_err(), "{n_bytes}");
        }
        let mut twice = bytes.clone();
        twice.extend(&bytes);
        assert!(read(twice, &schema, &all).await.is_err(), "the second is not left out");
    }
}
