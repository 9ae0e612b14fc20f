//! Statistics of a whole stream from those of its extents.
//!
//! Cost   tens of nanoseconds per extent and column: bounds are compared as they are stored, one scalar is made at the end.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue, Statistics};

use super::value::Bound;
use super::{codec, partition_column, partition_of, rows, total_bytes};
use crate::Extent;

/// Statistics of all extents together, one entry per column of `projection` in its order, or per column of `schema`.
pub fn merge_total(extents: &[Arc<Extent>], schema: &Schema, projection: Option<&[usize]>) -> Statistics {
    let all: Vec<usize>;
    let columns = match projection {
        Some(projection) => projection,
        None => {
            all = (0..schema.fields().len()).collect();
            &all
        }
    };
    let mut total = whole(extents);
    total.column_statistics = columns.iter().map(|ordinal| column(extents, schema, *ordinal)).collect();
    if projection.is_some() {
        let sizes = total.column_statistics.iter().map(|column| column.byte_size);
        let size = sizes.reduce(|one, two| one.add(&two)).unwrap_or(Precision::Exact(0));
        total.total_byte_size = match size {
            Precision::Absent => {
                let fields: Vec<_> =
                    columns.iter().filter_map(|ordinal| schema.fields().get(*ordinal)).cloned().collect();
                let mut estimated = total.clone();
                estimated.calculate_total_byte_size(&Schema::new(fields));
                estimated.total_byte_size
            }
            size => size,
        };
    }
    total
}

/// The same with one entry per column of `schema`, as plans may see it; columns that are not in `columns` stay unknown.
pub fn merge_total_wide(extents: &[Arc<Extent>], schema: &Schema, columns: Option<&[usize]>) -> Statistics {
    let mut total = whole(extents);
    total.column_statistics = (0..schema.fields().len())
        .map(|ordinal| match columns {
            Some(columns) if !columns.contains(&ordinal) => ColumnStatistics::new_unknown(),
            _ => column(extents, schema, ordinal),
        })
        .collect();
    forget_text_bounds(total, schema)
}

/// DataFusion 55 takes the bounds of `s::int` to be those of `s`, cast; but '10' is below '9'.
pub fn forget_text_bounds(mut statistics: Statistics, schema: &Schema) -> Statistics {
    let is_text = |data_type: &DataType| data_type.is_string() || data_type.is_binary();
    for (column, field) in statistics.column_statistics.iter_mut().zip(schema.fields()) {
        let value_type = match field.data_type() {
            DataType::Dictionary(_, value) => value,
            other => other,
        };
        if is_text(value_type) {
            (column.min_value, column.max_value) = (Precision::Absent, Precision::Absent);
        }
    }
    statistics
}

fn whole(extents: &[Arc<Extent>]) -> Statistics {
    let zero = Precision::Exact(0);
    Statistics {
        num_rows: extents.iter().fold(zero, |sum, extent| sum.add(&rows(extent))),
        total_byte_size: extents.iter().fold(zero, |sum, extent| sum.add(&total_bytes(extent))),
        column_statistics: Vec::new(),
    }
}

fn column(extents: &[Arc<Extent>], schema: &Schema, ordinal: usize) -> ColumnStatistics {
    let Some(field) = schema.fields().get(ordinal) else { return ColumnStatistics::new_unknown() };
    if extents.first().is_some_and(|extent| partition_of(extent, schema, ordinal).is_some()) {
        return partition(extents, schema, ordinal, field.data_type());
    }
    let (mut nulls, mut size) = (Precision::Exact(0), Precision::Exact(0));
    let (mut min, mut max) = (End::default(), End::default());
    for extent in extents {
        let known = codec::column(&extent.stats, ordinal, field.data_type());
        let (extent_nulls, extent_size) =
            known.as_ref().map_or((Precision::Absent, Precision::Absent), |known| (known.null_count, known.byte_size));
        // Without a row that is not NULL there is no bound to know.
        let empty = extent.rows == Some(0);
        let all_null =
            matches!((extent_nulls, extent.rows), (Precision::Exact(nulls), Some(rows)) if nulls as u64 == rows);
        nulls = if empty { nulls } else { nulls.add(&extent_nulls) };
        size = if empty { size } else { size.add(&extent_size) };
        if !empty && !all_null {
            min.take(known.as_ref().and_then(|known| known.min), Ordering::Less);
            max.take(known.as_ref().and_then(|known| known.max), Ordering::Greater);
        }
    }
    ColumnStatistics {
        null_count: nulls,
        min_value: min.finish(field.data_type()),
        max_value: max.finish(field.data_type()),
        byte_size: size,
        ..ColumnStatistics::new_unknown()
    }
}

/// One end of the values seen so far.
#[derive(Default)]
struct End<'a> {
    best: Option<Bound<'a>>,
    inexact: bool,
    unknown: bool,
}

impl<'a> End<'a> {
    fn take(&mut self, bound: Option<Bound<'a>>, better: Ordering) {
        let Some(bound) = bound else {
            self.unknown = true;
            return;
        };
        self.inexact |= !bound.exact;
        match &self.best {
            None => self.best = Some(bound),
            Some(best) => match bound.value.compare(&best.value) {
                Some(order) if order == better => self.best = Some(bound),
                Some(_) => {}
                None => self.unknown = true,
            },
        }
    }

    fn finish(self, data_type: &DataType) -> Precision<ScalarValue> {
        let value = self.best.filter(|_| !self.unknown).and_then(|best| best.value.to_scalar(data_type));
        match value {
            Some(value) if self.inexact => Precision::Inexact(value),
            Some(value) => Precision::Exact(value),
            None => Precision::Absent,
        }
    }
}

/// Neighbours mostly share their value, so each is understood once.
fn partition(extents: &[Arc<Extent>], schema: &Schema, ordinal: usize, data_type: &DataType) -> ColumnStatistics {
    let mut total = ColumnStatistics { null_count: Precision::Exact(0), ..ColumnStatistics::new_unknown() };
    let mut last: Option<(Option<&Arc<str>>, bool)> = None;
    for extent in extents.iter().filter(|extent| extent.rows != Some(0)) {
        let Some(text) = partition_of(extent, schema, ordinal) else { return ColumnStatistics::new_unknown() };
        let seen = Some((text, extent.rows.is_some()));
        if text.is_some() && seen == last {
            continue;
        }
        last = seen;
        let value = text.map(|text| ScalarValue::try_from_string(text.to_string(), data_type)).transpose();
        let Ok(value) = value else { return ColumnStatistics::new_unknown() };
        let known = partition_column(extent, value.map(Ok));
        total.null_count = total.null_count.add(&known.null_count);
        // NULL takes no part in bounds.
        match (&known.min_value, &total.min_value) {
            (Precision::Absent, _) => {}
            (_, Precision::Absent) => (total.min_value, total.max_value) = (known.min_value, known.max_value),
            _ => {
                total.min_value = total.min_value.min(&known.min_value);
                total.max_value = total.max_value.max(&known.max_value);
            }
        }
    }
    total
}
