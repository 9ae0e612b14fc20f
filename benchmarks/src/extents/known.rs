//! [`Reopened`]: what a process that knows nothing yet needs to open a home and to answer its first query.
//!
//! This program starts itself: only a new process shows what opening takes, and what memory known extents cost without
//! the traces of learning them.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nectarine_engine::Engine;

use crate::args::KnownExtentsArgs;
use crate::{allocator, machine};

/// Lets background work end before memory is looked at.
const SETTLE: Duration = Duration::from_millis(300);

/// What the new process found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reopened {
    /// Opening the home.
    pub(crate) open: Duration,
    /// `SELECT 1`: what the first statement of any kind costs.
    pub(crate) first_statement: Duration,
    /// The first query over the table, which loads what is known of its extents.
    pub(crate) first_query: Duration,
    /// The same query again.
    pub(crate) second_query: Duration,
    /// Memory of the process that the first query over many extents added, after one over few.
    pub(crate) resident_bytes: i64,
    /// The part of it that Rust code allocated.
    pub(crate) live_bytes: i64,
}

/// Runs this program once more, on the home.
pub(crate) fn ask_child(home: &Path, few: &str, sql: &str) -> Result<Reopened> {
    let mut child = Command::new(std::env::current_exe()?);
    let output = child.arg("known-extents").arg("--home").arg(home).args(["--few", few, "--sql", sql]).output()?;
    anyhow::ensure!(output.status.success(), "the new process failed: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let numbers: Vec<i64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let [open, first_statement, first_query, second_query, resident_bytes, live_bytes] = numbers[..] else {
        anyhow::bail!("the new process said \"{text}\"");
    };
    let time = |microseconds: i64| Duration::from_micros(microseconds as u64);
    Ok(Reopened {
        open: time(open),
        first_statement: time(first_statement),
        first_query: time(first_query),
        second_query: time(second_query),
        resident_bytes,
        live_bytes,
    })
}

/// The other side of [`ask_child`].
pub(crate) async fn answer_as_child(args: &KnownExtentsArgs) -> Result<()> {
    allocator::start_counting();
    let started = Instant::now();
    let engine = Engine::builder().home(&args.home).settings(super::without_reuse()?).open().await?;
    let open = started.elapsed();
    let session = engine.session();
    let run = async |sql: &str| -> Result<Duration> {
        let started = Instant::now();
        session.execute(sql).await?.collect().await?;
        Ok(started.elapsed())
    };
    let first_statement = run("SELECT 1").await?;
    // What any first query costs, code that is loaded for one, is not the extents'.
    run(&args.few).await?;
    let before = memory().await?;
    let first_query = run(&args.sql).await?;
    let after = memory().await?;
    let second_query = run(&args.sql).await?;
    engine.shutdown().await;
    for time in [open, first_statement, first_query, second_query] {
        println!("{}", time.as_micros());
    }
    println!("{}\n{}", after.0 - before.0, after.1 - before.1);
    Ok(())
}

/// Resident and live bytes of this process.
async fn memory() -> Result<(i64, i64)> {
    tokio::time::sleep(SETTLE).await;
    let resident = machine::resident_bytes().context("this system does not tell the memory of a process")?;
    Ok((resident as i64, allocator::live_bytes()))
}
