//! Thousands of small Parquet files with columns of many types.
//!
//! ```text
//!   a   a number without order        every file may hold any
//!   b   counts up over all files      a filter on it leaves the files it needs
//!   c2, c3, ..   floats, texts, dates, times, decimals, booleans in turn
//! ```

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result};
use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray,
    TimestampMicrosecondArray,
};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;

use crate::machine;

/// Few: planning is what is measured.
pub(crate) const ROWS_PER_FILE: i64 = 10;

/// Writes `n_files` files into a new folder.
pub(crate) fn generate(folder: &Path, n_files: u32, n_columns: u16) -> Result<()> {
    fs::create_dir(folder)?;
    let next = AtomicU32::new(0);
    let work = || -> Result<()> {
        loop {
            let file = next.fetch_add(1, Ordering::Relaxed);
            if file >= n_files {
                return Ok(());
            }
            let path = folder.join(format!("{file:06}.parquet"));
            write(&path, &rows(file, n_columns)?).with_context(|| format!("cannot write \"{}\"", path.display()))?;
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..machine::n_cores()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

fn write(path: &Path, rows: &RecordBatch) -> Result<()> {
    let mut writer = ArrowWriter::try_new(File::create(path)?, rows.schema(), None)?;
    writer.write(rows)?;
    writer.close()?;
    Ok(())
}

fn rows(file: u32, n_columns: u16) -> Result<RecordBatch> {
    let first = i64::from(file) * ROWS_PER_FILE;
    let columns = (0..n_columns).map(|position| {
        let name = match position {
            0 => "a".to_string(),
            1 => "b".to_string(),
            _ => format!("c{position}"),
        };
        (name, column(position, first..first + ROWS_PER_FILE))
    });
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn column(position: u16, rows: std::ops::Range<i64>) -> ArrayRef {
    const MICROSECONDS_PER_MINUTE: i64 = 60_000_000;
    let scattered = rows.clone().map(|row| scatter(row, position));
    match (position, position % 8) {
        (1, _) => Arc::new(Int64Array::from_iter_values(rows)),
        (_, 0) => Arc::new(Int64Array::from_iter_values(scattered)),
        (_, 1) => Arc::new(Int32Array::from_iter_values(scattered.map(|value| value as i32))),
        (_, 2) => Arc::new(Float64Array::from_iter_values(scattered.map(|value| value as f64 / 7.0))),
        (_, 3) => Arc::new(StringArray::from_iter_values(scattered.map(|value| format!("visitor-{value:09}")))),
        (_, 4) => Arc::new(Date32Array::from_iter_values(scattered.map(|value| (value % 20_000) as i32))),
        (_, 5) => Arc::new(TimestampMicrosecondArray::from_iter_values(rows.map(|row| row * MICROSECONDS_PER_MINUTE))),
        (_, 6) => Arc::new(Decimal128Array::from_iter_values(scattered.map(i128::from))),
        _ => Arc::new(BooleanArray::from(scattered.map(|value| value % 2 == 0).collect::<Vec<_>>())),
    }
}

/// The same number for the same row each time, below a billion.
fn scatter(row: i64, position: u16) -> i64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(u32::from(position) + 7);
    (mixed % 1_000_000_000) as i64
}
