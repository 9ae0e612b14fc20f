//! [`Cluster`]: Ballista's scheduler in this process, and the executors that came to it.
//!
//! Threads      of its own: stages are planned by recursion.
//! Serves       executors and nobody else: plans come from this process, so whoever reaches the port can neither send nor read one.
//!              Who can reach it from elsewhere has to know a secret, or he could pretend to be an executor.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ballista_core::JobId;
use ballista_core::config::TaskSchedulingPolicy;
use ballista_core::serde::protobuf::scheduler_grpc_server::SchedulerGrpcServer;
use ballista_core::utils::{default_config_producer, default_session_builder};
use ballista_scheduler::cluster::memory::InMemoryJobState;
use ballista_scheduler::cluster::{BallistaCluster, JobState};
use ballista_scheduler::config::{SchedulerConfig, TaskDistributionPolicy};
use ballista_scheduler::scheduler_process::create_scheduler;
use ballista_scheduler::scheduler_server::SchedulerServer;
use ballista_scheduler::state::execution_graph::ExecutionGraphBox;
use datafusion_proto::protobuf::{LogicalPlanNode, PhysicalPlanNode};
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::codec::ClusterCodec;
use super::door::OnlyExecutors;
use super::job::Counts;
use super::options::MESSAGE_BYTES;
use super::secret::{Gate, Secret};
use super::slots::Slots;

/// How often an executor says that it is there.
pub(super) const HEARTBEAT_SECONDS: u64 = 2;

/// After so long without a word it is taken to be gone.
const SILENCE_SECONDS: u64 = 12;

/// A job whose executors are all gone waits so long for one to come; ours do not wait, see `job`.
const GRACE_SECONDS: u64 = 30;

/// What is known of a job that has ended is kept so long.
const ENDED_SECONDS: u64 = 300;

/// A job that was cancelled has ended after so long.
const SETTLE: Duration = Duration::from_millis(500);

/// What a job wrote is deleted so long after its end.
const FORGET_AFTER: Duration = Duration::from_secs(2);

/// Stack of a thread.
const STACK_BYTES: usize = 32 << 20;

/// Jobs that `system.cluster_jobs` remembers.
const JOBS_KEPT: usize = 200;

/// How often the server looks after cores that were not given back, and for how long nothing may have run.
const IDLE_LOOK: Duration = Duration::from_secs(1);
const IDLE_LOOKS: usize = 3;

pub(super) type Scheduler = SchedulerServer<LogicalPlanNode, PhysicalPlanNode>;

/// What keeps a cluster from starting.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// Nothing protects the port.
    #[error("cannot listen on {address} without a secret: others than this machine can reach it")]
    Unprotected {
        /// Where.
        address: SocketAddr,
    },
    /// The server does not want the executor.
    #[error("the server at {server} refused this executor: {reason}")]
    Refused {
        /// Where.
        server: String,
        /// Why.
        reason: String,
    },
    /// It did not start.
    #[error("cannot start {what}: {detail}")]
    Start {
        /// `the cluster`, `the executor`.
        what: &'static str,
        /// Why.
        detail: String,
    },
}

/// Fails where others could reach an address that nothing protects.
pub(super) fn is_protected(address: SocketAddr, secret: Option<&Secret>) -> Result<(), ClusterError> {
    match address.ip().is_loopback() || secret.is_some() {
        true => Ok(()),
        false => Err(ClusterError::Unprotected { address }),
    }
}

/// Where executors come to.
#[derive(Debug, Clone)]
pub struct ClusterOptions {
    /// To listen on.
    pub address: SocketAddr,
    /// What executors know, too. Must be there if others can reach it.
    pub secret: Option<Secret>,
}

/// An executor, as it is told.
#[derive(Debug, Clone)]
pub struct MemberSummary {
    /// Its name.
    pub id: String,
    /// Where it is.
    pub host: String,
    /// For rows.
    pub port: u16,
    /// For tasks.
    pub task_port: u16,
    /// Tasks at a time.
    pub cores: u32,
    /// When it was last heard, in seconds since 1970.
    pub heard_at: Option<u64>,
    /// Tasks that it runs now.
    pub running: usize,
}

/// A job, as it is told: one try of one statement.
#[derive(Debug, Clone)]
pub struct JobSummary {
    /// Ballista's name for it.
    pub id: String,
    /// The statement.
    pub query: String,
    /// Which try.
    pub attempt: usize,
    /// `running`, `finished`, `again`, `given up`, `cancelled`.
    pub state: &'static str,
    /// Why, if it did not finish.
    pub detail: Option<String>,
    /// In microseconds since 1970.
    pub started_at: i64,
    /// In microseconds since 1970.
    pub ended_at: Option<i64>,
    /// Stages and tasks.
    pub counts: Counts,
    /// Its stages, when it was last looked at.
    pub stages: Vec<StageSummary>,
}

