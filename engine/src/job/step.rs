//! [`Step`]: one statement of a job while it runs. What it does to tables and its end are one transaction: see [`Step::end`].

use std::sync::atomic::{AtomicBool, Ordering};

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{CatalogError, Job, JobChanged, JobEffect, JobQuery, fail_point};

use crate::holding::LEASE;
use crate::managed::now_micros;
use crate::{EngineError, ErrorKind};

/// Somebody else has the job by now, or nobody is to have it.
pub(crate) fn lost() -> EngineError {
    EngineError::new(ErrorKind::Cancelled, "the job was cancelled, or another process took it over")
}

/// A job with the times of this moment, for who writes down how far it is: a statement may have taken long.
pub(super) fn as_of_now(job: Job) -> Job {
    let now = now_micros();
    match job.state.is_open() {
        true => Job { lease_until: Some(now.saturating_add(LEASE.as_micros() as i64)), ..job },
        false => Job { lease_until: None, ended_at: Some(now), ..job },
    }
}

/// A statement of a job.
#[derive(Debug)]
pub(crate) struct Step {
    /// The job without it.
    was: Job,
    /// The job with it.
    next: Job,
    is_done: AtomicBool,
    is_lost: AtomicBool,
}

impl Step {
    pub(super) fn new(was: Job, next: Job) -> Self {
        Self { was, next, is_done: AtomicBool::new(false), is_lost: AtomicBool::new(false) }
    }

    /// Whether it was written down that the statement has begun, so that nobody begins it again.
    pub(crate) fn is_written_down(&self) -> bool {
        self.was.begun
    }

    /// Whether the statement's end is written down.
    pub(super) fn is_done(&self) -> bool {
        self.is_done.load(Ordering::SeqCst)
    }

    /// Whether the job is another's by now.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::SeqCst)
    }

    /// Does something to tables and ends the statement; `None`, and nothing happened, if the job is another's by now.
    pub(crate) async fn end(
        &self,
        store: &dyn MetadataStore,
        effect: JobEffect<'_>,
    ) -> Result<Option<JobChanged>, CatalogError> {
        fail_point("job_extents");
        let changed = match store.change_job(self.was.at(), &as_of_now(self.next.clone()), Some(effect)).await {
            Ok(changed) => changed,
            // A commit whose answer was lost may have happened: only the store knows.
            Err(error) => {
                let wanted = JobQuery { id: Some(self.was.id), ..JobQuery::default() };
                let found = store.jobs(&wanted).await.unwrap_or_default();
                match found.first().is_some_and(|job| job.at() == self.next.at()) {
                    true => Some(JobChanged::default()),
                    false => return Err(error),
                }
            }
        };
        match &changed {
            Some(_) => self.is_done.store(true, Ordering::SeqCst),
            None => self.is_lost.store(true, Ordering::SeqCst),
        }
        fail_point("job_committed");
        Ok(changed)
    }
}
