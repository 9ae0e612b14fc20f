//! How fast states of groups merge: two times as many states as there are groups, on one core, in memory.
//!
//! What is measured is the operator that segment hits use (DataFusion's `AggregateExec` over states): `PartialReduce` where an
//! entry is written, `Final` where the answer is all that is wanted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::col;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use crate::args::MergingArgs;

/// States that one core merges in a second, in millions.
pub(crate) const RATE_MIN: f64 = 20.0;

const BATCH: usize = 8_192;

/// All that was measured.
pub(crate) struct Figures {
    pub(crate) args: MergingArgs,
    pub(crate) ways: Vec<WayFigures>,
}

/// One way to merge.
pub(crate) struct WayFigures {
    pub(crate) name: &'static str,
    pub(crate) n_states: usize,
    /// The fastest of a few runs.
    pub(crate) best: Duration,
}

impl WayFigures {
    /// Millions of states in a second.
    pub(crate) fn rate(&self) -> f64 {
        self.n_states as f64 / self.best.as_secs_f64() / 1e6
    }
}

/// Merges.
pub(crate) async fn measure(args: &MergingArgs) -> Result<Figures> {
    let groups = args.groups;
    let keys = |seed: i64| -> Vec<i64> { (0..groups).map(|group| (group * 7_919 + seed) % groups).collect() };
    let sorted: Vec<i64> = (0..groups).collect();
    let mut ways = vec![];
    for (name, mode, lists) in [
        ("PartialReduce, keys in any order", AggregateMode::PartialReduce, [keys(1), keys(500)]),
        ("PartialReduce, keys in order", AggregateMode::PartialReduce, [sorted.clone(), sorted]),
        ("Final, keys in any order", AggregateMode::Final, [keys(1), keys(500)]),
    ] {
        let mut best = Duration::MAX;
        for _ in 0..args.runs {
            best = best.min(merge(mode, &lists).await?);
        }
        let figures = WayFigures { name, n_states: lists.iter().map(Vec::len).sum(), best };
        eprintln!("{name}: {:.1} M states/s", figures.rate());
        ways.push(figures);
    }
    Ok(Figures { args: args.clone(), ways })
}

/// How long merging takes.
async fn merge(mode: AggregateMode, keys: &[Vec<i64>]) -> Result<Duration> {
    let row = |key: i64| -> Result<RecordBatch> {
        let column = || Arc::new(Int64Array::from(vec![key])) as ArrayRef;
        Ok(RecordBatch::try_from_iter([("k", column()), ("v", column())])?)
    };
    let example = row(0)?;
    let schema = example.schema();
    let group_by = PhysicalGroupBy::new_single(vec![(col("k", &schema)?, "k".to_string())]);
    let aggregate = |function, name: &str| {
        AggregateExprBuilder::new(function, vec![col("v", &schema)?])
            .schema(Arc::clone(&schema))
            .alias(name)
            .build()
            .map(Arc::new)
    };
    let aggregates = vec![aggregate(count_udaf(), "n")?, aggregate(sum_udaf(), "total")?];
    let filters = vec![None; aggregates.len()];
    let one = MemorySourceConfig::try_new_exec(&[vec![example]], Arc::clone(&schema), None)?;
    let partial = AggregateExec::try_new(
        AggregateMode::Partial,
        group_by.clone(),
        aggregates.clone(),
        filters.clone(),
        one,
        Arc::clone(&schema),
    )?;
    let states = partial.schema();
    let mut batches = vec![];
    for chunk in keys.iter().flat_map(|keys| keys.chunks(BATCH)) {
        let column = || Arc::new(Int64Array::from(chunk.to_vec())) as ArrayRef;
        let columns = states.fields().iter().map(|_| column()).collect();
        batches
            .push(RecordBatch::try_new(Arc::clone(&states), columns).context("states of other types than expected")?);
    }
    let input = MemorySourceConfig::try_new_exec(&[batches], states, None)?;
    let merged = AggregateExec::try_new(mode, group_by.as_final(), aggregates, filters, input, schema)?;
    let started = Instant::now();
    let rows = collect(Arc::new(merged), SessionContext::new().task_ctx()).await?;
    let taken = started.elapsed();
    let n_groups: usize = rows.iter().map(RecordBatch::num_rows).sum();
    anyhow::ensure!(keys.iter().all(|keys| keys.len() == n_groups), "{n_groups} groups came out");
    Ok(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_merge() {
        let runtime = crate::runtime().unwrap();
        let args = MergingArgs { groups: 10_000, runs: 1 };
        let figures =
            runtime.block_on(async { tokio::spawn(async move { measure(&args).await }).await }).unwrap().unwrap();
        assert_eq!(figures.ways.len(), 3);
        assert!(figures.ways.iter().all(|way| way.n_states == 20_000));
    }
}
