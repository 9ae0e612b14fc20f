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

/// The same for another engine, which has other types for the same values: numbers are compared as such, all else as text, columns by
/// position.
pub(crate) fn alike(theirs: &[RecordBatch], stock: &[RecordBatch]) -> Result<Option<String>> {
    let (n_theirs, n_stock) = (n_rows(theirs), n_rows(stock));
    if n_theirs != n_stock {
        return Ok(Some(format!("{n_theirs} rows, expected {n_stock}")));
    }
    if n_theirs == 0 {
        return Ok(None);
    }
    let (theirs, stock) = (in_one(theirs)?, in_one(stock)?);
    if theirs.num_columns() != stock.num_columns() {
        return Ok(Some(format!("{} columns, expected {}", theirs.num_columns(), stock.num_columns())));
    }
    let is_number = |column: usize| [&theirs, &stock].iter().all(|rows| rows.column(column).data_type().is_numeric());
    let plain = |rows: &RecordBatch| -> Result<RecordBatch> {
        let names = rows.schema();
        let columns = rows.columns().iter().enumerate().map(|(at, column)| {
            let plain = if is_number(at) { DataType::Float64 } else { DataType::Utf8 };
            Ok((format!("{at} {}", names.field(at).name()), cast(column, &plain)?))
        });
        Ok(RecordBatch::try_from_iter(columns.collect::<Result<Vec<_>>>()?)?)
    };
    // Quotients of decimals are floats there, and decimals of some digits here: the last of these may differ.
    let unit = |theirs: &ArrayRef, stock: &ArrayRef| match (theirs.data_type().is_floating(), stock.data_type()) {
        (true, DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) => 10_f64.powi(-i32::from(*scale)),
        _ => 0.0,
    };
    let units: Vec<f64> =
        theirs.columns().iter().zip(stock.columns()).map(|(theirs, stock)| unit(theirs, stock)).collect();
    let (theirs, stock) = (sorted(&plain(&theirs)?)?, sorted(&plain(&stock)?)?);
    for (position, field) in stock.schema().fields().iter().enumerate() {
        if !is_near(theirs.column(position), stock.column(position), units[position])? {
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
    is_near(ours, stock, 0.0)
}

/// Floats may differ by `unit`, and by what adding them up in another order does to them.
fn is_near(ours: &ArrayRef, stock: &ArrayRef, unit: f64) -> Result<bool> {
    if !ours.data_type().is_floating() {
        return Ok(ours.as_ref() == stock.as_ref());
    }
    let (ours, stock) = (cast(ours, &DataType::Float64)?, cast(stock, &DataType::Float64)?);
    let pairs = ours.as_primitive::<Float64Type>().iter().zip(stock.as_primitive::<Float64Type>());
    Ok(pairs.into_iter().all(|pair| match pair {
        (Some(ours), Some(stock)) => {
            ours == stock || (ours - stock).abs() <= unit + TOLERANCE * ours.abs().max(stock.abs())
        }
        (ours, stock) => ours == stock,
    }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray};

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

    #[test]
    fn other_types_of_the_same_values() {
        let days: ArrayRef = Arc::new(Date32Array::from(vec![0, 1]));
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["1970-01-02", "1970-01-01"]));
        let decimals = Decimal128Array::from(vec![150, 250]).with_precision_and_scale(10, 2).unwrap();
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![2.5, 1.5]));
        let ours = [RecordBatch::try_from_iter([("d", days), ("v", Arc::new(decimals) as ArrayRef)]).unwrap()];
        let theirs = [RecordBatch::try_from_iter([("x", texts), ("y", floats)]).unwrap()];
        assert_eq!(alike(&theirs, &ours).unwrap(), None);
        let near: ArrayRef = Arc::new(Float64Array::from(vec![1.504, 2.5]));
        let far: ArrayRef = Arc::new(Float64Array::from(vec![1.52, 2.5]));
        let with = |floats: ArrayRef| {
            vec![RecordBatch::try_from_iter([("d", ArrayRef::clone(ours[0].column(0))), ("v", floats)]).unwrap()]
        };
        assert_eq!(alike(&with(near), &ours).unwrap(), None);
        assert_eq!(alike(&with(far), &ours).unwrap().as_deref(), Some("values of column \"1 v\""));
        let other = rows(&[1, 2], &[0.3, 7.0]);
        assert!(alike(&other, &ours).unwrap().is_some());
        assert_eq!(alike(&other, &rows(&[1, 3], &[0.3, 7.0])).unwrap().as_deref(), Some("values of column \"1 k\""));
    }
}
