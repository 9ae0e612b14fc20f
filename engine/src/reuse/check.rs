//! Entries against what is computed anew: the answer may be right while an entry is not.

use arrow::array::{Array, Float32Array, Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use nectarine_catalog::EntryPart;
use nectarine_executor::Finished;
use nectarine_planner::canonical::{Exactness, Prefix};

use super::Reuse;
use crate::{EngineError, ErrorKind, Result};

/// How far two sums of the same floats may be apart, relative to the larger one.
const TOLERANCE: f64 = 1e-9;

/// Fails if the entry of `prefix` holds other rows than `finished`. An entry that can not be read is no difference: whoever
/// wants it will notice.
pub(super) async fn compare(reuse: &Reuse, prefix: &Prefix, finished: &Finished) -> Result<()> {
    let Ok(Some(entry)) = reuse.cache.entry(&prefix.key).await else { return Ok(()) };
    let differs = |what: String| {
        EngineError::new(ErrorKind::Internal, format!("cache entry {} differs from what is computed", prefix.key))
            .with_detail(what)
    };
    if entry.rows != finished.rows && prefix.exactness != Exactness::Any {
        return Err(differs(format!("it has {} rows, not {}", entry.rows, finished.rows)));
    }
    // Where luck decides, only what is there at all can be compared.
    if prefix.exactness == Exactness::Any
        || (prefix.exactness == Exactness::Floats && has_nested_floats(&prefix.schema))
    {
        return Ok(());
    }
    let Some(stored) = rows_of(reuse, prefix, &entry.parts).await else { return Ok(()) };
    let Some(computed) = rows_of(reuse, prefix, &finished.parts).await else { return Ok(()) };
    for (stored, computed) in stored.iter().zip(&computed) {
        let same_floats = stored.floats.iter().zip(&computed.floats).all(|(one, two)| is_close(*one, *two));
        if stored.text != computed.text || !same_floats {
            return Err(differs(format!("{stored:?} is not {computed:?}")));
        }
    }
    Ok(())
}

/// One row: its floats by themselves, the rest as text.
#[derive(Debug)]
struct Row {
    text: String,
    floats: Vec<Option<f64>>,
}

async fn rows_of(reuse: &Reuse, prefix: &Prefix, parts: &[EntryPart]) -> Option<Vec<Row>> {
    let mut rows = vec![];
    for (ordinal, part) in parts.iter().enumerate() {
        let batches = reuse.store.read_part(part, &prefix.key, ordinal, &prefix.schema).await.ok()?;
        for batch in batches {
            append_rows(&batch, &mut rows)?;
        }
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
