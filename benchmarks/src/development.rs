//! Nectar's table 6: what a developer waits for while a query comes about step by step, most of it computed again and again.
//!
//! ```text
//!   step 1   try, try, right                     nothing is known yet
//!   step 2   try, try, right   on top of step 1
//!   step 3   try, try, right   on top of steps 1 and 2
//!   step 4   try, try, right   on top of steps 1 to 3
//! ```
//!
//! Two developers type the same statements, each on a new home: one without reuse, one with. Time is the processor time of all
//! tries of a step together; a step's query holds the steps before it, so this is what the paper calls cumulative.

mod sky;
mod steps;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arrow::record_batch::RecordBatch;
use nectarine_engine::Reused;

use self::steps::{Step, steps};
use crate::args::{DevelopmentArgs, SkyFormat};
use crate::client::{Asked, Client, saved_percent};
use crate::compare::difference;
use crate::{REST, machine};

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) n_objects: u64,
    pub(crate) n_neighbors: u64,
    pub(crate) args: DevelopmentArgs,
    pub(crate) steps: Vec<StepFigures>,
}

/// One step.
pub(crate) struct StepFigures {
    pub(crate) adds: &'static str,
    pub(crate) paper_percent: f64,
    pub(crate) saved_percent_min: Option<f64>,
    pub(crate) n_rows: usize,
    pub(crate) tries: Vec<TryFigures>,
    /// How the answers differ, if they do.
    pub(crate) difference: Option<String>,
}

/// One try.
pub(crate) struct TryFigures {
    /// Why it failed, if it did.
    pub(crate) flaw: Option<&'static str>,
    pub(crate) off: Duration,
    pub(crate) on: Duration,
    /// What it read from the cache.
    pub(crate) reused: Reused,
}

impl StepFigures {
    pub(crate) fn off(&self) -> Duration {
        self.tries.iter().map(|attempt| attempt.off).sum()
    }

    pub(crate) fn on(&self) -> Duration {
        self.tries.iter().map(|attempt| attempt.on).sum()
    }

    pub(crate) fn saved_percent(&self) -> f64 {
        saved_percent(self.on(), self.off())
    }
}

/// Makes the sky and measures.
pub(crate) async fn measure(args: &DevelopmentArgs, folder: &Path) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("development").tempdir_in(folder)?;
    let started = Instant::now();
    let size = tokio::task::block_in_place(|| sky::generate(folder.path(), args.format, args.objects, args.files))?;
    eprintln!("{} objects made in {:.1} s", size.n_objects, started.elapsed().as_secs_f64());
    tokio::time::sleep(REST).await;

    let without = Developer::arrive(folder.path(), args.format, false).await?;
    let with = Developer::arrive(folder.path(), args.format, true).await?;
    let mut figures = vec![];
    for (number, step) in (1..).zip(steps()) {
        let (off, expected) = without.take(&step).await.with_context(|| format!("step {number} without reuse"))?;
        let (on, found) = with.take(&step).await.with_context(|| format!("step {number} with reuse"))?;
        let tries = step.tries.iter().zip(off).zip(on).map(|((attempt, off), on)| TryFigures {
            flaw: attempt.flaw,
            off: off.cpu,
            on: on.cpu,
            reused: on.reused,
        });
        let step = StepFigures {
            adds: step.adds,
            paper_percent: step.paper_percent,
            saved_percent_min: step.saved_percent_min,
            n_rows: expected.iter().map(RecordBatch::num_rows).sum(),
            tries: tries.collect(),
            difference: difference(&found, &expected)?,
        };
        eprintln!(
            "step {number}  off {:8.1} ms  on {:8.1} ms  saved {:.1} % of processor time",
            step.off().as_secs_f64() * 1000.0,
            step.on().as_secs_f64() * 1000.0,
            step.saved_percent()
        );
        figures.push(step);
    }
    without.client.close().await;
    with.client.close().await;
    folder.close().context("cannot remove the sky")?;
    Ok(Figures { n_objects: size.n_objects, n_neighbors: size.n_neighbors, args: args.clone(), steps: figures })
}

struct Developer {
    client: Client,
}

impl Developer {
    async fn arrive(sky: &Path, format: SkyFormat, reuse: bool) -> Result<Self> {
        let client = Client::open(machine::n_cores()).await?;
        for (table, columns) in [("photoobjall", sky::PHOTOOBJALL), ("neighbors", sky::NEIGHBORS)] {
            client.create_table(table, columns, format.stored(), &sky.join(table)).await?;
        }
        client.set_reuse(false).await?;
        // What is learnt of files at first sight is nobody's time.
        client.run("SELECT count(*), sum(mode), sum(r) FROM photoobjall").await?;
        client.run("SELECT count(*), sum(mode), sum(distance) FROM neighbors").await?;
        client.set_reuse(reuse).await?;
        Ok(Self { client })
    }

    /// Types all tries of a step; they end as they should, or that is an error.
    async fn take(&self, step: &Step) -> Result<(Vec<Spent>, Vec<RecordBatch>)> {
        let mut spent = vec![];
        let mut rows = vec![];
        for attempt in &step.tries {
            let Asked { cpu, outcome, reused, .. } = self.client.ask(&attempt.sql).await?;
            spent.push(Spent { cpu, reused });
            match (outcome, attempt.flaw) {
                (Ok(answer), None) => rows = answer,
                (Err(error), None) => return Err(error).context(attempt.sql.clone()),
                (Ok(_), Some(flaw)) => anyhow::bail!("this should have failed ({flaw}): {}", attempt.sql),
                (Err(_), Some(_)) => {}
            }
        }
        Ok((spent, rows))
    }
}

/// What one try took.
struct Spent {
    cpu: Duration,
    reused: Reused,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_steps_read_what_earlier_ones_left_and_answer_the_same() {
        for format in [SkyFormat::Csv, SkyFormat::Parquet] {
            let measure = async move {
                let folder = tempfile::tempdir()?;
                measure(&DevelopmentArgs { format, objects: 30_000, files: 3 }, folder.path()).await
            };
            let runtime = crate::runtime().unwrap();
            let figures = runtime.block_on(async { tokio::spawn(measure).await }).unwrap().unwrap();
            assert_eq!(figures.steps.len(), 4);
            for (number, step) in (1..).zip(&figures.steps) {
                assert_eq!(step.difference, None, "step {number}, {format}");
                assert!(step.n_rows > 0, "step {number}, {format}");
                let read = step.tries.last().is_some_and(|attempt| attempt.reused != Reused::None);
                assert!(number == 1 || read, "step {number} reads nothing that was there, {format}");
            }
        }
    }
}
