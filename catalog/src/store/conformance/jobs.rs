//! What every metadata store does with jobs.

use super::{MemoryStore, MetadataStore, SqliteStore, add, extent, table};
use crate::{
    CatalogError, Job, JobBounds, JobEffect, JobId, JobPoint, JobQuery, JobResult, JobSpec, JobState, Replace,
    TableDef, TableId,
};

/// The error must be of a variant, whatever its fields say.
macro_rules! assert_fails {
    ($outcome:expr, $pattern:pat) => {
        let error = $outcome.expect_err("a refusal");
        assert!(matches!(error, $pattern), "unexpected error: {error:?}");
    };
}

conformance! {
    jobs_come_back_as_they_were
    only_so_many_jobs_are_open
    a_job_changes_only_from_where_it_is
    leases_are_their_holders
    jobs_that_have_ended_are_forgotten
    appended_rows_and_the_end_of_a_statement_are_one_transaction
    a_new_table_and_the_end_of_a_statement_are_one_transaction
    jobs_leave_the_version
}

pub(super) fn job(submitted_at: i64) -> Job {
    let spec = JobSpec {
        name: Some("nightly ü".to_owned()),
        statements: vec!["SET x = 1".to_owned(), "SELECT 'ü'".to_owned()],
        settings: vec![("a.b".to_owned(), "it's".to_owned())],
        default_schema: "public".to_owned(),
        timeout_s: 60,
    };
    Job::waiting(JobId::new(), spec, Some("bob".to_owned()), submitted_at)
}

pub(super) fn bounds(all: usize, of_owner: usize) -> JobBounds {
    JobBounds { all, of_owner }
}

async fn submitted(store: &dyn MetadataStore, at: i64) -> Job {
    let job = job(at);
    assert!(store.submit_job(&job, bounds(100, 100)).await.expect("an answer"));
    job
}

fn claimed(job: &Job) -> Job {
    Job {
        state: JobState::Running,
        attempt: job.attempt + 1,
        tries: job.tries + 1,
        holder: Some("process".to_owned()),
        lease_until: Some(11),
        started_at: Some(12),
        ..job.clone()
    }
}

fn finished(job: &Job) -> Job {
    let result = JobResult {
        file: "x.arrow".to_owned(),
        statement: 1,
        rows: 3,
        bytes: 4,
        digest: "abc".to_owned(),
        reused: "partial".to_owned(),
        saved_us: 5,
        entries: vec!["e".to_owned()],
        extents: Some((2, 1)),
        data_to: Some(9),
    };
    Job {
        state: JobState::Finished,
        n_done: 2,
        tries: 0,
        begun: true,
        ended_at: Some(13),
        result: Some(result),
        error: Some("none".to_owned()),
        ..job.clone()
    }
}

/// Changes a job that is where it says.
async fn change(store: &dyn MetadataStore, was: &Job, job: &Job) -> bool {
    store.change_job(was.at(), job, None).await.expect("an answer").is_some()
}

async fn all(store: &dyn MetadataStore) -> Vec<Job> {
    store.jobs(&JobQuery::default()).await.expect("jobs")
}

async fn jobs_come_back_as_they_were(store: &dyn MetadataStore) {
    assert_eq!(all(store).await, []);
    let (b, a) = (submitted(store, 20).await, submitted(store, 10).await);
    assert_eq!(all(store).await, [a.clone(), b.clone()], "the first one first");
    let running = claimed(&a);
    assert!(change(store, &a, &running).await);
    let done = finished(&running);
    assert!(change(store, &running, &done).await);
    assert_eq!(all(store).await, [done.clone(), b.clone()]);
    let of = |id| JobQuery { id: Some(id), ..JobQuery::default() };
    assert_eq!(store.jobs(&of(a.id)).await.expect("jobs"), [done]);
    assert_eq!(store.jobs(&of(JobId::new())).await.expect("jobs"), []);
    let open = JobQuery { states: vec![JobState::Waiting, JobState::Running], ..JobQuery::default() };
    assert_eq!(store.jobs(&open).await.expect("jobs"), [b]);
    assert_eq!(store.jobs(&JobQuery { limit: Some(1), ..JobQuery::default() }).await.expect("jobs").len(), 1);
}

async fn only_so_many_jobs_are_open(store: &dyn MetadataStore) {
    let a = submitted(store, 1).await;
    assert!(!store.submit_job(&job(2), bounds(1, 9)).await.expect("an answer"));
    assert!(!store.submit_job(&job(2), bounds(9, 1)).await.expect("an answer"));
    assert_eq!(all(store).await.len(), 1);
    // What others have does not count as one's own.
    for owner in [Some("eve".to_owned()), None] {
        let other = Job { owner, ..job(3) };
        assert!(store.submit_job(&other, bounds(9, 1)).await.expect("an answer"));
        let second = Job { id: JobId::new(), ..other };
        assert!(!store.submit_job(&second, bounds(9, 1)).await.expect("an answer"));
    }
    assert!(change(store, &a, &Job { state: JobState::Cancelled, ..a.clone() }).await);
    assert!(store.submit_job(&job(2), bounds(3, 1)).await.expect("an answer"));
}

