//! [`Place`]: where a COPY writes.
//!
//! ```text
//!   a file, or a folder of this machine    written in a hidden folder beside it (staging.rs), renamed at the end
//!   a URL                                  uploads that end together
//!   STDOUT, a pipe, a device               bytes go on as they come
//! ```
//!
//! A place is a name, never a pattern. What cannot be written to is told before anything runs, what goes wrong while writing
//! with its cause.
//!
//! Keeps true   files appear when all rows are written and where these came from is unchanged: a statement that fails leaves
//!              what was there before, also where it reads the file that it writes.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use nectarine_catalog::{Location, is_store_option};
use nectarine_executor::ExecutorError;
use nectarine_planner::sql::{ONE_FILE, STANDARD_OUTPUT};
use url::Url;

use crate::copy_to::{check_options, shown};
use crate::engine::Shared;
use crate::hive_values::name_nulls;
use crate::holding_store::{HoldingRegistry, Uploads};
use crate::managed::Sources;
use crate::noting_store::FirstFault;
use crate::pipes::{Pipes, no_pipe};
use crate::staging::Staging;
use crate::stream_store::{STREAM, Sink, StreamStore};
use crate::{EngineError, ErrorKind, Result, query_memory};

/// DataFusion's option, which it takes from nobody but code.
const SINGLE_FILE: &str = "single_file_output";
/// How many bytes wait before they go on to somebody who reads along.
const STREAM_BUFFER_BYTES: usize = 256 << 10;

/// Where a COPY writes.
pub(crate) struct Place {
    /// As it was given.
    name: String,
    fault: FirstFault,
    uploads: Uploads,
    staging: Option<Staging>,
    stream: Option<Arc<StreamStore>>,
}

/// Whether a path leads to a pipe or a device rather than to a file or a folder.
pub(crate) fn is_stream(path: &Path) -> bool {
    // These may be files, which others write to as well: they are neither cut nor replaced.
    let is_standard = ["/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name));
    if is_standard || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd") {
        return true;
    }
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Turns the place into a URL that DataFusion takes as it is, and takes out options that are not the writer's.
pub(crate) fn locate(shared: &Shared, state: &SessionState, pipes: &Pipes, copy: &mut CopyTo) -> Result<Place> {
    check_options(copy, state)?;
    name_nulls(copy, state.config_options())?;
    let name = shown(&copy.output_url).to_string();
    let mut place =
        Place { name, fault: FirstFault::default(), uploads: Uploads::default(), staging: None, stream: None };
    let is_one_file = copy.options.remove(ONE_FILE).is_some();
    if copy.output_url == STANDARD_OUTPUT {
        let output = pipes.output.clone().ok_or_else(|| no_pipe("STDOUT"))?;
        place.stream_to(Sink::Channel(output), copy);
        return Ok(place);
    }
    let base = std::env::current_dir()?;
    let location = Location::parse_name(&copy.output_url, &base)?;
    if location.is_local() && is_stream(Path::new(&location.fixed_prefix())) {
        let path = PathBuf::from(location.fixed_prefix());
        check_device(&path)?;
        place.stream_to(Sink::Device { path, file: Arc::default() }, copy);
        return Ok(place);
    }
    let (ours, others): (HashMap<_, _>, HashMap<_, _>) =
        std::mem::take(&mut copy.options).into_iter().partition(|(key, _)| is_store_option(key));
    copy.options = others;
    let ours: BTreeMap<String, String> = ours.into_iter().collect();
    let (store, _) = shared.object_stores.with_options(location.store_url(), &ours)?;
    // Names without an ending are folders, as DataFusion has it, unless the statement is written as PostgreSQL has it.
    let file_name = location.as_str().rsplit('/').next().unwrap_or_default();
    let names_folder = location.names_folder() || !copy.partition_by.is_empty();
    let mut is_folder = names_folder || (!is_one_file && Path::new(file_name).extension().is_none());
    copy.output_url = match location.is_local() {
        true => {
            let mut path = PathBuf::from(location.fixed_prefix());
            if path.is_dir() && !is_folder {
                let hint = format!("end the name with a slash to write files into the folder: '{}/'", place.name);
                return Err(EngineError::new(ErrorKind::Sql, format!("\"{}\" is a folder", place.name)).with_hint(hint));
            }
            is_folder |= path.is_dir();
            if !is_folder {
                path = check_file(path)?;
            }
            let folder = if is_folder { path.as_path() } else { path.parent().unwrap_or(Path::new("/")) };
            place.staging = Some(Staging::create(folder).map_err(|error| fault("create files in", folder, error))?);
            let url = if is_folder { Url::from_directory_path(&path) } else { Url::from_file_path(&path) };
            url.map_err(|()| EngineError::new(ErrorKind::Sql, format!("\"{}\" cannot be written to", place.name)))?
                .to_string()
        }
        false => {
            let key = location.as_str().strip_prefix(location.store_url().as_str()).unwrap_or_default();
            format!("{store}{key}")
        }
    };
    copy.options.insert(SINGLE_FILE.to_string(), (!is_folder).to_string());
    Ok(place)
}

/// Fails now if a file cannot be there, or not be written. The path behind a link: a link stays one.
pub(crate) fn check_file(path: PathBuf) -> Result<PathBuf> {
    let path = match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => fs::canonicalize(&path).or_else(|_| {
            let target = fs::read_link(&path)?;
            Ok(path.parent().unwrap_or(Path::new("/")).join(target))
        }),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(path.clone()),
    }
    .map_err(|error| fault("write", &path, error))?;
    if path.exists() {
        // It will be replaced, which only needs rights on its folder; that it may be written is asked of itself.
        OpenOptions::new().append(true).open(&path).map_err(|error| fault("write", &path, error))?;
    }
    Ok(path)
}

