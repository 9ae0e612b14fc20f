//! Whether two runs gave the same rows: in any order, floats up to their last bits.

use anyhow::Result;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{SortColumn, cast, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Float64Type};
use arrow::record_batch::RecordBatch;

/// How far sums of floats may differ that were added up in another order, relative to their size.
const TOLERANCE: f64 = 1e-9;

/// The first difference found, in words; `None` if the rows are the same.
pub(crate) fn difference(ours: &[RecordBatch], stock: &[RecordBatch]) -> Result<Option<String>> {
    let (n_ours, n_stock) = (n_rows(ours), n_rows(stock));
    if n_ours != n_stock {
        return Ok(Some(format!("{n_ours} rows, expected {n_stock}")));
    }
    if n_ours == 0 {
        return Ok(None);
    }
    let (ours, stock) = (in_one(ours)?, in_one(stock)?);
    let types = |batch: &RecordBatch| -> Vec<(String, DataType)> {
        batch.schema().fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
    };
    if types(&ours) != types(&stock) {
        return Ok(Some(format!("columns {:?}, expected {:?}", types(&ours), types(&stock))));
    }
    let (ours, stock) = (sorted(&ours)?, sorted(&stock)?);
    for (position, field) in ours.schema().fields().iter().enumerate() {
        if !is_same(ours.column(position), stock.column(position))? {
            return Ok(Some(format!("values of column \"{}\"", field.name())));
        }
    }
    Ok(None)
}

fn n_rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn in_one(batches: &[RecordBatch]) -> Result<RecordBatch> {
    Ok(concat_batches(&batches[0].schema(), batches)?)
}

/// By all columns, floats last: their last bits must not decide where a row stands.
fn sorted(batch: &RecordBatch) -> Result<RecordBatch> {
    let mut columns: Vec<&ArrayRef> = batch.columns().iter().collect();
    columns.sort_by_key(|column| column.data_type().is_floating());
    let columns: Vec<SortColumn> =
        columns.into_iter().map(|column| SortColumn { values: ArrayRef::clone(column), options: None }).collect();
    let order = lexsort_to_indices(&columns, None)?;
    Ok(take_record_batch(batch, &order)?)
}

fn is_same(ours: &ArrayRef, stock: &ArrayRef) -> Result<bool> {
    if !ours.data_type().is_floating() {
        return Ok(ours.as_ref() == stock.as_ref());
    }
    let (ours, stock) = (cast(ours, &DataType::Float64)?, cast(stock, &DataType::Float64)?);
    let pairs = ours.as_primitive::<Float64Type>().iter().zip(stock.as_primitive::<Float64Type>());
    Ok(pairs.into_iter().all(|pair| match pair {
        (Some(ours), Some(stock)) => ours == stock || (ours - stock).abs() <= TOLERANCE * ours.abs().max(stock.abs()),
        (ours, stock) => ours == stock,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array};

    use super::*;

    fn rows(keys: &[i64], values: &[f64]) -> Vec<RecordBatch> {
        let keys: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        let values: ArrayRef = Arc::new(Float64Array::from(values.to_vec()));
        vec![RecordBatch::try_from_iter([("v", values), ("k", keys)]).unwrap()]
    }

    #[test]
    fn order_and_last_bits_do_not_matter() {
        let found = |ours: &[RecordBatch]| difference(ours, &rows(&[1, 2], &[0.3, 7.0])).unwrap();
        assert_eq!(found(&rows(&[2, 1], &[7.0, 0.1 + 0.2])), None);
        assert_eq!(found(&rows(&[2, 1], &[7.0, 0.31])).as_deref(), Some("values of column \"v\""));
        assert_eq!(found(&rows(&[3, 1], &[7.0, 0.3])).as_deref(), Some("values of column \"k\""));
        assert_eq!(found(&rows(&[2], &[7.0])).as_deref(), Some("1 rows, expected 2"));
    }
}
