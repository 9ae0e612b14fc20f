//! Entries against what is computed anew: the answer may be right while an entry is not.

use std::sync::Arc;

use arrow::array::{Array, Float32Array, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::context::SessionState;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::physical_planner::DefaultPhysicalPlanner;
use nectarine_catalog::{EntryPart, Fingerprint};
use nectarine_executor::Finished;
use nectarine_planner::canonical::{Exactness, Prefix};
use nectarine_planner::reuse::Recheck;

use super::Reuse;
use super::late::lower_reads;
use crate::rows::look_again;
use crate::statement::StatementCatalog;
use crate::{EngineError, ErrorKind, Result};

/// How far two sums of the same floats may be apart, relative to the larger one.
const TOLERANCE: f64 = 1e-9;

/// Fails if the entry of `prefix` holds other rows than `finished`. An entry that can not be read is no difference: whoever
/// wants it will notice.
pub(super) async fn compare(reuse: &Reuse, prefix: &Prefix, finished: &Finished) -> Result<()> {
    let Ok(Some(entry)) = reuse.cache.entry(&prefix.key).await else { return Ok(()) };
    if entry.rows != finished.rows && prefix.exactness != Exactness::Any {
        return Err(differs(&prefix.key, format!("it has {} rows, not {}", entry.rows, finished.rows)));
    }
    // Where luck decides, only what is there at all can be compared.
    if prefix.exactness == Exactness::Any
        || (prefix.exactness == Exactness::Floats && has_nested_floats(&prefix.schema))
    {
        return Ok(());
    }
    let Some(stored) = batches_of(reuse, prefix, &entry.parts).await else { return Ok(()) };
    let Some(computed) = batches_of(reuse, prefix, &finished.parts).await else { return Ok(()) };
    difference(&stored, &computed).map_or(Ok(()), |what| Err(differs(&prefix.key, what)))
}

/// Fails if an entry over some extents, or with states, holds other rows than are computed. What can not be read or computed
/// is no difference, and neither is one between files that change meanwhile: the statement itself will tell.
pub(super) async fn recheck(
    reuse: &Reuse,
    state: &SessionState,
    catalog: &StatementCatalog,
    recheck: &Recheck,
) -> Result<()> {
    let Ok(read) = run(reuse, state, &recheck.read).await else { return Ok(()) };
    let Ok(computed) = run(reuse, state, &recheck.computed).await else { return Ok(()) };
    if has_nested_floats(&recheck.computed.schema()) {
        return Ok(());
    }
    match difference(&read, &computed) {
        Some(what) if look_again(catalog).await.is_ok() => Err(differs(&recheck.key, what)),
        _ => Ok(()),
    }
}

/// The rows of a plan of marks.
async fn run(reuse: &Reuse, state: &SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    let plan = DefaultPhysicalPlanner::default().optimize_physical_plan(Arc::clone(plan), state, |_, _| {})?;
    let n_partitions = state.config_options().execution.target_partitions;
    match lower_reads(plan, reuse, state.runtime_env(), n_partitions).await? {
        Ok(plan) => Ok(collect(plan, state.task_ctx()).await?),
        Err(unusable) => Err(EngineError::new(ErrorKind::Internal, unusable.reason)),
    }
}

fn differs(key: &Fingerprint, what: String) -> EngineError {
    EngineError::new(ErrorKind::Internal, format!("cache entry {key} differs from what is computed")).with_detail(what)
}

/// What differs, in whatever order the rows come.
fn difference(stored: &[RecordBatch], computed: &[RecordBatch]) -> Option<String> {
    let (stored, computed) = (rows_of(stored)?, rows_of(computed)?);
    if stored.len() != computed.len() {
        return Some(format!("it has {} rows, not {}", stored.len(), computed.len()));
    }
    stored.iter().zip(&computed).find_map(|(stored, computed)| {
        let same_floats = stored.floats.iter().zip(&computed.floats).all(|(one, two)| is_close(*one, *two));
        (stored.text != computed.text || !same_floats).then(|| format!("{stored:?} is not {computed:?}"))
    })
}

/// One row: its floats by themselves, the rest as text.
#[derive(Debug)]
struct Row {
    text: String,
    floats: Vec<Option<f64>>,
}

async fn batches_of(reuse: &Reuse, prefix: &Prefix, parts: &[EntryPart]) -> Option<Vec<RecordBatch>> {
    let mut batches = vec![];
    for (ordinal, part) in parts.iter().enumerate() {
        batches.extend(reuse.store.read_part(part, &prefix.key, ordinal, &prefix.schema).await.ok()?);
    }
    Some(batches)
}

/// Rows in an order of their own; `None` if they can not be shown.
fn rows_of(batches: &[RecordBatch]) -> Option<Vec<Row>> {
    let mut rows = vec![];
    for batch in batches {
        append_rows(batch, &mut rows)?;
    }
    let bits =
        |row: &Row| row.floats.iter().map(|float| float.map(|float| format!("{float:+.6e}"))).collect::<Vec<_>>();
    rows.sort_by_cached_key(|row| (row.text.clone(), bits(row)));
    Some(rows)
}

fn append_rows(batch: &RecordBatch, rows: &mut Vec<Row>) -> Option<()> {
    let options = FormatOptions::default().with_null("NULL");
    let is_float =
        |column: &&arrow::array::ArrayRef| matches!(column.data_type(), DataType::Float32 | DataType::Float64);
    let others = batch.columns().iter().filter(|column| !is_float(column));
    let formatters: Vec<_> =
        others.map(|column| ArrayFormatter::try_new(column.as_ref(), &options)).collect::<Result<_, _>>().ok()?;
    let floats: Vec<_> = batch.columns().iter().filter(is_float).collect();
    for row in 0..batch.num_rows() {
        let text: Vec<String> =
            formatters.iter().map(|formatter| format!("{:?}", formatter.value(row).to_string())).collect();
        let floats = floats.iter().map(|column| float_at(column.as_ref(), row)).collect();
        rows.push(Row { text: text.join("|"), floats });
    }
    Some(())
}

fn float_at(column: &dyn Array, row: usize) -> Option<f64> {
    if column.is_null(row) {
        return None;
    }
    let wide = column.as_any().downcast_ref::<Float64Array>().map(|column| column.value(row));
    wide.or_else(|| column.as_any().downcast_ref::<Float32Array>().map(|column| f64::from(column.value(row))))
}

fn is_close(one: Option<f64>, two: Option<f64>) -> bool {
    match (one, two) {
        (Some(one), Some(two)) => {
            one == two || (one.is_nan() && two.is_nan()) || (one - two).abs() <= TOLERANCE * one.abs().max(two.abs())
        }
        (one, two) => one == two,
    }
}

fn has_nested_floats(schema: &Schema) -> bool {
    schema.fields().iter().any(|field| {
        field.data_type().is_nested() && format!("{:?}", field.data_type()).contains("Float")
            || field.data_type() == &DataType::Float16
    })
}
