//! Reports and their runs: a row each. Durable, but no change of the catalog: what statements see of tables stays the same.
//!
//! Keeps true   a run changes only from the state and attempt that its caller believes it is in; rows that it appends to a table
//!              and its end are one transaction.

use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{QueryBuilder, Row, Sqlite};

use super::fault::Fault;
use super::lane::Lane;
use super::{extents, tables};
use crate::{
    CatalogError, Extent, Fingerprint, Report, ReportId, ReportRun, RunPlan, RunQuery, RunState, TableId, fail_point,
};

/// The columns of a run, in the order of [`bind`] and [`read_run`].
macro_rules! run_columns {
    () => {
        "report_id, scheduled_for, state, attempt, failures, not_before, holder, lease_until, started_at, elapsed_ms, \
         row_count, output, digest, reused, saved_ms, error"
    };
}

pub(super) async fn list(lane: &mut Lane) -> Result<Vec<Report>, Fault> {
    let select = sqlx::query("SELECT id, name, spec, owner, paused, created_at, scheduled_to FROM reports");
    let rows = select.fetch_all(lane.read()?).await?;
    let mut reports = rows.iter().map(read).collect::<Result<Vec<_>, Fault>>()?;
    reports.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(reports)
}

pub(super) async fn create(lane: &mut Lane, report: &Report) -> Result<(), Fault> {
    let mut durable = lane.durable().await?;
    let insert = sqlx::query(
        "INSERT INTO reports (id, name, spec, owner, paused, created_at, scheduled_to) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (name) DO NOTHING",
    );
    let insert = insert.bind(report.id.to_string()).bind(&report.name).bind(spec_text(report)?).bind(&report.owner);
    let insert = insert.bind(report.paused).bind(report.created_at).bind(report.scheduled_to);
    if insert.execute(&mut *durable).await?.rows_affected() == 0 {
        return Err(exists(&report.name));
    }
    Ok(durable.commit().await?)
}

pub(super) async fn change(lane: &mut Lane, report: &Report) -> Result<(), Fault> {
    let mut durable = lane.durable().await?;
    let id = report.id.to_string();
    let other = sqlx::query("SELECT 1 FROM reports WHERE name = $1 AND id <> $2").bind(&report.name).bind(&id);
    if other.fetch_optional(&mut *durable).await?.is_some() {
        return Err(exists(&report.name));
    }
    let update = sqlx::query(
        "UPDATE reports SET name = $1, spec = $2, owner = $3, paused = $4,
         scheduled_to = CASE WHEN scheduled_to < $5 THEN $5 ELSE scheduled_to END WHERE id = $6",
    );
    let update = update.bind(&report.name).bind(spec_text(report)?).bind(&report.owner);
    let update = update.bind(report.paused).bind(report.scheduled_to).bind(&id);
    if update.execute(&mut *durable).await?.rows_affected() == 0 {
        return Err(CatalogError::NotFound { what: "report", name: report.name.clone() }.into());
    }
    Ok(durable.commit().await?)
}

pub(super) async fn drop(lane: &mut Lane, id: ReportId) -> Result<bool, Fault> {
    let mut durable = lane.durable().await?;
    let delete = sqlx::query("DELETE FROM reports WHERE id = $1").bind(id.to_string());
    let n_deleted = delete.execute(&mut *durable).await?.rows_affected();
    durable.commit().await?;
    Ok(n_deleted > 0)
}

pub(super) async fn plan(lane: &mut Lane, plan: &RunPlan) -> Result<bool, Fault> {
    let mut durable = lane.durable().await?;
    let id = plan.report.to_string();
    let update = sqlx::query("UPDATE reports SET scheduled_to = $1 WHERE id = $2 AND scheduled_to = $3");
    let update = update.bind(plan.to).bind(&id).bind(plan.from);
    if update.execute(&mut *durable).await?.rows_affected() == 0 {
        durable.rollback().await?;
        return Ok(false);
    }
    for run in &plan.runs {
        insert(&mut durable, run).await?;
    }
    let delete = sqlx::query(
        "DELETE FROM report_runs WHERE report_id = $1 AND state NOT IN ('due', 'running') AND scheduled_for <
         (SELECT scheduled_for FROM report_runs WHERE report_id = $2 ORDER BY scheduled_for DESC LIMIT 1 OFFSET $3)",
    );
    let keep = i64::try_from(plan.keep.max(1) - 1).unwrap_or(i64::MAX);
    delete.bind(&id).bind(&id).bind(keep).execute(&mut *durable).await?;
    durable.commit().await?;
    Ok(true)
}

pub(super) async fn runs(lane: &mut Lane, wanted: &RunQuery) -> Result<Vec<ReportRun>, Fault> {
    let mut select = QueryBuilder::<Sqlite>::new(concat!("SELECT ", run_columns!(), " FROM report_runs WHERE 1 = 1"));
    if let Some(report) = wanted.report {
        select.push(" AND report_id = ").push_bind(report.to_string());
    }
    if let Some(before) = wanted.before {
        select.push(" AND scheduled_for < ").push_bind(before);
    }
    if !wanted.states.is_empty() {
        select.push(" AND state IN (");
        let mut list = select.separated(", ");
        wanted.states.iter().for_each(|state| _ = list.push_bind(state.word()));
        select.push(")");
    }
    select.push(" ORDER BY scheduled_for DESC, report_id");
    if let Some(limit) = wanted.limit {
        select.push(" LIMIT ").push_bind(i64::try_from(limit).unwrap_or(i64::MAX));
    }
    let rows = select.build().fetch_all(lane.read()?).await?;
    rows.iter().map(read_run).collect()
}

