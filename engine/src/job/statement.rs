//! Statements about jobs.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use datafusion::physical_plan::memory::MemoryStream;
use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{CatalogError, Job, JobBounds, JobId, JobQuery, JobResult, JobState, fail_point};
use nectarine_planner::sql::JobStatement;

use super::define::specify;
use super::rows::{batch, id_schema, schema as jobs_schema};
use super::{Jobs, is_owner, result};
use crate::access::Rights;
use crate::command::StatementRun;
use crate::managed::now_micros;
use crate::reuse::ReceiptSlot;
use crate::statement::StatementCatalog;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Notice, Result};

/// How many jobs may wait or run in a home, and how many of them may be one user's.
const OPEN_MAX: JobBounds = JobBounds { all: 10_000, of_owner: 1000 };
/// How often a cancel tries again that meets a job on its way to the next statement.
const CANCELS_MAX: usize = 100;

/// Carries one out.
pub(crate) async fn run(run: &StatementRun<'_>, statement: JobStatement) -> Result<Answer> {
    let jobs = Jobs::new(Arc::clone(&run.catalog.shared));
    let store = &run.catalog.shared.store;
    match statement {
        JobStatement::Submit { name, timeout, body } => {
            let spec = specify(run, name, timeout.as_deref(), &body)?;
            let owner = run.rights().user().map(str::to_string);
            let job = Job::waiting(JobId::new(), spec, owner, now_micros());
            if !store.submit_job(&job, OPEN_MAX).await? {
                let JobBounds { all, of_owner } = OPEN_MAX;
                return Err(EngineError::new(ErrorKind::Resources, "too many jobs wait")
                    .with_detail(format!("{of_owner} of one owner may wait or run, {all} of all"))
                    .with_hint("CANCEL JOB ends those that nobody needs"));
            }
            fail_point("job_submitted");
            tracing::info!(job = %job.id, owner = job.owner, "a job was accepted");
            let ids: ArrayRef = Arc::new(StringArray::from(vec![job.id.to_string()]));
            rows(run, crate::report::batch(id_schema(), vec![ids])?)
        }
        JobStatement::Cancel(id) => {
            let notices = cancel(&jobs, run.rights(), &id).await?;
            Ok(run.noticed_all("CANCEL JOB", notices))
        }
        JobStatement::Drop { ids, if_exists } => {
            let mut found = vec![];
            for id in &ids {
                match seen(&jobs, run.rights(), id).await {
                    Err(_) if if_exists => {}
                    job => found.push(job?),
                }
            }
            if let Some(open) = found.iter().find(|job| job.state.is_open()) {
                let message = format!("job \"{}\" has not ended", open.id);
                return Err(EngineError::new(ErrorKind::Sql, message).with_hint("CANCEL JOB ends it"));
            }
            for job in found {
                store.drop_job(job.id).await?;
                result::remove(&run.catalog.shared, job.result.as_ref()).await;
            }
            Ok(run.command("DROP JOB"))
        }
        JobStatement::ShowAll => rows(run, batch(&all_seen(store.as_ref(), run.rights()).await?)?),
        JobStatement::Show(id) => rows(run, batch(&[seen(&jobs, run.rights(), &id).await?])?),
        JobStatement::Result(id) => {
            let job = seen(&jobs, run.rights(), &id).await?;
            let kept = kept(&job)?;
            let stream = result::open(&run.catalog.shared, kept).await?;
            run.record.finished(kept.rows);
            let receipt = ReceiptSlot::default();
            receipt.change(|receipt| *receipt = result::receipt(kept));
            Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, vec![], stream).with_receipt(receipt))
        }
    }
}

/// Columns of those that answer with rows.
pub(crate) async fn schema(catalog: &StatementCatalog, statement: &JobStatement) -> Result<Option<SchemaRef>> {
    Ok(match statement {
        JobStatement::Submit { .. } => Some(id_schema()),
        JobStatement::ShowAll | JobStatement::Show(_) => Some(jobs_schema()),
        JobStatement::Result(id) => {
            let job = seen(&Jobs::new(Arc::clone(&catalog.shared)), &catalog.rights, id).await?;
            Some(result::columns(&catalog.shared, kept(&job)?).await?)
        }
        JobStatement::Cancel(_) | JobStatement::Drop { .. } => None,
    })
}

/// Whether somebody may know of a job: it is his.
pub(crate) fn may_see(rights: &Rights, job: &Job) -> bool {
    let Some(user) = rights.user() else { return true };
    rights.is_admin() || is_owner(rights.access(), user, job)
}

/// All that somebody may know of.
async fn all_seen(store: &dyn MetadataStore, rights: &Rights) -> Result<Vec<Job>> {
    let mut jobs = store.jobs(&JobQuery::default()).await?;
    jobs.retain(|job| may_see(rights, job));
    Ok(jobs)
}

/// The job of an identifier. One that is another's is not told apart from none.
async fn seen(jobs: &Jobs, rights: &Rights, id: &str) -> Result<Job> {
    let none = || CatalogError::NotFound { what: "job", name: id.to_string() };
    let parsed = JobId::parse(id).ok_or_else(none)?;
    let found = jobs.find(parsed).await?.filter(|job| may_see(rights, job));
    Ok(found.ok_or_else(none)?)
}

/// Ends a job. When this returns it does nothing more to tables; who is at it notices within a second.
async fn cancel(jobs: &Jobs, rights: &Rights, id: &str) -> Result<Vec<Notice>> {
    for _ in 0..CANCELS_MAX {
        let job = seen(jobs, rights, id).await?;
        if !job.state.is_open() {
            let message = format!("job \"{}\" has ended before: it is {}", job.id, job.state.word());
            return Ok(vec![Notice { message, hint: None }]);
        }
        let by = rights.user().unwrap_or("the owner of the home");
        let cancelled = Job {
            state: JobState::Cancelled,
            lease_until: None,
            ended_at: Some(now_micros()),
            error: Some(format!("cancelled by {by}")),
            ..job.clone()
        };
        if jobs.shared.store.change_job(job.at(), &cancelled, None).await?.is_some() {
            tracing::info!(job = %job.id, by, "a job was cancelled");
            return Ok(vec![]);
        }
        // It came to its next statement meanwhile.
    }
    Err(EngineError::new(ErrorKind::Resources, format!("job \"{id}\" could not be cancelled"))
        .with_detail("its statements are too short")
        .with_hint("try again"))
}

/// Where the rows of a job are. One that failed may have left those of an earlier statement, which nobody asked for.
fn kept(job: &Job) -> Result<&JobResult> {
    let error = EngineError::new(ErrorKind::Sql, format!("job \"{}\" has no rows", job.id));
    if let (JobState::Finished, Some(result)) = (job.state, &job.result) {
        return Ok(result);
    }
    Err(match job.state {
        JobState::Finished => error.with_detail("none of its statements is a query"),
        JobState::Waiting | JobState::Running => {
            error.with_detail("it has not come so far").with_hint("nectarine job wait waits for it")
        }
        JobState::Failed | JobState::Cancelled => {
            let why = job.error.clone().unwrap_or_default();
            error.with_detail(format!("it is {}: {why}", job.state.word()))
        }
    })
}

fn rows(run: &StatementRun<'_>, batch: RecordBatch) -> Result<Answer> {
    let schema = batch.schema();
    run.record.finished(batch.num_rows() as u64);
    let stream = MemoryStream::try_new(vec![batch], schema, None)?;
    Ok(Answer::new(run.record.query_id(), AnswerKind::Rows, vec![], Box::pin(stream)))
}
