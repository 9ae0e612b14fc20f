//! An answer as messages, as fast as the client takes them; its receipt comes last.
//!
//! Nothing is computed ahead of the client: a message is made when the connection has room for it. When the client goes, the
//! stream is dropped, and with it the statement.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_flight::FlightData;
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::error::FlightError;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt};
use tokio_util::sync::CancellationToken;
use tonic::Status;

use super::admission::{Admission, Party};
use super::handles::Fetching;
use super::statement::Pending;
use super::status::{internal, status};
use super::{told, wire};

/// What DoGet gives.
pub(super) type Messages = Pin<Box<dyn Stream<Item = Result<FlightData, Status>> + Send + 'static>>;

/// The rows of a statement, then its receipt.
pub(super) fn messages(
    pending: Pending,
    cancel: CancellationToken,
    fetching: Fetching,
    admission: Arc<Admission>,
    party: Party,
) -> Messages {
    let Pending { schema, rows, receipt, query_id, asked: _, watch } = pending;
    let rows = in_turn(rows, admission, party);
    let sent = Arc::clone(&schema);
    let rows = AssertUnwindSafe(rows).catch_unwind().map(|batch| match batch {
        Ok(batch) => batch,
        Err(_) => Err(internal("the statement ended in a bug of ours")),
    });
    let rows = rows.map(move |batch| match batch {
        Ok(batch) => match wire::batches(&batch, &sent) {
            Ok(batches) => futures::stream::iter(batches.into_iter().map(Ok)).left_stream(),
            Err(error) => futures::stream::iter([Err(internal(error))]).right_stream(),
        },
        Err(error) => futures::stream::iter([Err(error)]).right_stream(),
    });
    let rows = until_cancelled(rows.flatten().boxed(), cancel);
    let end = futures::stream::once(async move {
        let end = told::receipt(&query_id, &receipt());
        // Until the last message, so that the client can cancel.
        drop((fetching, watch));
        Err(end)
    });
    Box::pin(encoded(schema, rows).chain(end))
}

/// Rows that are there already.
pub(super) fn known(batch: RecordBatch) -> Messages {
    let schema = batch.schema();
    Box::pin(encoded(schema, futures::stream::iter([Ok(batch)]).boxed()))
}

/// No rows.
pub(super) fn none(schema: SchemaRef) -> Messages {
    Box::pin(encoded(schema, futures::stream::empty().boxed()))
}

fn encoded(
    schema: SchemaRef,
    rows: BoxStream<'static, Result<RecordBatch, Status>>,
) -> impl Stream<Item = Result<FlightData, Status>> + Send + 'static {
    let rows = rows.map_err(|status| FlightError::Tonic(Box::new(status)));
    FlightDataEncoderBuilder::new().with_schema(schema).build(rows).map_err(Status::from)
}

/// Each batch is computed when its turn has come.
fn in_turn(
    rows: BoxStream<'static, crate::Result<RecordBatch>>,
    admission: Arc<Admission>,
    party: Party,
) -> BoxStream<'static, Result<RecordBatch, Status>> {
    let steps = futures::stream::unfold(Some((rows, admission, party)), |step| async move {
        let (mut rows, admission, party) = step?;
        let permit = match admission.enter(&party).await {
            Ok(permit) => permit,
            Err(busy) => return Some((Err(busy), None)),
        };
        let batch = rows.next().await?;
        drop(permit);
        Some(match batch {
            Ok(batch) => (Ok(batch), Some((rows, admission, party))),
            Err(error) => (Err(status(&error)), None),
        })
    });
    steps.boxed()
}

fn until_cancelled<T: Send + 'static>(
    rows: BoxStream<'static, Result<T, Status>>,
    cancel: CancellationToken,
) -> BoxStream<'static, Result<T, Status>> {
    let steps = futures::stream::unfold(Some((rows, cancel)), |step| async move {
        let (mut rows, cancel) = step?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => Some((Err(Status::cancelled("the statement was cancelled")), None)),
            row = rows.next() => row.map(|row| (row, Some((rows, cancel)))),
        }
    });
    steps.boxed()
}
