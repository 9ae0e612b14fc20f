//! [`ExtentSink`]: where INSERT ends.
//!
//! ```text
//!   rows --> channel --> blocking writer --> files in place --> one commit --> count
//! ```
//!
//! Keeps true   all extents of a statement become part of the table in one commit, or none does. An error, a cancelled
//!              statement or a killed process leaves the table as it was.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType};
use datafusion_datasource::sink::DataSink;
use futures::StreamExt;
use nectarine_catalog::Extent;
use tokio::sync::mpsc;

use crate::ExecutorError;
use crate::write::{ExtentWriter, WriteTarget, discard};

/// Batches that wait for the writer; more would only hold memory.
const BATCHES_QUEUED_MAX: usize = 4;

/// Makes extents part of a table.
#[async_trait]
pub trait Commit: fmt::Debug + Send + Sync {
    /// All of them at once, or an error and none. Called once a statement, also when there are none.
    async fn commit(&self, extents: Vec<Extent>) -> Result<()>;
}

/// Writes rows as new extents of one managed table.
#[derive(Debug)]
pub struct ExtentSink {
    table: String,
    target: WriteTarget,
    /// What DataFusion gets to see of the table's columns.
    taken: SchemaRef,
    commit: Arc<dyn Commit>,
}

impl ExtentSink {
    /// A sink for the table of that name.
    pub fn new(table: String, target: WriteTarget, commit: Arc<dyn Commit>) -> Self {
        let taken = with_nulls(&target.schema);
        Self { table, target, taken, commit }
    }
}

impl DisplayAs for ExtentSink {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExtentSink(table={})", self.table)
    }
}

/// The same columns, as if all took NULL. For a sink that looks by itself, with [`refuse_nulls`]: DataFusion would look without
/// knowing how a column is called.
pub fn with_nulls(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone()))
}

/// Fails if there is a NULL in a column of `table` that takes none.
pub fn refuse_nulls(columns: &[ArrayRef], schema: &Schema, table: &str) -> crate::Result<()> {
    let has_null = |(column, field): &(&ArrayRef, &FieldRef)| !field.is_nullable() && column.logical_null_count() > 0;
    match columns.iter().zip(schema.fields()).find(has_null) {
        Some((_, field)) => Err(ExecutorError::Null { column: field.name().clone(), table: table.to_owned() }),
        None => Ok(()),
    }
}

/// The batch with the table's types: a prepared INSERT may bring parameters of others.
fn fit(batch: &RecordBatch, schema: &SchemaRef, table: &str) -> Result<RecordBatch> {
    let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
        match column.data_type() == field.data_type() {
            true => Ok(Arc::clone(column)),
            false => {
                cast_with_options(column, field.data_type(), &CastOptions { safe: false, ..CastOptions::default() })
            }
        }
    });
    let columns = columns.collect::<Result<Vec<_>, ArrowError>>()?;
    refuse_nulls(&columns, schema, table)?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

#[async_trait]
impl DataSink for ExtentSink {
    fn schema(&self) -> &SchemaRef {
        &self.taken
    }

    async fn write_all(&self, mut data: SendableRecordBatchStream, _context: &Arc<TaskContext>) -> Result<u64> {
        let (sender, mut receiver) = mpsc::channel::<RecordBatch>(BATCHES_QUEUED_MAX);
        let mut writer = ExtentWriter::new(self.target.clone());
        // The flag tells the writer that the rows are all there: a closed channel alone may also mean that the statement
        // was cancelled, and then nothing may stay behind.
        let (whole, is_whole) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::task::spawn_blocking(move || -> crate::Result<Option<Vec<Extent>>> {
            while let Some(batch) = receiver.blocking_recv() {
                writer.write(&batch)?;
            }
            match is_whole.blocking_recv() {
                Ok(()) => writer.finish().map(Some),
                Err(_) => Ok(None),
            }
        });
        let mut rows = 0;
        while let Some(batch) = data.next().await {
            let batch = fit(&batch?, &self.target.schema, &self.table)?;
            rows += batch.num_rows() as u64;
            if sender.send(batch).await.is_err() {
                // The writer stopped; its error is in the task.
                break;
            }
        }
        drop(sender);
        // A writer that failed is not listening any more.
        let _ = whole.send(());
        let written = task.await.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let Some(extents) = written else {
            return Err(DataFusionError::Internal("the writer was told to stop before its rows ended".into()));
        };
        if let Err(error) = self.commit.commit(extents.clone()).await {
            discard(&extents);
            return Err(error);
        }
        Ok(rows)
    }
}
