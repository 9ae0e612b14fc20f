//! The 22 TPC-H queries, Nectarine and stock DataFusion in turn over the same files.
//!
//! ```text
//!   warm-up   stock  ours             rows are compared
//!   pair 1    stock  ours
//!   pair 2    ours   stock            the order alternates: neither always finds the caches as the other left them
//!   ..
//! ```
//!
//! Keeps fair   same process, allocator, threads, partitions, memory limit and files; both with what they have cached.

pub(crate) mod contender;
pub(crate) mod data;
pub(crate) mod queries;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use self::contender::{Contender, Keeping, Run};
pub(crate) use self::queries::N_QUERIES;
use crate::args::TpchArgs;
use crate::compare::difference;
use crate::machine;
use crate::timing::{Samples, geometric_mean};

/// The most that the geometric mean of the ratios may be.
pub(crate) const GEOMETRIC_MEAN_MAX: f64 = 1.03;

/// The most that the ratio of any query may be.
pub(crate) const RATIO_MAX: f64 = 1.15;

/// The same with results being kept.
pub(crate) const COLD_MEAN_MAX: f64 = 1.05;
/// The same.
pub(crate) const COLD_RATIO_MAX: f64 = 1.25;

/// Pairs beyond this say nothing new.
const PAIRS_MAX: u16 = 41;

/// Lets what an engine does after its answer (writing the query log) end before the other one's turn.
const PAUSE: Duration = Duration::from_millis(20);

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: TpchArgs,
    pub(crate) partitions: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) data_bytes: u64,
    pub(crate) queries: Vec<QueryFigures>,
}

/// What was measured of one query.
pub(crate) struct QueryFigures {
    pub(crate) number: usize,
    pub(crate) n_rows: usize,
    pub(crate) stock: Side,
    pub(crate) ours: Side,
    /// How the rows differ, if they do.
    pub(crate) difference: Option<String>,
}

/// One engine's part.
#[derive(Default)]
pub(crate) struct Side {
    pub(crate) total: Samples,
    pub(crate) planning: Samples,
    /// Processor time of all runs together.
    pub(crate) cpu: Option<Duration>,
}

/// A way to boil the pairs of a query down to one ratio, ours to stock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Estimate {
    Paired,
    Medians,
    Mins,
    Cpu,
}

impl Estimate {
    pub(crate) const ALL: [Self; 4] = [Self::Paired, Self::Medians, Self::Mins, Self::Cpu];

    pub(crate) fn of(self, query: &QueryFigures) -> f64 {
        let (ours, stock) = (&query.ours, &query.stock);
        match self {
            Self::Paired => ours.total.paired_ratio(&stock.total),
            Self::Medians => ours.total.median() / stock.total.median(),
            Self::Mins => ours.total.min() / stock.total.min(),
            Self::Cpu => match (ours.cpu, stock.cpu) {
                (Some(ours), Some(stock)) if !stock.is_zero() => ours.as_secs_f64() / stock.as_secs_f64(),
                _ => f64::NAN,
            },
        }
    }
}

impl Figures {
    pub(crate) fn geometric_mean(&self, estimate: Estimate) -> f64 {
        geometric_mean(self.queries.iter().map(|query| estimate.of(query)))
    }

    /// The largest ratio, and the query that has it.
    pub(crate) fn worst(&self, estimate: Estimate) -> (f64, usize) {
        let ratios = self.queries.iter().map(|query| (estimate.of(query), query.number));
        ratios.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::NAN, 0))
    }
}

