//! Entries against what is computed anew: the answer may be right while an entry is not.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Float64Type, Schema};
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
use crate::query_memory::task_context;
use crate::rows::look_again;
use crate::statement::StatementCatalog;
use crate::{EngineError, ErrorKind, Result};

/// How far two sums of the same floats may be apart, relative to the larger one: the last bits, and for narrow floats what
/// rounding them to their width adds.
fn tolerance(data_type: &DataType) -> f64 {
    match data_type {
        DataType::Float16 => 2e-3,
        DataType::Float32 => 1e-6,
        _ => 1e-9,
    }
}

/// How far they may be apart in any case, relative to the largest float of their column or to one: where floats cancel each other
/// out, the last bits of what they were are all that is left.
const LAST_BITS: f64 = 1e-12;

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

/// What comparing an entry with what is computed came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Verified {
    /// It holds what is computed.
    Same,
    /// It does not.
    Differs(String),
    /// Its files are missing or damaged.
    Damaged(String),
    /// It could not be compared.
    Unknown(String),
}

impl Verified {
    /// Whether the entry must go.
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Differs(_) | Self::Damaged(_))
    }
}

/// Computes an entry anew, and reads it from its files, not from memory.
pub(super) async fn verify(
    reuse: &Reuse,
    state: &SessionState,
    catalog: &StatementCatalog,
    recheck: &Recheck,
) -> Verified {
    let entry = match reuse.cache.entry(&recheck.key).await {
        Ok(Some(entry)) => entry,
        Ok(None) => return Verified::Unknown("it was dropped meanwhile".to_string()),
        Err(error) => return Verified::Damaged(error.to_string()),
    };
    reuse.store.forget(&recheck.key);
    match reuse.store.verify(&entry).await {
        Ok(()) => {}
        Err(error) if error.is_lost() => return Verified::Damaged(error.to_string()),
        Err(error) => return Verified::Unknown(error.to_string()),
    }
    if has_nested_floats(&recheck.computed.schema()) {
        return Verified::Unknown("floats within lists and structs are not compared".to_string());
    }
    let read = match run(reuse, state, &recheck.read).await {
        Ok(read) => read,
        Err(error) => return Verified::Unknown(format!("it can not be read: {error}")),
    };
    let computed = match run(reuse, state, &recheck.computed).await {
        Ok(computed) => computed,
        Err(error) => return Verified::Unknown(format!("it can not be computed: {error}")),
    };
    match difference(&read, &computed) {
        None => Verified::Same,
        Some(_) if look_again(catalog).await.is_err() => {
            Verified::Unknown("a file changed while it was read".to_string())
        }
        Some(what) => Verified::Differs(what),
    }
}