pub(super) async fn begin(lane: &mut Lane, run: &ReportRun) -> Result<bool, Fault> {
    let mut durable = lane.durable().await?;
    require(&mut durable, run.report).await?;
    let is_new = insert(&mut durable, run).await?;
    durable.commit().await?;
    Ok(is_new)
}

pub(super) async fn change_run(
    lane: &mut Lane,
    was: (RunState, i64),
    run: &ReportRun,
    append: Option<(TableId, &[Extent])>,
) -> Result<bool, Fault> {
    // Rows that come are a change of the catalog, the end of a run alone is none.
    let mut transaction = match append {
        Some(_) => lane.change().await?,
        None => lane.durable().await?,
    };
    let update = sqlx::query(
        "UPDATE report_runs SET state = $3, attempt = $4, failures = $5, not_before = $6, holder = $7, lease_until = $8,
         started_at = $9, elapsed_ms = $10, row_count = $11, output = $12, digest = $13, reused = $14, saved_ms = $15,
         error = $16 WHERE report_id = $1 AND scheduled_for = $2 AND state = $17 AND attempt = $18",
    );
    let (state, attempt) = was;
    let update = bind(update, run).bind(state.word()).bind(attempt);
    if update.execute(&mut *transaction).await?.rows_affected() == 0 {
        transaction.rollback().await?;
        return Ok(false);
    }
    if let Some((table, new)) = append {
        tables::require(&mut transaction, table).await?;
        extents::append_in(&mut transaction, table, new).await?;
    }
    fail_point("report_commit_begun");
    transaction.commit().await?;
    Ok(true)
}

/// Adds a run, unless there is one for its time.
async fn insert(connection: &mut SqliteConnection, run: &ReportRun) -> Result<bool, Fault> {
    let insert = sqlx::query(concat!(
        "INSERT INTO report_runs (",
        run_columns!(),
        ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
         ON CONFLICT (report_id, scheduled_for) DO NOTHING"
    ));
    Ok(bind(insert, run).execute(connection).await?.rows_affected() > 0)
}

async fn require(connection: &mut SqliteConnection, id: ReportId) -> Result<(), Fault> {
    let select = sqlx::query("SELECT 1 FROM reports WHERE id = $1").bind(id.to_string());
    match select.fetch_optional(connection).await? {
        Some(_) => Ok(()),
        None => Err(CatalogError::NotFound { what: "report", name: id.to_string() }.into()),
    }
}

fn bind<'q>(query: Query<'q, Sqlite, SqliteArguments>, run: &'q ReportRun) -> Query<'q, Sqlite, SqliteArguments> {
    query
        .bind(run.report.to_string())
        .bind(run.scheduled_for)
        .bind(run.state.word())
        .bind(run.attempt)
        .bind(run.failures)
        .bind(run.not_before)
        .bind(&run.holder)
        .bind(run.lease_until)
        .bind(run.started_at)
        .bind(run.elapsed_ms)
        .bind(run.rows)
        .bind(&run.output)
        .bind(run.digest.map(|digest| digest.as_bytes().to_vec()))
        .bind(&run.reused)
        .bind(run.saved_ms)
        .bind(&run.error)
}

fn read_run(row: &SqliteRow) -> Result<ReportRun, Fault> {
    let id: &str = row.try_get(0)?;
    let damaged = |detail: &str| Fault::damaged(format!("a run of report {id}"), detail);
    let digest: Option<&[u8]> = row.try_get(12)?;
    Ok(ReportRun {
        report: ReportId::parse(id).ok_or_else(|| damaged("its report has no identifier"))?,
        scheduled_for: row.try_get(1)?,
        state: RunState::parse(row.try_get(2)?).ok_or_else(|| damaged("its state is none"))?,
        attempt: row.try_get(3)?,
        failures: row.try_get(4)?,
        not_before: row.try_get(5)?,
        holder: row.try_get(6)?,
        lease_until: row.try_get(7)?,
        started_at: row.try_get(8)?,
        elapsed_ms: row.try_get(9)?,
        rows: row.try_get(10)?,
        output: row.try_get(11)?,
        digest: digest.and_then(Fingerprint::from_slice),
        reused: row.try_get(13)?,
        saved_ms: row.try_get(14)?,
        error: row.try_get(15)?,
    })
}

fn read(row: &SqliteRow) -> Result<Report, Fault> {
    let (id, name): (&str, String) = (row.try_get(0)?, row.try_get(1)?);
    let damaged = |detail: String| Fault::damaged(format!("report \"{name}\""), detail);
    Ok(Report {
        id: ReportId::parse(id).ok_or_else(|| damaged("it has no identifier".to_owned()))?,
        spec: serde_json::from_str(row.try_get(2)?).map_err(|error| damaged(error.to_string()))?,
        owner: row.try_get(3)?,
        paused: row.try_get(4)?,
        created_at: row.try_get(5)?,
        scheduled_to: row.try_get(6)?,
        name,
    })
}

fn spec_text(report: &Report) -> Result<String, Fault> {
    serde_json::to_string(&report.spec).map_err(|error| Fault::damaged(format!("report \"{}\"", report.name), error))
}

fn exists(name: &str) -> Fault {
    CatalogError::AlreadyExists { what: "report", name: name.to_owned() }.into()
}
