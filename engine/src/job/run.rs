//! The life of a job: claimed, its statements one after the other, each end written down.
//!
//! ```text
//!   claim              attempt n + 1, by this process                       only one can
//!   SET and the like   of statements that have finished, once more          so that the session is what it was
//!   statement          from the first that has not finished on
//!     begun            written down, if it must not be begun twice          dies behind it: nobody knows, the job fails and says so
//!     run              a query's rows go to a file, if no query follows     dies here: run again, from the cache
//!     its end          written down, for INSERT and CREATE TABLE with what  dies before: nothing came; behind: the next one is run
//!                      comes into the table, for the last one with the job's
//! ```

use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::context::SessionState;
use datafusion::sql::parser::Statement as DFStatement;
use futures::StreamExt;
use nectarine_catalog::{CatalogError, Job, JobId, JobResult, JobState, TableKind, fail_point};
use nectarine_planner::sql::{self, ParseOptions, Statement};
use sqlparser::ast::{self, ObjectName};
use tokio::time::Instant;

use super::manner::{Manner, manner};
use super::rows::deadline;
use super::step::{Step, as_of_now};
use super::{Jobs, is_owner, result};
use crate::access::Who;
use crate::command::is_query;
use crate::ddl::reference;
use crate::holding::{Held, LEASE};
use crate::managed::now_micros;
use crate::report::told;
use crate::session::Session;
use crate::shielded::Shielded;
use crate::{Answer, AnswerKind, EngineError, ErrorKind, Result};

/// How often processes may die with the same statement before it is taken for the cause.
const TRIES_MAX: i64 = 20;
/// How often it is looked whether somebody cancelled the job.
const LOOK: Duration = Duration::from_millis(500);

/// Why a job was not brought to its end here.
pub(super) enum Left {
    /// It is another's by now, or was cancelled.
    Lost,
    /// One of its statements failed.
    Failed(EngineError),
    /// How far it is could not be written down: no fault of the job's, which is gone on with.
    Unwritten(CatalogError),
}

impl From<EngineError> for Left {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

impl From<CatalogError> for Left {
    fn from(error: CatalogError) -> Self {
        Self::Unwritten(error)
    }
}

impl Jobs {
    /// Claims a job and brings it to its end; nothing happens if somebody else has it.
    pub(super) async fn perform(&self, job: Job, held: Held<JobId>) -> Result<()> {
        // Until the job has ended here, however it ends.
        let _held = held;
        let Some(mut job) = self.claim(&job).await? else { return Ok(()) };
        fail_point("job_claimed");
        tracing::info!(job = %job.id, attempt = job.attempt, statements_done = job.n_done, "a job is run");
        let (id, attempt) = (job.id, job.attempt);
        let ended = match refusal(&job) {
            Some(error) => Err(Left::Failed(error)),
            None => {
                let limit = job.spec.timeout_s;
                let work = self.watched(id, attempt, deadline(&job), limit, Box::pin(self.carry_out(&mut job)));
                work.await
            }
        };
        match ended {
            Ok(()) => tracing::info!(job = %id, "a job has finished"),
            Err(Left::Lost) => tracing::info!(job = %id, attempt, "a job was cancelled, or is another's"),
            Err(Left::Failed(error)) => self.fail(&job, &error).await?,
            Err(Left::Unwritten(error)) => return Err(error.into()),
        }
        Ok(())
    }

    async fn claim(&self, job: &Job) -> Result<Option<Job>> {
        let claimed = as_of_now(Job {
            state: JobState::Running,
            attempt: job.attempt + 1,
            tries: job.tries + 1,
            holder: Some(self.shared.home.process()),
            started_at: job.started_at.or_else(|| Some(now_micros())),
            ..job.clone()
        });
        Ok(self.shared.store.change_job(job.at(), &claimed, None).await?.map(|_| claimed))
    }

