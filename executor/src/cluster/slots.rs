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
    taken: Mutex<Account>,
}

/// Cores that tasks have, by executor.
#[derive(Debug, Default)]
struct Account {
    taken: HashMap<String, u32>,
}

impl Account {
    fn take(&mut self, executor: &str, cores: u32) {
        *self.taken.entry(executor.to_owned()).or_default() += cores;
    }

    /// What of it may be given back: Ballista's own state believes whatever it is told.
    fn free(&mut self, wanted: Vec<ExecutorSlot>) -> Vec<ExecutorSlot> {
        let mut freed = vec![];
        for (executor, cores) in wanted {
            let Some(left) = self.taken.get_mut(&executor) else { continue };
            let cores = cores.min(*left);
            *left -= cores;
            if cores > 0 {
                freed.push((executor, cores));
            }
        }
        freed
    }

    /// All that is still taken; nothing is afterwards.
    fn free_all(&mut self) -> Vec<ExecutorSlot> {
        let mut freed: Vec<ExecutorSlot> = self.taken.drain().filter(|(_, cores)| *cores > 0).collect();
        freed.sort();
        freed
    }

    /// An executor that is new or gone has nothing that could be given back.
    fn forget(&mut self, executor: &str) {
        self.taken.remove(executor);
    }
}

impl Slots {
    /// Gives back all cores; for when no job runs.
    pub(super) async fn give_back(&self) -> Result<()> {
        let taken = self.taken.lock().free_all();
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
            taken.take(executor, task.vcores_consumed);
        }
        Ok(bound)
    }

    async fn unbind_tasks(&self, executor_slots: Vec<ExecutorSlot>) -> Result<()> {
        let freed = self.taken.lock().free(executor_slots);
        self.inner.unbind_tasks(freed).await
    }

    async fn register_executor(&self, metadata: ExecutorMetadata, spec: ExecutorData) -> Result<()> {
        self.taken.lock().forget(&metadata.id);
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
        self.taken.lock().forget(executor_id);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(executor: &str, cores: u32) -> ExecutorSlot {
        (executor.to_owned(), cores)
    }

    fn with(taken: &[(&str, u32)]) -> Account {
        let mut account = Account::default();
        for (executor, cores) in taken {
            account.take(executor, *cores);
        }
        account
    }

    #[test]
    fn what_was_taken_is_given_back_once() {
        let mut account = with(&[("a", 2), ("b", 1), ("a", 1)]);
        assert_eq!(account.free(vec![slot("a", 2)]), [slot("a", 2)]);
        assert_eq!(account.free_all(), [slot("a", 1), slot("b", 1)]);
        assert_eq!(account.free_all(), []);
    }

    /// A task whose cores were given back when nothing ran, and which then ends after all.
    #[test]
    fn no_more_is_given_back_than_was_taken() {
        let mut account = with(&[("a", 2)]);
        assert_eq!(account.free(vec![slot("a", 3), slot("a", 1)]), [slot("a", 2)]);
        assert_eq!(account.free(vec![slot("a", 1), slot("b", 1)]), []);
        account.take("a", 1);
        account.free_all();
        assert_eq!(account.free(vec![slot("a", 1)]), []);
    }

    /// It comes with all of its cores free.
    #[test]
    fn an_executor_that_begins_anew_gives_nothing_back() {
        let mut account = with(&[("a", 2), ("b", 1)]);
        account.forget("a");
        assert_eq!(account.free(vec![slot("a", 2)]), []);
        assert_eq!(account.free_all(), [slot("b", 1)]);
    }
}
