//! Reader options and schema inference per file format, in DataFusion's own terms.
//!
//! Options are those of DataFusion's `CREATE EXTERNAL TABLE .. OPTIONS`, with or without the `format.` before them.
//! What is ours (`fingerprint`, `file_extension`, credentials such as `aws.region`) is left to those who use it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::{ConfigFileType, TableOptions};
use datafusion::common::file_options::parquet_writer::parse_compression_string;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result, exec_err, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::arrow::ArrowFormat;
use datafusion::datasource::file_format::avro::AvroFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::object_store::ObjectStoreUrl;
use nectarine_catalog::FileFormatKind;
use object_store::{ObjectMeta, ObjectStore};

use crate::arrow_file;
use crate::csv_files::CsvFiles;
use crate::named_source::unreadable;
use crate::text_file::{SAMPLE_RECORDS, columns_of_text};

/// Names of options that are not the reader's.
const OURS: [&str; 5] = ["fingerprint", "file_extension", "compression", "schema_inferred", "by_position"];

/// The reader's options: session defaults, then what the table was created with.
pub fn reader_options(
    config: &ConfigOptions,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
) -> Result<TableOptions> {
    let mut table_options = TableOptions::default_from_session_config(config);
    let file_type = match format {
        FileFormatKind::Parquet => ConfigFileType::PARQUET,
        FileFormatKind::Csv => ConfigFileType::CSV,
        FileFormatKind::Json => ConfigFileType::JSON,
        FileFormatKind::Arrow | FileFormatKind::Avro => return Ok(table_options),
    };
    table_options.set_config_format(file_type);
    let mut given = HashMap::new();
    for (key, value) in options {
        let word = key.strip_prefix("format.").unwrap_or(key);
        let is_store_option = !key.starts_with("format.") && key.contains('.');
        let is_ours = OURS.contains(&word) && !(word == "compression" && format == FileFormatKind::Parquet);
        if !is_store_option && !is_ours {
            // A tab, as most write it who do not know that SQL has no escapes in plain quotes.
            let value = if word == "delimiter" && value == "\\t" { "\t" } else { value.as_str() };
            let value = match format == FileFormatKind::Parquet && is_compression(word) {
                // A wrong one keeps nobody from reading.
                true => parquet_compression(value).unwrap_or_else(|_| value.to_string()),
                false => value.to_string(),
            };
            given.insert(format!("format.{word}"), value);
        }
    }
    for (key, value) in &given {
        table_options
            .set(key, value)
            .map_err(|error| error.context(format!("cannot set option \"{key}\" to \"{value}\"")))?;
    }
    if format == FileFormatKind::Csv {
        table_options.csv.has_header = table_options.csv.has_header.or(Some(config.catalog.has_header));
        table_options.csv.newlines_in_values =
            table_options.csv.newlines_in_values.or(Some(config.catalog.newlines_in_values));
    }
    Ok(table_options)
}

/// Whether an option, without `format.` before it, says how a file or a column of Parquet is compressed.
pub fn is_compression(word: &str) -> bool {
    word == "compression" || word.starts_with("compression::")
}

/// How DataFusion writes a compression of Parquet: those that have levels need one.
pub fn parquet_compression(word: &str) -> Result<String> {
    let given = word.trim().to_ascii_lowercase();
    let meant = match given.as_str() {
        // The level of files that nothing is said of.
        "zstd" | "zst" => "zstd(3)",
        // Those of the parquet crate.
        "gzip" | "gz" => "gzip(6)",
        "brotli" => "brotli(1)",
        "" | "none" => "uncompressed",
        _ => given.as_str(),
    };
    // DataFusion takes the last letter off without a look.
    let is_whole = meant.split_once('(').is_none_or(|(_, level)| level.len() > 1 && level.ends_with(')'));
    match is_whole && parse_compression_string(meant).is_ok() {
        true => Ok(meant.to_owned()),
        false => plan_err!(
            "unknown compression \"{word}\" for Parquet: one of uncompressed, snappy, gzip, brotli, lz4, lz4_raw, zstd, or with a level such as zstd(3)"
        ),
    }
}