    /// Does the work as long as the job is ours and there is time. What is dropped is cancelled.
    async fn watched(
        &self,
        id: JobId,
        attempt: i64,
        deadline: Option<i64>,
        limit_s: u64,
        mut work: impl Future<Output = Result<(), Left>> + Unpin,
    ) -> Result<(), Left> {
        let mut renewed = Instant::now();
        loop {
            if deadline.is_some_and(|deadline| deadline <= now_micros()) {
                let message = format!("the job took longer than {limit_s} seconds");
                return Err(EngineError::new(ErrorKind::Resources, message)
                    .with_hint("SUBMIT JOB TIMEOUT '..' gives it more time")
                    .into());
            }
            let left = deadline.map(|deadline| deadline.saturating_sub(now_micros()).max(0) as u64);
            let pause = left.map_or(LOOK, |left| LOOK.min(Duration::from_micros(left)));
            tokio::select! {
                done = &mut work => return done,
                () = tokio::time::sleep(pause) => {}
            }
            // Trouble with the store is told where something has to be written down.
            if let Ok(found) = self.find(id).await
                && found.is_none_or(|job| job.state != JobState::Running || job.attempt != attempt)
            {
                // It may have come to its end in this moment.
                return match futures::poll!(&mut work) {
                    std::task::Poll::Ready(done) => done,
                    std::task::Poll::Pending => Err(Left::Lost),
                };
            }
            if renewed.elapsed() > LEASE / 3 {
                renewed = Instant::now();
                let until = now_micros() + LEASE.as_micros() as i64;
                if let Err(error) = self.shared.store.keep_job(id, attempt, until).await {
                    tracing::warn!(job = %id, %error, "the lease of a job was not renewed");
                }
            }
        }
    }

    /// From the first statement that has not finished to the last. `job` is what is written down, at any time.
    async fn carry_out(&self, job: &mut Job) -> Result<(), Left> {
        let session = Box::pin(self.session(job)).await?;
        let n_statements = job.spec.statements.len();
        for at in 0..n_statements {
            let text = job.spec.statements[at].clone();
            let options = ParseOptions::from(session.inner.state.read().config_options().as_ref());
            let Some(statement) = sql::parse(&text, &options).map_err(EngineError::from)? else {
                return Err(EngineError::new(ErrorKind::Internal, "a statement of a job is empty").into());
            };
            let manner = self.manner(&session, &statement).await?;
            let is_done = usize::try_from(job.n_done).is_ok_and(|n_done| at < n_done);
            if is_done {
                if manner == Manner::Session {
                    let again = match session.execute(&text).await {
                        Ok(answer) => drain(answer).await,
                        Err(error) => Err(error),
                    };
                    // What was prepared may be about tables that are gone by now; who needs it says so.
                    if let Err(error) = again
                        && !is_prepared(&statement)
                    {
                        return Err(error.into());
                    }
                }
                continue;
            }
            if manner == Manner::Once {
                let begun = Job { begun: true, ..job.clone() };
                self.write(job, begun).await?;
            }
            fail_point("job_statement_begun");
            Box::pin(self.step(&session, job, &text, at + 1 == n_statements)).await?;
            fail_point("job_statement_done");
        }
        Ok(())
    }

    /// Runs a statement and writes down its end.
    async fn step(&self, session: &Session, job: &mut Job, text: &str, is_last: bool) -> Result<(), Left> {
        let next = Job {
            state: if is_last { JobState::Finished } else { JobState::Running },
            n_done: job.n_done + 1,
            tries: 0,
            begun: false,
            ..job.clone()
        };
        let step = Arc::new(Step::new(job.clone(), next.clone()));
        *session.inner.step.lock() = Some(Arc::clone(&step));
        // The state machines of statements are too large for the stack of a caller.
        let ran = Box::pin(self.ran(session, job, text)).await;
        *session.inner.step.lock() = None;
        fail_point("job_statement_ran");
        let result = match ran {
            // Its effect is there, and so is its end.
            _ if step.is_done() => {
                *job = next;
                return Ok(());
            }
            Err(_) if step.is_lost() => return Err(Left::Lost),
            ran => ran?,
        };
        self.write(job, Job { result: result.or(next.result), ..next }).await
    }

    /// Runs a statement to its end; keeps its rows if no query follows.
    async fn ran(&self, session: &Session, job: &Job, text: &str) -> Result<Option<JobResult>> {
        let answer = session.execute(text).await?;
        match matches!(answer.kind(), AnswerKind::Rows) && !has_query_behind(session, job) {
            true => result::keep(&self.shared, job, answer).await.map(Some),
            false => drain(answer).await.map(|()| None),
        }
    }

    async fn write(&self, job: &mut Job, next: Job) -> Result<(), Left> {
        let next = as_of_now(next);
        match self.shared.store.change_job(job.at(), &next, None).await? {
            Some(_) => {
                *job = next;
                Ok(())
            }
            None => Err(Left::Lost),
        }
    }

