//! INSERT into an external table: new files beside those of others, all or none.
//!
//! ```text
//!   rows --> DataFusion's writer of the format --> HoldingStore: keeps the ends of uploads back --> all rows are there?
//!     local    uploads end in e/.nectarine-<id>/..   synced, then renamed into e/
//!     remote   uploads end under their final names; a store shows no object before its upload has ended
//! ```
//!
//! Keeps true   an error, a cancelled statement or a killed process leaves no row behind; what a killed one leaves is hidden.
//!              Without partitions a statement writes one file, so readers see all of its rows or none. With them, the
//!              files of the partitions appear one after another, after the last one was written.
//! Names        are those of UUIDs version 7: files list in the order of the statements.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::config::TableParquetOptions;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result, exec_err, internal_err, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion_datasource::sink::{DataSink, DataSinkExec};
use futures::StreamExt;
use nectarine_catalog::{ExternalSource, FileFormatKind, Location, TableDef, object_path};
use nectarine_executor::{
    ExecutorError, compression_of, file_format, is_null_text, parquet_compression, reader_options, refuse_nulls,
    with_nulls,
};
use object_store::{ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::engine::Shared;
use crate::holding_store::{Content, FileNames, Held, HoldingStore, OneStore, join};
use crate::managed::Sources;
use crate::noting_store::{FirstFault, NotingStore};
use crate::staging::Staging;
use crate::statement::wrap;

/// How Hive writes NULL in a path.
pub(crate) const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The plan that writes new files into the folder of an external table. `sources` are looked at again before any file
/// appears.
pub(crate) async fn plan(
    shared: &Shared,
    state: &dyn Session,
    source: &ExternalSource,
    table: &TableDef,
    input: Arc<dyn ExecutionPlan>,
    sources: Sources,
) -> Result<Arc<dyn ExecutionPlan>> {
    let location = Location::parse(&source.location, &std::env::current_dir()?).map_err(wrap)?;
    let local = location.is_local().then(|| PathBuf::from(location.fixed_prefix()));
    let is_folder = location.names_folder() || local.as_ref().is_some_and(|path| path.is_dir());
    if location.is_glob() || !is_folder {
        return plan_err!(
            "cannot insert into external table \"{}\": its location \"{}\" is no folder",
            table.name,
            source.location
        );
    }
    if source.partition_columns.len() == table.schema.fields().len() {
        return plan_err!("cannot insert into external table \"{}\": all its columns are partitions", table.name);
    }
    let (_, store) = shared.object_stores.with_options(location.store_url(), &source.options).map_err(wrap)?;
    let key = match &local {
        Some(path) => path.display().to_string(),
        None => object_path(location.as_str()).map_err(wrap)?.1.to_string(),
    };
    let is_partition = |field: &FieldRef| source.partition_columns.contains(field.name());
    let fields = table.schema.fields().iter().map(|field| match is_partition(field) {
        true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
        false => Arc::clone(field),
    });
    let written = Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), table.schema.metadata().clone()));

    if source.format == FileFormatKind::Csv {
        let csv = reader_options(state.config_options(), source.format, &source.options)?.csv;
        let null = csv.null_value.unwrap_or_default();
        if let Some(pattern) = csv.null_regex
            && !is_null_text(&pattern, &null)?
        {
            return plan_err!(
                "cannot insert into external table \"{}\": it writes NULL as '{null}', which its format.null_regex does not take for NULL; create it with a fitting format.null_value",
                table.name
            );
        }
    }
    let compression = match source.format.is_text() {
        true => compression_of("", &source.options)?,
        // Of others it is a matter of what is within.
        false => CompressionTypeVariant::UNCOMPRESSED,
    };
    if source.format == FileFormatKind::Parquet {
        check_parquet(&reader_options(state.config_options(), source.format, &source.options)?.parquet)?;
    }
    let format = file_format(state.config_options(), source.format, &source.options, compression)?;
    // The writer's paths are relative: the store that it is given knows the folder.
    let url = ListingTableUrl::parse("memory:///rows")?;
    let config = FileSinkConfig {
        original_url: source.location.clone(),
        object_store_url: url.object_store(),
        table_paths: vec![url],
        file_group: FileGroup::default(),
        output_schema: Arc::clone(&written),
        table_partition_cols: source.partition_columns.iter().map(|name| (name.clone(), DataType::Utf8)).collect(),
        insert_op: InsertOp::Append,
        keep_partition_by_columns: false,
        file_extension: "rows".to_string(),
        file_output_mode: FileOutputMode::SingleFile,
    };
    let sink = FolderSink {
        writer: format.create_writer_physical_plan(Arc::clone(&input), state, config, None).await?,
        table: table.name.to_string(),
        taken: with_nulls(&table.schema),
        columns: Arc::clone(&table.schema),
        written,
        partition_columns: source.partition_columns.clone(),
        store,
        key: key.trim_matches('/').to_string(),
        local,
        location: source.location.clone(),
        ending: ending(source, compression),
        sources,
    };
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
}