#[cfg(unix)]
fn check_device(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => Err(EngineError::new(
            ErrorKind::Sql,
            format!("\"{}\" is a block device, which is not written to", path.display()),
        )),
        Ok(found) if found.file_type().is_socket() => Err(EngineError::new(
            ErrorKind::Sql,
            format!("\"{}\" is a socket, which is not written to", path.display()),
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(fault("write", path, error)),
    }
}

#[cfg(not(unix))]
fn check_device(_path: &Path) -> Result<()> {
    Ok(())
}

pub(crate) fn fault(attempted: &'static str, path: &Path, error: io::Error) -> EngineError {
    let location = path.display().to_string();
    let error = ExecutorError::Write { attempted, location, source: Arc::new(error) };
    EngineError::from(DataFusionError::from(error))
}

impl Place {
    fn stream_to(&mut self, sink: Sink, copy: &mut CopyTo) {
        self.stream = Some(Arc::new(StreamStore { sink: Arc::new(sink), fault: self.fault.clone() }));
        copy.output_url = format!("{STREAM}:///rows");
        copy.options.insert(SINGLE_FILE.to_string(), "true".to_string());
    }

    /// What the plan runs with, so that the cause of a fault is kept and files appear at the end.
    pub(crate) fn context(&self, state: &SessionState) -> Arc<TaskContext> {
        let environment = query_memory::bounded(state).unwrap_or_else(|| RuntimeEnv::clone(state.runtime_env()));
        let inner = Arc::clone(&environment.object_store_registry);
        let key = |path: &Path| path.display().to_string().trim_matches('/').to_string();
        let registry = HoldingRegistry {
            inner,
            fault: self.fault.clone(),
            uploads: self.uploads.clone(),
            staging: self.staging.as_ref().map(|staging| (key(staging.path()), key(staging.folder()))),
            stream: self.stream.clone(),
        };
        let runtime = RuntimeEnv { object_store_registry: Arc::new(registry), ..environment };
        let context = TaskContext::from(state).with_runtime(Arc::new(runtime));
        if self.stream.is_none() {
            return Arc::new(context);
        }
        let mut config = context.session_config().clone();
        config.options_mut().execution.objectstore_writer_buffer_size = STREAM_BUFFER_BYTES;
        Arc::new(context.with_session_config(config))
    }

    /// Rows of the plan, with causes in the place of what writers say. Files appear before they end.
    pub(crate) fn told(self, stream: SendableRecordBatchStream, sources: Sources) -> SendableRecordBatchStream {
        let schema = stream.schema();
        let steps = futures::stream::unfold(Some((stream, self, sources)), |step| async move {
            let (mut stream, mut place, sources) = step?;
            let ended = match stream.next().await {
                Some(Ok(batch)) => return Some((Ok(batch), Some((stream, place, sources)))),
                Some(Err(error)) => Err(error),
                None => place.end(&sources).await,
            };
            // Writers first: they may still hold what is given up.
            drop(stream);
            place.close().await;
            match ended {
                Ok(()) => None,
                Err(error) => Some((Err(place.cause(error)), None)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, steps))
    }

    async fn end(&self, sources: &Sources) -> Result<(), DataFusionError> {
        sources.look_again().await?;
        let targets = self.uploads.end().await.map_err(DataFusionError::from)?;
        match &self.staging {
            Some(staging) => staging.move_all(targets).await.map_err(|error| self.write_fault(error)),
            None => Ok(()),
        }
    }

    /// Gives up what did not appear, and removes what was hidden.
    async fn close(&mut self) {
        self.uploads.discard().await;
        if let Some(staging) = self.staging.take() {
            let _ = tokio::task::spawn_blocking(move || drop(staging)).await;
        }
    }

    fn cause(&self, error: DataFusionError) -> DataFusionError {
        match self.fault.take() {
            Some(fault) => self.write_fault(fault),
            None => error,
        }
    }

    fn write_fault(&self, source: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
        let (location, source) = (self.name.clone(), Arc::new(source));
        DataFusionError::from(ExecutorError::Write { attempted: "write", location, source })
    }
}

/// A statement that is cancelled leaves no part of a file.
impl Drop for Place {
    fn drop(&mut self) {
        let (uploads, staging) = (self.uploads.clone(), self.staging.take());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                uploads.discard().await;
                drop(staging);
            });
        }
    }
}
