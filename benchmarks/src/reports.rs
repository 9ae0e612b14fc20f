//! Reports by the clock over a table that grows every day: what reuse saves of the whole, runs and files included.
//!
//! ```text
//!   two homes   the same reports and rows; one with reuse, one without
//!   each day    rows arrive; the clock is driven on by twelve hours, twice, and what is due runs: first on one home, then on the other
//!   outputs     are compared, file by file
//! ```
//!
//! The engine decides by itself what is worth keeping. That every output is right, also against stock DataFusion, is what
//! `tests/tests/reports/months.rs` looks at.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::datasource::MemTable;
use nectarine_engine::{Clock, Engine, Settings};
use tempfile::TempDir;

use crate::args::ReportsArgs;
use crate::client::saved_percent;
use crate::machine;
use crate::random::Random;

/// All runs together, in percent.
pub(crate) const SAVED_PERCENT_MIN: f64 = 80.0;

/// The time is told in so many pieces.
const PIECES: u32 = 3;

/// 20 October 2026: summer time ends in Europe and in America soon after.
const BEGIN_NS: i64 = 1_792_454_400 * 1_000_000_000;
const HALF_DAY_NS: i64 = 12 * 3600 * 1_000_000_000;

const SHOPS: [&str; 7] = ["north", "south", "east", "west", "hill", "lake", "port"];

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: ReportsArgs,
    pub(crate) pieces: Vec<PieceFigures>,
    /// Outputs that are not the same, by name.
    pub(crate) differences: Vec<String>,
}

/// Some of the days.
#[derive(Default)]
pub(crate) struct PieceFigures {
    pub(crate) first_day: u32,
    pub(crate) last_day: u32,
    pub(crate) n_runs: u64,
    pub(crate) off: Duration,
    pub(crate) on: Duration,
}

impl Figures {
    /// All of it: runs, and processor time without and with reuse.
    pub(crate) fn total(&self) -> PieceFigures {
        let zero = PieceFigures { first_day: 1, last_day: self.args.days, ..PieceFigures::default() };
        self.pieces.iter().fold(zero, |sum, piece| PieceFigures {
            n_runs: sum.n_runs + piece.n_runs,
            off: sum.off + piece.off,
            on: sum.on + piece.on,
            ..sum
        })
    }
}

impl PieceFigures {
    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on, self.off)
    }

    /// What one run takes, in milliseconds.
    pub(crate) fn per_run(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e3 / self.n_runs.max(1) as f64
    }
}

/// A clock that is driven.
#[derive(Debug)]
struct Driven(AtomicI64);

impl Clock for Driven {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// One of the two homes, with its outputs.
struct Side {
    engine: Engine,
    folder: TempDir,
}

impl Side {
    async fn open(clock: &Arc<Driven>, reuse: &str, n_reports: u32) -> Result<Self> {
        let folder = TempDir::new()?;
        let settings = Settings::default().with("nectarine.reuse", reuse)?;
        let clock: Arc<dyn Clock> = Arc::clone(clock) as _;
        let engine = Engine::builder().home(folder.path().join("home")).settings(settings).clock(clock).open().await?;
        let side = Self { engine, folder };
        side.run("CREATE TABLE sales (day BIGINT, shop TEXT, item BIGINT, amount BIGINT)").await?;
        let outputs = side.outputs().display().to_string().replace('\'', "''");
        for n in 0..n_reports {
            let (cron, zone) = schedule(n);
            side.run(&format!(
                "CREATE REPORT r{n} SCHEDULE '{cron}' TIME ZONE '{zone}' OUTPUT '{outputs}/{{report}}-{{timestamp}}.csv' \
                 CATCH UP ALL AS {}",
                query(n)
            ))
            .await?;
        }
        Ok(side)
    }

    fn outputs(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    async fn run(&self, sql: &str) -> Result<()> {
        self.engine.session().execute(sql).await.with_context(|| sql.to_string())?.collect().await?;
        Ok(())
    }

    async fn feed(&self, rows: &RecordBatch) -> Result<()> {
        let session = self.engine.session();
        session.register_table("fresh", Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows.clone()]])?));
        session.execute("INSERT INTO sales SELECT * FROM fresh").await?.collect().await?;
        Ok(())
    }

    /// Runs what is due, and says what that took.
    async fn run_due(&self) -> Result<Duration> {
        let before = machine::cpu_time().context("this system does not tell how much processor time was used")?;
        self.engine.reports().run_due().await?;
        // What is published after an answer belongs to it.
        self.engine.cache().settled().await;
        Ok(machine::cpu_time().unwrap_or_default().saturating_sub(before))
    }

    /// Names and contents of what was written since the last look.
    fn take_outputs(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut found = vec![];
        let Ok(files) = fs::read_dir(self.outputs()) else { return Ok(found) };
        for file in files {
            let path = file?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            found.push((name, fs::read(&path)?));
            fs::remove_file(&path)?;
        }
        found.sort();
        Ok(found)
    }
}

