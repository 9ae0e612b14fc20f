//! [`Footers`]: what Parquet files tell of themselves, without the bounds of floats.
//!
//! ```text
//!   DataFusion's cache --> with the bounds of pages --> a copy without those of floats
//! ```
//!
//! Writers leave NaN out of a column's bounds, and NaN is larger than every number here: a file whose bounds are 1 and 5 may hold
//! rows for `f > 100`. DataFusion would skip it, its row groups and its pages, and so would the filters that a TopK or a join
//! makes while it runs. So none of them gets to see such bounds.
//!
//! Bounds of pages are cached with the footer. DataFusion's opener asks for footers without, and reads those of a file that it wants
//! to prune again at each query.
//!
//! Cost   footers without a float column are passed on as they are; of others a copy is made once, for as long as DataFusion's cache
//!        has them. A footer that is not cached is read together with the bounds of pages, mostly in one go.

use std::ops::Range;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, ParquetFileReaderFactory};
use datafusion::execution::cache::cache_manager::FileMetadataCache;
use datafusion::physical_plan::Statistics;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use moka::sync::Cache;
use object_store::ObjectStore;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::schema::types::ColumnDescriptor;

/// How long a copy is kept that nobody asks for: its footer may be gone.
const IDLE: Duration = Duration::from_secs(600);

/// Copies of footers without the bounds of floats.
#[derive(Clone, Debug)]
pub(crate) struct PlainFooters {
    /// By the address of the footer. It is that very footer as long as its place in memory is taken, which the weak reference sees
    /// to: another one is never found there.
    copies: Cache<usize, Copied>,
}

#[derive(Clone, Debug)]
struct Copied {
    of: Weak<ParquetMetaData>,
    plain: Arc<ParquetMetaData>,
}

impl PlainFooters {
    /// Keeps copies of so many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let weigh = |_: &usize, copied: &Copied| u32::try_from(copied.plain.memory_size()).unwrap_or(u32::MAX);
        let copies = Cache::builder().max_capacity(bytes_max as u64).weigher(weigh).time_to_idle(IDLE).build();
        Self { copies }
    }

    fn plain(&self, footer: Arc<ParquetMetaData>) -> ParquetResult<Arc<ParquetMetaData>> {
        if !has_floats(&footer) {
            return Ok(footer);
        }
        let address = Arc::as_ptr(&footer).addr();
        if let Some(copied) = self.copies.get(&address)
            && Weak::ptr_eq(&copied.of, &Arc::downgrade(&footer))
        {
            return Ok(copied.plain);
        }
        let plain = without_float_bounds(&footer)?;
        self.copies.insert(address, Copied { of: Arc::downgrade(&footer), plain: Arc::clone(&plain) });
        Ok(plain)
    }
}

/// Opens Parquet files; footers are cached as before.
#[derive(Debug)]
pub(crate) struct Footers {
    files: CachedParquetFileReaderFactory,
    cached: Arc<FileMetadataCache>,
    footers: PlainFooters,
}

impl Footers {
    /// Of the files in a store.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, cached: Arc<FileMetadataCache>, footers: PlainFooters) -> Self {
        let files = CachedParquetFileReaderFactory::new(store, Arc::clone(&cached));
        Self { files, cached, footers }
    }
}

impl ParquetFileReaderFactory for Footers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let is_cached = self.cached.contains_key(&file.object_meta.location);
        let file = self.files.create_reader(partition, file, size_hint, metrics)?;
        Ok(Box::new(Reader { file, is_cached, footers: self.footers.clone() }))
    }
}

struct Reader {
    file: Box<dyn AsyncFileReader + Send>,
    /// Whether the footer was there when the file was opened.
    is_cached: bool,
    footers: PlainFooters,
}

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.file.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.file.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let with_pages = options.cloned().unwrap_or_default().with_page_index_policy(PageIndexPolicy::Optional);
            let first = if self.is_cached { options } else { Some(&with_pages) };
            let mut footer = self.file.get_metadata(first).await?;
            if lacks_pages(&footer) {
                footer = self.file.get_metadata(Some(&with_pages)).await?;
            }
            self.footers.plain(footer)
        }
        .boxed()
    }
}

