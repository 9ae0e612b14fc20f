//! Many extents: how long planning takes over those that are known, what memory they cost, how quickly a home opens again.
//!
//! ```text
//!   files -> CREATE EXTERNAL TABLE -> first query (learns)   -> plan it many times
//!         -> INSERT INTO managed table, an extent per batch  -> plan it many times
//!   a new process on the same home: open, first query, memory before and after
//! ```

mod files;
mod known;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arrow::array::AsArray;
use arrow::datatypes::{Float64Type, Int64Type};
use nectarine_engine::{Engine, Session, Settings};
use tempfile::TempDir;

use self::files::ROWS_PER_FILE;
pub(crate) use self::known::{Reopened, answer_as_child};
use crate::REST;
use crate::args::ExtentsArgs;
use crate::timing::{Samples, milliseconds};

/// The most that planning over known extents may take.
pub(crate) const PLANNING_MS_MAX: f64 = 30.0;

/// The most memory that a known extent may cost.
pub(crate) const BYTES_PER_EXTENT_MAX: f64 = 4096.0;

const EXTERNAL: &str = "external_extents";
const MANAGED: &str = "managed_extents";

/// Tables that have ten files of those, and their rows.
const FEW_EXTERNAL: &str = "few_external_extents";
const FEW_MANAGED: &str = "few_managed_extents";
const N_FEW: u32 = 10;

/// Planning is what is measured: a query that is answered without it says nothing.
pub(crate) fn without_reuse() -> Result<Settings> {
    Ok(Settings::default().with("nectarine.reuse", "off")?)
}

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) columns: u16,
    pub(crate) external: TableFigures,
    pub(crate) managed: Option<TableFigures>,
}

/// What was measured of one table.
pub(crate) struct TableFigures {
    pub(crate) n_extents: u32,
    /// CREATE EXTERNAL TABLE, or INSERT.
    pub(crate) made: Duration,
    /// The first query, which learns what there is to know.
    pub(crate) first_query: Duration,
    /// EXPLAIN of a query that one extent can answer, from text to rows.
    pub(crate) explain_one: Samples,
    /// EXPLAIN of a query that needs all extents.
    pub(crate) explain_all: Samples,
    /// What `system.queries` says about planning the query that one extent can answer, when it is run.
    pub(crate) planning_one: Samples,
    /// The same query from text to rows.
    pub(crate) query_one: Samples,
    pub(crate) reopened: Reopened,
}

/// Makes the extents and measures.
pub(crate) async fn measure(args: &ExtentsArgs, folder: &Path) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("extents").tempdir_in(folder)?;
    let (data, home) = (folder.path().join("data"), folder.path().join("home"));
    let started = Instant::now();
    tokio::task::block_in_place(|| files::generate(&data, args.count, args.columns))?;
    eprintln!("{} files made in {:.1} s", args.count, started.elapsed().as_secs_f64());
    tokio::time::sleep(REST).await;

    let engine = Engine::builder().home(&home).settings(without_reuse()?).open().await?;
    let session = engine.session();
    let made = make_external(&session, &data).await?;
    let mut external = measure_table(&session, EXTERNAL, args.count, args.plans, made).await?;

    let n_managed = args.managed.unwrap_or(args.count).min(args.count);
    let mut managed = None;
    if n_managed > 0 {
        let made = make_managed(&engine, n_managed).await?;
        managed = Some(measure_table(&session, MANAGED, n_managed, args.plans, made).await?);
    }
    engine.shutdown().await;
    drop((session, engine));

    external.reopened = reopen(&home, FEW_EXTERNAL, EXTERNAL, args.count)?;
    if let Some(managed) = &mut managed {
        managed.reopened = reopen(&home, FEW_MANAGED, MANAGED, n_managed)?;
    }
    remove(folder)?;
    Ok(Figures { columns: args.columns, external, managed })
}

async fn make_external(session: &Session, data: &Path) -> Result<Duration> {
    let location = format!("{}/", data.display()).replace('\'', "''");
    timed(
        session,
        &format!("CREATE EXTERNAL TABLE {FEW_EXTERNAL} STORED AS PARQUET LOCATION '{location}00000?.parquet'"),
    )
    .await?;
    timed(session, &format!("CREATE TABLE {FEW_MANAGED} AS SELECT * FROM {FEW_EXTERNAL}")).await?;
    timed(session, &format!("CREATE EXTERNAL TABLE {EXTERNAL} STORED AS PARQUET LOCATION '{location}'")).await
}

