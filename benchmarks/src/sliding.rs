//! A window that slides over a click log by a day: what it shares with the windows before it.
//!
//! ```text
//!   a week of days, from midnight     seven whole days
//!   a week of days, by now()          six whole days and two that are cut
//!   a week of hours, by now()         167 whole hours and two that are cut
//!   a year of days, from midnight     365 whole days
//! ```
//!
//! All files are there from the start, up to today. Each window is asked for once with reuse, and once without on another home.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use parquet::arrow::ArrowWriter;

use crate::args::SlidingArgs;
use crate::client::{Client, saved_percent};
use crate::compare::difference;
use crate::random::Random;
use crate::{REST, machine};

const DAY_US: i64 = 86_400_000_000;

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
    /// What would be saved if only rows cost something that are new in a window, or in a file that it cuts.
    pub(crate) ceiling_percent: f64,
    /// The most that one window read.
    pub(crate) entries_max: usize,
    pub(crate) differences: Vec<String>,
}

impl WindowFigures {
    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on, self.off)
    }
}

/// How windows lie.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    days: i64,
    files_per_day: u32,
    by_now: bool,
}

const KINDS: [Kind; 4] = [
    Kind { name: "a week of days, from midnight", days: 7, files_per_day: 1, by_now: false },
    Kind { name: "a week of days, by now()", days: 7, files_per_day: 1, by_now: true },
    Kind { name: "a week of hours, by now()", days: 7, files_per_day: 24, by_now: true },
    Kind { name: "a year of days, from midnight", days: 365, files_per_day: 1, by_now: false },
];

impl Kind {
    /// The filter of a window that is `ago` days away from today. `midnight` is that of today.
    fn filter(self, midnight: i64, ago: i64) -> String {
        match self.by_now {
            true => format!("ts >= now() - INTERVAL '{} days' AND ts < now() - INTERVAL '{ago} days'", self.days + ago),
            false => {
                let to = midnight - ago * DAY_US;
                let from = to - self.days * DAY_US;
                format!("ts >= to_timestamp_micros({from}) AND ts < to_timestamp_micros({to})")
            }
        }
    }

    fn ceiling_percent(self) -> f64 {
        let per_day = f64::from(self.files_per_day);
        let all = self.days as f64 * per_day;
        // What the two files hold that are cut is about one file.
        let new = per_day + if self.by_now { 1.0 } else { 0.0 };
        (1.0 - new / all) * 100.0
    }
}

/// Makes the data and measures.
pub(crate) async fn measure(args: &SlidingArgs, folder: &Path) -> Result<Figures> {
    let mut windows = vec![];
    for kind in KINDS {
        let rows = if kind.days > 7 { args.rows / 10 } else { args.rows };
        let data = tempfile::Builder::new().prefix("sliding").tempdir_in(folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros() as i64;
        let midnight = now - now % DAY_US;
        let first = midnight - (kind.days + i64::from(args.slides)) * DAY_US;
        tokio::task::block_in_place(|| write(data.path(), kind, first, args.slides, rows))?;
        tokio::time::sleep(REST).await;
        let figures = slide(kind, data.path(), midnight, args.slides).await?;
        eprintln!(
            "{}: {:.1} % saved of {:.1} %, at most {} entries read{}",
            kind.name,
            figures.saved_percent(),
            figures.ceiling_percent,
            figures.entries_max,
            if figures.differences.is_empty() { "" } else { ", ROWS DIFFER" }
        );
        windows.push(figures);
    }
    Ok(Figures { args: args.clone(), windows })
}

async fn slide(kind: Kind, files: &Path, midnight: i64, n_slides: u32) -> Result<WindowFigures> {
    let (on, off) = (Client::open(machine::n_cores().max(1)).await?, Client::open(machine::n_cores().max(1)).await?);
    for client in [&on, &off] {
        client.create_table("clicks", "", "PARQUET", files).await?;
        // What is learnt of files at first sight is not the query's time.
        client.run("SELECT count(*) FROM clicks WHERE latency_ms < 0").await?;
    }
    off.set_reuse(false).await?;
    let mut figures = WindowFigures {
        name: kind.name,
        n_slides,
        off: Duration::ZERO,
        on: Duration::ZERO,
        first_off: Duration::ZERO,
        first_on: Duration::ZERO,
        ceiling_percent: kind.ceiling_percent(),
        entries_max: 0,
        differences: vec![],
    };
    for slide in 0..=n_slides {
        let sql = format!(
            "SELECT page, count(*) AS clicks, sum(latency_ms) AS total, max(latency_ms) AS slowest FROM clicks \
             WHERE {} GROUP BY page ORDER BY clicks DESC, page",
            kind.filter(midnight, i64::from(n_slides - slide))
        );
        let (asked, plain) = (on.ask(&sql).await?, off.ask(&sql).await?);
        let (found, expected) = (asked.outcome?, plain.outcome?);
        // The clock goes on between two statements: rows of that moment may differ.
        if !kind.by_now
            && let Some(difference) = difference(&found, &expected)?
        {
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

/// The files, from `first` up to and with today.
fn write(folder: &Path, kind: Kind, first: i64, n_slides: u32, rows_a_day: u32) -> Result<()> {
    let n_days = u32::try_from(kind.days)? + n_slides + 1;
    let length = DAY_US / i64::from(kind.files_per_day);
    let n_rows = rows_a_day / kind.files_per_day;
    for number in 0..n_days * kind.files_per_day {
        let path = folder.join(format!("{number:05}.parquet"));
        let from = first + i64::from(number) * length;
        write_file(&path, number, from, length, n_rows)
            .with_context(|| format!("cannot write \"{}\"", path.display()))?;
    }
    Ok(())
}

fn write_file(path: &Path, number: u32, from: i64, length: i64, n_rows: u32) -> Result<()> {
    let mut random = Random::new(u64::from(number));
    let step = length / i64::from(n_rows.max(1));
    let times = (0..i64::from(n_rows)).map(|row| from + row * step);
    let pages: Vec<String> = (0..40).map(|page| format!("/page/{page}")).collect();
    let pages = (0..n_rows).map(|_| pages[random.below(40) as usize].as_str());
    let pages = StringArray::from_iter_values(pages.collect::<Vec<_>>());
    let users: Vec<i64> = (0..n_rows).map(|_| random.below(100_000).cast_signed()).collect();
    let latencies: Vec<i64> = (0..n_rows).map(|_| 20 + random.below(400).cast_signed()).collect();
    let batch = RecordBatch::try_from_iter([
        ("ts", Arc::new(TimestampMicrosecondArray::from_iter_values(times)) as ArrayRef),
        ("user_id", Arc::new(Int64Array::from(users))),
        ("page", Arc::new(pages)),
        ("latency_ms", Arc::new(Int64Array::from(latencies))),
    ])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}
