//! Which statements run on the cluster, and as what plan.
//!
//! ```text
//!   planned as ever: fingerprints, hits, what is kept            the plan of this process, always there to fall back to
//!        --> large enough? executors there? nothing cached in it?
//!        --> planned once more, on the same snapshots, for stages --> may it travel? --> cluster
//!        --> else, and if the cluster gives up                                       --> this process
//! ```
//!
//! Keeps true   what a statement is recognised by does not depend on where it runs: what one place computed serves the other.

mod executor;
mod explain;
mod secret;

use std::sync::Arc;

use datafusion::execution::context::SessionState;
use datafusion::execution::{SendableRecordBatchStream, SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::analyze::AnalyzeExec;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::BoxFuture;
use nectarine_catalog::Extent;
use nectarine_executor::{
    AnalyzeBackend, Backend, Cluster, ClusterBackend, ClusterOptions, GaveUp, LocalBackend, Placed, Stays, either,
    file_scan, planning_options, stays_behind, tell_files,
};

pub use self::executor::{Executor, run_executor};
pub(crate) use self::explain::{explain_schema, explain_stages};
pub use self::secret::cluster_secret;
use crate::derived::still_there;
use crate::engine::{Engine, options};
use crate::progress::Progress;
use crate::reuse::{Planned, ReceiptSlot};
use crate::settings::{Execution, NectarineOptions, execution, parse_size};
use crate::statement::StatementCatalog;
use crate::{EngineError, ErrorKind, Notice, Result, machine};

impl Engine {
    /// Lets executors come to this process, and runs large queries on them. Returns where it listens.
    pub async fn start_cluster(&self, options: ClusterOptions) -> Result<std::net::SocketAddr> {
        let cluster = Cluster::start(options).await.map_err(from_cluster)?;
        let address = cluster.address();
        match self.shared().cluster.set(cluster) {
            Ok(()) => Ok(address),
            Err(_) => Err(EngineError::new(ErrorKind::Internal, "the cluster was started twice")),
        }
    }
}

/// What keeps a cluster or an executor from starting.
fn from_cluster(error: nectarine_executor::ClusterError) -> EngineError {
    let is_open = matches!(error, nectarine_executor::ClusterError::Unprotected { .. });
    let told = EngineError::new(ErrorKind::Configuration, error.to_string());
    match is_open {
        true => told.with_hint(
            "give the server and its executors the same secret (--secret-file or NECTARINE_CLUSTER_SECRET), or listen on \
             127.0.0.1",
        ),
        false => told,
    }
}

/// Letters of the reason in a notice.
const WHY_LETTERS_MAX: usize = 600;

/// A cluster, and the plan for it.
type There = (Cluster, Arc<dyn ExecutionPlan>);

/// Where a statement is to run.
pub(crate) struct Placement {
    there: Option<There>,
    /// Whether what the executors did is told in place of the rows.
    analyzes: bool,
    /// Whether the statement asked for the cluster.
    is_asked: bool,
    /// What who asked for the cluster should know.
    pub(crate) notice: Option<Notice>,
}

impl Placement {
    /// In this process.
    pub(crate) fn here() -> Self {
        Self { there: None, analyzes: false, is_asked: false, notice: None }
    }

    /// Where a query is to run. `planned` is its plan for this process. Boxed: its type would be a part of that of every statement.
    pub(crate) fn of<'a>(
        logical: &'a LogicalPlan,
        planned: &'a Planned,
        state: &'a SessionState,
        catalog: &'a Arc<StatementCatalog>,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(Self::found(logical, planned, state, catalog))
    }

    async fn found(
        logical: &LogicalPlan,
        planned: &Planned,
        state: &SessionState,
        catalog: &Arc<StatementCatalog>,
    ) -> Result<Self> {
        let ours = options(state.config_options());
        let wanted = execution(&ours.execution)?;
        let Some(least) = least(&ours)? else { return Ok(Self::here()) };
        if matches!(logical, LogicalPlan::Explain(_)) {
            return Ok(Self::here());
        }
        let (logical, local, analyzes) = match logical {
            LogicalPlan::Analyze(analyze) => match analyzed(&analyze.input, &planned.plan) {
                Some(local) => (analyze.input.as_ref(), local, true),
                None => return Ok(Self::here()),
            },
            logical => (logical, &planned.plan, false),
        };
        let hits = planned.findings.as_ref().map_or(0, |findings| findings.hits.len());
        let checks = planned.keeping.as_ref().is_some_and(crate::reuse::Keeping::tells);
        let found = match (hits, checks) {
            (0, false) => travelling(logical, local, least, state, catalog).await,
            (_, true) => Err(Stays("what was kept is checked in this process".to_owned())),
            _ => Err(Stays("it reads cached results".to_owned())),
        };
        Ok(match found {
            Ok(there) => Self { there: Some(there), analyzes, is_asked: wanted == Execution::Cluster, notice: None },
            Err(Stays(reason)) => {
                tracing::debug!(reason, "stays in this process");
                let notice = Notice { message: "ran in this process".to_owned(), hint: Some(reason) };
                Self { notice: (wanted == Execution::Cluster).then_some(notice), ..Self::here() }
            }
        })
    }

    /// Runs it there. `query` is for those who look; who asked for the cluster and gets another is told by `receipt`.
    pub(crate) fn run(
        self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        query: String,
        progress: &Progress,
        receipt: &ReceiptSlot,
    ) -> Result<SendableRecordBatchStream> {
        let Some((cluster, travelling)) = self.there else { return Ok(execute_stream(plan, context)?) };
        let shown = progress.clone();
        let backend = ClusterBackend::new(cluster, query, move |counts| shown.stages(counts));
        let backend: Arc<dyn Backend> = match self.analyzes {
            true => Arc::new(AnalyzeBackend::new(backend, plan.schema())),
            false => Arc::new(backend),
        };
        let first = Placed { backend, plan: travelling };
        let second = Placed { backend: Arc::new(LocalBackend), plan };
        let (is_asked, receipt) = (self.is_asked, receipt.clone());
        Ok(either(first, second, context, move |GaveUp(why)| {
            if is_asked {
                let why = shortened(why);
                let notice = Notice { message: "ran in this process: the cluster gave up".to_owned(), hint: Some(why) };
                receipt.change(|receipt| receipt.notices.push(notice));
            }
        }))
    }
}