/// A stage of a job, as it is told.
#[derive(Debug, Clone)]
pub struct StageSummary {
    /// Its number in the job.
    pub id: usize,
    /// Stages whose rows it reads.
    pub reads: Vec<usize>,
    /// `waiting`, `ready`, `running`, `finished`, `failed`.
    pub state: &'static str,
    /// How often it was begun again.
    pub attempt: usize,
    /// Tasks it is made of.
    pub tasks: usize,
    /// Those that have ended.
    pub tasks_done: usize,
    /// Rows that it wrote.
    pub rows: u64,
    /// Bytes that it wrote.
    pub bytes: u64,
    /// From the first task's beginning to the last one's end, in milliseconds.
    pub elapsed_ms: u64,
    /// Its longest task, in milliseconds: one that stands out is skewed.
    pub longest_ms: u64,
}

/// The scheduler of this process. Cheap to clone.
#[derive(Clone)]
pub struct Cluster {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) scheduler: Scheduler,
    jobs: Arc<dyn JobState>,
    address: SocketAddr,
    handle: Handle,
    /// Tries that are under way.
    pub(super) active: AtomicUsize,
    told: Mutex<Vec<JobSummary>>,
    slots: Arc<Slots>,
    pub(super) secret: Option<Secret>,
    /// Last: what runs on it goes with it.
    runtime: Option<Runtime>,
}