/// Whether the file has bounds of pages that are not here. Who asks for what a file does not have gets a copy of its footer each time.
fn lacks_pages(footer: &ParquetMetaData) -> bool {
    let mut columns = footer.row_groups().iter().flat_map(RowGroupMetaData::columns);
    footer.column_index().is_none() && columns.any(|column| column.column_index_offset().is_some())
}

fn has_floats(footer: &ParquetMetaData) -> bool {
    footer.file_metadata().schema_descr().columns().iter().any(|column| is_float(column))
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE)
        || column.logical_type_ref() == Some(&LogicalType::Float16)
}

fn without_float_bounds(footer: &ParquetMetaData) -> ParquetResult<Arc<ParquetMetaData>> {
    let floats: Vec<bool> =
        footer.file_metadata().schema_descr().columns().iter().map(|column| is_float(column)).collect();
    let mut builder = footer.clone().into_builder();
    let groups = builder.take_row_groups().into_iter().map(group_without_bounds);
    let groups = groups.collect::<ParquetResult<Vec<RowGroupMetaData>>>()?;
    let mut index = builder.take_column_index();
    for columns in index.iter_mut().flatten() {
        let of_floats = columns.iter_mut().zip(&floats).filter(|(_, is_float)| **is_float);
        of_floats.for_each(|(pages, _)| *pages = ColumnIndexMetaData::NONE);
    }
    Ok(Arc::new(builder.set_row_groups(groups).set_column_index(index).build()))
}

fn group_without_bounds(group: RowGroupMetaData) -> ParquetResult<RowGroupMetaData> {
    let mut builder = group.into_builder();
    let column = |column: ColumnChunkMetaData| match is_float(column.column_descr()) {
        false => Ok(column),
        // The place of the page index goes too: who finds none in the footer reads it from there.
        true => {
            column.into_builder().clear_statistics().set_column_index_offset(None).set_column_index_length(None).build()
        }
    };
    let columns = builder.take_columns().into_iter().map(column).collect::<ParquetResult<Vec<_>>>()?;
    builder.set_column_metadata(columns).build()
}

/// The same for what a file is said to hold.
pub(crate) fn forget_float_bounds(mut statistics: Statistics, schema: &arrow::datatypes::Schema) -> Statistics {
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        if field.data_type().is_floating() {
            column.min_value = Precision::Absent;
            column.max_value = Precision::Absent;
        }
    }
    statistics
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
    use parquet::arrow::ArrowWriter;
    use parquet::file::metadata::ParquetMetaDataReader;

    use super::*;

    fn footer(column: ArrayRef) -> Arc<ParquetMetaData> {
        let rows = RecordBatch::try_from_iter([("a", column)]).unwrap();
        let mut bytes = vec![];
        let mut writer = ArrowWriter::try_new(&mut bytes, rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        writer.close().unwrap();
        Arc::new(ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(bytes)).unwrap())
    }

    fn has_bounds(footer: &ParquetMetaData) -> bool {
        footer.row_group(0).column(0).statistics().is_some()
    }

    #[test]
    fn one_copy_per_footer() {
        let footers = PlainFooters::new(1 << 20);
        let numbers = footer(Arc::new(Int64Array::from(vec![1, 2])));
        assert!(Arc::ptr_eq(&footers.plain(Arc::clone(&numbers)).unwrap(), &numbers));
        let one = footer(Arc::new(Float64Array::from(vec![1.0, 5.0])));
        let plain = footers.plain(Arc::clone(&one)).unwrap();
        assert!(has_bounds(&one) && !has_bounds(&plain));
        assert!(Arc::ptr_eq(&footers.plain(Arc::clone(&one)).unwrap(), &plain), "the same copy again");
        let two = footer(Arc::new(Float64Array::from(vec![1.0, 5.0])));
        assert!(!Arc::ptr_eq(&footers.plain(two).unwrap(), &plain), "another file");
    }

    /// Footers that come and go take each other's places in memory.
    #[test]
    fn never_the_copy_of_another() {
        let footers = PlainFooters::new(1 << 30);
        for n_rows in 1..300 {
            let footer = footer(Arc::new(Float64Array::from(vec![0.5; n_rows])));
            assert_eq!(footers.plain(footer).unwrap().file_metadata().num_rows(), n_rows as i64);
        }
    }
}
