//! `COPY .. TO 'place'`: DataFusion's writers, for a place as people write it.
//!
//! A place is a name, never a pattern. Options of its object store (`aws.region`, ..) are the statement's own. What goes
//! wrong while writing is told with its cause.
//!
//! Keeps true   files appear when all rows are written and where these came from is unchanged: a statement that fails leaves
//!              what was there before, also where it reads the file that it writes.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::context::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::CopyToStatement;
use futures::StreamExt;
use nectarine_catalog::{FileFormatKind, Location, is_store_option};
use nectarine_executor::{ExecutorError, reader_options};
use url::Url;

use crate::engine::Shared;
use crate::holding_store::{HoldingRegistry, Uploads};
use crate::managed::Sources;
use crate::noting_store::FirstFault;
use crate::query_memory;
use crate::{EngineError, ErrorKind, Result};

/// Where a COPY writes.
pub(crate) struct Place {
    /// As it was given.
    name: String,
    fault: FirstFault,
    uploads: Uploads,
}

/// Refuses a name that does not tell its format.
pub(crate) fn check(statement: &CopyToStatement, state: &SessionState) -> Result<()> {
    let extension = Path::new(&statement.target).extension().and_then(|extension| extension.to_str());
    let is_known = |extension: &str| state.get_file_format_factory(&extension.to_lowercase()).is_some();
    if statement.stored_as.is_some() || extension.is_some_and(is_known) {
        return Ok(());
    }
    let text = format!("cannot tell the format of \"{}\" from its name", statement.target);
    Err(EngineError::new(ErrorKind::Sql, text).with_hint("add STORED AS PARQUET, CSV, JSON or ARROW"))
}

/// DataFusion does not say which option it was.
fn check_options(copy: &CopyTo, state: &SessionState) -> Result<()> {
    let Some(format) = FileFormatKind::parse(&copy.file_type.get_ext()) else { return Ok(()) };
    let of_format = copy.options.iter().filter(|(key, _)| key.starts_with("format."));
    let options = of_format.map(|(key, value)| (key.clone(), value.clone())).collect();
    reader_options(state.config_options(), format, &options)?;
    Ok(())
}

/// Turns the place into a URL that DataFusion takes as it is, and takes the options of its store out.
pub(crate) fn locate(shared: &Shared, state: &SessionState, copy: &mut CopyTo) -> Result<Place> {
    check_options(copy, state)?;
    let place = Place { name: copy.output_url.clone(), fault: FirstFault::default(), uploads: Uploads::default() };
    let base = std::env::current_dir()?;
    let location = Location::parse_name(&copy.output_url, &base)?;
    let (ours, others): (HashMap<_, _>, HashMap<_, _>) =
        std::mem::take(&mut copy.options).into_iter().partition(|(key, _)| is_store_option(key));
    copy.options = others;
    let ours: BTreeMap<String, String> = ours.into_iter().collect();
    let (store, _) = shared.object_stores.with_options(location.store_url(), &ours)?;
    let url = match location.is_local() {
        true => {
            let path = location.fixed_prefix();
            let is_folder = location.names_folder() || Path::new(&path).is_dir();
            let url = if is_folder { Url::from_directory_path(&path) } else { Url::from_file_path(&path) };
            url.map_err(|()| EngineError::new(ErrorKind::Sql, format!("\"{path}\" cannot be written to")))?.to_string()
        }
        false => {
            let key = location.as_str().strip_prefix(location.store_url().as_str()).unwrap_or_default();
            format!("{store}{key}")
        }
    };
    copy.output_url = url;
    Ok(place)
}

impl Place {
    /// What the plan runs with, so that the cause of a fault is kept and files appear at the end.
    pub(crate) fn context(&self, state: &SessionState) -> Arc<TaskContext> {
        let environment = query_memory::bounded(state).unwrap_or_else(|| RuntimeEnv::clone(state.runtime_env()));
        let inner = Arc::clone(&environment.object_store_registry);
        let registry = HoldingRegistry { inner, fault: self.fault.clone(), uploads: self.uploads.clone() };
        let runtime = RuntimeEnv { object_store_registry: Arc::new(registry), ..environment };
        Arc::new(TaskContext::from(state).with_runtime(Arc::new(runtime)))
    }

    /// Rows of the plan, with causes in the place of what writers say. Files appear before they end.
    pub(crate) fn told(self, stream: SendableRecordBatchStream, sources: Sources) -> SendableRecordBatchStream {
        let schema = stream.schema();
        let steps = futures::stream::unfold(Some((stream, self, sources)), |step| async move {
            let (mut stream, place, sources) = step?;
            let ended = match stream.next().await {
                Some(Ok(batch)) => return Some((Ok(batch), Some((stream, place, sources)))),
                Some(Err(error)) => Err(error),
                None => place.end(&sources).await,
            };
            match ended {
                Ok(()) => None,
                Err(error) => {
                    // Writers first: they may still hold what is given up.
                    drop(stream);
                    place.uploads.discard().await;
                    Some((Err(place.cause(error)), None))
                }
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, steps))
    }

    async fn end(&self, sources: &Sources) -> Result<(), DataFusionError> {
        sources.look_again().await?;
        self.uploads.end().await.map_err(DataFusionError::from)
    }

    fn cause(&self, error: DataFusionError) -> DataFusionError {
        match self.fault.take() {
            Some(fault) => {
                let (location, source) = (self.name.clone(), Arc::new(fault));
                DataFusionError::from(ExecutorError::Write { attempted: "write", location, source })
            }
            None => error,
        }
    }
}

/// A statement that is cancelled leaves no part of a file.
impl Drop for Place {
    fn drop(&mut self) {
        let uploads = self.uploads.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { uploads.discard().await });
        }
    }
}
