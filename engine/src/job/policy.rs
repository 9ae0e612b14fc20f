//! [`begin`]: which jobs begin now. Pure: what is known goes in, what is to be done comes out.

use nectarine_catalog::Job;

/// Those of them that begin now, at most `n_free`: what was accepted first comes first, whether it waits or was begun by somebody
/// who died.
pub(super) fn begin(
    running: &[Job],
    waiting: &[Job],
    n_free: usize,
    is_abandoned: impl Fn(&Job) -> bool,
    is_active: impl Fn(&Job) -> bool,
) -> Vec<Job> {
    let left = running.iter().filter(|job| is_abandoned(job));
    let mut jobs: Vec<Job> = left.chain(waiting).filter(|job| !is_active(job)).cloned().collect();
    jobs.sort_by_key(|job| (job.submitted_at, job.id));
    jobs.truncate(n_free);
    jobs
}

#[cfg(test)]
mod tests {
    use nectarine_catalog::{JobId, JobSpec, JobState};

    use super::*;

    fn job(submitted_at: i64, state: JobState, holder: Option<&str>) -> Job {
        let spec = JobSpec {
            name: None,
            statements: vec!["SELECT 1".to_string()],
            settings: vec![],
            default_schema: "public".to_string(),
            timeout_s: 0,
        };
        let holder = holder.map(str::to_string);
        Job { state, holder, ..Job::waiting(JobId::new(), spec, None, submitted_at) }
    }

    fn begun(running: &[Job], waiting: &[Job], n_free: usize) -> Vec<i64> {
        let is_dead = |job: &Job| job.holder.as_deref() == Some("dead");
        let is_active = |job: &Job| job.holder.as_deref() == Some("here");
        begin(running, waiting, n_free, is_dead, is_active).iter().map(|job| job.submitted_at).collect()
    }

    #[test]
    fn first_come_first_served() {
        let waiting = [job(5, JobState::Waiting, None), job(3, JobState::Waiting, None)];
        assert_eq!(begun(&[], &waiting, 1), [3]);
        assert_eq!(begun(&[], &waiting, 9), [3, 5]);
        assert_eq!(begun(&[], &waiting, 0), [0_i64; 0]);
    }

    #[test]
    fn what_the_dead_left_keeps_its_turn() {
        let running = [job(1, JobState::Running, Some("alive")), job(4, JobState::Running, Some("dead"))];
        let waiting = [job(3, JobState::Waiting, None), job(5, JobState::Waiting, None)];
        assert_eq!(begun(&running, &waiting, 2), [3, 4]);
    }

    #[test]
    fn what_was_taken_here_is_not_taken_twice() {
        let waiting = [job(1, JobState::Waiting, Some("here")), job(2, JobState::Waiting, None)];
        assert_eq!(begun(&[], &waiting, 1), [2]);
    }
}