    /// Writes down that a job failed. One that is further than its error, or another's, is left as it is: whoever looks next takes it.
    async fn fail(&self, job: &Job, error: &EngineError) -> Result<()> {
        let which = match job.spec.statements.len() {
            1 => String::new(),
            _ => format!("statement {}: ", job.n_done + 1),
        };
        let failed = Job { state: JobState::Failed, error: Some(format!("{which}{}", told(error))), ..job.clone() };
        let failed = as_of_now(failed);
        let is_ours = self.shared.store.change_job(job.at(), &failed, None).await?.is_some();
        tracing::info!(job = %job.id, is_ours, error = failed.error, "a job failed");
        Ok(())
    }

    /// A session as the owner of a job had it.
    async fn session(&self, job: &Job) -> Result<Session> {
        let who = match &job.owner {
            None => Who::Owner,
            Some(owner) => {
                let view = self.shared.catalog.view().await?;
                if !is_owner(&view.access, owner, job) {
                    return Err(EngineError::new(ErrorKind::Denied, format!("user \"{owner}\" does not exist")));
                }
                Who::User(Arc::from(owner.as_str()))
            }
        };
        let session = Session::new(Arc::clone(&self.shared), who);
        let mut state = SessionState::clone(&session.inner.state.read());
        state.config_mut().options_mut().catalog.default_schema.clone_from(&job.spec.default_schema);
        *session.inner.state.write() = Shielded(state);
        for (name, value) in &job.spec.settings {
            let set = format!("SET {name} = '{}'", value.replace('\'', "''"));
            drain(session.execute(&set).await?).await?;
        }
        Ok(session)
    }

    async fn manner(&self, session: &Session, statement: &Statement) -> Result<Manner> {
        let view = self.shared.catalog.view().await?;
        let state = SessionState::clone(&session.inner.state.read());
        let is_external = |name: &ObjectName| {
            let table = reference(name, state.config_options()).map(|reference| session.table_name(&reference));
            let found = table.ok().and_then(|name| view.tables.get(&name));
            found.is_some_and(|table| matches!(table.kind, TableKind::External(_)))
        };
        Ok(manner(statement, &is_external))
    }
}

/// Why a job that was claimed is not gone on with.
fn refusal(job: &Job) -> Option<EngineError> {
    if job.begun {
        let message = "the server ended while the statement ran, and nobody knows whether it took effect";
        return Some(
            EngineError::new(ErrorKind::Io, message)
                .with_hint("look whether it did, and submit what is left as another job"),
        );
    }
    (job.tries > TRIES_MAX).then(|| {
        EngineError::new(ErrorKind::Resources, "the processes that ran the statement ended")
            .with_detail(format!("{TRIES_MAX} of them"))
    })
}

/// Whether a query comes after the statement that is next.
fn has_query_behind(session: &Session, job: &Job) -> bool {
    let options = ParseOptions::from(session.inner.state.read().config_options().as_ref());
    let behind = usize::try_from(job.n_done).map_or(usize::MAX, |n_done| n_done.saturating_add(1));
    let mut texts = job.spec.statements.iter().skip(behind);
    texts.any(|text| sql::parse(text, &options).ok().flatten().is_some_and(|statement| is_query(&statement)))
}

fn is_prepared(statement: &Statement) -> bool {
    let Statement::DataFusion(statement) = statement else { return false };
    let DFStatement::Statement(inner) = statement.as_ref() else { return false };
    matches!(inner.as_ref(), ast::Statement::Prepare { .. } | ast::Statement::Deallocate { .. })
}

/// Reads an answer to its end.
async fn drain(answer: Answer) -> Result<()> {
    let mut rows = answer.into_stream();
    while let Some(batch) = rows.next().await {
        batch?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use nectarine_catalog::JobSpec;

    use super::*;

    #[test]
    fn what_is_not_gone_on_with() {
        let spec = JobSpec {
            name: None,
            statements: vec!["DROP TABLE t".to_string()],
            settings: vec![],
            default_schema: "public".to_string(),
            timeout_s: 0,
        };
        let job = Job { tries: 1, ..Job::waiting(JobId::new(), spec, None, 0) };
        assert!(refusal(&job).is_none());
        let begun = refusal(&Job { begun: true, ..job.clone() }).expect("nobody knows");
        assert!(begun.message().contains("nobody knows"), "{begun}");
        assert!(refusal(&Job { tries: TRIES_MAX, ..job.clone() }).is_none());
        assert!(refusal(&Job { tries: TRIES_MAX + 1, ..job }).is_some());
    }
}
