//! Jobs in memory.

use std::collections::BTreeMap;

use crate::{Job, JobBounds, JobId, JobPoint, JobQuery, JobState};

#[derive(Debug, Default)]
pub(super) struct Jobs(BTreeMap<JobId, Job>);

impl Jobs {
    pub(super) fn submit(&mut self, job: &Job, open_max: JobBounds) -> bool {
        let open = || self.0.values().filter(|job| job.state.is_open());
        let is_room = open().count() < open_max.all
            && open().filter(|other| other.owner == job.owner).count() < open_max.of_owner;
        if is_room {
            self.0.insert(job.id, job.clone());
        }
        is_room
    }

    pub(super) fn list(&self, wanted: &JobQuery) -> Vec<Job> {
        let is_wanted = |job: &&Job| {
            wanted.id.is_none_or(|id| id == job.id) && (wanted.states.is_empty() || wanted.states.contains(&job.state))
        };
        let mut jobs: Vec<Job> = self.0.values().filter(is_wanted).cloned().collect();
        jobs.sort_by_key(|job| (job.submitted_at, job.id.to_string()));
        jobs.truncate(wanted.limit.unwrap_or(usize::MAX));
        jobs
    }

    /// Whether a job is still there.
    pub(super) fn is_at(&self, was: JobPoint, id: JobId) -> bool {
        self.0.get(&id).is_some_and(|job| job.at() == was)
    }

    pub(super) fn write(&mut self, job: &Job) {
        self.0.insert(job.id, job.clone());
    }

    pub(super) fn keep(&mut self, id: JobId, attempt: i64, lease_until: i64) -> bool {
        let is_ours = |job: &&mut Job| job.state == JobState::Running && job.attempt == attempt;
        match self.0.get_mut(&id).filter(is_ours) {
            Some(job) => {
                job.lease_until = Some(lease_until);
                true
            }
            None => false,
        }
    }

    pub(super) fn drop(&mut self, id: JobId) -> bool {
        let has_ended = self.0.get(&id).is_some_and(|job| !job.state.is_open());
        has_ended && self.0.remove(&id).is_some()
    }
}
