//! A window that slides over a click log by a day: what it shares with the windows before it.
//!
//! ```text
//!   week, at midnight    seven whole days
//!   week, at 10:17       six whole days and two halves, as with now() - INTERVAL '7 days'
//!   year, at midnight    365 whole days
//! ```
//!
//! All days are there from the start. Each window is asked for once with reuse, and once without on another home.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use parquet::arrow::ArrowWriter;

use crate::args::SlidingArgs;
use crate::client::{Client, saved_percent};
use crate::compare::difference;
use crate::random::Random;
use crate::{REST, machine};

/// Raised when the files would come out differently.
const LAYOUT: u32 = 1;
const DAY_US: i64 = 86_400_000_000;
/// 2026-01-01.
const START_US: i64 = 1_767_225_600_000_000;

/// From the second window on, in percent.
pub(crate) const SAVED_PERCENT_MIN: f64 = 85.0;
/// Entries that one window may read.
pub(crate) const ENTRIES_MAX: usize = 20;

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: SlidingArgs,
    pub(crate) windows: Vec<WindowFigures>,
}

/// One kind of window.
pub(crate) struct WindowFigures {
    pub(crate) name: &'static str,
    pub(crate) n_slides: u32,
    /// All windows but the first, together.
    pub(crate) off: Duration,
    pub(crate) on: Duration,
    /// The first one, with an empty cache.
    pub(crate) first_off: Duration,
    pub(crate) first_on: Duration,
    /// The most that one window read.
    pub(crate) entries_max: usize,
    pub(crate) differences: Vec<String>,
}

impl WindowFigures {
    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on, self.off)
    }
}

/// Makes the data if it is not there and measures.
pub(crate) async fn measure(args: &SlidingArgs, folder: &Path) -> Result<Figures> {
    let week = tokio::task::block_in_place(|| prepare(folder, 8 + args.slides, args.rows))?;
    let year = tokio::task::block_in_place(|| prepare(folder, 365 + args.slides, args.rows / 10))?;
    let mut windows = vec![];
    for (name, files, days, offset_us) in [
        ("a week, at midnight", &week, 7, 0),
        ("a week, at 10:17", &week, 7, 37_020_000_000),
        ("a year, at midnight", &year, 365, 0),
    ] {
        let figures = slide(name, files, days, offset_us, args.slides).await?;
        eprintln!(
            "{name}: {:.1} % saved, at most {} entries read{}",
            figures.saved_percent(),
            figures.entries_max,
            if figures.differences.is_empty() { "" } else { ", ROWS DIFFER" }
        );
        windows.push(figures);
    }
    Ok(Figures { args: args.clone(), windows })
}

async fn slide(name: &'static str, files: &Path, days: i64, offset_us: i64, n_slides: u32) -> Result<WindowFigures> {
    let (on, off) = (Client::open(machine::n_cores().max(1)).await?, Client::open(machine::n_cores().max(1)).await?);
    for client in [&on, &off] {
        client.create_table("clicks", "", "PARQUET", files).await?;
        // What is learnt of files at first sight is not the query's time.
        client.run("SELECT count(*) FROM clicks WHERE latency_ms < 0").await?;
    }
    off.set_reuse(false).await?;
    let mut figures = WindowFigures {
        name,
        n_slides,
        off: Duration::ZERO,
        on: Duration::ZERO,
        first_off: Duration::ZERO,
        first_on: Duration::ZERO,
        entries_max: 0,
        differences: vec![],
    };
    for slide in 0..=i64::from(n_slides) {
        let from = START_US + slide * DAY_US + offset_us;
        let sql = format!(
            "SELECT page, count(*) AS clicks, sum(latency_ms) AS total, max(latency_ms) AS slowest FROM clicks \
             WHERE ts >= to_timestamp_micros({from}) AND ts < to_timestamp_micros({}) GROUP BY page ORDER BY clicks DESC, page",
            from + days * DAY_US
        );
        let (asked, plain) = (on.ask(&sql).await?, off.ask(&sql).await?);
        if let Some(difference) = difference(&asked.outcome?, &plain.outcome?)? {
            figures.differences.push(format!("slide {slide}: {difference}"));
        }
        match slide {
            0 => (figures.first_on, figures.first_off) = (asked.cpu, plain.cpu),
            _ => {
                figures.on += asked.cpu;
                figures.off += plain.cpu;
                figures.entries_max = figures.entries_max.max(asked.n_entries);
            }
        }
    }
    on.close().await;
    off.close().await;
    Ok(figures)
}

/// A folder of days, one file each.
fn prepare(base: &Path, n_days: u32, n_rows: u32) -> Result<PathBuf> {
    let name = format!("clicks-{n_days}d-{n_rows}r-v{LAYOUT}");
    let folder = base.join(&name);
    if folder.exists() {
        return Ok(folder);
    }
    let unfinished = tempfile::Builder::new().prefix(&name).tempdir_in(base)?;
    for day in 0..n_days {
        let path = unfinished.path().join(format!("{day:05}.parquet"));
        write_day(&path, day, n_rows).with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    fs::rename(unfinished.keep(), &folder)?;
    std::thread::sleep(REST);
    Ok(folder)
}

fn write_day(path: &Path, day: u32, n_rows: u32) -> Result<()> {
    let mut random = Random::new(u64::from(day));
    let step = DAY_US / i64::from(n_rows.max(1));
    let times = (0..i64::from(n_rows)).map(|row| START_US + i64::from(day) * DAY_US + row * step);
    let pages: Vec<String> = (0..n_rows).map(|_| format!("/page/{}", random.below(40))).collect();
    let users: Vec<i64> = (0..n_rows).map(|_| random.below(100_000).cast_signed()).collect();
    let latencies: Vec<i64> = (0..n_rows).map(|_| 20 + random.below(400).cast_signed()).collect();
    let batch = RecordBatch::try_from_iter([
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times)) as ArrayRef),
        ("user_id", Arc::new(Int64Array::from(users))),
        ("page", Arc::new(StringArray::from_iter_values(&pages))),
        ("latency_ms", Arc::new(Int64Array::from(latencies))),
    ])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}
