//! What is known of an extent's columns, in few bytes: NULLs, smallest and largest value, size.
//!
//! ```text
//!   format u8 | flags u8 | columns u16 | [total bytes u64] | end of each column u32 ..| column | column | ..
//!   column:  flags u8 | class u8 | [NULLs] | [bytes] | [min] | [max]          empty: nothing is known
//! ```
//!
//! Guarantees   one column is found without looking at the others. A decoded minimum is never above, a maximum never
//!              below the true one; `Exact` only where some row holds that very value. Floats are never `Exact`, because
//!              Parquet leaves NaN out. Strings are cut at [`MAX_BOUND_BYTES`], and rounded away from the data.
//!              A missing NULL count is unknown, not zero. Bytes that make no sense decode to nothing.
//! Caveats      only what a whole-file format tells is kept; types without an order that DataFusion and the files agree
//!              on (nested, dictionary, interval, half floats) stay unknown.

mod codec;
mod total;
mod value;

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};

pub use self::total::{forget_text_bounds, merge_total, merge_total_wide};
use self::value::Bound;
use crate::Extent;

/// Longer strings are cut.
pub const MAX_BOUND_BYTES: usize = 64;

/// Keeps what is known of the columns of `schema`; `statistics` has one entry per column, in the same order.
/// Rows are kept in the extent itself.
pub fn encode(statistics: &Statistics, schema: &Schema) -> Arc<[u8]> {
    codec::encode(statistics, schema)
}

/// What is known of one extent's file: `file_schema` has the columns that the file holds, without partition columns, as
/// DataFusion wants it for one file. With `columns`, only those are decoded and the others stay unknown.
pub fn decode(extent: &Extent, file_schema: &Schema, columns: Option<&[usize]>) -> Statistics {
    let mut column_statistics = Statistics::unknown_column(file_schema);
    let wanted = |ordinal: &usize| columns.is_none_or(|columns| columns.contains(ordinal));
    for ordinal in (0..column_statistics.len()).filter(wanted) {
        column_statistics[ordinal] = file_column(extent, file_schema, ordinal);
    }
    Statistics { num_rows: rows(extent), total_byte_size: total_bytes(extent), column_statistics }
}

/// What is known of one column of one extent. `schema` is the table's, partition columns last.
pub fn column(extent: &Extent, schema: &Schema, ordinal: usize) -> ColumnStatistics {
    let Some(partition) = partition_of(extent, schema, ordinal) else { return file_column(extent, schema, ordinal) };
    let data_type = schema.field(ordinal).data_type();
    partition_column(extent, partition.map(|value| ScalarValue::try_from_string(value.to_string(), data_type)))
}

fn file_column(extent: &Extent, schema: &Schema, ordinal: usize) -> ColumnStatistics {
    let Some(field) = schema.fields().get(ordinal) else { return ColumnStatistics::new_unknown() };
    let Some(known) = codec::column(&extent.stats, ordinal, field.data_type()) else {
        return ColumnStatistics::new_unknown();
    };
    let scalar = |bound: Option<Bound<'_>>| {
        let scalar = bound.and_then(|bound| Some((bound.value.to_scalar(field.data_type())?, bound.exact)));
        match scalar {
            Some((scalar, true)) => Precision::Exact(scalar),
            Some((scalar, false)) => Precision::Inexact(scalar),
            None => Precision::Absent,
        }
    };
    ColumnStatistics {
        null_count: known.null_count,
        min_value: scalar(known.min),
        max_value: scalar(known.max),
        byte_size: known.byte_size,
        ..ColumnStatistics::new_unknown()
    }
}

fn rows(extent: &Extent) -> Precision<usize> {
    extent.rows.and_then(|rows| usize::try_from(rows).ok()).map_or(Precision::Absent, Precision::Exact)
}

/// Of the decoded columns if the format told. Only where not even rows are known, the file's own bytes are the guess: they
/// count columns that nobody reads, and joins would be planned by them rather than by their rows.
fn total_bytes(extent: &Extent) -> Precision<usize> {
    match codec::total_bytes(&extent.stats) {
        Precision::Absent if extent.rows.is_none() => {
            Precision::Inexact(usize::try_from(extent.bytes()).unwrap_or(usize::MAX))
        }
        known => known,
    }
}

/// The partition value if the column is one: `Some(None)` is NULL.
fn partition_of<'a>(extent: &'a Extent, schema: &Schema, ordinal: usize) -> Option<Option<&'a Arc<str>>> {
    let n_columns = schema.fields().len();
    let first = n_columns.checked_sub(extent.partition_values.len())?;
    let value = extent.partition_values.get(ordinal.checked_sub(first)?)?;
    (ordinal < n_columns).then_some(value.as_ref())
}

fn partition_column(extent: &Extent, value: Option<datafusion_common::Result<ScalarValue>>) -> ColumnStatistics {
    let unknown = ColumnStatistics::new_unknown();
    match value {
        None => ColumnStatistics { null_count: rows(extent), ..unknown },
        // A value that is not of the column's type is an error when the extent is read, not here.
        Some(Err(_)) => unknown,
        Some(Ok(value)) => {
            // Without a row there is no value; without knowing, there may be none.
            let value = match extent.rows {
                Some(0) => Precision::Absent,
                Some(_) => Precision::Exact(value),
                None => Precision::Inexact(value),
            };
            ColumnStatistics { null_count: Precision::Exact(0), min_value: value.clone(), max_value: value, ..unknown }
        }
    }
}

#[cfg(test)]
mod tests;
