//! How fast Nectarine is, against stock DataFusion in the same process, and over many extents.
//!
//! ```text
//!   args        what was asked for
//!   tpch        the 22 queries, both engines in turn
//!   reuse       the 22 queries again and again
//!   append      the 22 queries while tables grow
//!   sliding     a window that slides by a day
//!   flight      exact hits over Flight SQL
//!   floats      what exact sums of floats cost
//!   clicks      a click log that grows
//!   merging     how fast states merge
//!   documents   programs that share a sub-computation
//!   development a query that comes about step by step
//!   extents     planning, memory and reopening with thousands of extents
//!   simulate    what eviction costs, by policy and budget
//!   report      Markdown for people
//!   timing      samples and what is said of them
//!   client      someone who asks, and is told the processor time
//!   compare     whether two runs gave the same rows
//!   random      numbers that look random and are the same each time
//!   machine     what this ran on
//!   allocator   mimalloc, counting when asked
//! ```
//!
//! Progress goes to standard error, the report to standard output or to `--out FILE`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people who want to read figures")]

mod allocator;
mod append;
mod args;
mod clicks;
mod client;
mod compare;
mod development;
mod documents;
mod extents;
mod flight;
mod floats;
mod machine;
mod merging;
mod random;
mod report;
mod reuse;
mod simulate;
mod sliding;
mod timing;
mod tpch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;

use crate::allocator::Counting;
use crate::args::{Args, DevelopmentArgs, Size, SkyFormat, Task, Tasks, TpchArgs};
use crate::report::Report;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

/// Stack of a worker: plans are built by recursion, and deeper than the usual 2 MB in builds without optimization.
const STACK_BYTES: usize = 8 << 20;

/// Nectarine reads files younger than two seconds twice, to be sure of them; that is not what is measured here.
const REST: Duration = Duration::from_millis(2_500);

fn main() -> ExitCode {
    match start(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> Result<()> {
    // On a worker, not on the thread that waits for it: that is where a server would run statements.
    runtime()?.block_on(async { tokio::spawn(run(args)).await })?
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().thread_stack_size(STACK_BYTES).build()
}

async fn run(args: Args) -> Result<()> {
    let data = args.data.unwrap_or_else(|| std::env::temp_dir().join("nectarine-benchmarks"));
    std::fs::create_dir_all(&data).with_context(|| format!("cannot create \"{}\"", data.display()))?;
    let mut report = Report::new();
    match args.task {
        Task::KnownExtents(known) => return extents::answer_as_child(&known).await,
        Task::Tpch(tpch) => report.tpch(&tpch::measure(&tpch, &data).await?),
        Task::Reuse(tpch) => report.reuse(&reuse::measure(&tpch, &data).await?),
        Task::Append(append) => report.append(&append::measure(&append, &data).await?),
        Task::Sliding(sliding) => report.sliding(&sliding::measure(&sliding, &data).await?),
        Task::Floats(floats) => report.floats(&floats::measure(&floats, &data).await?),
        Task::Flight(flight) => report.flight(&flight::measure(&flight).await?),
        Task::Clicks(clicks) => report.clicks(&clicks::measure(&clicks, &data).await?),
        Task::Merging(merging) => report.merging(&merging::measure(&merging).await?),
        Task::Documents(documents) => report.documents(&documents::measure(&documents, &data).await?),
        Task::Development(development) => report.development(&development::measure(&development, &data).await?),
        Task::Extents(extents) => report.extents(&extents::measure(&extents, &data).await?),
        Task::Simulate(simulate) => report.simulate(&simulate::measure(&simulate).await?),
        Task::All { scale } => {
            let Tasks {
                tpch,
                append,
                sliding,
                floats,
                clicks,
                merging,
                documents,
                development,
                extents,
                simulate,
                flight,
            } = scale.tasks();
            report.made_by(match scale {
                Size::Small => "all --scale small",
                Size::Full => "all --scale full",
            });
            report.tpch(&tpch::measure(&tpch, &data).await?);
            let cold = TpchArgs { cold: true, ..tpch.clone() };
            report.tpch(&tpch::measure(&cold, &data).await?);
            report.reuse(&reuse::measure(&tpch, &data).await?);
            report.append(&append::measure(&append, &data).await?);
            report.sliding(&sliding::measure(&sliding, &data).await?);
            report.floats(&floats::measure(&floats, &data).await?);
            report.clicks(&clicks::measure(&clicks, &data).await?);
            report.merging(&merging::measure(&merging).await?);
            report.documents(&documents::measure(&documents, &data).await?);
            report.development(&development::measure(&development, &data).await?);
            let parquet = DevelopmentArgs { format: SkyFormat::Parquet, ..development };
            report.development(&development::measure(&parquet, &data).await?);
            report.extents(&extents::measure(&extents, &data).await?);
            report.simulate(&simulate::measure(&simulate).await?);
            report.flight(&flight::measure(&flight).await?);
        }
    }
    write(&report.into_text(), args.out)
}

fn write(text: &str, out: Option<PathBuf>) -> Result<()> {
    match out {
        None => println!("{text}"),
        Some(path) => {
            std::fs::write(&path, text).with_context(|| format!("cannot write \"{}\"", path.display()))?;
            eprintln!("report written to {}", path.display());
        }
    }
    Ok(())
}
