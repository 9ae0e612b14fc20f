//! Which extents a filter can not touch, told from statistics and partition values alone.
//!
//! Keeps true   an extent is dropped only if no row of it can satisfy the filters. Floats never count: file statistics
//!              leave NaN out. What is unknown stays.
//! Cost         one vectorised evaluation over all extents for the columns that the filters name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt64Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use nectarine_catalog::{Extent, in_order, stats};
use parking_lot::Mutex;

/// The extents that may hold rows for which all `filters` are true.
pub(crate) fn prune_extents(
    state: &dyn Session,
    schema: &SchemaRef,
    extents: Arc<[Arc<Extent>]>,
    filters: &[Expr],
) -> Result<Arc<[Arc<Extent>]>> {
    let told = |filter: &&Expr| !filter.is_volatile();
    let Some(filter) = conjunction(filters.iter().filter(told).cloned()) else { return Ok(extents) };
    // One file is quicker opened than thought about.
    if extents.len() < 2 {
        return Ok(extents);
    }
    let df_schema = DFSchema::try_from(Arc::clone(schema))?;
    // Pruning is a help, never a duty: a filter that cannot be understood here is evaluated above the scan anyway.
    let Ok(physical) = state.create_physical_expr(filter, &df_schema) else { return Ok(extents) };
    let Ok(predicate) = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(physical) else {
        return Ok(extents);
    };
    if predicate.always_true() {
        return Ok(extents);
    }
    let statistics = ExtentColumns { schema, extents: &extents, known: Mutex::default() };
    let Ok(keep) = predicate.prune(&statistics) else { return Ok(extents) };
    if keep.iter().all(|keep| *keep) {
        return Ok(extents);
    }
    Ok(extents.iter().zip(keep).filter(|(_, keep)| *keep).map(|(extent, _)| Arc::clone(extent)).collect())
}

/// Statistics of extents, one column at a time.
struct ExtentColumns<'a> {
    schema: &'a SchemaRef,
    extents: &'a [Arc<Extent>],
    /// By the ordinal of the column: they are asked for several times, and there may be thousands of extents.
    known: Mutex<HashMap<usize, Arc<ExtentColumn>>>,
}

/// One column of all extents.
struct ExtentColumn {
    min: Option<ArrayRef>,
    max: Option<ArrayRef>,
    nulls: UInt64Array,
}

impl ExtentColumns<'_> {
    fn column(&self, column: &Column) -> Option<Arc<ExtentColumn>> {
        let (ordinal, _) = self.schema.column_with_name(&column.name)?;
        let read = || Arc::new(self.read(ordinal));
        Some(Arc::clone(self.known.lock().entry(ordinal).or_insert_with(read)))
    }

    fn read(&self, ordinal: usize) -> ExtentColumn {
        let parts = in_order(self.extents, |part| self.read_part(part, ordinal));
        let together = |bounds: fn(&ExtentColumn) -> Option<&ArrayRef>| {
            let arrays: Vec<&dyn Array> =
                parts.iter().map(|part| bounds(part).map(AsRef::as_ref)).collect::<Option<_>>()?;
            concat(&arrays).ok()
        };
        ExtentColumn {
            min: together(|part| part.min.as_ref()),
            max: together(|part| part.max.as_ref()),
            nulls: parts.iter().flat_map(|part| &part.nulls).collect(),
        }
    }

    fn read_part(&self, extents: &[Arc<Extent>], ordinal: usize) -> ExtentColumn {
        let data_type = self.schema.field(ordinal).data_type();
        let mut nulls = Vec::with_capacity(extents.len());
        let has_bounds =
            !(data_type.is_floating() || matches!(data_type, DataType::Dictionary(_, value) if value.is_floating()));
        let unknown = ScalarValue::try_from(data_type).ok().filter(|_| has_bounds);
        let (mut min, mut max) = (vec![], vec![]);
        for extent in extents {
            let known = stats::column(extent, self.schema, ordinal);
            // A count of some row groups says nothing of the others.
            nulls.push(match known.null_count {
                Precision::Exact(count) => Some(count as u64),
                _ => None,
            });
            if let Some(unknown) = &unknown {
                let value = |bound: Precision<ScalarValue>| match bound {
                    Precision::Exact(value) | Precision::Inexact(value) => value,
                    Precision::Absent => unknown.clone(),
                };
                min.push(value(known.min_value));
                max.push(value(known.max_value));
            }
        }
        let array = |bounds: Vec<ScalarValue>| ScalarValue::iter_to_array(bounds).ok();
        ExtentColumn { min: array(min), max: array(max), nulls: nulls.into() }
    }
}

impl PruningStatistics for ExtentColumns<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.column(column)?.min.clone()
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.column(column)?.max.clone()
    }

    fn num_containers(&self) -> usize {
        self.extents.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        Some(Arc::new(self.column(column)?.nulls.clone()))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.extents.iter().map(|extent| extent.rows).collect();
        Some(Arc::new(counts))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
