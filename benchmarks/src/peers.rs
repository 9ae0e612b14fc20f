//! Peers side by side: the 22 TPC-H queries by DuckDB, stock DataFusion and Nectarine, over the same Parquet files.
//!
//! ```text
//!   warm-up   each engine once                     rows are compared
//!   round 1   DuckDB      fresh, again             Nectarine forgets everything before it is asked fresh;
//!             DataFusion  fresh, again             the others have nothing to forget, and compute both times
//!             Nectarine   fresh, again
//!   round 2   DataFusion  ..                       who begins alternates
//!   ..
//!   append    1 % more orders, and their lines     all have counted the new rows before they are asked
//! ```
//!
//! Keeps fair   same machine, files, number of threads and memory limit; all warm; all give all rows as Arrow. DuckDB runs in a process of
//! its own and takes its own time; the others share one, as a server's engines would.

mod duck;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use arrow::record_batch::RecordBatch;

use self::duck::Duck;
use crate::append::growing::Growing;
use crate::args::PeersArgs;
use crate::compare::{alike, difference};
use crate::timing::{Samples, geometric_mean};
use crate::tpch::contender::{Contender, Keeping};
use crate::tpch::data::{self, Table};
use crate::tpch::queries;
use crate::{REST, machine};

/// Files of each large table; of those that grow one is left out.
const N_FILES: u16 = 10;
/// One part in so many is appended at a time.
const ONE_IN: u16 = 100;
/// Tables that grow: orders come with their lines.
const GROWING: [Table; 2] = [Table::LineItem, Table::Orders];

/// Lets what an engine does after its answer end before the next one's turn.
const PAUSE: Duration = Duration::from_millis(30);

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: PeersArgs,
    pub(crate) threads: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) data_bytes: u64,
    /// DuckDB's version, or why it was left out.
    pub(crate) duck: Result<String, String>,
    pub(crate) queries: Vec<QueryFigures>,
}

/// One query.
pub(crate) struct QueryFigures {
    pub(crate) number: usize,
    pub(crate) n_rows: usize,
    /// By engine, see [`Engine`].
    pub(crate) engines: [Side; 3],
    /// Where rows differed from stock DataFusion's, and how.
    pub(crate) differences: Vec<String>,
}

/// What one engine took for one query.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) fresh: Samples,
    pub(crate) again: Samples,
    /// After each append.
    pub(crate) appended: Samples,
}

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    Nectarine,
    Stock,
    Duck,
}

impl Engine {
    pub(crate) const ALL: [Self; 3] = [Self::Nectarine, Self::Stock, Self::Duck];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nectarine => "Nectarine",
            Self::Stock => "stock DataFusion",
            Self::Duck => "DuckDB",
        }
    }
}

impl Figures {
    /// Those who took part.
    pub(crate) fn engines(&self) -> impl Iterator<Item = Engine> + use<> {
        let with_duck = self.duck.is_ok();
        Engine::ALL.into_iter().filter(move |engine| *engine != Engine::Duck || with_duck)
    }

    /// All queries together, by their medians.
    pub(crate) fn total(&self, engine: Engine, of: fn(&Side) -> &Samples) -> f64 {
        self.queries.iter().map(|query| of(query.side(engine)).median()).sum()
    }

    /// What Nectarine takes for one unit of the other, at the geometric mean.
    pub(crate) fn ratio(&self, other: Engine, of: fn(&Side) -> &Samples) -> f64 {
        let ratio = |query: &QueryFigures| of(query.side(Engine::Nectarine)).median() / of(query.side(other)).median();
        geometric_mean(self.queries.iter().map(ratio))
    }
}

impl QueryFigures {
    pub(crate) fn side(&self, engine: Engine) -> &Side {
        &self.engines[engine as usize]
    }
}

/// The three, as far as they are there.
struct Peers {
    ours: Contender,
    stock: Contender,
    duck: Option<Duck>,
    threads: usize,
    memory_bytes: u64,
}

