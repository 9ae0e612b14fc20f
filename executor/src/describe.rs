//! [`FileDescriber`]: what a new file says of itself, asked once.
//!
//! Parquet tells rows and statistics in its footer, Arrow its columns and whether its lengths make sense. Other formats tell nothing without being read; a CSV file whose
//! table's columns were inferred must at least have the same header, because its values go by position; where they were given, a name
//! that both have must stand at the same place.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::common::Statistics;
use datafusion::common::config::CsvOptions;
use datafusion::common::stats::Precision;
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use datafusion::error::DataFusionError;
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::{
    CatalogError, Description, ExtentReader, ExternalSource, FileFormatKind, ListedFile, ObjectStores, SteadyStore,
    TableDef, object_path,
};
use object_store::ObjectStoreExt;
use parquet::arrow::parquet_to_arrow_schema;

use crate::format::{compression_of, reader_options};
use crate::named_source::readable_location;
use crate::text_file::{csv_format, without_mark};
use crate::{arrow_file, null_counts};

/// Bytes of a Parquet file's end that are read at once: most footers fit.
const FOOTER_BYTES: usize = 64 * 1024;
/// A header longer than this is none.
const HEADER_BYTES_MAX: usize = 1 << 20;

/// Asks files of one table.
#[derive(Debug)]
pub struct FileDescriber {
    stores: ObjectStores,
    config: Arc<ConfigOptions>,
    table: Arc<TableDef>,
    /// Made for the first new file; most statements find none.
    file_schema: OnceLock<SchemaRef>,
}

impl FileDescriber {
    /// For files of that table.
    pub fn new(stores: ObjectStores, config: Arc<ConfigOptions>, table: Arc<TableDef>) -> Self {
        Self { stores, config, table, file_schema: OnceLock::new() }
    }

    fn file_schema(&self) -> &SchemaRef {
        self.file_schema.get_or_init(|| nectarine_planner::reading_of(&self.table).file_schema)
    }

    async fn parquet(&self, file: &ListedFile) -> Result<Description, CatalogError> {
        let (url, _) = object_path(file.location())?;
        let store = self.stores.get(&url)?;
        let meta = file.object_meta()?;
        let metadata = DFParquetMetadata::new(store.as_ref(), &meta)
            .with_metadata_size_hint(Some(FOOTER_BYTES))
            .fetch_metadata()
            .await
            .map_err(|error| unreadable(file, error))?;
        let footer = metadata.file_metadata();
        let found = parquet_to_arrow_schema(footer.schema_descr(), footer.key_value_metadata())
            .map_err(|error| unreadable(file, error.into()))?;
        if let Some(detail) = lossy(&found, self.file_schema()) {
            return Err(self.mismatch(file, detail));
        }
        let mut statistics = DFParquetMetadata::statistics_from_parquet_metadata(&metadata, self.file_schema())
            .map_err(|error| unreadable(file, error))?;
        null_counts::correct(&mut statistics, &metadata, self.file_schema());
        let rows = match statistics.num_rows {
            Precision::Exact(rows) => Some(rows as u64),
            _ => None,
        };
        Ok(Description { rows, stats: statistics })
    }

    async fn csv_header(
        &self,
        source: &ExternalSource,
        file: &ListedFile,
        agrees: CheckHeader,
    ) -> Result<(), CatalogError> {
        let options =
            reader_options(&self.config, source.format, &source.options).map_err(|error| unreadable(file, error))?;
        if !options.csv.has_header.unwrap_or(true) {
            return Ok(());
        }
        let (url, path) = object_path(file.location())?;
        let store = self.stores.get(&url)?;
        let compression = compression_of(file.location(), &source.options).map_err(|error| unreadable(file, error))?;
        let store = SteadyStore::streaming(store);
        let bytes = store.get(&path).await.map_err(|error| unreadable(file, error.into()))?.into_stream();
        let mut text = FileCompressionType::from(compression)
            .convert_stream(bytes.map_err(DataFusionError::from).boxed())
            .map_err(|error| unreadable(file, error))?;
        let mut start: Vec<u8> = vec![];
        while start.len() < HEADER_BYTES_MAX && !header_line(&start, &options.csv).contains(&ends_record(&options.csv))
        {
            match text.next().await {
                Some(bytes) => start.extend_from_slice(&bytes.map_err(|error| unreadable(file, error))?),
                None => break,
            }
        }
        let columns: Vec<&str> = self.file_schema().fields().iter().map(|field| field.name().as_str()).collect();
        agrees(&start, &options.csv, &columns).map_err(|detail| self.mismatch(file, detail))
    }

    fn mismatch(&self, file: &ListedFile, detail: String) -> CatalogError {
        CatalogError::Location {
            attempted: "read",
            location: readable_location(file.location()),
            source: Arc::new(crate::ExecutorError::SchemaMismatch { table: self.table.name.to_string(), detail }),
        }
    }
}

