//! TPC-H while tables grow: what an append costs, against computing everything anew and against the new rows alone.
//!
//! ```text
//!   slices   tables arrive in ten slices; after each, all queries, rows compared with stock DataFusion's
//!   delta    almost all of lineitem is there; one more file, again and again
//!              incremental   the query after the append
//!              afresh        the same without reuse
//!              alone         the same on the new file only, without reuse
//!   sizes    a thousandth to half of the data, on tables that grow alone or together
//!   bases    the same delta on small and large bases
//! ```
//!
//! Keeps fair   same process, files and partitions. What one engine does after its answer ends before the next is asked.

mod bases;
pub(crate) mod growing;
mod sizes;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nectarine_engine::ExtentCounts;

pub(crate) use self::bases::{BaseFigures, growth};
use self::growing::Growing;
pub(crate) use self::sizes::{SizeFigures, SizedQuery};
use crate::args::AppendArgs;
use crate::compare::difference;
use crate::timing::{Samples, geometric_mean};
use crate::tpch::contender::{Contender, Keeping};
use crate::tpch::data::{self, Table};
use crate::tpch::queries;
use crate::{REST, machine};

/// Slices that tables are cut into.
const N_SLICES: u16 = 10;

/// Queries whose answer over more of lineitem follows from the old one and the new rows.
pub(crate) const LINEAR: [usize; 13] = [1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 19];

/// Queries that read lineitem.
pub(crate) const OF_LINEITEM: [usize; 17] = [1, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 17, 18, 19, 20, 21];

/// Lets what an engine does after its answer end.
const PAUSE: Duration = Duration::from_millis(30);

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: AppendArgs,
    pub(crate) slices: Vec<SliceFigures>,
    pub(crate) delta: Vec<DeltaFigures>,
    pub(crate) sizes: Vec<SizeFigures>,
    pub(crate) bases: Vec<BaseFigures>,
}

/// Tables that arrive in slices.
pub(crate) struct SliceFigures {
    pub(crate) growing: Vec<Table>,
    pub(crate) queries: Vec<SlicedQuery>,
}

/// One query over tables that arrive in slices.
pub(crate) struct SlicedQuery {
    pub(crate) number: usize,
    /// All runs after the first slice.
    pub(crate) stock: Samples,
    pub(crate) ours: Samples,
    /// Of the last run.
    pub(crate) extents: ExtentCounts,
    /// After which slices the rows differed, and how.
    pub(crate) differences: Vec<String>,
}

/// One query after one more file.
pub(crate) struct DeltaFigures {
    pub(crate) number: usize,
    pub(crate) incremental: Samples,
    pub(crate) afresh: Samples,
    pub(crate) alone: Samples,
    /// Of the last incremental run.
    pub(crate) extents: ExtentCounts,
    pub(crate) differences: Vec<String>,
}

impl Figures {
    /// Incremental against the new rows alone, over the queries that are linear.
    pub(crate) fn against_alone(&self) -> f64 {
        let linear = self.delta.iter().filter(|query| LINEAR.contains(&query.number));
        geometric_mean(linear.map(|query| query.incremental.median() / query.alone.median()))
    }

    /// All queries together: afresh against incremental.
    pub(crate) fn gain(&self) -> f64 {
        let total = |of: fn(&DeltaFigures) -> &Samples| self.delta.iter().map(|query| of(query).median()).sum::<f64>();
        total(|query| &query.afresh) / total(|query| &query.incremental)
    }

    /// The query that lost most by reuse.
    pub(crate) fn slowest(&self) -> Option<(usize, f64)> {
        let ratios = self.delta.iter().map(|query| (query.number, query.incremental.paired_ratio(&query.afresh)));
        ratios.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Measures on new homes.
pub(crate) async fn measure(args: &AppendArgs, folder: &Path) -> Result<Figures> {
    let mut slices = vec![];
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, N_SLICES))?;
    let all: Vec<Table> = Table::ALL.into_iter().filter(|table| table.is_large()).collect();
    let settings = [vec![Table::LineItem], vec![Table::LineItem, Table::Orders], all];
    for tables in &settings {
        slices.push(measure_slices(args, tables.clone(), Growing::new(&data)?).await?);
    }
    let data = tokio::task::block_in_place(|| data::prepare(folder, args.scale, args.files))?;
    let delta = measure_delta(args, Growing::new(&data)?, Growing::new(&data)?).await?;
    let sizes = sizes::measure(args, folder, &settings).await?;
    let bases = bases::measure(args, folder).await?;
    Ok(Figures { args: args.clone(), slices, delta, sizes, bases })
}

async fn nectarine(growing: &Growing<'_>, keeping: Keeping) -> Result<Contender> {
    Contender::nectarine(growing.data(), machine::n_cores().max(1), memory_bytes(), keeping).await
}

async fn stock(growing: &Growing<'_>) -> Result<Contender> {
    Contender::stock(growing.data(), machine::n_cores().max(1), memory_bytes()).await
}

