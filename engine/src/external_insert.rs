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
use std::fs::{self, File};
use std::io;
use std::path::{Path as FsPath, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{DataFusionError, Result, exec_err, internal_err, plan_err};
use datafusion::datasource::listing::ListingTableUrl;
use datafusion::datasource::physical_plan::{FileGroup, FileOutputMode, FileSinkConfig};
use datafusion::execution::object_store::ObjectStoreRegistry;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::InsertOp;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use datafusion_datasource::sink::{DataSink, DataSinkExec};
use futures::StreamExt;
use futures::stream::BoxStream;
use nectarine_catalog::{ExternalSource, FileFormatKind, Location, TableDef, object_path};
use nectarine_executor::{ExecutorError, compression_of, file_format, is_null_text, reader_options};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

use crate::engine::Shared;
use crate::statement::wrap;

/// How Hive writes NULL in a path.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// The plan that writes new files into the folder of an external table.
pub(crate) async fn plan(
    shared: &Shared,
    state: &dyn Session,
    source: &ExternalSource,
    table: &TableDef,
    input: Arc<dyn ExecutionPlan>,
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
    let compression = compression_of("", &source.options)?;
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
        schema: Arc::clone(&table.schema),
        written,
        partition_columns: source.partition_columns.clone(),
        store,
        key: key.trim_matches('/').to_string(),
        local,
        location: source.location.clone(),
        ending: ending(source, compression),
    };
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), None)))
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
    schema: SchemaRef,
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
        &self.schema
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
        let name = staging.as_ref().map_or("", |staging| staging.name.as_str());
        let held = Arc::new(Held {
            store: Arc::clone(&self.store),
            base: join(&self.key, name),
            ending: self.ending.clone(),
            files: Mutex::default(),
            fault: Mutex::default(),
        });
        let written = self.write(data, &context, &held, &stop).await;
        let done = match written {
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
        match (held.fault.lock().take(), written) {
            (Some(fault), _) => Err(self.fault(fault)),
            (None, Err(error)) => Err(self.fault(error)),
            (None, Ok(rows)) => Ok(rows),
        }
    }

    /// The batch with the table's types (a prepared INSERT may bring others), and partition values as text.
    fn fit(&self, batch: &RecordBatch) -> Result<RecordBatch> {
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
            let path = held.path(&file.target);
            let result = match (&path, &mut file.content) {
                (Ok(path), Content::Small(payload)) => self.store.put(path, payload.clone()).await.map(|_| ()),
                (Ok(_), Content::Large(upload)) => upload.complete().await.map(|_| ()),
                (Err(error), _) => Err(error_like(error)),
            };
            match result {
                Ok(()) => ended.push(file.target),
                Err(error) => {
                    fault = Some(error);
                    held.files.lock().push(file);
                }
            }
        }
        if fault.is_none()
            && let Some(staging) = staging
        {
            let (from, to) = (staging.path.clone(), staging.folder.clone());
            let moving = tokio::task::spawn_blocking(move || move_all(&from, &to, &ended));
            let moved = moving.await.map_err(|error| DataFusionError::ExecutionJoin(Box::new(error)))?;
            return moved.map_err(|error| self.fault(error));
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

/// A hidden folder within the table's, so that renaming stays on one file system. Removed when dropped.
struct Staging {
    name: String,
    path: PathBuf,
    folder: PathBuf,
}

impl Staging {
    fn create(folder: &FsPath) -> io::Result<Self> {
        let name = format!(".nectarine-{}", Uuid::now_v7().as_simple());
        let path = folder.join(&name);
        fs::create_dir_all(&path)?;
        Ok(Self { name, path, folder: folder.to_path_buf() })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove the files of an INSERT that has ended");
        }
    }
}

/// Bytes first, names second: after a crash there is no name without its bytes.
fn move_all(from: &FsPath, to: &FsPath, targets: &[String]) -> io::Result<()> {
    for target in targets {
        File::open(from.join(target))?.sync_all()?;
    }
    let mut moved: Vec<PathBuf> = vec![];
    let mut move_one = |target: &String| {
        let path = to.join(target);
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder)?;
        fs::rename(from.join(target), &path)?;
        moved.push(path.clone());
        File::open(folder)?.sync_all()
    };
    let result = targets.iter().try_for_each(&mut move_one);
    if result.is_err() {
        for path in moved {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of an INSERT that failed");
            }
        }
    }
    result
}

