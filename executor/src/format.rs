//! Reader options and schema inference per file format, in DataFusion's own terms.
//!
//! Options are those of DataFusion's `CREATE EXTERNAL TABLE .. OPTIONS`, with or without the `format.` before them.
//! What is ours (`fingerprint`, `file_extension`, credentials such as `aws.region`) is left to those who use it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::config::{ConfigFileType, TableOptions};
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
use nectarine_catalog::{FileFormatKind, SteadyStore};
use object_store::{ObjectMeta, ObjectStore};

use crate::arrow_file;
use crate::csv_files::CsvFiles;
use crate::named_source::unreadable;

/// Names of options that are not the reader's.
const OURS: [&str; 5] = ["fingerprint", "file_extension", "compression", "schema_inferred", "arrow_stream"];

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
            given.insert(format!("format.{word}"), value.clone());
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
    let mut packings: Vec<(CompressionTypeVariant, Vec<ObjectMeta>)> = vec![];
    for file in files {
        let compression = match format.is_text() {
            true => compression_of(file.location.as_ref(), options)?,
            false => CompressionTypeVariant::UNCOMPRESSED,
        };
        match packings.iter_mut().find(|(known, _)| *known == compression) {
            Some((_, files)) => files.push(file.clone()),
            None => packings.push((compression, vec![file.clone()])),
        }
    }
    let mut readers = vec![];
    for (compression, files) in packings {
        readers.push((file_format(state.config_options(), format, options, compression)?, files));
    }
    let mut merged: Option<SchemaRef> = None;
    for (reader, files) in &readers {
        let schema = match columns_of(reader.as_ref(), state, store, format, files).await {
            Ok(schema) => schema,
            Err(error) => return Err(blame(state, store, format, &readers, error).await),
        };
        merged = Some(match merged {
            None => schema,
            Some(before) => match merge(format, &before, &schema) {
                Ok(schema) => schema,
                Err(error) => return Err(blame(state, store, format, &readers, error).await),
            },
        });
    }
    match merged {
        Some(schema) => Ok(schema),
        None => plan_err!("cannot infer columns: there are no files"),
    }
}

/// The columns of files that are packed alike, as DataFusion infers them.
async fn columns_of(
    reader: &dyn FileFormat,
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    format: FileFormatKind,
    files: &[ObjectMeta],
) -> Result<SchemaRef> {
    // Read as a stream, which must end where the file does.
    let steady: Arc<dyn ObjectStore> = Arc::new(SteadyStore::streaming(Arc::clone(store)));
    match format {
        FileFormatKind::Csv => reader.infer_schema(state, &steady, files).await,
        FileFormatKind::Arrow => {
            let mut schemas = Vec::with_capacity(files.len());
            for file in files {
                let schema = match arrow_file::check(store.as_ref(), file).await? {
                    Some(schema) => schema,
                    None => reader.infer_schema(state, store, std::slice::from_ref(file)).await?,
                };
                schemas.push(Arc::unwrap_or_clone(schema));
            }
            Ok(Arc::new(Schema::try_merge(schemas)?))
        }
        _ => reader.infer_schema(state, store, files).await,
    }
}

/// The columns of both, as DataFusion merges those of files that are packed alike: CSV by position with types that take
/// all values, others by name.
fn merge(format: FileFormatKind, one: &SchemaRef, two: &SchemaRef) -> Result<SchemaRef> {
    if format != FileFormatKind::Csv {
        return Ok(Arc::new(Schema::try_merge([one.as_ref().clone(), two.as_ref().clone()])?));
    }
    if one.fields().len() != two.fields().len() {
        return exec_err!("some files have {} columns, others {}", one.fields().len(), two.fields().len());
    }
    let fields = one.fields().iter().zip(two.fields()).map(|(one, two)| {
        let data_type = match (one.data_type(), two.data_type()) {
            (one, two) if one == two => one.clone(),
            (DataType::Null, other) | (other, DataType::Null) => other.clone(),
            (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => DataType::Float64,
            _ => DataType::Utf8,
        };
        Field::new(one.name(), data_type, true)
    });
    Ok(Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), one.metadata().clone())))
}

/// Asks file by file which one it was: the first that cannot be read, or that does not agree with those before it.
async fn blame(
    state: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    format: FileFormatKind,
    readers: &[(Arc<dyn FileFormat>, Vec<ObjectMeta>)],
    error: DataFusionError,
) -> DataFusionError {
    let local = state.runtime_env().object_store(ObjectStoreUrl::local_filesystem());
    let is_local = local.is_ok_and(|local| Arc::ptr_eq(&local, store));
    let named = |file: &ObjectMeta| match is_local {
        true => format!("/{}", file.location),
        false => file.location.to_string(),
    };
    let mut before: Vec<(SchemaRef, String)> = vec![];
    for (reader, files) in readers {
        for file in files {
            let schema = match columns_of(reader.as_ref(), state, store, format, std::slice::from_ref(file)).await {
                Ok(schema) => schema,
                Err(error) => return unreadable(&named(file), error),
            };
            let other = before.iter().find_map(|(other, name)| Some((disagreement(format, other, &schema)?, name)));
            if let Some((detail, other)) = other {
                return unreadable(&named(file), DataFusionError::Execution(format!("{detail} in \"{other}\"")));
            }
            // Thousands of files have few schemas.
            if !before.iter().any(|(known, _)| known.fields() == schema.fields()) {
                before.push((schema, named(file)));
            }
        }
    }
    error
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