fn memory_bytes() -> u64 {
    machine::memory_bytes().unwrap_or(8 << 30) / 10 * 7
}

async fn measure_slices(args: &AppendArgs, tables: Vec<Table>, mut growing: Growing<'_>) -> Result<SliceFigures> {
    for table in Table::ALL {
        growing.add(table, if tables.contains(&table) { 1 } else { u16::MAX })?;
    }
    let ours = nectarine(&growing, Keeping::On).await?;
    let new = |number| SlicedQuery {
        number,
        stock: Samples::default(),
        ours: Samples::default(),
        extents: ExtentCounts::default(),
        differences: vec![],
    };
    let mut figures: Vec<SlicedQuery> = args.queries.iter().map(new).collect();
    for slice in 0..args.slices {
        for table in tables.iter().filter(|_| slice > 0) {
            growing.add(*table, 1)?;
        }
        tokio::time::sleep(REST).await;
        // DataFusion would not see the new files otherwise.
        let stock = stock(&growing).await?;
        for query in &mut figures {
            let sql = queries::sql(query.number, args.scale);
            let expected = stock.run(&sql).await.with_context(|| format!("query {}", query.number))?;
            tokio::time::sleep(PAUSE).await;
            let run = ours.run(&sql).await.with_context(|| format!("query {}", query.number))?;
            tokio::time::sleep(PAUSE).await;
            if let Some(difference) = difference(&run.rows, &expected.rows)? {
                query.differences.push(format!("slice {}: {difference}", slice + 1));
            }
            if slice > 0 {
                query.stock.push(expected.total);
                query.ours.push(run.total);
            }
            query.extents = run.extents.unwrap_or_default();
        }
    }
    ours.shutdown().await;
    let names: Vec<&str> = tables.iter().map(|table| table.name()).collect();
    let ratio = geometric_mean(figures.iter().map(|query| query.ours.paired_ratio(&query.stock)));
    let n_same = figures.iter().filter(|query| query.differences.is_empty()).count();
    eprintln!("{} in slices: {n_same} of {} the same, ratio {ratio:.2}", names.join(", "), figures.len());
    Ok(SliceFigures { growing: tables, queries: figures })
}

async fn measure_delta(
    args: &AppendArgs,
    mut growing: Growing<'_>,
    mut newest: Growing<'_>,
) -> Result<Vec<DeltaFigures>> {
    for table in Table::ALL {
        let is_lineitem = table == Table::LineItem;
        growing.add(table, if is_lineitem { args.files.saturating_sub(args.appends).max(1) } else { u16::MAX })?;
        newest.add(table, if is_lineitem { 0 } else { u16::MAX })?;
    }
    newest.skip(Table::LineItem, args.files.saturating_sub(args.appends).max(1));
    newest.add(Table::LineItem, 1)?;
    tokio::time::sleep(REST).await;
    let ours = nectarine(&growing, Keeping::On).await?;
    let off = nectarine(&growing, Keeping::Off).await?;
    let alone = nectarine(&newest, Keeping::Off).await?;
    let mut figures = vec![];
    for number in args.queries.iter().filter(|number| OF_LINEITEM.contains(number)) {
        let sql = queries::sql(number, args.scale);
        ours.run(&sql).await?;
        off.run(&sql).await?;
        tokio::time::sleep(PAUSE).await;
        figures.push(DeltaFigures {
            number,
            incremental: Samples::default(),
            afresh: Samples::default(),
            alone: Samples::default(),
            extents: ExtentCounts::default(),
            differences: vec![],
        });
    }
    for append in 0..args.appends {
        growing.add(Table::LineItem, 1)?;
        if append > 0 {
            newest.replace(Table::LineItem)?;
        }
        tokio::time::sleep(REST).await;
        for query in &mut figures {
            let sql = queries::sql(query.number, args.scale);
            let expected = off.run(&sql).await?;
            query.afresh.push(expected.total);
            tokio::time::sleep(PAUSE).await;
            // What is learnt of a new file at first sight is not the query's time; here as well as above.
            alone.run(&sql).await?;
            tokio::time::sleep(PAUSE).await;
            query.alone.push(alone.run(&sql).await?.total);
            tokio::time::sleep(PAUSE).await;
            let run = ours.run(&sql).await?;
            query.incremental.push(run.total);
            tokio::time::sleep(PAUSE).await;
            query.extents = run.extents.unwrap_or_default();
            if let Some(difference) = difference(&run.rows, &expected.rows)? {
                query.differences.push(format!("append {}: {difference}", append + 1));
            }
        }
    }
    for query in &figures {
        eprintln!(
            "q{:02}  afresh {:7.1} ms  incremental {:7.1} ms  the new file alone {:7.1} ms  {} of {} extents reused{}",
            query.number,
            query.afresh.median(),
            query.incremental.median(),
            query.alone.median(),
            query.extents.reused,
            query.extents.total,
            if query.differences.is_empty() { "" } else { "  ROWS DIFFER" },
        );
    }
    for contender in [&ours, &off, &alone] {
        contender.shutdown().await;
    }
    Ok(figures)
}
