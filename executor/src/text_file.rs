//! [`TextOpener`]: CSV and JSON files into rows, losing nothing without a word.
//!
//! ```text
//!   bytes of a file ── counted ── unpacked ── CSV: no quote may stay open ── DataFusion's decoders ── numbers are looked
//!   or of a range                             (whole files only: ranges                               at as they are
//!                                             are cut where no quote is)                              written
//! ```
//!
//! Stands in for the openers of `CsvSource` and `JsonSource`, which read the same rows but take the end of a file for the end
//! of a quote, 2.9 for 2 where a column is an integer, 1.995 for 1.99 where it is a decimal, and the first of several packed streams
//! for all of them.

mod bytes;
mod exact_values;
mod json_order;
mod json_sample;
mod morsels;
mod quotes;
mod sample;
mod start;
mod written;

use std::sync::Arc;

use arrow::csv;
use arrow::datatypes::SchemaRef;
use arrow::json;
use datafusion::common::{DataFusionError, Result, exec_err};
use datafusion::datasource::file_format::csv::CsvDecoder;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonDecoder;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{CsvSource, FileOpener, FileScanConfig, FileSource, JsonSource};
use datafusion::physical_plan::metrics::{Count, MetricBuilder, MetricCategory, MetricType};
use datafusion_datasource::boundary_stream::AlignedBoundaryStream;
use datafusion_datasource::decoder::{DecoderDeserializer, deserialize_stream};
use datafusion_datasource::file_stream::FileOpenFuture;
use datafusion_datasource::morsel::Morselizer;
use datafusion_datasource::projection::{ProjectionOpener, SplitProjection};
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::CsvDialect;
use object_store::ObjectStore;

use self::bytes::Bytes;
use self::exact_values::{ExactValues, Text};
pub(crate) use self::morsels::OpenerMorselizer;
pub use self::sample::is_json_array;
pub(crate) use self::sample::{SAMPLE_RECORDS, columns_of_text, csv_format, of_other_length};
pub(crate) use self::start::without_mark;

/// Goes with a JSON file of a scan whose records are the elements of one array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JsonArray;

/// The count of bytes that a scan has read.
pub(crate) fn bytes_scanned(source: &dyn FileSource, partition: usize) -> Count {
    MetricBuilder::new(source.metrics())
        .with_type(MetricType::Summary)
        .with_category(MetricCategory::Bytes)
        .counter("bytes_scanned", partition)
}

/// What reads the files of a text source; `None` for other sources.
pub(crate) fn text_morselizer(
    source: &dyn FileSource,
    store: &Arc<dyn ObjectStore>,
    config: &FileScanConfig,
    partition: usize,
    batch_size: usize,
) -> Result<Option<Box<dyn Morselizer>>> {
    let file_schema = source.table_schema().file_schema();
    let Some(projection) = source.projection() else { return Ok(None) };
    let projection = SplitProjection::new(file_schema, projection);
    let format = if let Some(csv) = source.downcast_ref::<CsvSource>() {
        Format::Csv(Csv::new(csv, file_schema, projection.file_indices.clone(), batch_size)?)
    } else if source.is::<JsonSource>() {
        let wanted = Arc::new(file_schema.project(&projection.file_indices)?);
        Format::Json(Json { values: ExactValues::of(Text::Json, &wanted), batch_size })
    } else {
        return Ok(None);
    };
    let opener = TextOpener {
        format,
        compression: config.file_compression_type,
        store: Arc::clone(store),
        n_bytes: bytes_scanned(source, partition),
    };
    let opener = ProjectionOpener::try_new(projection, Arc::new(opener), file_schema)?;
    Ok(Some(Box::new(OpenerMorselizer::new(opener))))
}

/// Opens text files of one source.
#[derive(Clone)]
struct TextOpener {
    format: Format,
    compression: FileCompressionType,
    store: Arc<dyn ObjectStore>,
    n_bytes: Count,
}

#[derive(Clone)]
enum Format {
    Csv(Csv),
    Json(Json),
}

/// How CSV is read.
#[derive(Clone)]
struct Csv {
    /// All of its columns as they are read.
    schema: SchemaRef,
    columns: Vec<usize>,
    values: ExactValues,
    dialect: CsvDialect,
    has_header: bool,
    batch_size: usize,
}

