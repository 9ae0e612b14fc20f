//! Jobs: statements that somebody leaves to the servers of a home, and that outlive him and any server.
//!
//! ```text
//!   statement    SUBMIT, CANCEL, DROP, SHOW
//!   define       what is accepted: statements that can be read, settings, a name
//!   manner       what becomes of a statement whose server died
//!   policy       which jobs begin now
//!   desk         the loop: begins jobs, takes over those whose process died, forgets old ones
//!   run          the life of a job
//!   step         one of its statements: what it does to tables and its end in one transaction
//!   result       rows to a file and back
//!   rows         jobs as rows
//! ```
//!
//! ```text
//!   accepted --written down--> waiting --claimed--> statement --> its end written down --> next statement .. --> finished
//!                                                     |  `- INSERT, CREATE TABLE: with its rows, in one transaction
//!                                                     `- rows of the last query: file in place, then written down
//! ```
//!
//! Keeps true   an accepted job ends: finished, failed with a reason, or cancelled by somebody. A statement that has finished is not run
//!              again, whoever dies where; one whose effect cannot be written down with its end is begun once. A job runs with its
//!              owner's rights, as they are when it runs; nobody else sees it but administrators.

mod define;
mod desk;
mod manner;
mod policy;
mod result;
mod rows;
mod run;
mod statement;
mod step;

use std::sync::Arc;

use nectarine_catalog::{Access, Job, JobId, JobQuery, JobState};

pub use self::desk::JobRunner;
pub(crate) use self::rows::{batch as jobs_batch, schema as jobs_schema};
pub(crate) use self::statement::{may_see, run, schema};
pub(crate) use self::step::{Step, lost};

use crate::Result;
use crate::engine::Shared;
use crate::holding::{Active, is_abandoned};
use crate::managed::now_micros;

/// Jobs that this process is at.
pub(crate) type ActiveJobs = Active<JobId>;

/// The jobs of a home. Cheap to clone.
#[derive(Clone)]
pub struct Jobs {
    shared: Arc<Shared>,
}

impl Jobs {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// One of them.
    async fn find(&self, id: JobId) -> Result<Option<Job>> {
        let wanted = JobQuery { id: Some(id), ..JobQuery::default() };
        Ok(self.shared.store.jobs(&wanted).await?.pop())
    }

    /// Whether a job that somebody began is nobody's any more.
    fn is_abandoned(&self, job: &Job) -> bool {
        is_abandoned(&self.shared.home, job.holder.as_deref(), job.lease_until, now_micros(), || {
            self.shared.active_jobs.contains(&job.id)
        })
    }
}

impl std::fmt::Debug for Jobs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Jobs").finish_non_exhaustive()
    }
}

/// Jobs of a user that have not ended, in words.
pub(crate) async fn open_of(shared: &Shared, owner: &str) -> Result<Vec<String>> {
    let open = JobQuery { states: vec![JobState::Waiting, JobState::Running], ..JobQuery::default() };
    let jobs = shared.store.jobs(&open).await?;
    let owned = jobs.iter().filter(|job| job.owner.as_deref() == Some(owner));
    Ok(owned.map(|job| format!("job {}", job.id)).collect())
}

/// Whether the user of that name is the one whose job it is: names are given again.
fn is_owner(access: &Access, user: &str, job: &Job) -> bool {
    let role = access.roles.get(user);
    job.owner.as_deref() == Some(user) && role.is_some_and(|role| role.created_at <= job.submitted_at)
}