async fn a_job_changes_only_from_where_it_is(store: &dyn MetadataStore) {
    let a = submitted(store, 1).await;
    let first = claimed(&a);
    assert!(change(store, &a, &first).await);
    assert!(!change(store, &a, &first).await, "a second claim");
    // The first was believed dead, and another took over.
    let second = claimed(&first);
    assert!(change(store, &first, &second).await);
    assert!(!change(store, &first, &finished(&first)).await);
    // A statement finished; who cancels must know.
    let further = Job { n_done: 1, ..second.clone() };
    assert!(change(store, &second, &further).await);
    assert!(!change(store, &second, &Job { state: JobState::Cancelled, ..second.clone() }).await);
    assert_eq!(all(store).await, [further]);
    assert!(!change(store, &job(5), &job(5)).await, "one that is not there");
}

async fn leases_are_their_holders(store: &dyn MetadataStore) {
    let a = submitted(store, 1).await;
    assert!(!store.keep_job(a.id, 0, 99).await.expect("an answer"), "nobody is at it");
    let running = claimed(&a);
    assert!(change(store, &a, &running).await);
    assert!(!store.keep_job(a.id, 2, 99).await.expect("an answer"));
    assert!(store.keep_job(a.id, 1, 99).await.expect("an answer"));
    assert_eq!(all(store).await, [Job { lease_until: Some(99), ..running }]);
}

async fn jobs_that_have_ended_are_forgotten(store: &dyn MetadataStore) {
    let a = submitted(store, 1).await;
    assert!(!store.drop_job(a.id).await.expect("an answer"), "it waits");
    let running = claimed(&a);
    assert!(change(store, &a, &running).await);
    assert!(!store.drop_job(a.id).await.expect("an answer"), "it is running");
    assert!(change(store, &running, &finished(&running)).await);
    assert!(store.drop_job(a.id).await.expect("an answer"));
    assert!(!store.drop_job(a.id).await.expect("an answer"));
    assert_eq!(all(store).await, []);
}

/// A job that is running, and the same with one more statement done.
async fn running(store: &dyn MetadataStore) -> (Job, Job) {
    let a = submitted(store, 1).await;
    let running = claimed(&a);
    assert!(change(store, &a, &running).await);
    let further = Job { n_done: 1, ..running.clone() };
    (running, further)
}

async fn appended_rows_and_the_end_of_a_statement_are_one_transaction(store: &dyn MetadataStore) {
    let t = table("t");
    add(store, &t, &[extent(1)]).await;
    let (running, further) = running(store).await;
    let version = store.catalog_version().await.expect("a version");
    let rows = [extent(2), extent(3)];
    let append = Some(JobEffect::Append { table: t.id, extents: &rows });
    let other = JobPoint { attempt: 7, ..running.at() };
    assert_eq!(store.change_job(other, &further, append).await.expect("an answer"), None);
    assert_eq!(store.extents(t.id).await.expect("extents").len(), 1, "nothing came of a job that is another's");
    let gone = Some(JobEffect::Append { table: TableId::new(), extents: &rows });
    assert_fails!(store.change_job(running.at(), &further, gone).await, CatalogError::TableNotFound { .. });
    assert_eq!(all(store).await, std::slice::from_ref(&running));
    assert_eq!(store.catalog_version().await.expect("a version"), version);
    for expected in [true, false] {
        let changed = store.change_job(running.at(), &further, append).await.expect("an answer");
        assert_eq!(changed.is_some(), expected);
        assert_eq!(store.extents(t.id).await.expect("extents"), [extent(1), extent(2), extent(3)]);
    }
    assert_eq!(store.catalog_version().await.expect("a version"), version + 1);
}

async fn a_new_table_and_the_end_of_a_statement_are_one_transaction(store: &dyn MetadataStore) {
    let (running, further) = running(store).await;
    let (t, rows) = (table("t"), [extent(1), extent(2)]);
    let create = |table, replace| Some(JobEffect::Create { table, extents: &rows, replace });
    let other = JobPoint { n_done: 4, ..running.at() };
    assert_eq!(store.change_job(other, &further, create(&t, Replace::Never)).await.expect("an answer"), None);
    assert_eq!(store.tables().await.expect("tables"), []);
    let changed = store.change_job(running.at(), &further, create(&t, Replace::Never)).await.expect("an answer");
    assert_eq!(changed.expect("it was there").replaced, None);
    assert_eq!(store.extents(t.id).await.expect("extents").len(), 2);
    // A refusal leaves the job where it was; one that replaces tells what went.
    let (last, next) = (further.clone(), Job { n_done: 2, ..further.clone() });
    let second = TableDef { id: TableId::new(), ..t.clone() };
    assert_fails!(
        store.change_job(last.at(), &next, create(&second, Replace::Never)).await,
        CatalogError::AlreadyExists { .. }
    );
    assert_eq!(all(store).await, [further]);
    let changed =
        store.change_job(last.at(), &next, create(&second, Replace::Seen(Some(t.id)))).await.expect("an answer");
    assert_eq!(changed.expect("it was there").replaced.map(|table| table.id), Some(t.id));
    assert_eq!(all(store).await, [next]);
}

async fn jobs_leave_the_version(store: &dyn MetadataStore) {
    let version = store.catalog_version().await.expect("a version");
    let (running, further) = running(store).await;
    assert!(change(store, &running, &further).await);
    assert!(store.keep_job(running.id, 1, 99).await.expect("an answer"));
    assert!(change(store, &further, &Job { state: JobState::Failed, ..further.clone() }).await);
    assert!(store.drop_job(running.id).await.expect("an answer"));
    assert_eq!(store.catalog_version().await.expect("a version"), version);
}