/// Drives the clock through all days.
pub(crate) async fn measure(args: &ReportsArgs) -> Result<Figures> {
    let clock = Arc::new(Driven(AtomicI64::new(BEGIN_NS)));
    let on = Side::open(&clock, "on", args.reports).await?;
    let off = Side::open(&clock, "off", args.reports).await?;
    let length = args.days.div_ceil(PIECES).max(1);
    let mut figures = Figures { args: args.clone(), pieces: vec![], differences: vec![] };
    for day in 0..args.days {
        let rows = day_of_rows(day, args.rows)?;
        on.feed(&rows).await?;
        off.feed(&rows).await?;
        if day % length == 0 {
            figures.pieces.push(PieceFigures { first_day: day + 1, ..PieceFigures::default() });
        }
        for half in 0..2 {
            clock.0.fetch_add(HALF_DAY_NS, Ordering::SeqCst);
            // Who is first alternates.
            let (with, without) = match (day * 2 + half) % 2 {
                0 => (on.run_due().await?, off.run_due().await?),
                _ => {
                    let without = off.run_due().await?;
                    (on.run_due().await?, without)
                }
            };
            let (ours, expected) = (on.take_outputs()?, off.take_outputs()?);
            if let Some(piece) = figures.pieces.last_mut() {
                piece.last_day = day + 1;
                piece.n_runs += expected.len() as u64;
                piece.on += with;
                piece.off += without;
            }
            if ours.len() != expected.len() {
                figures.differences.push(format!(
                    "day {}: {} outputs, expected {}",
                    day + 1,
                    ours.len(),
                    expected.len()
                ));
            }
            let differ = ours.iter().zip(&expected).filter(|(ours, expected)| ours != expected);
            figures.differences.extend(differ.map(|(ours, _)| ours.0.clone()));
        }
        if (day + 1) % length == 0 || day + 1 == args.days {
            let total = figures.total();
            eprintln!("day {}: {} runs, {:.1} % saved so far", day + 1, total.n_runs, total.saved_percent());
        }
    }
    on.engine.shutdown().await;
    off.engine.shutdown().await;
    Ok(figures)
}

/// Queries that people would have run every day.
fn query(n: u32) -> String {
    let (bound, shop) = (n / 6 % 40, SHOPS[(n / 6) as usize % SHOPS.len()]);
    match n % 6 {
        0 => format!(
            "SELECT shop, count(*) AS n, sum(amount) AS amount FROM sales WHERE amount >= {bound} GROUP BY shop ORDER BY shop"
        ),
        1 => format!(
            "SELECT day, sum(amount) AS amount FROM sales WHERE shop <> '{shop}' AND amount <> {bound} GROUP BY day ORDER BY day"
        ),
        2 => {
            format!("SELECT count(*) AS n, min(amount) AS least, max(amount) AS most FROM sales WHERE amount > {bound}")
        }
        3 => format!(
            "SELECT day, shop, item, amount FROM sales WHERE amount > {} ORDER BY amount DESC, day, shop, item LIMIT 20",
            900 + bound
        ),
        4 => {
            let bins = bound + 2;
            format!(
                "SELECT item % {bins} AS bin, count(DISTINCT shop) AS shops, sum(amount) AS amount FROM sales \
                 GROUP BY item % {bins} ORDER BY bin"
            )
        }
        _ => format!("SELECT shop, avg(amount + {bound}) AS mean FROM sales GROUP BY shop ORDER BY shop"),
    }
}

fn schedule(n: u32) -> (&'static str, &'static str) {
    match n % 5 {
        0 => ("0 6 * * *", "Europe/Berlin"),
        1 => ("30 2 * * *", "Europe/Berlin"),
        2 => ("0 9 * * MON-FRI", "America/New_York"),
        3 => ("15 0 * * MON", "Asia/Kolkata"),
        _ => ("0 */12 * * *", "UTC"),
    }
}

fn day_of_rows(day: u32, n_rows: u32) -> Result<RecordBatch> {
    let mut random = Random::new(u64::from(day));
    let shops: Vec<&str> = (0..n_rows).map(|_| SHOPS[random.below(SHOPS.len() as u64) as usize]).collect();
    let mut numbers = |end: u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..n_rows).map(|_| random.below(end).cast_signed())))
    };
    let (items, amounts) = (numbers(10_000), numbers(1_000));
    let days: ArrayRef = Arc::new(Int64Array::from_iter_values((0..n_rows).map(|_| i64::from(day))));
    let shops: ArrayRef = Arc::new(StringArray::from(shops));
    Ok(RecordBatch::try_from_iter([("day", days), ("shop", shops), ("item", items), ("amount", amounts)])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::part::Part;
    use crate::report::Report;

    #[test]
    fn a_few_days() {
        let args = ReportsArgs { reports: 6, days: 4, rows: 500 };
        let runtime = crate::runtime().unwrap();
        let measured = async move { measure(&args).await };
        let figures = runtime.block_on(async { tokio::spawn(measured).await }).unwrap().unwrap();
        assert_eq!(figures.differences, Vec::<String>::new());
        // Two reports at six, one at half past two and at nine, one on Mondays, one twice a day; from a Tuesday on.
        assert_eq!(figures.total().n_runs, 4 * (2 + 1 + 1 + 2));
        let mut report = Report::new(Part::Reports);
        report.reports(&figures);
        let section = report.into_section();
        assert!(section.text.contains("the same"), "{}", section.text);
        section.pictures.iter().for_each(|(_, svg)| crate::chart::tests::assert_well_formed(svg));
    }
}