impl Peers {
    async fn run(&self, engine: Engine, sql: &str) -> Result<Duration> {
        let taken = match (engine, &self.duck) {
            (Engine::Nectarine, _) => self.ours.run(sql).await?.total,
            (Engine::Stock, _) => self.stock.run(sql).await?.total,
            (Engine::Duck, Some(duck)) => tokio::task::block_in_place(|| duck.run(sql))?.0,
            (Engine::Duck, None) => Duration::ZERO,
        };
        tokio::time::sleep(PAUSE).await;
        Ok(taken)
    }

    async fn rows(&self, engine: Engine, sql: &str) -> Result<Vec<RecordBatch>> {
        match (engine, &self.duck) {
            (Engine::Nectarine, _) => Ok(self.ours.run(sql).await?.rows),
            (Engine::Duck, Some(duck)) => tokio::task::block_in_place(|| duck.rows(sql)),
            (Engine::Stock | Engine::Duck, _) => Ok(self.stock.run(sql).await?.rows),
        }
    }

    /// Who is asked in a round, in this order.
    fn order(&self, round: usize) -> impl Iterator<Item = Engine> + use<> {
        let with_duck = self.duck.is_some();
        let all = (0..Engine::ALL.len()).map(move |at| Engine::ALL[(round + at) % Engine::ALL.len()]);
        all.filter(move |engine| *engine != Engine::Duck || with_duck)
    }

    /// What is learnt of new files at first sight is not the queries' time.
    async fn learn(&self, tables: &[Table]) -> Result<()> {
        for table in tables {
            for engine in self.order(0) {
                self.run(engine, &format!("SELECT count(*) FROM {}", table.name())).await?;
            }
        }
        Ok(())
    }

    /// Compares everybody's rows with stock DataFusion's.
    async fn compare(&self, sql: &str, when: &str, query: &mut QueryFigures) -> Result<()> {
        let expected = self.rows(Engine::Stock, sql).await?;
        query.n_rows = expected.iter().map(RecordBatch::num_rows).sum();
        let ours = difference(&self.rows(Engine::Nectarine, sql).await?, &expected)?;
        query.differences.extend(ours.map(|found| format!("Nectarine {when}: {found}")));
        if self.duck.is_some() {
            let found = alike(&self.rows(Engine::Duck, sql).await?, &expected)?;
            query.differences.extend(found.map(|found| format!("DuckDB {when}: {found}")));
        }
        Ok(())
    }
}

/// Makes the data if it is not there and measures.
pub(crate) async fn measure(args: &PeersArgs, folder: &Path) -> Result<Figures> {
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, N_FILES))?;
    let mut growing = Growing::new(&data)?;
    for table in Table::ALL {
        growing.add(table, if GROWING.contains(&table) { N_FILES - 1 } else { u16::MAX })?;
    }
    tokio::time::sleep(REST).await;
    let threads = args.threads.unwrap_or_else(machine::n_cores).max(1);
    let memory_bytes = machine::memory_bytes().unwrap_or(8 << 30) / 10 * 7;
    let started = tokio::task::block_in_place(|| Duck::start(growing.data(), threads, memory_bytes));
    if let Err(error) = &started {
        eprintln!("DuckDB is left out: {error:#}");
    }
    let duck = match &started {
        Ok(duck) => Ok(duck.version().to_string()),
        Err(_) => Err("it could not be had on this machine (it needs Python 3 and its package index)".to_string()),
    };
    let mut peers = Peers {
        ours: Contender::nectarine(growing.data(), threads, memory_bytes, Keeping::On).await?,
        stock: Contender::stock(growing.data(), threads, memory_bytes).await?,
        duck: started.ok(),
        threads,
        memory_bytes,
    };
    peers.learn(&Table::ALL).await?;
    let mut figures = vec![];
    for number in args.queries.iter() {
        let query = measure_query(args, number, &peers).await.with_context(|| format!("query {number}"))?;
        tell(&query, &peers);
        figures.push(query);
    }
    let data_bytes = growing.data().bytes()?;
    // What is there before anything is appended: every query has been asked once.
    peers.ours.forget().await;
    for query in &figures {
        peers.run(Engine::Nectarine, &queries::sql(query.number, args.scale)).await?;
    }
    for append in 0..args.appends {
        measure_append(args, append, &mut growing, &mut peers, &mut figures).await?;
    }
    peers.ours.shutdown().await;
    Ok(Figures { args: args.clone(), threads, memory_bytes, data_bytes, duck, queries: figures })
}