/// The first column whose values would lose something on their way to the table's type, without an error.
fn lossy(found: &Schema, wanted: &Schema) -> Option<String> {
    let fields = wanted.fields().iter().filter_map(|wanted| Some((found.field_with_name(wanted.name()).ok()?, wanted)));
    let is_lossy = |from: &DataType, to: &DataType| match (from, to) {
        (DataType::Float16 | DataType::Float32 | DataType::Float64, to) => to.is_integer(),
        (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale), to) => *scale > 0 && to.is_integer(),
        _ => false,
    };
    let mut lossy = fields.filter(|(found, wanted)| is_lossy(found.data_type(), wanted.data_type()));
    lossy.next().map(|(found, wanted)| {
        format!("its column \"{}\" is {}, the table's is {}", wanted.name(), found.data_type(), wanted.data_type())
    })
}

fn ends_record(options: &CsvOptions) -> u8 {
    options.terminator.unwrap_or(b'\n')
}

/// What begins with a file's first record: neither empty lines nor comments are records.
fn header_line<'a>(start: &'a [u8], options: &CsvOptions) -> &'a [u8] {
    let is_end = |byte: u8| matches!(byte, b'\r' | b'\n') || byte == ends_record(options);
    let mut rest = without_mark(start);
    loop {
        let blank = rest.iter().take_while(|byte| is_end(**byte)).count();
        rest = &rest[blank..];
        if rest.first().copied() != options.comment || rest.is_empty() {
            return rest;
        }
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        rest = &rest[end..];
    }
}

/// Compares the start of a CSV file with the names of a table's columns.
type CheckHeader = fn(&[u8], &CsvOptions, &[&str]) -> Result<(), String>;

/// The names in the first record of a CSV file.
fn names_in_header(start: &[u8], options: &CsvOptions) -> Result<Vec<String>, String> {
    let start = header_line(start, options);
    let format = csv_format(options).with_header(true);
    let ends_record = ends_record(options);
    let line_end = start.iter().position(|byte| *byte == ends_record).map_or(start.len(), |end| end + 1);
    // A quoted name may hold a line end: the whole start is given then.
    let header = if start[..line_end].iter().filter(|byte| **byte == options.quote).count() % 2 == 0 {
        &start[..line_end]
    } else {
        start
    };
    let (schema, _) =
        format.infer_schema(header, Some(0)).map_err(|error| format!("its header cannot be read: {error}"))?;
    Ok(schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// Compares the first record of a CSV file with the names of a table's columns, which were inferred from such a file.
pub fn check_csv_header(start: &[u8], options: &CsvOptions, columns: &[&str]) -> Result<(), String> {
    let found = names_in_header(start, options)?;
    match found == columns {
        true => Ok(()),
        false => Err(differ(&found, columns)),
    }
}

/// The same where somebody gave the columns: they may have other names than in the file, but a name that is in the header
/// too stands at a place that has it there.
fn check_given_columns(start: &[u8], options: &CsvOptions, columns: &[&str]) -> Result<(), String> {
    // Whoever reads the rows tells what is wrong with it.
    let Ok(found) = names_in_header(start, options) else { return Ok(()) };
    let is_same = |name: &String, column: &str| name.trim().eq_ignore_ascii_case(column);
    // Of a name that the header has several times, one of its places is enough: giving names is how such a file is read.
    let is_elsewhere = |(place, column): (usize, &&str)| {
        let is_here = found.get(place).is_some_and(|name| is_same(name, column));
        !is_here && found.iter().any(|name| is_same(name, column))
    };
    match columns.iter().enumerate().any(is_elsewhere) {
        true => Err(differ(&found, columns)),
        false => Ok(()),
    }
}

fn differ(found: &[String], columns: &[&str]) -> String {
    format!("its header is ({}), the table's columns are ({})", found.join(", "), columns.join(", "))
}

#[async_trait]
impl ExtentReader for FileDescriber {
    async fn describe(&self, source: &ExternalSource, file: &ListedFile) -> Result<Description, CatalogError> {
        match source.format {
            FileFormatKind::Parquet => self.parquet(file).await,
            FileFormatKind::Arrow => {
                let (url, _) = object_path(file.location())?;
                let store = self.stores.get(&url)?;
                let found = arrow_file::columns(store.as_ref(), &file.object_meta()?).await;
                let found = found.map_err(|error| unreadable(file, error))?;
                match lossy(&found, self.file_schema()) {
                    Some(detail) => Err(self.mismatch(file, detail)),
                    None => Ok(self.nothing()),
                }
            }
            FileFormatKind::Csv if source.options.contains_key("schema_inferred") => {
                self.csv_header(source, file, check_csv_header).await?;
                Ok(self.nothing())
            }
            FileFormatKind::Csv if !source.options.contains_key("by_position") => {
                self.csv_header(source, file, check_given_columns).await?;
                Ok(self.nothing())
            }
            _ => Ok(self.nothing()),
        }
    }
}

impl FileDescriber {
    fn nothing(&self) -> Description {
        Description { rows: None, stats: Statistics::new_unknown(self.file_schema()) }
    }
}

fn unreadable(file: &ListedFile, error: DataFusionError) -> CatalogError {
    CatalogError::Location { attempted: "read", location: readable_location(file.location()), source: Arc::new(error) }
}