/// Fails for compressions that the writer would stumble over.
fn check_parquet(options: &TableParquetOptions) -> Result<()> {
    let of_columns = options.column_specific_options.values().filter_map(|column| column.compression.as_ref());
    options.global.compression.iter().chain(of_columns).try_for_each(|word| parquet_compression(word).map(drop))
}

/// What the names of new files end in, so that the table lists them.
fn ending(source: &ExternalSource, compression: CompressionTypeVariant) -> String {
    if let Some(given) = source.options.get("file_extension").or_else(|| source.options.get("format.file_extension")) {
        return given.clone();
    }
    let format = match source.format {
        FileFormatKind::Parquet => ".parquet",
        FileFormatKind::Csv => ".csv",
        FileFormatKind::Json => ".json",
        FileFormatKind::Arrow => ".arrow",
        FileFormatKind::Avro => ".avro",
    };
    let compressed = match compression {
        _ if !source.format.is_text() => "",
        CompressionTypeVariant::GZIP => ".gz",
        CompressionTypeVariant::BZIP2 => ".bz2",
        CompressionTypeVariant::XZ => ".xz",
        CompressionTypeVariant::ZSTD => ".zst",
        CompressionTypeVariant::UNCOMPRESSED => "",
    };
    format!("{format}{compressed}")
}

/// Writes rows as new files of a folder.
#[derive(Debug, Clone)]
struct FolderSink {
    /// DataFusion's sink for the format.
    writer: Arc<dyn ExecutionPlan>,
    table: String,
    /// The table's.
    columns: SchemaRef,
    /// What DataFusion gets to see of it.
    taken: SchemaRef,
    /// The same with partition columns as text.
    written: SchemaRef,
    partition_columns: Vec<String>,
    store: Arc<dyn ObjectStore>,
    /// The folder in the store.
    key: String,
    /// The folder, if it is of this machine.
    local: Option<PathBuf>,
    /// The folder, as people know it.
    location: String,
    ending: String,
    /// Where the rows come from.
    sources: Sources,
}

impl DisplayAs for FolderSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FolderSink(location={}, ending={})", self.location, self.ending)
    }
}

#[async_trait]
impl DataSink for FolderSink {
    fn metrics(&self) -> Option<MetricsSet> {
        self.writer.metrics()
    }

    fn schema(&self) -> &SchemaRef {
        &self.taken
    }

    async fn write_all(&self, data: SendableRecordBatchStream, context: &Arc<TaskContext>) -> Result<u64> {
        // A task of its own, so that a statement that is dropped still cleans up, and ends what it began to commit.
        let stop = CancellationToken::new();
        let _guard = stop.clone().drop_guard();
        let task = tokio::spawn(self.clone().run(data, Arc::clone(context), stop));
        task.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?
    }
}

impl FolderSink {
    async fn run(
        self,
        data: SendableRecordBatchStream,
        context: Arc<TaskContext>,
        stop: CancellationToken,
    ) -> Result<u64> {
        let staging = match &self.local {
            Some(folder) => Some(Staging::create(folder).map_err(|error| self.fault(error))?),
            None => None,
        };
        let name = staging.as_ref().map_or("", |staging| staging.name());
        let fault = FirstFault::default();
        let held = Arc::new(Held {
            store: Arc::new(NotingStore::new(Arc::clone(&self.store), fault.clone())),
            base: join(&self.key, name),
            names: FileNames::Own { ending: self.ending.clone() },
            files: Mutex::default(),
            fault,
        });
        let done = match self.write(data, &context, &held, &stop).await {
            Ok(rows) if rows > 0 && !stop.is_cancelled() => self.commit(&held, staging.as_ref()).await.map(|()| rows),
            rows => rows,
        };
        held.discard().await;
        done
    }