/// Files of one statement that are not there yet.
#[derive(Debug)]
struct Held {
    store: Arc<dyn ObjectStore>,
    /// Where uploads go.
    base: String,
    ending: String,
    files: Mutex<Vec<HeldFile>>,
    /// The first error of the store. Writers drop causes.
    fault: Mutex<Option<StoreError>>,
}

#[derive(Debug)]
struct HeldFile {
    /// Path below the base, and below the table's folder.
    target: String,
    content: Content,
    /// Whether the writer has ended it.
    whole: bool,
}

#[derive(Debug)]
enum Content {
    Small(PutPayload),
    Large(Box<dyn MultipartUpload>),
}

impl Held {
    /// The partition folders of a writer's path, and a name of our own.
    fn target(&self, location: &Path) -> String {
        let folders = location.as_ref().rsplit_once('/').map_or("", |(folders, _)| folders);
        // Partitioned files are put below the one file that unpartitioned ones would be.
        let folders = folders.strip_prefix("rows").unwrap_or(folders).trim_start_matches('/');
        join(folders, &format!("{}{}", Uuid::now_v7().as_simple(), self.ending))
    }

    fn path(&self, target: &str) -> StoreResult<Path> {
        Ok(Path::parse(join(&self.base, target))?)
    }

    fn note(&self, error: StoreError) -> StoreError {
        let shown = error_like(&error);
        self.fault.lock().get_or_insert(error);
        shown
    }

    /// Gives up what was not committed.
    async fn discard(&self) {
        let files = std::mem::take(&mut *self.files.lock());
        for file in files {
            if let Content::Large(mut upload) = file.content
                && let Err(error) = upload.abort().await
            {
                tracing::warn!(target = file.target, %error, "cannot abort an upload");
            }
        }
    }
}

fn join(folder: &str, name: &str) -> String {
    [folder, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn error_like(error: &StoreError) -> StoreError {
    StoreError::Generic { store: "insert", source: error.to_string().into() }
}

const DONE: PutResult = PutResult { e_tag: None, version: None };

/// A store that keeps back the end of every upload.
#[derive(Debug)]
struct HoldingStore(Arc<Held>);

impl fmt::Display for HoldingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldingStore({})", self.0.store)
    }
}

#[async_trait]
impl ObjectStore for HoldingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> StoreResult<PutResult> {
        let file = HeldFile { target: self.0.target(location), content: Content::Small(payload), whole: true };
        self.0.files.lock().push(file);
        Ok(DONE)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let target = self.0.target(location);
        let path = self.0.path(&target)?;
        let upload = self.0.store.put_multipart_opts(&path, options).await.map_err(|error| self.0.note(error))?;
        Ok(Box::new(HeldUpload { held: Arc::clone(&self.0), target, upload: Some(upload) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.0.store.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.0.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.0.store.copy_opts(from, to, options).await
    }
}

/// An upload that ends later.
#[derive(Debug)]
struct HeldUpload {
    held: Arc<Held>,
    target: String,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl HeldUpload {
    fn hold(&mut self, whole: bool) {
        if let Some(upload) = self.upload.take() {
            let file = HeldFile { target: std::mem::take(&mut self.target), content: Content::Large(upload), whole };
            self.held.files.lock().push(file);
        }
    }
}

#[async_trait]
impl MultipartUpload for HeldUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let part = self.upload.as_mut().map(|upload| upload.put_part(data));
        let held = Arc::clone(&self.held);
        Box::pin(async move {
            match part {
                Some(part) => part.await.map_err(|error| held.note(error)),
                None => Err(StoreError::Generic { store: "insert", source: "the upload has ended".into() }),
            }
        })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        self.hold(true);
        Ok(DONE)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.hold(false);
        Ok(())
    }
}

impl Drop for HeldUpload {
    fn drop(&mut self) {
        self.hold(false);
    }
}

/// Whatever the URL, the one store.
#[derive(Debug)]
struct OneStore(Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for OneStore {
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _url: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.0))
    }
}