/// How a text file is compressed: by option if it was given, else by the end of its name.
pub fn compression_of(location: &str, options: &BTreeMap<String, String>) -> Result<CompressionTypeVariant> {
    let given = options.get("format.compression").or_else(|| options.get("compression"));
    if let Some(word) = given {
        return match word.to_ascii_lowercase().as_str() {
            "gzip" | "gz" => Ok(CompressionTypeVariant::GZIP),
            "bzip2" | "bz2" => Ok(CompressionTypeVariant::BZIP2),
            "xz" => Ok(CompressionTypeVariant::XZ),
            "zstd" | "zst" => Ok(CompressionTypeVariant::ZSTD),
            "" | "none" | "uncompressed" => Ok(CompressionTypeVariant::UNCOMPRESSED),
            _ => plan_err!("unknown compression \"{word}\": one of gzip, bzip2, xz, zstd, uncompressed"),
        };
    }
    let ending = location.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    Ok(match ending.as_str() {
        "gz" | "gzip" => CompressionTypeVariant::GZIP,
        "bz2" => CompressionTypeVariant::BZIP2,
        "xz" => CompressionTypeVariant::XZ,
        "zst" | "zstd" => CompressionTypeVariant::ZSTD,
        _ => CompressionTypeVariant::UNCOMPRESSED,
    })
}

/// DataFusion's format for files of one compression.
pub fn file_format(
    config: &ConfigOptions,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    compression: CompressionTypeVariant,
) -> Result<Arc<dyn FileFormat>> {
    let mut reader = reader_options(config, format, options)?;
    Ok(match format {
        FileFormatKind::Parquet => Arc::new(ParquetFormat::default().with_options(reader.parquet)),
        FileFormatKind::Csv => {
            reader.csv.compression = compression;
            Arc::new(CsvFiles(CsvFormat::default().with_options(reader.csv)))
        }
        FileFormatKind::Json => {
            reader.json.compression = compression;
            Arc::new(JsonFormat::default().with_options(reader.json))
        }
        FileFormatKind::Arrow => Arc::new(ArrowFormat),
        FileFormatKind::Avro => Arc::new(AvroFormat),
    })
}

/// The columns that files have, by name over all of them.
pub async fn infer_schema(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    format: FileFormatKind,
    options: &BTreeMap<String, String>,
    files: &[ObjectMeta],
) -> Result<SchemaRef> {
    let reader =
        Inference { state, store, format, options, reader: reader_options(state.config_options(), format, options)? };
    let columns = match reader.columns_of(files).await {
        Ok(columns) => columns,
        Err(error) => return Err(reader.blame(files, error).await),
    };
    Ok(match format.is_text() {
        true => Arc::new(with_text_for_nothing(&columns)),
        false => columns,
    })
}

/// How columns are told.
struct Inference<'a> {
    state: &'a dyn Session,
    store: &'a Arc<dyn ObjectStore>,
    format: FileFormatKind,
    options: &'a BTreeMap<String, String>,
    reader: TableOptions,
}

impl Inference<'_> {
    /// The columns of files together.
    async fn columns_of(&self, files: &[ObjectMeta]) -> Result<SchemaRef> {
        let is_text = self.format.is_text();
        if !is_text && self.format != FileFormatKind::Arrow {
            return self.columns_by_datafusion(files).await;
        }
        let given = match self.format {
            FileFormatKind::Csv => self.reader.csv.schema_infer_max_rec,
            _ => self.reader.json.schema_infer_max_rec,
        };
        // Over all files: a thousand of them are not all opened.
        let mut n_records = given.unwrap_or(SAMPLE_RECORDS);
        let mut merged: Option<SchemaRef> = None;
        for file in files {
            let schema = if is_text {
                let (schema, n_read) = self.columns_by_records(file, n_records).await?;
                n_records = n_records.saturating_sub(n_read);
                Arc::new(schema)
            } else {
                arrow_file::columns(self.store.as_ref(), file).await?
            };
            merged = Some(match merged {
                None => schema,
                Some(before) => merge(self.format, &before, &schema)?,
            });
            if is_text && n_records == 0 {
                break;
            }
        }
        match merged {
            Some(schema) => Ok(schema),
            None => plan_err!("cannot infer columns: there are no files"),
        }
    }

    async fn columns_by_records(&self, file: &ObjectMeta, n_records: usize) -> Result<(Schema, usize)> {
        let compression = compression_of(file.location.as_ref(), self.options)?;
        columns_of_text(self.store, file, self.format, self.options, &self.reader, compression.into(), n_records).await
    }

    async fn columns_by_datafusion(&self, files: &[ObjectMeta]) -> Result<SchemaRef> {
        let plain = CompressionTypeVariant::UNCOMPRESSED;
        let reader = file_format(self.state.config_options(), self.format, self.options, plain)?;
        reader.infer_schema(self.state, self.store, files).await
    }

    /// Asks file by file which one it was: the first that cannot be read, or that does not agree with those before it.
    async fn blame(&self, files: &[ObjectMeta], error: DataFusionError) -> DataFusionError {
        let local = self.state.runtime_env().object_store(ObjectStoreUrl::local_filesystem());
        let is_local = local.is_ok_and(|local| Arc::ptr_eq(&local, self.store));
        let named = |file: &ObjectMeta| match is_local {
            true => format!("/{}", file.location),
            false => file.location.to_string(),
        };
        let mut before: Vec<(SchemaRef, String)> = vec![];
        for file in files {
            let schema = match self.columns_of(std::slice::from_ref(file)).await {
                Ok(schema) => schema,
                Err(error) => return unreadable(&named(file), error),
            };
            let disagreement =
                |(other, name): &(SchemaRef, String)| Some((disagreement(self.format, other, &schema)?, name.clone()));
            if let Some((detail, other)) = before.iter().find_map(disagreement) {
                return unreadable(&named(file), DataFusionError::Execution(format!("{detail} in \"{other}\"")));
            }
            // Thousands of files have few schemas.
            if !before.iter().any(|(known, _)| known.fields() == schema.fields()) {
                before.push((schema, named(file)));
            }
        }
        error
    }
}