/// How JSON is read.
#[derive(Clone)]
struct Json {
    values: ExactValues,
    batch_size: usize,
}

impl Csv {
    fn new(source: &CsvSource, schema: &SchemaRef, columns: Vec<usize>, batch_size: usize) -> Result<Self> {
        let dialect = CsvDialect {
            delimiter: source.delimiter(),
            quote: source.quote(),
            escape: source.escape(),
            terminator: source.terminator(),
            comment: source.comment(),
            truncated_rows: source.truncate_rows(),
        };
        let values = ExactValues::of(Text::Csv, &Arc::new(schema.project(&columns)?));
        let schema = Arc::clone(ExactValues::of(Text::Csv, schema).as_read());
        Ok(Self { schema, columns, values, dialect, has_header: source.has_header(), batch_size })
    }

    fn decoder(&self, at_start: bool) -> csv::reader::Decoder {
        let CsvDialect { delimiter, quote, escape, terminator, comment, truncated_rows } = self.dialect;
        let mut builder = csv::ReaderBuilder::new(Arc::clone(&self.schema))
            .with_delimiter(delimiter)
            .with_quote(quote)
            .with_truncated_rows(truncated_rows)
            .with_batch_size(self.batch_size)
            .with_header(self.has_header && at_start)
            .with_projection(self.columns.clone());
        if let Some(terminator) = terminator {
            builder = builder.with_terminator(terminator);
        }
        if let Some(escape) = escape {
            builder = builder.with_escape(escape);
        }
        if let Some(comment) = comment {
            builder = builder.with_comment(comment);
        }
        builder.build_decoder()
    }
}

impl Json {
    fn decoder(&self) -> Result<json::reader::Decoder> {
        let builder = json::ReaderBuilder::new(Arc::clone(self.values.as_read())).with_batch_size(self.batch_size);
        // Numbers come as they are written, wherever text is asked for.
        Ok(builder.with_coerce_primitive(true).build_decoder()?)
    }
}

impl TextOpener {
    /// The text of a file or of a range of it.
    async fn text(&self, file: &PartitionedFile) -> Result<Bytes> {
        let location = &file.object_meta.location;
        let is_array = file.extension::<JsonArray>().is_some();
        let Some(range) = file.range.as_ref().filter(|_| !is_array) else {
            let result = self.store.get_opts(location, object_store::GetOptions::default()).await?;
            return bytes::unpacked(result.payload, self.compression, is_array, self.n_bytes.clone());
        };
        let (Ok(start), Ok(end)) = (u64::try_from(range.start), u64::try_from(range.end)) else {
            return exec_err!("a range of a file begins or ends before the file does");
        };
        if self.compression.is_compressed() {
            return exec_err!("packed files cannot be read from the middle");
        }
        let ends_record = match &self.format {
            Format::Csv(csv) => csv.dialect.terminator.unwrap_or(b'\n'),
            Format::Json(_) => b'\n',
        };
        let store = Arc::clone(&self.store);
        let text = AlignedBoundaryStream::new(store, location.clone(), start, end, file.object_meta.size, ends_record);
        Ok(bytes::counted(text.await?.map_err(DataFusionError::from).boxed(), self.n_bytes.clone()))
    }
}

impl FileOpener for TextOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let opener = self.clone();
        Ok(Box::pin(async move {
            let at_start = file.range.as_ref().is_none_or(|range| range.start == 0);
            let mut text = opener.text(&file).await?;
            if at_start {
                text = start::checked(text);
            }
            Ok(match opener.format {
                Format::Csv(csv) => {
                    // Ranges were cut behind records: no quote is open there.
                    let text = match file.range {
                        Some(_) => text,
                        None => quotes::closed(text, csv.dialect),
                    };
                    let rows = DecoderDeserializer::new(CsvDecoder::new(csv.decoder(at_start)));
                    csv.values.rows(deserialize_stream(text.fuse(), rows).map_err(DataFusionError::from))
                }
                Format::Json(json) => {
                    let rows = DecoderDeserializer::new(JsonDecoder::new(json.decoder()?));
                    json.values.rows(deserialize_stream(text.fuse(), rows).map_err(DataFusionError::from))
                }
            })
        }))
    }
}