/// The rows of a plan of marks.
async fn run(reuse: &Reuse, state: &SessionState, plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<RecordBatch>> {
    let plan = DefaultPhysicalPlanner::default().optimize_physical_plan(Arc::clone(plan), state, |_, _| {})?;
    let n_partitions = state.config_options().execution.target_partitions;
    match lower_reads(plan, reuse, state.runtime_env(), n_partitions).await? {
        Ok(plan) => Ok(collect(plan, task_context(state)).await?),
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
    let scales = scales(stored.iter().chain(&computed));
    stored.iter().zip(&computed).find_map(|(stored, computed)| {
        let floats = stored.floats.iter().zip(&computed.floats).zip(&scales);
        let same_floats = floats.into_iter().all(|((one, two), scale)| is_close(one, two, *scale));
        (stored.text != computed.text || !same_floats).then(|| format!("{stored:?} is not {computed:?}"))
    })
}

/// The largest float of each column, or one.
fn scales<'a>(rows: impl Iterator<Item = &'a Row>) -> Vec<f64> {
    let mut scales = vec![];
    for row in rows {
        scales.resize(row.floats.len(), 1.0_f64);
        for (scale, float) in scales.iter_mut().zip(&row.floats) {
            *scale = float.value.filter(|value| value.is_finite()).map_or(*scale, |value| scale.max(value.abs()));
        }
    }
    scales
}

/// One row: its floats by themselves, the rest as text.
#[derive(Debug)]
struct Row {
    text: String,
    floats: Vec<Float>,
}

/// A float of any width, and how far another may be from it.
#[derive(Debug)]
struct Float {
    value: Option<f64>,
    tolerance: f64,
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
    // First by what two sums of the same floats agree on, then, among those that are alike, by their very bits.
    let digits =
        |float: &Float| float.value.map(|float| format!("{:+.6e}", if float.abs() < 1e-9 { 0.0 } else { float }));
    let bits = |float: &Float| float.value.map(f64::to_bits);
    rows.sort_by_cached_key(|row: &Row| {
        let alike: Vec<_> = row.floats.iter().map(digits).collect();
        (row.text.clone(), alike, row.floats.iter().map(bits).collect::<Vec<_>>())
    });
    Some(rows)
}

fn append_rows(batch: &RecordBatch, rows: &mut Vec<Row>) -> Option<()> {
    let options = FormatOptions::default().with_null("NULL");
    let is_float = |column: &&ArrayRef| column.data_type().is_floating();
    let others = batch.columns().iter().filter(|column| !is_float(column));
    let formatters: Vec<_> =
        others.map(|column| ArrayFormatter::try_new(column.as_ref(), &options)).collect::<Result<_, _>>().ok()?;
    let floats: Vec<_> = batch.columns().iter().filter(is_float).map(wide).collect::<Option<_>>()?;
    for row in 0..batch.num_rows() {
        let text: Vec<String> =
            formatters.iter().map(|formatter| format!("{:?}", formatter.value(row).to_string())).collect();
        let value = |column: &Float64Array| (!column.is_null(row)).then(|| column.value(row));
        let floats = floats.iter().map(|(column, tolerance)| Float { value: value(column), tolerance: *tolerance });
        rows.push(Row { text: text.join("|"), floats: floats.collect() });
    }
    Some(())
}

/// A column of floats as wide ones, which hold the same values.
fn wide(column: &ArrayRef) -> Option<(Float64Array, f64)> {
    let floats = arrow::compute::cast(column, &DataType::Float64).ok()?;
    Some((floats.as_primitive::<Float64Type>().clone(), tolerance(column.data_type())))
}

fn is_close(one: &Float, two: &Float, scale: f64) -> bool {
    match (one.value, two.value) {
        (Some(a), Some(b)) => {
            let allowed = (one.tolerance * a.abs().max(b.abs())).max(LAST_BITS * scale);
            a == b || (a.is_nan() && b.is_nan()) || (a.is_finite() && b.is_finite() && (a - b).abs() <= allowed)
        }
        (one, two) => one == two,
    }
}

fn has_nested_floats(schema: &Schema) -> bool {
    schema
        .fields()
        .iter()
        .any(|field| field.data_type().is_nested() && format!("{:?}", field.data_type()).contains("Float"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn rows(floats: Vec<Option<f64>>, data_type: &DataType) -> Vec<RecordBatch> {
        let column = Arc::new(Float64Array::from(floats)) as ArrayRef;
        let column = arrow::compute::cast(&column, data_type).expect("floats to floats");
        vec![RecordBatch::try_from_iter([("f", column)]).expect("one column")]
    }

    #[test]
    fn floats_of_all_widths_are_compared() {
        for data_type in [DataType::Float16, DataType::Float32, DataType::Float64] {
            let entry = rows(vec![Some(1.5), None, Some(f64::NAN)], &data_type);
            assert_eq!(difference(&entry, &rows(vec![None, Some(f64::NAN), Some(1.5)], &data_type)), None);
            for other in [vec![Some(1.5625), None, Some(f64::NAN)], vec![Some(1.5), Some(0.0), Some(f64::NAN)]] {
                assert!(difference(&entry, &rows(other, &data_type)).is_some(), "{data_type}");
            }
        }
    }

    #[test]
    fn what_is_left_of_floats_that_cancel_each_other_out() {
        let rows = |floats| rows(floats, &DataType::Float64);
        let entry = rows(vec![Some(0.0), Some(2.4)]);
        assert_eq!(difference(&entry, &rows(vec![Some(-1.5e-16), Some(2.4)])), None);
        assert!(difference(&entry, &rows(vec![Some(1e-8), Some(2.4)])).is_some());
        assert!(difference(&entry, &rows(vec![Some(0.0), Some(f64::INFINITY)])).is_some());
    }
}
