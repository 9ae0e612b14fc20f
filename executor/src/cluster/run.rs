//! [`ClusterBackend`]: a plan on the cluster, in as many tries as it takes, within bounds.

use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::extension::SessionConfigExt;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::prelude::SessionContext;

use super::job::{Attempt, Counts, Failed};
use super::options::sending_config;
use super::server::{Cluster, JobSummary};
use super::spool::Spool;
use super::travel::{Stays, may_travel};
use crate::backend::Backend;

/// Tries before a plan is left to this process.
const TRIES_MAX: usize = 3;

/// The cluster gave a plan up. Nothing of its rows was given out.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the cluster gave up: {0}")]
pub struct GaveUp(pub String);

/// Called with how far a job is.
type Seen = Arc<dyn Fn(Counts) + Send + Sync>;

/// Runs plans on executors.
#[derive(Clone)]
pub struct ClusterBackend {
    cluster: Cluster,
    /// The statement, for those who look.
    query: String,
    seen: Seen,
}

impl ClusterBackend {
    /// For one statement; `seen` is told how far it is.
    pub fn new(cluster: Cluster, query: String, seen: impl Fn(Counts) + Send + Sync + 'static) -> Self {
        Self { cluster, query, seen: Arc::new(seen) }
    }

    async fn attempt(
        &self,
        number: usize,
        plan: &Arc<dyn ExecutionPlan>,
        context: &Arc<TaskContext>,
        tried: &mut Vec<JobSummary>,
    ) -> Result<Spool, Failed> {
        let give_up = |error: DataFusionError| Failed::GiveUp(error.strip_backtrace());
        let n_cores = self.cluster.cores().await;
        if n_cores == 0 {
            return Err(Failed::GiveUp("there is no executor".to_owned()));
        }
        let mut config = sending_config(context.session_config().options(), n_cores).map_err(give_up)?;
        if let Some(secret) = &self.cluster.inner().secret {
            // For fetching the rows; executors have their own.
            config = config.with_ballista_override_create_grpc_client_endpoint(secret.shown());
        }
        let sending = Arc::new(SessionContext::new_with_config_rt(config, context.runtime_env()));
        // Nodes keep what they did in an earlier try.
        let plan = reset_plan_states(Arc::clone(plan)).map_err(give_up)?;
        let schema = plan.schema();
        let mut attempt = Attempt::start(&self.cluster, &self.query, number, plan, Arc::clone(&sending)).await?;
        let seen = Arc::clone(&self.seen);
        let fetched = match attempt.ended(move |counts| seen(counts)).await {
            Ok(parts) => {
                let fetched = Spool::fetch(parts, schema, sending.task_ctx()).await;
                fetched.map_err(|error| Failed::Again(format!("its rows could not be fetched: {error}")))
            }
            Err(failed) => Err(failed),
        };
        attempt.over(fetched.as_ref().map(|_| ()));
        tried.push(attempt.summary());
        fetched
    }

    /// The rows of a plan, and what its tries did.
    pub(super) async fn run_told(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
    ) -> Result<(SendableRecordBatchStream, Vec<JobSummary>)> {
        let mut last = String::new();
        let mut tried = vec![];
        for number in 1..=TRIES_MAX {
            match self.attempt(number, &plan, &context, &mut tried).await {
                Ok(spool) => return Ok((spool.into_stream(), tried)),
                Err(Failed::Again(detail)) => {
                    tracing::warn!(query = self.query, attempt = number, detail, "a job is run again");
                    last = detail;
                    self.cluster.inner().settle().await;
                }
                Err(Failed::GiveUp(detail)) => {
                    last = detail;
                    break;
                }
            }
        }
        tracing::warn!(query = self.query, detail = last, "the cluster gave a plan up");
        (self.seen)(Counts::default());
        Err(DataFusionError::External(Box::new(GaveUp(last))))
    }

    /// Cores of the executors that are there.
    pub(super) async fn cores(&self) -> usize {
        self.cluster.cores().await
    }
}

#[async_trait]
impl Backend for ClusterBackend {
    fn name(&self) -> &'static str {
        "cluster"
    }

    fn takes(&self, plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Result<(), Stays> {
        may_travel(plan, context)
    }

    async fn run(&self, plan: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.run_told(plan, context).await.map(|(rows, _)| rows)
    }
}
