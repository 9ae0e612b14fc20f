//! [`Slots`]: cores that Ballista forgets to give back are given back when nobody can be using them.
//!
//! When a stage is rolled back after a loss, Ballista 55 cancels its tasks on the executors that are left and does not count their
//! cores as free again: after some losses nothing runs any more.
//!
//! Keeps true   no more cores of an executor are given back than were taken.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use ballista_core::JobId;
use ballista_core::error::Result;
use ballista_core::serde::protobuf::ExecutorHeartbeat;
use ballista_core::serde::scheduler::{ExecutorData, ExecutorMetadata};
use ballista_scheduler::cluster::memory::InMemoryClusterState;
use ballista_scheduler::cluster::{BoundTask, ClusterState, ClusterStateEventStream, ExecutorSlot};
use ballista_scheduler::config::TaskDistributionPolicy;
use ballista_scheduler::state::task_manager::JobInfoCache;
use parking_lot::Mutex;

/// Ballista's own state of executors, with an account of the cores that tasks have.
#[derive(Default)]
pub(super) struct Slots {
    inner: InMemoryClusterState,
    taken: Mutex<HashMap<String, u32>>,
}

impl Slots {
    /// Gives back all cores; for when no job runs.
    pub(super) async fn give_back(&self) -> Result<()> {
        let taken: Vec<ExecutorSlot> = self.taken.lock().drain().filter(|(_, cores)| *cores > 0).collect();
        if !taken.is_empty() {
            tracing::info!(?taken, "cores that nobody uses are free again");
        }
        self.inner.unbind_tasks(taken).await
    }
}

#[async_trait]
impl ClusterState for Slots {
    async fn bind_schedulable_tasks(
        &self,
        distribution: TaskDistributionPolicy,
        active_jobs: Arc<HashMap<JobId, JobInfoCache>>,
        executors: Option<HashSet<String>>,
    ) -> Result<Vec<BoundTask>> {
        let bound = self.inner.bind_schedulable_tasks(distribution, active_jobs, executors).await?;
        let mut taken = self.taken.lock();
        for (executor, task) in &bound {
            *taken.entry(executor.clone()).or_default() += task.vcores_consumed;
        }
        Ok(bound)
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        let mut freed = vec![];
        {
            let mut taken = self.taken.lock();
            for (executor, cores) in executor_slots {
                let Some(left) = taken.get_mut(&executor) else { continue };
                let cores = cores.min(*left);
                *left -= cores;
                freed.push((executor, cores));
            }
        }
        self.inner.unbind_tasks(freed).await
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> Result<()> {
        self.taken.lock().remove(&metadata.id);
        self.inner.register_executor(metadata, spec).await
    }

    async fn save_executor_metadata(&self, metadata: ExecutorMetadata) -> Result<()> {
        self.inner.save_executor_metadata(metadata).await
    }

    async fn get_executor_metadata(&self, executor_id: &str) -> Result<ExecutorMetadata> {
        self.inner.get_executor_metadata(executor_id).await
    }

    async fn registered_executor_metadata(&self) -> Vec<ExecutorMetadata> {
        self.inner.registered_executor_metadata().await
    }

    async fn save_executor_heartbeat(&self, heartbeat: ExecutorHeartbeat) -> Result<()> {
        self.inner.save_executor_heartbeat(heartbeat).await
    }

    async fn remove_executor(&self, executor_id: &str) -> Result<()> {
        self.taken.lock().remove(executor_id);
        self.inner.remove_executor(executor_id).await
    }

    fn executor_heartbeats(&self) -> HashMap<String, ExecutorHeartbeat> {
        self.inner.executor_heartbeats()
    }

    fn get_executor_heartbeat(&self, executor_id: &str) -> Option<ExecutorHeartbeat> {
        self.inner.get_executor_heartbeat(executor_id)
    }

    async fn cluster_state_events(&self) -> Result<ClusterStateEventStream> {
        self.inner.cluster_state_events().await
    }
}