/// Makes the data if it is not there and measures.
pub(crate) async fn measure(args: &TpchArgs, folder: &Path) -> Result<Figures> {
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, args.files))?;
    let partitions = args.partitions.unwrap_or_else(machine::n_cores).max(1);
    // Nectarine's default share; given to both in bytes so that both have the same.
    let memory_bytes = machine::memory_bytes().unwrap_or(8 << 30) / 10 * 7;
    let stock = Contender::stock(&data, partitions, memory_bytes).await?;
    let keeping = if args.cold { Keeping::Cold } else { Keeping::Off };
    let ours = match args.control {
        true => Contender::stock(&data, partitions, memory_bytes).await?,
        false => Contender::nectarine(&data, partitions, memory_bytes, keeping).await?,
    };
    let mut queries = vec![];
    for number in args.queries.iter() {
        let sql = queries::sql(number, args.scale);
        let query =
            measure_query(number, &sql, args, &stock, &ours).await.with_context(|| format!("query {number}"))?;
        eprintln!(
            "q{number:02}  stock {:8.1} ms  {} {:8.1} ms  ratio {:.3}  ({} pairs{})",
            query.stock.total.median(),
            if args.control { "again" } else { "ours" },
            query.ours.total.median(),
            Estimate::Paired.of(&query),
            query.ours.total.len(),
            query.difference.as_ref().map_or_else(String::new, |difference| format!("; ROWS DIFFER: {difference}")),
        );
        queries.push(query);
    }
    ours.shutdown().await;
    let data_bytes = data.bytes()?;
    Ok(Figures { args: args.clone(), partitions, memory_bytes, data_bytes, queries })
}

async fn measure_query(
    number: usize,
    sql: &str,
    args: &TpchArgs,
    stock: &Contender,
    ours: &Contender,
) -> Result<QueryFigures> {
    let stock_rows = stock.run(sql).await.context("stock DataFusion")?.rows;
    // What is learnt of files at first sight is not the query's time.
    let ours_rows = ours.run(sql).await.context("Nectarine")?.rows;
    let difference = difference(&ours_rows, &stock_rows)?;
    let n_rows = stock_rows.iter().map(|batch| batch.num_rows()).sum();

    let mut figures = QueryFigures { number, n_rows, stock: Side::default(), ours: Side::default(), difference };
    let started = Instant::now();
    for pair in 0..PAIRS_MAX.max(args.runs) {
        if pair >= args.runs && started.elapsed() >= Duration::from_secs(args.seconds.into()) {
            break;
        }
        if pair % 2 == 0 {
            figures.stock.add(stock, sql).await?;
            figures.ours.add(ours, sql).await?;
        } else {
            figures.ours.add(ours, sql).await?;
            figures.stock.add(stock, sql).await?;
        }
    }
    Ok(figures)
}

impl Side {
    async fn add(&mut self, contender: &Contender, sql: &str) -> Result<()> {
        let before = machine::cpu_time();
        let Run { planning, total, rows, .. } = contender.run(sql).await?;
        drop(rows);
        // Background work is charged to who caused it.
        tokio::time::sleep(PAUSE).await;
        if let (Some(before), Some(after)) = (before, machine::cpu_time()) {
            self.cpu = Some(self.cpu.unwrap_or_default() + after.saturating_sub(before));
        }
        self.planning.push(planning);
        self.total.push(total);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nectarine_gives_the_rows_that_datafusion_gives() {
        let compare_all = async {
            let folder = tempfile::tempdir()?;
            let scale = 0.01;
            let data = data::prepare(folder.path(), scale, 2)?;
            let stock = Contender::stock(&data, 2, 1 << 30).await?;
            let ours = Contender::nectarine(&data, 2, 1 << 30, Keeping::Cold).await?;
            for number in 1..=N_QUERIES {
                let sql = queries::sql(number, scale);
                let (stock, ours) = (stock.run(&sql).await?.rows, ours.run(&sql).await?.rows);
                assert_eq!(difference(&ours, &stock)?, None, "query {number}");
            }
            ours.shutdown().await;
            Ok::<(), anyhow::Error>(())
        };
        let runtime = crate::runtime().unwrap();
        runtime.block_on(async { tokio::spawn(compare_all).await }).unwrap().unwrap();
    }
}