async fn measure_query(args: &PeersArgs, number: usize, peers: &Peers) -> Result<QueryFigures> {
    let sql = queries::sql(number, args.scale);
    let mut query = QueryFigures { number, n_rows: 0, engines: Default::default(), differences: vec![] };
    peers.compare(&sql, "at first", &mut query).await?;
    for round in 0..usize::from(args.rounds) {
        for engine in peers.order(round) {
            if engine == Engine::Nectarine {
                peers.ours.forget().await;
            }
            let (fresh, again) = (peers.run(engine, &sql).await?, peers.run(engine, &sql).await?);
            query.engines[engine as usize].fresh.push(fresh);
            query.engines[engine as usize].again.push(again);
        }
    }
    Ok(query)
}

async fn measure_append(
    args: &PeersArgs,
    append: u16,
    growing: &mut Growing<'_>,
    peers: &mut Peers,
    figures: &mut [QueryFigures],
) -> Result<()> {
    let piece = (N_FILES - 1) * (ONE_IN / N_FILES) + append;
    for table in GROWING {
        growing.write(table, args.scale, piece, ONE_IN)?;
    }
    tokio::time::sleep(REST).await;
    // DataFusion would not see the new files otherwise.
    peers.stock = Contender::stock(growing.data(), peers.threads, peers.memory_bytes).await?;
    peers.learn(&Table::ALL).await?;
    for query in figures.iter_mut() {
        let sql = queries::sql(query.number, args.scale);
        for engine in peers.order(append.into()) {
            let taken = peers.run(engine, &sql).await.with_context(|| format!("query {}", query.number))?;
            query.engines[engine as usize].appended.push(taken);
        }
        peers.compare(&sql, &format!("after append {}", append + 1), query).await?;
    }
    eprintln!("1 % appended, time {}", append + 1);
    Ok(())
}

fn tell(query: &QueryFigures, peers: &Peers) {
    let times: Vec<String> = peers
        .order(0)
        .map(|engine| {
            let side = query.side(engine);
            format!("{} {:.1} ms, again {:.2} ms", engine.name(), side.fresh.median(), side.again.median())
        })
        .collect();
    let same = if query.differences.is_empty() { "" } else { "  ROWS DIFFER" };
    eprintln!("q{:02}  {}{same}", query.number, times.join("   "));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use crate::report::Report;

    /// A tiny size of all of it, so that it does not rot. Without Python it goes on without DuckDB, and says so.
    #[test]
    fn a_tiny_size() {
        let measured = async {
            let folder = tempfile::tempdir()?;
            let args = PeersArgs { scale: 0.01, rounds: 1, appends: 1, threads: Some(2), ..PeersArgs::default() };
            let figures = measure(&args, folder.path()).await?;
            for query in &figures.queries {
                assert_eq!(query.differences, Vec::<String>::new(), "query {}", query.number);
            }
            if let Err(why) = &figures.duck {
                eprintln!("DuckDB did not take part: {why}");
                // On the build machine a test that did not run must not look like one that passed.
                assert!(std::env::var_os("CI").is_none(), "DuckDB did not take part: {why}");
            }
            let mut report = Report::new(Part::Peers);
            report.peers(&figures);
            Ok::<_, anyhow::Error>((report.into_section(), figures.duck.is_ok()))
        };
        let runtime = crate::runtime().unwrap();
        let (section, with_duck) = runtime.block_on(async { tokio::spawn(measured).await }).unwrap().unwrap();
        assert!(section.text.starts_with("## ") && section.text.contains("| q22 |"), "{}", section.text);
        assert_eq!(section.text.contains("| DuckDB |"), with_duck);
        assert!(!section.text.contains("NaN"), "{}", section.text);
        assert_eq!(section.pictures.len(), 3);
        section.pictures.iter().for_each(|(_, svg)| crate::chart::tests::assert_well_formed(svg));
    }
}