/// Columns without a value so far are text: every value that comes can be one.
fn with_text_for_nothing(schema: &Schema) -> Schema {
    fn filled(field: &FieldRef) -> FieldRef {
        let data_type = match field.data_type() {
            DataType::Null => DataType::Utf8,
            DataType::List(item) => DataType::List(filled(item)),
            DataType::Struct(fields) => DataType::Struct(fields.iter().map(filled).collect()),
            _ => return Arc::clone(field),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
    let fields: Vec<FieldRef> = schema.fields().iter().map(filled).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The columns of both: CSV by position, others by name; of text, with types that take all values.
fn merge(format: FileFormatKind, one: &SchemaRef, two: &SchemaRef) -> Result<SchemaRef> {
    match format {
        FileFormatKind::Csv => {
            if one.fields().len() != two.fields().len() {
                return exec_err!("some files have {} columns, others {}", one.fields().len(), two.fields().len());
            }
            let fields = one.fields().iter().zip(two.fields()).map(|(one, two)| {
                Field::new(one.name(), common_type(one.data_type(), two.data_type()).unwrap_or(DataType::Utf8), true)
            });
            Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), one.metadata().clone())))
        }
        FileFormatKind::Json => {
            let agreed = |schema: &SchemaRef, other: &SchemaRef| {
                let fields = schema.fields().iter().map(|field| match other.field_with_name(field.name()) {
                    Ok(other) => match common_type(field.data_type(), other.data_type()) {
                        Some(common) => Arc::new(field.as_ref().clone().with_data_type(common)),
                        None => Arc::clone(field),
                    },
                    Err(_) => Arc::clone(field),
                });
                Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
            };
            Ok(Arc::new(Schema::try_merge([agreed(one, two), agreed(two, one)])?))
        }
        _ => Ok(Arc::new(Schema::try_merge([one.as_ref().clone(), two.as_ref().clone()])?)),
    }
}

/// The type that takes the values of both, where that is plain.
fn common_type(one: &DataType, two: &DataType) -> Option<DataType> {
    match (one, two) {
        (one, two) if one == two => Some(one.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => Some(DataType::Float64),
        (DataType::Date32, DataType::Timestamp(unit, None)) | (DataType::Timestamp(unit, None), DataType::Date32) => {
            Some(DataType::Timestamp(*unit, None))
        }
        // Units are in order, from seconds on.
        (DataType::Timestamp(one, None), DataType::Timestamp(two, None)) => {
            Some(DataType::Timestamp(*one.max(two), None))
        }
        _ => None,
    }
}

/// Why the columns of two files cannot be those of one table.
fn disagreement(format: FileFormatKind, before: &SchemaRef, found: &SchemaRef) -> Option<String> {
    merge(format, before, found).err()?;
    if format == FileFormatKind::Csv {
        return Some(format!("it has {} columns, but there are {}", found.fields().len(), before.fields().len()));
    }
    let mut same = found.fields().iter().filter_map(|field| Some((field, before.field_with_name(field.name()).ok()?)));
    let (field, other) = same.find(|(field, other)| Field::clone(other).try_merge(field).is_err())?;
    Some(format!("column \"{}\" is {}, but {}", field.name(), field.data_type(), other.data_type()))
}