/// The plan here of a query that is analyzed; `None` if it is no query.
fn analyzed<'a>(query: &LogicalPlan, plan: &'a Arc<dyn ExecutionPlan>) -> Option<&'a Arc<dyn ExecutionPlan>> {
    let is_query = !matches!(query, LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Ddl(_));
    plan.downcast_ref::<AnalyzeExec>().filter(|_| is_query).map(AnalyzeExec::input)
}

/// What fits behind a notice: an error of a task has all that it passed through.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(WHY_LETTERS_MAX) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_owned(),
    }
}

/// Bytes that a query has to read to run on executors; `None` if there are none that it could run on.
pub(crate) async fn travels_from(state: &SessionState, catalog: &StatementCatalog) -> Option<u64> {
    let least = least(&options(state.config_options())).ok().flatten()?;
    let cluster = catalog.shared.cluster.get()?;
    (cluster.cores().await > 0).then_some(least)
}

/// Bytes that a query has to read to be sent to the cluster; `None` if none is.
fn least(ours: &NectarineOptions) -> Result<Option<u64>> {
    Ok(match execution(&ours.execution)? {
        Execution::Local => None,
        Execution::Cluster => Some(0),
        Execution::Auto => {
            Some(parse_size("nectarine.cluster_bytes_min", &ours.cluster_bytes_min, machine::memory_bytes())?)
        }
    })
}

/// The plan for the cluster of a query that has `local` as its plan here, or why there is none.
fn travelling<'a>(
    logical: &'a LogicalPlan,
    local: &'a Arc<dyn ExecutionPlan>,
    bytes_min: u64,
    state: &'a SessionState,
    catalog: &'a Arc<StatementCatalog>,
) -> BoxFuture<'a, Result<There, Stays>> {
    Box::pin(plan_there(logical, local, bytes_min, state, catalog))
}

async fn plan_there(
    logical: &LogicalPlan,
    local: &Arc<dyn ExecutionPlan>,
    bytes_min: u64,
    state: &SessionState,
    catalog: &Arc<StatementCatalog>,
) -> Result<There, Stays> {
    let Some(cluster) = catalog.shared.cluster.get() else {
        return Err(Stays("this process has no cluster".to_owned()));
    };
    let n_cores = cluster.cores().await;
    if n_cores == 0 {
        return Err(Stays("there is no executor".to_owned()));
    }
    if bytes_of(local) < bytes_min {
        return Err(Stays("it reads little".to_owned()));
    }
    let told = |error: datafusion::common::DataFusionError| Stays(error.strip_backtrace());
    let mut config = state.config().clone();
    planning_options(config.options_mut(), n_cores);
    let rules = state.physical_optimizers().iter().filter(|rule| !stays_behind(rule.as_ref())).cloned().collect();
    let state = SessionStateBuilder::new_from_existing(state.clone())
        .with_config(config)
        .with_physical_optimizer_rules(rules)
        .build();
    let plan = Box::pin(state.create_physical_plan(logical)).await.map_err(told)?;
    // What the plan here reads from an entry of a derived table is scanned there.
    Box::pin(still_there(catalog, None)).await.map_err(|error| Stays(error.to_string()))?;
    if plan.schema() != local.schema() {
        return Err(Stays("its columns would be others".to_owned()));
    }
    // Also on this machine: a container has its own disks, and a tunnel leads anywhere.
    if !options(state.config_options()).cluster_shared_files && reads_local_files(&plan) {
        return Err(Stays(
            "it reads local files, and executors may have others of the same names (nectarine.cluster_shared_files)"
                .to_owned(),
        ));
    }
    let shared = &catalog.shared;
    let ours = url::Url::from_directory_path(shared.home.tables()).map(String::from).unwrap_or_default();
    let tell = |extent: &Extent| {
        let is_ours = !ours.is_empty() && extent.location.starts_with(&ours);
        shared.tracker.tell(extent, is_ours)
    };
    let plan = tell_files(plan, &tell).map_err(told)?;
    let backend = ClusterBackend::new(cluster.clone(), String::new(), |_| {});
    backend.takes(&plan, &TaskContext::from(&state))?;
    Ok((cluster.clone(), plan))
}

/// Whether a plan reads files of this machine's disks.
fn reads_local_files(plan: &Arc<dyn ExecutionPlan>) -> bool {
    file_scan(plan.as_ref()).is_some_and(|config| config.object_store_url.as_str().starts_with("file:"))
        || plan.children().into_iter().any(reads_local_files)
}

/// Bytes of files that a plan reads, at the most.
fn bytes_of(plan: &Arc<dyn ExecutionPlan>) -> u64 {
    let own: u64 = match file_scan(plan.as_ref()) {
        Some(config) => {
            config.file_groups.iter().flat_map(|group| group.files()).map(|file| file.effective_size()).sum()
        }
        None => 0,
    };
    own + plan.children().into_iter().map(bytes_of).sum::<u64>()
}
