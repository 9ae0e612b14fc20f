//! Jobs: a row each. Durable, but no change of the catalog, unless a statement's effect comes with it.
//!
//! Keeps true   a job changes only from the point that its caller believes it is at; what a statement does to tables and the statement's
//!              end are one transaction.

use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::fault::Fault;
use super::lane::Lane;
use super::{extents, tables};
use crate::{Job, JobBounds, JobChanged, JobEffect, JobId, JobPoint, JobQuery, JobState, fail_point};

/// The columns of a job, in the order of [`bind`] and [`read`].
macro_rules! columns {
    () => {
        "id, spec, owner, submitted_at, state, attempt, tries, statements_done, begun, holder, lease_until, started_at, \
         ended_at, result, error"
    };
}

pub(super) async fn submit(lane: &mut Lane, job: &Job, open_max: JobBounds) -> Result<bool, Fault> {
    let mut durable = lane.durable().await?;
    let open = sqlx::query_as(
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN owner = $1 OR (owner IS NULL AND $2) THEN 1 ELSE 0 END), 0) FROM jobs
         WHERE state IN ('waiting', 'running')",
    );
    let (all, owned): (i64, i64) = open.bind(&job.owner).bind(job.owner.is_none()).fetch_one(&mut *durable).await?;
    let reaches = |count: i64, bound: usize| usize::try_from(count).unwrap_or(usize::MAX) >= bound;
    if reaches(all, open_max.all) || reaches(owned, open_max.of_owner) {
        durable.rollback().await?;
        return Ok(false);
    }
    let texts = Texts::of(job)?;
    let insert = sqlx::query(concat!(
        "INSERT INTO jobs (",
        columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"
    ));
    bind(insert, job, &texts).execute(&mut *durable).await?;
    durable.commit().await?;
    Ok(true)
}

pub(super) async fn list(lane: &mut Lane, wanted: &JobQuery) -> Result<Vec<Job>, Fault> {
    let mut select = QueryBuilder::<Sqlite>::new(concat!("SELECT ", columns!(), " FROM jobs WHERE 1 = 1"));
    if let Some(id) = wanted.id {
        select.push(" AND id = ").push_bind(id.to_string());
    }
    if !wanted.states.is_empty() {
        select.push(" AND state IN (");
        let mut list = select.separated(", ");
        wanted.states.iter().for_each(|state| _ = list.push_bind(state.word()));
        select.push(")");
    }
    select.push(" ORDER BY submitted_at, id");
    if let Some(limit) = wanted.limit {
        select.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    }
    let rows = select.build().fetch_all(lane.read()?).await?;
    rows.iter().map(read).collect()
}

pub(super) async fn change(
    lane: &mut Lane,
    was: JobPoint,
    job: &Job,
    effect: Option<JobEffect<'_>>,
) -> Result<Option<JobChanged>, Fault> {
    // What comes into tables is a change of the catalog, how far a job is alone is none.
    let mut transaction = match effect {
        Some(_) => lane.change().await?,
        None => lane.durable().await?,
    };
    let texts = Texts::of(job)?;
    // What it is and whose does not change; the values are there for the order of their numbers.
    let update = sqlx::query(
        "UPDATE jobs SET spec = $2, owner = $3, submitted_at = $4, state = $5, attempt = $6, tries = $7,
         statements_done = $8, begun = $9, holder = $10, lease_until = $11, started_at = $12, ended_at = $13, result = $14,
         error = $15 WHERE id = $1 AND state = $16 AND attempt = $17 AND statements_done = $18",
    );
    let update = bind(update, job, &texts).bind(was.state.word()).bind(was.attempt).bind(was.n_done);
    if update.execute(&mut *transaction).await?.rows_affected() == 0 {
        transaction.rollback().await?;
        return Ok(None);
    }
    let mut changed = JobChanged::default();
    match effect {
        Some(JobEffect::Append { table, extents }) => {
            tables::require(&mut transaction, table).await?;
            extents::append_in(&mut transaction, table, extents).await?;
        }
        Some(JobEffect::Create { table, extents, replace }) => {
            changed.replaced = tables::create_in(&mut transaction, table, extents, replace).await?;
        }
        None => {}
    }
    fail_point("job_commit_begun");
    transaction.commit().await?;
    Ok(Some(changed))
}

pub(super) async fn keep(lane: &mut Lane, id: JobId, attempt: i64, lease_until: i64) -> Result<bool, Fault> {
    let mut note = lane.note().await?;
    let update = sqlx::query("UPDATE jobs SET lease_until = $1 WHERE id = $2 AND state = 'running' AND attempt = $3");
    let update = update.bind(lease_until).bind(id.to_string()).bind(attempt);
    let n_kept = update.execute(&mut *note).await?.rows_affected();
    note.commit().await?;
    Ok(n_kept > 0)
}

pub(super) async fn drop(lane: &mut Lane, id: JobId) -> Result<bool, Fault> {
    let mut durable = lane.durable().await?;
    let delete = sqlx::query("DELETE FROM jobs WHERE id = $1 AND state NOT IN ('waiting', 'running')");
    let n_deleted = delete.bind(id.to_string()).execute(&mut *durable).await?.rows_affected();
    durable.commit().await?;
    Ok(n_deleted > 0)
}

/// What is written down as JSON.
struct Texts {
    spec: String,
    result: Option<String>,
}

impl Texts {
    fn of(job: &Job) -> Result<Self, Fault> {
        let damaged = |error: serde_json::Error| Fault::damaged(format!("job {}", job.id), error);
        let result = job.result.as_ref().map(serde_json::to_string).transpose().map_err(damaged)?;
        Ok(Self { spec: serde_json::to_string(&job.spec).map_err(damaged)?, result })
    }
}

fn bind<'q>(
    query: Query<'q, Sqlite, SqliteArguments>,
    job: &'q Job,
    texts: &'q Texts,
) -> Query<'q, Sqlite, SqliteArguments> {
    query
        .bind(job.id.to_string())
        .bind(&texts.spec)
        .bind(&job.owner)
        .bind(job.submitted_at)
        .bind(job.state.word())
        .bind(job.attempt)
        .bind(job.tries)
        .bind(job.n_done)
        .bind(job.begun)
        .bind(&job.holder)
        .bind(job.lease_until)
        .bind(job.started_at)
        .bind(job.ended_at)
        .bind(&texts.result)
        .bind(&job.error)
}

fn read(row: &SqliteRow) -> Result<Job, Fault> {
    let id: &str = row.try_get(0)?;
    let damaged = |detail: String| Fault::damaged(format!("job {id}"), detail);
    let result: Option<&str> = row.try_get(13)?;
    let result = result.map(serde_json::from_str).transpose().map_err(|error| damaged(error.to_string()))?;
    Ok(Job {
        id: JobId::parse(id).ok_or_else(|| damaged("it has no identifier".to_owned()))?,
        spec: serde_json::from_str(row.try_get(1)?).map_err(|error| damaged(error.to_string()))?,
        owner: row.try_get(2)?,
        submitted_at: row.try_get(3)?,
        state: JobState::parse(row.try_get(4)?).ok_or_else(|| damaged("its state is none".to_owned()))?,
        attempt: row.try_get(5)?,
        tries: row.try_get(6)?,
        n_done: row.try_get(7)?,
        begun: row.try_get(8)?,
        holder: row.try_get(9)?,
        lease_until: row.try_get(10)?,
        started_at: row.try_get(11)?,
        ended_at: row.try_get(12)?,
        result,
        error: row.try_get(14)?,
    })
}
