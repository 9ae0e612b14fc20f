//! [`Footers`]: what Parquet files tell of themselves, without the bounds of floats.
//!
//! Writers leave NaN out of a column's bounds, and NaN is larger than every number here: a file whose bounds are 1 and 5 may hold
//! rows for `f > 100`. DataFusion would skip it, its row groups and its pages, and so would the filters that a TopK or a join
//! makes while it runs. So none of them gets to see such bounds.
//!
//! Cost   footers without a float column are passed on as they are.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::common::stats::Precision;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{CachedParquetFileReaderFactory, ParquetFileReaderFactory};
use datafusion::physical_plan::Statistics;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::AsyncFileReader;
use parquet::basic::{LogicalType, Type};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::schema::types::ColumnDescriptor;

/// Opens Parquet files; footers are cached as before.
#[derive(Debug)]
pub(crate) struct Footers(pub(crate) CachedParquetFileReaderFactory);

impl ParquetFileReaderFactory for Footers {
    fn create_reader(
        &self,
        partition: usize,
        file: PartitionedFile,
        size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        Ok(Box::new(Reader(self.0.create_reader(partition, file, size_hint, metrics)?)))
    }
}

struct Reader(Box<dyn AsyncFileReader + Send>);

impl AsyncFileReader for Reader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.0.get_bytes(range)
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.0.get_byte_ranges(ranges)
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        self.0.get_metadata(options).map(|found| found.and_then(without_float_bounds)).boxed()
    }
}

fn is_float(column: &ColumnDescriptor) -> bool {
    matches!(column.physical_type(), Type::FLOAT | Type::DOUBLE)
        || column.logical_type_ref() == Some(&LogicalType::Float16)
}

fn without_float_bounds(footer: Arc<ParquetMetaData>) -> ParquetResult<Arc<ParquetMetaData>> {
    let floats: Vec<bool> =
        footer.file_metadata().schema_descr().columns().iter().map(|column| is_float(column)).collect();
    if !floats.contains(&true) {
        return Ok(footer);
    }
    let mut builder = footer.as_ref().clone().into_builder();
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
