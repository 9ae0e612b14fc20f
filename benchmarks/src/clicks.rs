//! A click log that grows: Nectar's table 5 and DryadInc's figure 6.
//!
//! ```text
//!   days        the log of days 1 to 5, in the proportions of the paper: which URL is clicked most for each phrase
//!   histogram   a log in 100 files, then one more file (1 %) at a time: how often each phrase is searched, at several sizes
//! ```
//!
//! The log is text (CSV), as logs are. Each statement is asked for once with reuse, and once without on another home.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::args::ClicksArgs;
use crate::client::{Client, saved_percent};
use crate::compare::difference;
use crate::random::Random;
use crate::{REST, machine};

/// Gigabytes that each day of the paper added; the first two days are told together there.
const DAYS_GB: [f64; 5] = [13.85, 13.85, 40.50, 43.05, 40.94];
/// What Nectar saved until then, where the paper tells.
const PAPER_PERCENT: [Option<f64>; 5] = [None, None, Some(13.49), Some(41.80), Some(49.66)];

/// On the fifth day, in percent.
pub(crate) const DAY_5_PERCENT_MIN: f64 = 70.0;
/// At the largest size, in percent.
pub(crate) const HISTOGRAM_PERCENT_MIN: f64 = 95.0;

/// Files of the log before anything is added.
const N_FILES: u32 = 100;
/// Files that are added one by one.
const N_APPENDS: u32 = 5;

const PHRASES: u64 = 20_000;
const URLS_OF_PHRASE: u64 = 8;

const RELEVANCE: &str = "SELECT phrase, url, clicks FROM
  (SELECT phrase, url, clicks, row_number() OVER (PARTITION BY phrase ORDER BY clicks DESC, url) AS place FROM
    (SELECT phrase, url, count(*) AS clicks FROM log GROUP BY phrase, url) AS counted) AS ranked
  WHERE place = 1 ORDER BY clicks DESC, phrase LIMIT 100";

const HISTOGRAM: &str = "SELECT n, count(*) AS phrases FROM (SELECT phrase, count(*) AS n FROM log GROUP BY phrase) AS counted GROUP BY n ORDER BY n";

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: ClicksArgs,
    pub(crate) days: Vec<Step>,
    pub(crate) histogram: Vec<Step>,
}

/// One day, or one size of the log.
pub(crate) struct Step {
    pub(crate) rows: u64,
    /// Of which are new, each time.
    pub(crate) new_rows: u64,
    pub(crate) off: Duration,
    pub(crate) on: Duration,
    pub(crate) paper_percent: Option<f64>,
    pub(crate) difference: Option<String>,
}

impl Step {
    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on, self.off)
    }

    /// What would be saved if reading old results and keeping new ones were free, and each row cost the same.
    pub(crate) fn ceiling_percent(&self) -> f64 {
        (1.0 - self.new_rows as f64 / self.rows as f64) * 100.0
    }
}

/// Makes the logs and measures.
pub(crate) async fn measure(args: &ClicksArgs, folder: &Path) -> Result<Figures> {
    let days = measure_days(args, folder).await?;
    let mut histogram = vec![];
    for share in [8, 4, 2, 1] {
        let step = measure_histogram(args.rows / share, folder).await?;
        eprintln!("histogram of {} rows: {:.1} % saved", step.rows, step.saved_percent());
        histogram.push(step);
    }
    Ok(Figures { args: args.clone(), days, histogram })
}

async fn clients(log: &Path) -> Result<(Client, Client)> {
    let (on, off) = (Client::open(machine::n_cores().max(1)).await?, Client::open(machine::n_cores().max(1)).await?);
    for client in [&on, &off] {
        client.create_table("log", "", "CSV OPTIONS (has_header 'true')", log).await?;
    }
    off.set_reuse(false).await?;
    Ok((on, off))
}

/// Lets files rest, and both learn of them: that is not the query's time.
async fn settle(on: &Client, off: &Client) -> Result<()> {
    tokio::time::sleep(REST).await;
    for client in [on, off] {
        client.run("EXPLAIN SELECT count(*) FROM log").await?;
    }
    Ok(())
}