    async fn write(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
        held: &Arc<Held>,
        stop: &CancellationToken,
    ) -> Result<u64> {
        let Some(writer) = self.writer.downcast_ref::<DataSinkExec>() else {
            return internal_err!("the writer of \"{}\" is no sink", self.location);
        };
        let sink = self.clone();
        // Writers may put words of their own in the place of the error that came with the rows.
        let first: Arc<Mutex<Option<DataFusionError>>> = Arc::default();
        let rows_fault = Arc::clone(&first);
        let rows = data.take_until(stop.clone().cancelled_owned()).map(move |batch| {
            batch.and_then(|batch| sink.fit(&batch)).map_err(|error| {
                let error = Arc::new(error);
                rows_fault.lock().get_or_insert_with(|| DataFusionError::Shared(Arc::clone(&error)));
                DataFusionError::Shared(error)
            })
        });
        let rows = Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.written), rows));
        let environment = context.runtime_env();
        let runtime = RuntimeEnv {
            object_store_registry: Arc::new(OneStore(Arc::new(HoldingStore(Arc::clone(held))))),
            ..RuntimeEnv::clone(&environment)
        };
        let context = TaskContext::default()
            .with_session_config(context.session_config().clone())
            .with_runtime(Arc::new(runtime));
        let written = writer.sink().write_all(rows, &Arc::new(context)).await;
        if let Some(error) = first.lock().take() {
            return Err(error);
        }
        match (held.fault.take(), written) {
            (Some(fault), _) => Err(self.fault(fault)),
            (None, Err(error)) => Err(self.fault(error)),
            (None, Ok(rows)) => Ok(rows),
        }
    }

    /// The batch with the table's types (a prepared INSERT may bring others), and partition values as text.
    fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
        refuse_nulls(batch.columns(), &self.columns, &self.table)?;
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let columns = batch.columns().iter().zip(self.written.fields()).map(|(column, field)| {
            let column = match column.data_type() == field.data_type() {
                true => Arc::clone(column),
                false => cast_with_options(column, field.data_type(), &strict)?,
            };
            if !self.partition_columns.contains(field.name()) {
                return Ok(column);
            }
            let text = column.as_string::<i32>();
            if text.iter().flatten().any(|value| value == NULL) {
                return exec_err!(
                    "\"{NULL}\" cannot be a value of partition column \"{}\": it stands for NULL",
                    field.name()
                );
            }
            Ok(Arc::new(text.iter().map(|value| Some(value.unwrap_or(NULL))).collect::<StringArray>()) as ArrayRef)
        });
        Ok(RecordBatch::try_new(Arc::clone(&self.written), columns.collect::<Result<Vec<_>>>()?)?)
    }

    /// Makes all files part of the folder, or none.
    async fn commit(&self, held: &Held, staging: Option<&Staging>) -> Result<()> {
        // Rows of a file that changed while it was read must not become part of the table.
        self.sources.look_again().await?;
        let files = std::mem::take(&mut *held.files.lock());
        if files.iter().any(|file| !file.whole) {
            *held.files.lock() = files;
            return Err(self.fault(io::Error::other("a file was left unfinished")));
        }
        let mut ended: Vec<String> = vec![];
        let mut fault = None;
        for mut file in files {
            if fault.is_some() {
                held.files.lock().push(file);
                continue;
            }
            let result = match (held.path(&file.target), &mut file.content) {
                (Ok(path), Content::Small(payload)) => held.store.put(&path, payload.clone()).await.map(|_| ()),
                (Ok(_), Content::Large(upload)) => upload.complete().await.map(|_| ()),
                (Err(error), _) => Err(error),
            };
            match result {
                Ok(()) => ended.push(file.target),
                Err(error) => {
                    fault = Some(held.fault.take().unwrap_or(error));
                    held.files.lock().push(file);
                }
            }
        }
        if fault.is_none()
            && let Some(staging) = staging
        {
            return staging.move_all(ended).await.map_err(|error| self.fault(error));
        }
        let Some(fault) = fault else { return Ok(()) };
        for target in ended {
            if let Ok(path) = held.path(&target)
                && let Err(error) = self.store.delete(&path).await
            {
                tracing::warn!(%path, %error, "cannot remove a file of an INSERT that failed");
            }
        }
        Err(self.fault(fault))
    }

    fn fault(&self, source: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
        ExecutorError::Write { attempted: "write to", location: self.location.clone(), source: Arc::new(source) }.into()
    }
}
