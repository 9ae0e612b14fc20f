//! Deltas from a thousandth to half of the data, on tables that grow alone or together: reuse must never be slower than computing
//! afresh, whatever was appended.
//!
//! Keeps fair   both know the new files before they are asked; each round has homes of its own, so that every append is the first.

use std::path::Path;

use anyhow::{Context, Result};
use nectarine_engine::ExtentCounts;

use super::growing::Growing;
use super::{PAUSE, nectarine};
use crate::REST;
use crate::args::AppendArgs;
use crate::compare::difference;
use crate::timing::{Samples, geometric_mean};
use crate::tpch::contender::{Contender, Keeping};
use crate::tpch::data::{self, Table, TpchData};
use crate::tpch::queries;

/// Files of each large table, before the delta.
const N_FILES: u16 = 10;

/// What is appended: so many pieces, each one part in so many of all, after so many files.
const SIZES: [Size; 4] = [
    Size { name: "0.1 %", n_base: 9, one_in: 1000, n_pieces: 1 },
    Size { name: "1 %", n_base: 9, one_in: 100, n_pieces: 1 },
    Size { name: "10 %", n_base: 9, one_in: 10, n_pieces: 1 },
    Size { name: "50 %", n_base: 5, one_in: 10, n_pieces: 5 },
];

#[derive(Clone, Copy, Debug)]
struct Size {
    name: &'static str,
    n_base: u16,
    one_in: u16,
    n_pieces: u16,
}

/// One size, on some tables.
pub(crate) struct SizeFigures {
    pub(crate) growing: Vec<Table>,
    pub(crate) name: &'static str,
    pub(crate) queries: Vec<SizedQuery>,
}

/// One query after an append.
pub(crate) struct SizedQuery {
    pub(crate) number: usize,
    pub(crate) incremental: Samples,
    pub(crate) afresh: Samples,
    pub(crate) extents: ExtentCounts,
    pub(crate) differences: Vec<String>,
}

impl SizeFigures {
    /// All queries together, by what they took at best: afresh against incremental.
    pub(crate) fn gain(&self) -> f64 {
        let total = |of: fn(&SizedQuery) -> &Samples| self.queries.iter().map(|query| of(query).min()).sum::<f64>();
        total(|query| &query.afresh) / total(|query| &query.incremental)
    }

    /// Incremental against afresh, over all queries.
    pub(crate) fn mean(&self) -> f64 {
        geometric_mean(self.queries.iter().map(SizedQuery::ratio))
    }

    /// The query that lost most.
    pub(crate) fn slowest(&self) -> Option<&SizedQuery> {
        self.queries.iter().max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
    }
}

impl SizedQuery {
    /// By what both took at best: few rounds on a shared machine tell no more.
    pub(crate) fn ratio(&self) -> f64 {
        self.incremental.min() / self.afresh.min()
    }
}

/// All sizes in all settings.
pub(super) async fn measure(args: &AppendArgs, folder: &Path, settings: &[Vec<Table>]) -> Result<Vec<SizeFigures>> {
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, N_FILES))?;
    let mut figures = vec![];
    for tables in settings {
        for size in SIZES {
            figures.push(measure_size(args, &data, tables, size).await?);
        }
    }
    Ok(figures)
}

async fn measure_size(args: &AppendArgs, data: &TpchData, tables: &[Table], size: Size) -> Result<SizeFigures> {
    let new = |number| SizedQuery {
        number,
        incremental: Samples::default(),
        afresh: Samples::default(),
        extents: ExtentCounts::default(),
        differences: vec![],
    };
    let mut queries: Vec<SizedQuery> = args.queries.iter().map(new).collect();
    for round in 0..args.rounds {
        measure_round(args, data, tables, size, &mut queries)
            .await
            .with_context(|| format!("{} appended, round {}", size.name, round + 1))?;
    }
    let figures = SizeFigures { growing: tables.to_vec(), name: size.name, queries };
    let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
    eprintln!("{} appended to {}: {:.2}x faster", size.name, names.join(", "), figures.gain());
    Ok(figures)
}

async fn measure_round(
    args: &AppendArgs,
    data: &TpchData,
    tables: &[Table],
    size: Size,
    queries: &mut [SizedQuery],
) -> Result<()> {
    let mut growing = Growing::new(data)?;
    for table in Table::ALL {
        growing.add(table, if tables.contains(&table) { size.n_base } else { u16::MAX })?;
    }
    tokio::time::sleep(REST).await;
    let ours = nectarine(&growing, Keeping::On).await?;
    let off = nectarine(&growing, Keeping::Off).await?;
    for query in queries.iter() {
        let sql = queries::sql(query.number, args.scale);
        ours.run(&sql).await?;
        tokio::time::sleep(PAUSE).await;
    }
    // The first piece that is not in the base.
    let first = size.n_base * (size.one_in / N_FILES);
    for table in tables {
        for piece in first..first + size.n_pieces {
            growing.write(*table, args.scale, piece, size.one_in)?;
        }
    }
    tokio::time::sleep(REST).await;
    learn(&ours, tables).await?;
    learn(&off, tables).await?;
    for query in queries {
        let sql = queries::sql(query.number, args.scale);
        let expected = off.run(&sql).await?;
        tokio::time::sleep(PAUSE).await;
        let run = ours.run(&sql).await?;
        tokio::time::sleep(PAUSE).await;
        query.afresh.push(expected.total);
        query.incremental.push(run.total);
        query.extents = run.extents.unwrap_or_default();
        query.differences.extend(difference(&run.rows, &expected.rows)?);
    }
    for contender in [&ours, &off] {
        contender.shutdown().await;
    }
    Ok(())
}

/// What is learnt of new files at first sight is not the queries' time.
pub(super) async fn learn(contender: &Contender, tables: &[Table]) -> Result<()> {
    for table in tables {
        contender.run(&format!("SELECT count(*) FROM {}", table.name())).await?;
    }
    Ok(())
}