async fn measure_days(args: &ClicksArgs, folder: &Path) -> Result<Vec<Step>> {
    let log = tempfile::Builder::new().prefix("days").tempdir_in(folder)?;
    let all: f64 = DAYS_GB.iter().sum();
    let mut homes = None;
    let mut steps: Vec<Step> = vec![];
    for (day, (gigabytes, paper_percent)) in DAYS_GB.into_iter().zip(PAPER_PERCENT).enumerate() {
        let new_rows = (f64::from(args.rows) * gigabytes / all) as u32;
        tokio::task::block_in_place(|| write(log.path(), day as u32, new_rows))?;
        let (on, off) = match &homes {
            Some(homes) => homes,
            None => homes.insert(clients(log.path()).await?),
        };
        settle(on, off).await?;
        let (asked, plain) = (on.ask(RELEVANCE).await?, off.ask(RELEVANCE).await?);
        let rows = steps.last().map_or(0, |step| step.rows) + u64::from(new_rows);
        let step = Step {
            rows,
            new_rows: new_rows.into(),
            off: plain.cpu,
            on: asked.cpu,
            paper_percent,
            difference: difference(&asked.outcome?, &plain.outcome?)?,
        };
        eprintln!("day {}: {:.1} % saved", day + 1, step.saved_percent());
        steps.push(step);
    }
    if let Some((on, off)) = homes {
        on.close().await;
        off.close().await;
    }
    Ok(steps)
}

async fn measure_histogram(rows: u32, folder: &Path) -> Result<Step> {
    let log = tempfile::Builder::new().prefix("histogram").tempdir_in(folder)?;
    let per_file = (rows / N_FILES).max(1);
    tokio::task::block_in_place(|| (0..N_FILES).try_for_each(|file| write(log.path(), file, per_file)))?;
    let (on, off) = clients(log.path()).await?;
    settle(&on, &off).await?;
    on.run(HISTOGRAM).await?;
    let mut step = Step {
        rows: u64::from(per_file) * u64::from(N_FILES + N_APPENDS / 2),
        new_rows: per_file.into(),
        off: Duration::ZERO,
        on: Duration::ZERO,
        paper_percent: None,
        difference: None,
    };
    for append in 0..N_APPENDS {
        tokio::task::block_in_place(|| write(log.path(), N_FILES + append, per_file))?;
        settle(&on, &off).await?;
        let (asked, plain) = (on.ask(HISTOGRAM).await?, off.ask(HISTOGRAM).await?);
        step.on += asked.cpu;
        step.off += plain.cpu;
        let found = difference(&asked.outcome?, &plain.outcome?)?;
        step.difference = step.difference.take().or(found);
    }
    on.close().await;
    off.close().await;
    Ok(step)
}

/// One more file of the log. Few phrases are searched often, most of them rarely; so it is with URLs.
fn write(folder: &Path, number: u32, rows: u32) -> Result<()> {
    fs::create_dir_all(folder)?;
    let path = folder.join(format!("{number:05}.csv"));
    let written = || -> Result<()> {
        let mut random = Random::new(u64::from(number));
        let mut file = BufWriter::new(File::create(&path)?);
        writeln!(file, "ts,user_id,phrase,url,place")?;
        for row in 0..rows {
            let phrase = (random.fraction().powi(3) * PHRASES as f64) as u64;
            let url = (random.fraction().powi(2) * URLS_OF_PHRASE as f64) as u64;
            let (user, place) = (random.below(1_000_000), random.below(10));
            let (hour, minute, second) = (row / 3600 % 24, row / 60 % 60, row % 60);
            writeln!(
                file,
                "2026-01-01T{hour:02}:{minute:02}:{second:02},{user},how to phrase {phrase},https://example.com/{phrase}/{url},{place}"
            )?;
        }
        Ok(file.flush()?)
    };
    written().with_context(|| format!("cannot write \"{}\"", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_grow_and_answers_are_the_same() {
        let measure = async {
            let folder = tempfile::tempdir()?;
            measure_days(&ClicksArgs { rows: 5_000 }, folder.path()).await
        };
        let runtime = crate::runtime().unwrap();
        let days = runtime.block_on(async { tokio::spawn(measure).await }).unwrap().unwrap();
        assert_eq!(days.len(), 5);
        assert!(days.iter().all(|day| day.difference.is_none()));
        assert!((days[4].ceiling_percent() - 73.1).abs() < 0.1, "{}", days[4].ceiling_percent());
    }
}
