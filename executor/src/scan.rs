//! One extent scan as DataFusion's own file scans.
//!
//! Keeps true   exactly the pinned bytes are read: text extents carry their byte range even where it is the whole file,
//!              because a file may grow while it is read. Footers are cached by fingerprint, not by name and time.
//! Splits       what DataFusion would not split by itself (files with ranges), so that one large text file keeps all
//!              cores busy.

use std::sync::{Arc, LazyLock};

use chrono::{DateTime, Utc};
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result, ScalarValue, Statistics};
use datafusion::config::ConfigOptions;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::object_store::ObjectStoreUrl;
use datafusion::datasource::physical_plan::{
    ArrowSource, AvroSource, CsvSource, FileGroup, FileScanConfigBuilder, FileSource, JsonSource, ParquetSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_expr_adapter::PhysicalExprAdapterFactory;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::union::UnionExec;
use nectarine_catalog::{Extent, FileFormatKind, object_path, stats};
use nectarine_planner::node::{ExtentScanExec, Reading};
use object_store::ObjectMeta;
use object_store::path::Path;

use crate::bundle::bundles;
use crate::footers::{Footers, PlainFooters, forget_float_bounds};
use crate::format::{compression_of, reader_options};
use crate::null_text;
use crate::nullable::NullableColumns;
use crate::text_file::JsonArray;

/// Above this many extents, files carry no statistics of their own: they cost more to make than they save.
const FILES_WITH_STATISTICS_MAX: usize = 2_000;

/// What files are read with.
pub(crate) struct Readers {
    runtime: Arc<RuntimeEnv>,
    footers: PlainFooters,
}

impl Readers {
    pub(crate) fn new(runtime: Arc<RuntimeEnv>) -> Self {
        let footers = PlainFooters::new(runtime.cache_manager.get_metadata_cache_limit());
        Self { runtime, footers }
    }
}

/// Extents of one object store and one compression, which one file scan can read.
struct Source {
    store: ObjectStoreUrl,
    compression: CompressionTypeVariant,
    groups: Vec<FileGroup>,
}

/// The scan that reads exactly what `scan` says.
pub(crate) fn file_scan(
    scan: &ExtentScanExec,
    readers: &Readers,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let sources = sources(scan, config)?;
    let n_sources = sources.len();
    let mut scans = Vec::with_capacity(n_sources);
    for source in sources {
        scans.push(scan_one_source(scan, source, n_sources == 1, readers, config)?);
    }
    match scans.len() {
        // A file scan without files has no partitions, which no parent expects.
        0 => Ok(Arc::new(EmptyExec::new(scan.schema()))),
        1 => Ok(scans.remove(0)),
        _ => UnionExec::try_new(scans),
    }
}

fn sources(scan: &ExtentScanExec, config: &ConfigOptions) -> Result<Vec<Source>> {
    let with_statistics = scan.extents().len() <= FILES_WITH_STATISTICS_MAX;
    if !with_statistics && let Some(groups) = bundles(scan, config.execution.target_partitions) {
        return Ok(vec![Source { store: local_store(), compression: CompressionTypeVariant::UNCOMPRESSED, groups }]);
    }
    let found = group_by_source(scan, config, with_statistics)?;
    let grouped = |((store, compression), files)| {
        let groups = in_order(files, config.execution.target_partitions);
        Source { store, compression, groups }
    };
    Ok(found.into_iter().map(grouped).collect())
}

type FilesOfSource = ((ObjectStoreUrl, CompressionTypeVariant), Vec<PartitionedFile>);

fn group_by_source(scan: &ExtentScanExec, config: &ConfigOptions, with_statistics: bool) -> Result<Vec<FilesOfSource>> {
    let reading = scan.reading();
    let split_bytes = text_split_bytes(scan, config)?;
    let is_array = reading.format == FileFormatKind::Json
        && !reader_options(config, reading.format, &reading.options)?.json.newline_delimited;
    let mut sources: Vec<FilesOfSource> = vec![];
    for extent in scan.extents().iter() {
        let (store, path) = locate(extent)?;
        let compression = match reading.format.is_text() {
            true => compression_of(&extent.location, &reading.options)?,
            false => CompressionTypeVariant::UNCOMPRESSED,
        };
        let source = (store, compression);
        let position = sources.iter().position(|(known, _)| *known == source).unwrap_or_else(|| {
            sources.push((source, vec![]));
            sources.len() - 1
        });
        let mut file = partitioned_file(extent, path, reading)?;
        // A piece of a file must not claim the rows of the whole.
        if with_statistics && extent.range.is_none() && extent.rows.is_some() {
            let columns = scan.projection().map(Vec::as_slice);
            let known = stats::decode(extent, &reading.file_schema, columns);
            let known = stats::forget_text_bounds(known, &reading.file_schema);
            file = file.with_statistics(Arc::new(forget_float_bounds(known, &reading.file_schema)));
        }
        if is_array {
            // One array is one piece, whatever its size; files with a range are left whole.
            file = file.with_extension(JsonArray).with_range(0, extent.file_bytes as i64);
        }
        let files = &mut sources[position].1;
        match (extent.range, split_bytes) {
            (Some(range), Some(bytes)) if range.len() > bytes && extent.lines => {
                let n_pieces = range.len().div_ceil(bytes);
                let piece = range.len().div_ceil(n_pieces);
                let mut start = range.start;
                while start < range.end {
                    let end = (start + piece).min(range.end);
                    files.push(file.clone().with_range(start as i64, end as i64));
                    start = end;
                }
            }
            (Some(range), _) => files.push(file.with_range(range.start as i64, range.end as i64)),
            (None, _) => files.push(file),
        }
    }
    Ok(sources)
}

/// How large a piece of a text extent may be, if it may be one.
fn text_split_bytes(scan: &ExtentScanExec, config: &ConfigOptions) -> Result<Option<u64>> {
    let reading = scan.reading();
    let n_partitions = config.execution.target_partitions as u64;
    if !reading.format.is_text() || !config.optimizer.repartition_file_scans || n_partitions < 2 {
        return Ok(None);
    }
    let total: u64 = scan.extents().iter().map(|extent| extent.bytes()).sum();
    let least = config.optimizer.repartition_file_min_size.max(1) as u64;
    Ok(Some(total.div_ceil(n_partitions).max(least)))
}

fn local_store() -> ObjectStoreUrl {
    static LOCAL: LazyLock<ObjectStoreUrl> = LazyLock::new(ObjectStoreUrl::local_filesystem);
    LOCAL.clone()
}

/// The store and the path in it.
fn locate(extent: &Extent) -> Result<(ObjectStoreUrl, Path)> {
    // Most extents are local, and there may be thousands: no need to take URLs apart that we put together.
    if let Some(path) = extent.location.strip_prefix("file://")
        && let Ok(path) = Path::from_url_path(path)
    {
        return Ok((local_store(), path));
    }
    let (url, path) = object_path(&extent.location).map_err(|error| DataFusionError::External(Box::new(error)))?;
    Ok((ObjectStoreUrl::parse(&url[..url::Position::BeforePath])?, path))
}

/// The file of an extent, without statistics.
pub(crate) fn whole_file(extent: &Arc<Extent>, reading: &Reading) -> Result<PartitionedFile> {
    let (_, path) = locate(extent)?;
    partitioned_file(extent, path, reading)
}

fn partitioned_file(extent: &Arc<Extent>, path: Path, reading: &Reading) -> Result<PartitionedFile> {
    let meta = ObjectMeta {
        location: path,
        last_modified: time_from_fingerprint(extent),
        size: extent.file_bytes,
        e_tag: extent.etag.as_deref().map(str::to_owned),
        version: None,
    };
    let mut file = PartitionedFile::new_from_meta(meta);
    // Errors name it by where it is.
    file.extensions.insert_arc(Arc::clone(extent));
    if !reading.partition_fields.is_empty() {
        let values = reading.partition_fields.iter().enumerate().map(|(position, field)| {
            match extent.partition_values.get(position).and_then(Option::as_ref) {
                Some(text) => ScalarValue::try_from_string(text.to_string(), field.data_type()),
                None => ScalarValue::try_from(field.data_type()),
            }
        });
        file = file.with_partition_values(values.collect::<Result<_>>()?);
    }
    Ok(file)
}

/// DataFusion's cache of Parquet footers believes a path as long as size and time are unchanged. An overwrite can keep
/// both; it cannot keep the fingerprint, so that is what the cache gets to see as the time.
fn time_from_fingerprint(extent: &Extent) -> DateTime<Utc> {
    extent.fingerprint.as_time()
}

fn scan_one_source(
    scan: &ExtentScanExec,
    source: Source,
    only_source: bool,
    readers: &Readers,
    config: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    let reading = scan.reading();
    let null_pattern = null_text::null_pattern(reading, config)?;
    let file_schema = match null_pattern {
        Some(_) => null_text::as_text(&reading.file_schema),
        None => Arc::clone(&reading.file_schema),
    };
    let table_schema =
        TableSchema::builder(file_schema).with_table_partition_cols(reading.partition_fields.clone()).build();
    let statistics = match only_source {
        true => scan.table_statistics().clone(),
        // Which part of the whole this source has is not known.
        false => Statistics::new_unknown(scan.table_schema()),
    };
    let file_source = file_source(reading, table_schema, &source.store, readers, config)?;
    let adapter = (reading.format == FileFormatKind::Parquet)
        .then(|| Arc::new(NullableColumns) as Arc<dyn PhysicalExprAdapterFactory>);
    let builder = FileScanConfigBuilder::new(source.store, file_source)
        .with_file_groups(source.groups)
        .with_statistics(statistics)
        .with_file_compression_type(FileCompressionType::from(source.compression))
        .with_expr_adapter(adapter)
        .with_projection_indices(scan.projection().cloned())?;
    let plan = DataSourceExec::from_data_source(builder.build());
    match null_pattern {
        Some(pattern) => null_text::parse(plan, &scan.schema(), &reading.partition_fields, &pattern),
        None => Ok(plan),
    }
}

fn file_source(
    reading: &Reading,
    table_schema: TableSchema,
    store: &ObjectStoreUrl,
    readers: &Readers,
    config: &ConfigOptions,
) -> Result<Arc<dyn FileSource>> {
    let options = reader_options(config, reading.format, &reading.options)?;
    Ok(match reading.format {
        FileFormatKind::Parquet => {
            let store = readers.runtime.object_store(store)?;
            let cached = readers.runtime.cache_manager.get_file_metadata_cache();
            let files = Footers::new(store, cached, readers.footers.clone());
            let hint = options.parquet.global.metadata_size_hint;
            let source = ParquetSource::new(table_schema)
                .with_table_parquet_options(options.parquet)
                .with_parquet_file_reader_factory(Arc::new(files));
            match hint {
                Some(bytes) => Arc::new(source.with_metadata_size_hint(bytes)),
                None => Arc::new(source),
            }
        }
        FileFormatKind::Csv => {
            let mut options = options.csv;
            // A whole file is one that nobody looked through, remote or packed: a line end in it may be inside of quotes, and
            // who begins in the middle cannot tell. Unless the table was made with the promise that there is none.
            options.newlines_in_values = Some(!promises_lines(reading));
            Arc::new(CsvSource::new(table_schema).with_csv_options(options))
        }
        FileFormatKind::Json => {
            Arc::new(JsonSource::new(table_schema).with_newline_delimited(options.json.newline_delimited))
        }
        // Each file tells by itself whether it is a stream: see arrow_file/rows.rs.
        FileFormatKind::Arrow => Arc::new(ArrowSource::new_file_source(table_schema)),
        FileFormatKind::Avro => Arc::new(AvroSource::new(table_schema)),
    })
}

/// Whether whoever made the table said that no value holds a line end.
fn promises_lines(reading: &Reading) -> bool {
    let given = |name: &str| reading.options.get(name).is_some_and(|value| value.eq_ignore_ascii_case("false"));
    given("format.newlines_in_values") || given("newlines_in_values")
}

/// At most `n` groups of consecutive files: rows come in the order of the extents where one thread reads them.
pub(crate) fn in_order(files: Vec<PartitionedFile>, n: usize) -> Vec<FileGroup> {
    let size = files.len().div_ceil(n.max(1)).max(1);
    let n_groups = files.len().div_ceil(size);
    let mut files = files.into_iter();
    (0..n_groups).map(|_| FileGroup::new(files.by_ref().take(size).collect())).collect()
}