// Proven here, once. Who awaits anything beside a cluster would have the compiler prove it again for every future: the scheduler
// reaches DataFusion's expressions, and checking the engine then takes minutes (see `shielded` there).
const _: fn() = || {
    fn is_thread_safe<T: Send + Sync>() {}
    is_thread_safe::<(Scheduler, Arc<dyn JobState>, SocketAddr, Handle)>();
    is_thread_safe::<(AtomicUsize, Mutex<Vec<JobSummary>>, Option<Runtime>, Option<Secret>)>();
};
// SAFETY: all of its fields are, as shown above.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // May be dropped by one of its own threads.
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("address", &self.inner.address).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Listens for executors.
    pub fn start(options: ClusterOptions) -> BoxFuture<'static, Result<Self, ClusterError>> {
        // Boxed, as are the others: see above.
        Self::started(options).boxed()
    }

    async fn started(options: ClusterOptions) -> Result<Self, ClusterError> {
        is_protected(options.address, options.secret.as_ref())?;
        let failed = |detail: String| ClusterError::Start { what: "the cluster", detail };
        let runtime = Builder::new_multi_thread()
            .enable_all()
            .thread_name("nectarine-cluster")
            .thread_stack_size(STACK_BYTES)
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let handle = runtime.handle().clone();
        let opened = handle.spawn(Box::pin(open(options.address, options.secret.clone()))).await;
        let (scheduler, slots, jobs, address) = opened.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        let inner = Arc::new(Inner {
            scheduler,
            jobs,
            address,
            handle: handle.clone(),
            active: AtomicUsize::new(0),
            told: Mutex::default(),
            slots: Arc::clone(&slots),
            secret: options.secret,
            runtime: Some(runtime),
        });
        let watched = Arc::downgrade(&inner);
        handle.spawn(async move {
            let mut n_idle = 0;
            loop {
                tokio::time::sleep(IDLE_LOOK).await;
                let Some(inner) = watched.upgrade() else { return };
                n_idle = if inner.active.load(Ordering::SeqCst) == 0 { n_idle + 1 } else { 0 };
                // Once: what runs next takes its own.
                if n_idle == IDLE_LOOKS
                    && let Err(error) = slots.give_back().await
                {
                    tracing::warn!(%error, "cores could not be given back");
                }
            }
        });
        Ok(Self { inner })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.inner.address
    }

    /// Executors that were heard of late.
    pub fn members(&self) -> BoxFuture<'_, Vec<MemberSummary>> {
        self.heard_of().boxed()
    }

    async fn heard_of(&self) -> Vec<MemberSummary> {
        let state = &self.inner.scheduler.state;
        let known = state.executor_manager.get_executors_state().await.unwrap_or_default();
        let mut running: HashMap<String, usize> = HashMap::new();
        for job in state.task_manager.get_running_job_cache().values() {
            for task in job.execution_graph.read().await.running_tasks() {
                *running.entry(task.executor_id).or_default() += 1;
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let members = known.into_iter().map(|(executor, heard, _)| MemberSummary {
            running: running.get(&executor.id).copied().unwrap_or(0),
            id: executor.id,
            host: executor.host,
            port: executor.port,
            task_port: executor.grpc_port,
            cores: executor.specification.vcores,
            heard_at: heard.map(|heard| heard.as_secs()),
        });
        let is_there =
            |member: &MemberSummary| member.heard_at.is_none_or(|heard| now.saturating_sub(heard) <= SILENCE_SECONDS);
        members.filter(is_there).collect()
    }

    /// Their cores.
    pub async fn cores(&self) -> usize {
        self.members().await.iter().map(|member| member.cores as usize).sum()
    }

    /// Jobs, the newest last.
    pub fn jobs(&self) -> Vec<JobSummary> {
        self.inner.told.lock().clone()
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }
}

impl Inner {
    /// Remembers a job, or what has become of it.
    pub(super) fn tell(&self, job: JobSummary) {
        let mut told = self.told.lock();
        match told.iter_mut().find(|known| known.id == job.id) {
            Some(known) => *known = job,
            None => {
                if told.len() >= JOBS_KEPT {
                    told.remove(0);
                }
                told.push(job);
            }
        }
    }

    /// Everything about a job, whether it runs or has ended.
    pub(super) async fn graph(&self, job: &JobId) -> Option<ExecutionGraphBox> {
        let running = self.scheduler.state.task_manager.get_running_job_cache();
        if let Some(job) = running.get(job) {
            return Some(job.execution_graph.read().await.cloned());
        }
        self.jobs.get_execution_graph(job).await.ok().flatten()
    }

    /// Ends a job; nobody waits for that.
    pub(super) fn cancel(self: &Arc<Self>, job: JobId) {
        let inner = Arc::clone(self);
        self.handle.spawn(async move {
            if let Err(error) = inner.scheduler.cancel_job(job).await {
                tracing::warn!(%error, "a job could not be cancelled");
            }
        });
    }
}

impl Inner {
    /// Before another try: lets what was cancelled end, and takes back the cores that nobody uses.
    pub(super) async fn settle(&self) {
        tokio::time::sleep(SETTLE).await;
        if self.active.load(Ordering::SeqCst) == 0
            && let Err(error) = self.slots.give_back().await
        {
            tracing::warn!(%error, "cores could not be given back");
        }
    }

    /// Lets executors delete what a job wrote; nobody waits for that.
    pub(super) fn forget(self: &Arc<Self>, job: JobId) {
        let inner = Arc::clone(self);
        self.handle.spawn(async move {
            // What is about to be cancelled may still write.
            tokio::time::sleep(FORGET_AFTER).await;
            inner.scheduler.state.executor_manager.clean_up_job_data(job);
        });
    }
}

type Opened = (Scheduler, Arc<Slots>, Arc<dyn JobState>, SocketAddr);

async fn open(address: SocketAddr, secret: Option<Secret>) -> Result<Opened, String> {
    let listener =
        tokio::net::TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    let config = SchedulerConfig {
        bind_host: address.ip().to_string(),
        bind_port: address.port(),
        external_host: address.ip().to_string(),
        scheduling_policy: TaskSchedulingPolicy::PushStaged,
        task_distribution: TaskDistributionPolicy::RoundRobin,
        executor_timeout_seconds: SILENCE_SECONDS,
        expire_dead_executor_interval_seconds: 1,
        no_executors_grace_period_seconds: GRACE_SECONDS,
        finished_job_data_clean_up_interval_seconds: ENDED_SECONDS,
        finished_job_state_clean_up_interval_seconds: ENDED_SECONDS,
        grpc_server_max_decoding_message_size: MESSAGE_BYTES as u32,
        grpc_server_max_encoding_message_size: MESSAGE_BYTES as u32,
        grpc_client_max_message_size: MESSAGE_BYTES as u32,
        override_physical_codec: Some(ClusterCodec::shared(secret.clone())),
        override_create_grpc_client_endpoint: secret.as_ref().map(Secret::shown),
        ..SchedulerConfig::default()
    };
    let slots = Arc::new(Slots::default());
    let jobs: Arc<dyn JobState> = Arc::new(InMemoryJobState::new(
        config.scheduler_id.clone(),
        Arc::new(default_session_builder),
        Arc::new(default_config_producer),
    ));
    let cluster = BallistaCluster::new(Arc::clone(&slots) as _, Arc::clone(&jobs));
    let scheduler: Scheduler = create_scheduler(cluster, Arc::new(config)).await.map_err(|error| error.to_string())?;
    let service = SchedulerGrpcServer::new(OnlyExecutors::new(scheduler.clone()))
        .max_decoding_message_size(MESSAGE_BYTES)
        .max_encoding_message_size(MESSAGE_BYTES);
    let guarded = InterceptedService::new(service, Gate { secret, whose: "server" });
    let serving = Server::builder().add_service(guarded).serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(async move {
        if let Err(error) = serving.await {
            tracing::error!(%error, "the cluster does not listen any more");
        }
    });
    Ok((scheduler, slots, jobs, address))
}
