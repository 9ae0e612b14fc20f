//! How fast Nectarine is: against stock DataFusion in the same process, against DuckDB, and over many extents.
//!
//! ```text
//!   args        what was asked for
//!   part        what `all` measures
//!   peers       the 22 queries by DuckDB, stock DataFusion and Nectarine
//!   tpch        the 22 queries, both engines in turn
//!   reuse       the 22 queries again and again
//!   append      the 22 queries while tables grow
//!   sliding     a window that slides by a day
//!   reports     queries that run by the clock
//!   flight      exact hits over Flight SQL
//!   floats      what exact sums of floats cost
//!   clicks      a click log that grows
//!   merging     how fast states merge
//!   documents   programs that share a sub-computation
//!   development a query that comes about step by step
//!   extents     planning, memory and reopening with thousands of extents
//!   simulate    what eviction costs, by policy and budget
//!   report      a section of Markdown for people
//!   chart       its pictures
//!   page        docs/benchmarks.md, section by section
//!   timing      samples and what is said of them
//!   client      someone who asks, and is told the processor time
//!   compare     whether two runs gave the same rows
//!   random      numbers that look random and are the same each time
//!   machine     what this ran on
//!   allocator   mimalloc, counting when asked
//! ```
//!
//! Progress goes to standard error, a part to standard output or to its section of `--page FILE`; `all` writes docs/benchmarks.md.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people who want to read figures")]

mod allocator;
mod append;
mod args;
mod chart;
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
mod page;
mod part;
mod peers;
mod random;
mod report;
mod reports;
mod reuse;
mod simulate;
mod sliding;
mod timing;
mod tpch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::allocator::Counting;
use crate::args::{Args, Size, Task};
use crate::part::Part;
use crate::report::{Report, Section};

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

/// Where `all` writes, from the folder of the project.
const PAGE: &str = "docs/benchmarks.md";

async fn run(args: Args) -> Result<()> {
    let data = args.data.unwrap_or_else(|| std::env::temp_dir().join("nectarine-benchmarks"));
    std::fs::create_dir_all(&data).with_context(|| format!("cannot create \"{}\"", data.display()))?;
    match args.task {
        Task::KnownExtents(known) => extents::answer_as_child(&known).await,
        Task::All { scale, only } => {
            let page = args.page.unwrap_or_else(|| PathBuf::from(PAGE));
            run_all(scale, &only, &data, &page).await
        }
        task => {
            let part = task.part();
            let section = measure(&task, part.unwrap_or(Part::Tpch), &data, &own_words()).await?;
            match (args.page, part) {
                (None, _) => {
                    println!("{}", section.text);
                    Ok(())
                }
                (Some(page), Some(_)) => page::update(&page, &section),
                (Some(_), None) => bail!("what was measured has no section in a page"),
            }
        }
    }
}

/// One part after the other; each is in the page as soon as it is measured. A part that fails leaves its section as it was.
async fn run_all(scale: Size, only: &[Part], data: &Path, page: &Path) -> Result<()> {
    let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        bail!("there is no folder for \"{}\": start in the folder of the project, or name a page", page.display());
    }
    let words = match scale {
        Size::Small => "all --scale small",
        Size::Full => "all --scale full",
    };
    let mut failed = vec![];
    for task in scale.tasks() {
        let Some(part) = task.part().filter(|part| only.is_empty() || only.contains(part)) else { continue };
        eprintln!("== {}", part.key());
        let started = Instant::now();
        let section = measure(&task, part, data, &format!("{words} --only {}", part.key())).await;
        match section.and_then(|section| page::update(page, &section)) {
            Ok(()) => eprintln!("== {}: {:.0} s", part.key(), started.elapsed().as_secs_f64()),
            Err(error) => {
                eprintln!("== {} failed: {error:#}", part.key());
                failed.push(part.key());
            }
        }
    }
    match failed.is_empty() {
        true => Ok(()),
        false => bail!("not measured: {}", failed.join(", ")),
    }
}

/// Measures one part and says what came out. `words` are the arguments that make it again.
async fn measure(task: &Task, part: Part, data: &Path, words: &str) -> Result<Section> {
    let mut report = Report::new(part);
    let mut others = String::new();
    match task {
        Task::Tpch(tpch) => report.tpch(&tpch::measure(tpch, data).await?),
        Task::Peers(peers) => {
            let figures = peers::measure(peers, data).await?;
            if let Ok(version) = &figures.duck {
                others = format!(", DuckDB {version}");
            }
            report.peers(&figures);
        }
        Task::Reuse(tpch) => report.reuse(&reuse::measure(tpch, data).await?),
        Task::Append(append) => report.append(&append::measure(append, data).await?),
        Task::Sliding(sliding) => report.sliding(&sliding::measure(sliding, data).await?),
        Task::Reports(reports) => report.reports(&reports::measure(reports).await?),
        Task::Floats(floats) => report.floats(&floats::measure(floats, data).await?),
        Task::Flight(flight) => report.flight(&flight::measure(flight).await?),
        Task::Clicks(clicks) => report.clicks(&clicks::measure(clicks, data).await?),
        Task::Merging(merging) => report.merging(&merging::measure(merging).await?),
        Task::Documents(documents) => report.documents(&documents::measure(documents, data).await?),
        Task::Development(development) => report.development(&development::measure(development, data).await?),
        Task::Extents(extents) => report.extents(&extents::measure(extents, data).await?),
        Task::Simulate(simulate) => report.simulate(&simulate::measure(simulate).await?),
        Task::All { .. } | Task::KnownExtents(_) => bail!("this is not one part"),
    }
    report.made_by(words, &others);
    Ok(report.into_section())
}

/// What this program was told, without places on this machine.
fn own_words() -> String {
    let mut words = vec![];
    let mut given = std::env::args().skip(1);
    while let Some(word) = given.next() {
        match word.as_str() {
            "--page" | "--data" | "--home" => drop(given.next()),
            word if ["--page=", "--data=", "--home="].iter().any(|flag| word.starts_with(flag)) => {}
            _ => words.push(word),
        }
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `all --only` from end to end: the part's section and picture are written, others stay.
    #[test]
    fn some_parts_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let page = folder.path().join("page.md");
        std::fs::write(&page, "<!-- part: tpch -->\n## TPC-H\n\n1.02 PASS\n<!-- end of tpch -->\n").unwrap();
        let path = page.clone();
        let all = async move { run_all(Size::Small, &[Part::Simulate], Path::new("nowhere"), &path).await };
        runtime().unwrap().block_on(async { tokio::spawn(all).await }).unwrap().unwrap();
        let text = std::fs::read_to_string(&page).unwrap();
        assert!(text.contains("## TPC-H\n\n1.02 PASS") && text.contains("## What eviction costs"), "{text}");
        assert!(text.contains("nectarine-benchmarks -- all --scale small --only simulate`"), "{text}");
        let picture = std::fs::read_to_string(folder.path().join("benchmarks/simulate.svg")).unwrap();
        chart::tests::assert_well_formed(&picture);
        assert!(!folder.path().join("benchmarks/tpch.svg").exists());
    }
}
