//! What reuse saves: each TPC-H query cold, then again and again, then changed at the top.
//!
//! ```text
//!   cold      nothing is known
//!   exact     the same text: p50 of many
//!   spelling  another spelling of the same: planned, then found
//!   top       another ORDER BY or LIMIT above the same groups or joins
//!   list      another SELECT list above them
//!   having    another condition on the groups, where there are some
//! ```

mod changed;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nectarine_engine::{Engine, Session, Settings};
use tempfile::TempDir;

use crate::args::TpchArgs;
use crate::machine;
use crate::timing::{Samples, geometric_mean};
use crate::tpch::data::{self, Table};
use crate::tpch::queries;

/// How often a cold query is run; the fastest counts, which is the strictest.
const COLD_RUNS: usize = 3;
/// How often a hit is asked for.
const HITS: usize = 51;

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) scale: f64,
    pub(crate) queries: Vec<QueryFigures>,
}

/// One query.
pub(crate) struct QueryFigures {
    pub(crate) number: usize,
    pub(crate) n_rows: usize,
    pub(crate) cold: Samples,
    pub(crate) exact: Samples,
    pub(crate) spelling: Samples,
    /// With another LIMIT and ORDER BY on top.
    pub(crate) top: Samples,
    /// With another SELECT list.
    pub(crate) list: Samples,
    /// With another HAVING; none for queries without aggregates at their top.
    pub(crate) having: Samples,
}

impl QueryFigures {
    pub(crate) fn exact_gain(&self) -> f64 {
        self.cold.min() / self.exact.median()
    }

    /// How much faster it is than cold when it was changed; `None` if there is no such change.
    pub(crate) fn gain(&self, changed: &Samples) -> Option<f64> {
        (changed.len() > 0).then(|| self.cold.min() / changed.first())
    }
}

impl Figures {
    pub(crate) fn exact_gain(&self) -> f64 {
        geometric_mean(self.queries.iter().map(QueryFigures::exact_gain))
    }

    /// The same for queries that were changed.
    pub(crate) fn gain(&self, changed: impl Fn(&QueryFigures) -> &Samples) -> f64 {
        geometric_mean(self.queries.iter().filter_map(|query| query.gain(changed(query))))
    }
}

/// Measures on a new home.
pub(crate) async fn measure(args: &TpchArgs, folder: &Path) -> Result<Figures> {
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, args.files))?;
    let partitions = args.partitions.unwrap_or_else(machine::n_cores).max(1);
    let settings = Settings::default().with("datafusion.execution.target_partitions", &partitions.to_string())?;
    let home = TempDir::new()?;
    let engine = Engine::builder().home(home.path()).settings(settings).open().await?;
    let session = engine.session();
    for table in Table::ALL {
        let location = data.location(table).replace('\'', "''");
        let sql = format!("CREATE EXTERNAL TABLE {} STORED AS PARQUET LOCATION '{location}'", table.name());
        session.execute(&sql).await?.collect().await?;
    }
    let mut figures = vec![];
    for number in args.queries.iter() {
        let sql = queries::sql(number, args.scale);
        let query = measure_query(number, &sql, &engine, &session).await.with_context(|| format!("query {number}"))?;
        eprintln!(
            "q{number:02}  cold {:8.1} ms  exact {:7.3} ms ({:.0}x)  other spelling {:7.2} ms  other top {:7.2} ms  other list {:7.2} ms  \
             other having {:7.2} ms",
            query.cold.min(),
            query.exact.median(),
            query.exact_gain(),
            query.spelling.median(),
            query.top.first(),
            query.list.first(),
            query.having.first(),
        );
        figures.push(query);
    }
    engine.shutdown().await;
    Ok(Figures { scale: args.scale, queries: figures })
}

async fn measure_query(number: usize, sql: &str, engine: &Engine, session: &Session) -> Result<QueryFigures> {
    let mut query = QueryFigures {
        number,
        n_rows: 0,
        cold: Samples::default(),
        exact: Samples::default(),
        spelling: Samples::default(),
        top: Samples::default(),
        list: Samples::default(),
        having: Samples::default(),
    };
    // What is learnt of files at first sight is not the query's time.
    ask(session, sql).await?;
    for _ in 0..COLD_RUNS {
        engine.cache().clear().await;
        let (time, n_rows) = ask(session, sql).await?;
        query.cold.push(time);
        query.n_rows = n_rows;
    }
    for hit in 0..HITS {
        query.exact.push(ask(session, sql).await?.0);
        // A comment makes it another text with the same meaning.
        query.spelling.push(ask(session, &format!("{sql} -- {hit}")).await?.0);
    }
    for limit in 0..5 {
        let sql =
            format!("SELECT * FROM ({}) AS x ORDER BY 1 DESC LIMIT {}", sql.trim().trim_end_matches(';'), 3 + limit);
        query.top.push(ask(session, &sql).await?.0);
    }
    for number in 1..=5 {
        query.list.push(ask(session, &changed::other_list(sql, number)?).await?.0);
        if let Some(sql) = changed::other_having(sql, number)? {
            query.having.push(ask(session, &sql).await?.0);
        }
    }
    Ok(query)
}

async fn ask(session: &Session, sql: &str) -> Result<(Duration, usize)> {
    let started = Instant::now();
    let batches = session.execute(sql).await?.collect().await?;
    Ok((started.elapsed(), batches.iter().map(|batch| batch.num_rows()).sum()))
}