/// A managed table with as many extents as asked for, made by one statement that begins a new one after each batch.
async fn make_managed(engine: &Engine, n_extents: u32) -> Result<Duration> {
    let session = engine.session();
    for sql in [
        "SET nectarine.extent_bytes_max = '1'",
        &format!("SET datafusion.execution.batch_size = {ROWS_PER_FILE}"),
        // One thread: rows in the order of the files, and batches that are full.
        "SET datafusion.execution.target_partitions = 1",
    ] {
        timed(&session, sql).await?;
    }
    timed(&session, &format!("CREATE TABLE {MANAGED} AS SELECT * FROM {EXTERNAL} WHERE false")).await?;
    let n_rows = i64::from(n_extents) * ROWS_PER_FILE;
    timed(&session, &format!("INSERT INTO {MANAGED} SELECT * FROM {EXTERNAL} WHERE b < {n_rows}")).await
}

async fn measure_table(
    session: &Session,
    table: &str,
    n_extents: u32,
    n_plans: u32,
    made: Duration,
) -> Result<TableFigures> {
    let one = one_extent_sql(table, n_extents);
    let all = format!("SELECT count(*), min(a) FROM {table} WHERE b > -1");
    let first_query = timed(session, &all).await?;
    let known = number_of_extents(session, table).await?;
    anyhow::ensure!(known == i64::from(n_extents), "table {table} has {known} extents, expected {n_extents}");
    eprintln!("{table}: {n_extents} extents made in {made:.1?}, learnt in {first_query:.1?}");

    let mut figures = TableFigures {
        n_extents,
        made,
        first_query,
        explain_one: Samples::default(),
        explain_all: Samples::default(),
        planning_one: Samples::default(),
        query_one: Samples::default(),
        reopened: Reopened::default(),
    };
    let mut query_ids = vec![];
    for _ in 0..n_plans {
        figures.explain_one.push(timed(session, &format!("EXPLAIN {one}")).await?);
        figures.explain_all.push(timed(session, &format!("EXPLAIN {all}")).await?);
        let started = Instant::now();
        let answer = session.execute(&one).await?;
        query_ids.push(answer.query_id().to_string());
        answer.collect().await?;
        figures.query_one.push(started.elapsed());
    }
    figures.planning_one = planning_times(session, &query_ids).await?;
    anyhow::ensure!(figures.planning_one.len() == query_ids.len(), "system.queries does not know all queries");
    Ok(figures)
}

/// A query whose filter leaves the last extent.
fn one_extent_sql(table: &str, n_extents: u32) -> String {
    let bound = i64::from(n_extents) * ROWS_PER_FILE - ROWS_PER_FILE / 2;
    format!("SELECT count(*), min(a) FROM {table} WHERE b > {bound}")
}

async fn timed(session: &Session, sql: &str) -> Result<Duration> {
    let started = Instant::now();
    let answer = session.execute(sql).await.with_context(|| sql.to_string())?;
    answer.collect().await.with_context(|| sql.to_string())?;
    Ok(started.elapsed())
}

async fn number_of_extents(session: &Session, table: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM system.extents WHERE table_name = '{table}'");
    let rows = session.execute(&sql).await?.collect().await?;
    let counts = rows.iter().filter(|batch| batch.num_rows() > 0);
    Ok(counts.map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0)).sum())
}

async fn planning_times(session: &Session, query_ids: &[String]) -> Result<Samples> {
    let ids = query_ids.iter().map(|id| format!("'{id}'")).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT planning_ms FROM system.queries WHERE query_id IN ({ids})");
    let rows = session.execute(&sql).await?.collect().await?;
    Ok(rows.iter().flat_map(|batch| batch.column(0).as_primitive::<Float64Type>().iter().flatten()).collect())
}

fn reopen(home: &Path, few: &str, table: &str, n_extents: u32) -> Result<Reopened> {
    let (few, many) = (one_extent_sql(few, N_FEW), one_extent_sql(table, n_extents));
    let reopened = tokio::task::block_in_place(|| known::ask_child(home, &few, &many))?;
    eprintln!("{table}: reopened in {:.1} ms", milliseconds(reopened.open));
    Ok(reopened)
}

fn remove(folder: TempDir) -> Result<()> {
    folder.close().context("cannot remove the files that were measured")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_table_have_an_extent_per_file() {
        let measure = async {
            let folder = tempfile::tempdir()?;
            let (data, home) = (folder.path().join("data"), folder.path().join("home"));
            files::generate(&data, 12, 16)?;
            let engine = Engine::builder().home(&home).settings(without_reuse()?).open().await?;
            let session = engine.session();
            let made = make_external(&session, &data).await?;
            let external = measure_table(&session, EXTERNAL, 12, 2, made).await?;
            let made = make_managed(&engine, 7).await?;
            let managed = measure_table(&session, MANAGED, 7, 2, made).await?;
            engine.shutdown().await;
            Ok::<_, anyhow::Error>([external.planning_one.len(), managed.planning_one.len()])
        };
        let runtime = crate::runtime().unwrap();
        assert_eq!(runtime.block_on(async { tokio::spawn(measure).await }).unwrap().unwrap(), [2, 2]);
    }
}
