//! Which extents a filter can not touch, told from statistics and partition values alone.
//!
//! Keeps true   an extent is dropped only if no row of it can satisfy the filters. Floats never count: file statistics
//!              leave NaN out. What is unknown stays.
//! Cost         one vectorised evaluation over all extents for the columns that the filters name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::stats::Precision;
use datafusion::common::{Column, ColumnStatistics, DFSchema, Result, ScalarValue};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::utils::conjunction;
use datafusion::physical_optimizer::pruning::PruningPredicateBuilder;
use nectarine_catalog::{Extent, stats};
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
    known: Mutex<HashMap<usize, Arc<[ColumnStatistics]>>>,
}

impl ExtentColumns<'_> {
    fn column(&self, ordinal: usize) -> Arc<[ColumnStatistics]> {
        let column = || self.extents.iter().map(|extent| stats::column(extent, self.schema, ordinal)).collect();
        Arc::clone(self.known.lock().entry(ordinal).or_insert_with(column))
    }

    fn bound(&self, column: &Column, of: fn(&ColumnStatistics) -> &Precision<ScalarValue>) -> Option<ArrayRef> {
        let (ordinal, field) = self.schema.column_with_name(&column.name)?;
        let data_type = field.data_type();
        if data_type.is_floating() || matches!(data_type, DataType::Dictionary(_, value) if value.is_floating()) {
            return None;
        }
        let unknown = ScalarValue::try_from(data_type).ok()?;
        let column = self.column(ordinal);
        let bounds = column.iter().map(|column| of(column).get_value().cloned().unwrap_or_else(|| unknown.clone()));
        ScalarValue::iter_to_array(bounds).ok()
    }
}

impl PruningStatistics for ExtentColumns<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, |column| &column.min_value)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.bound(column, |column| &column.max_value)
    }

    fn num_containers(&self) -> usize {
        self.extents.len()
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let (ordinal, _) = self.schema.column_with_name(&column.name)?;
        // A count of some row groups says nothing of the others.
        let count = |column: &ColumnStatistics| match column.null_count {
            Precision::Exact(count) => Some(count as u64),
            _ => None,
        };
        let counts: UInt64Array = self.column(ordinal).iter().map(count).collect();
        Some(Arc::new(counts))
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        let counts: UInt64Array = self.extents.iter().map(|extent| extent.rows).collect();
        Some(Arc::new(counts))
    }

    fn contained(&self, _column: &Column, _values: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}
