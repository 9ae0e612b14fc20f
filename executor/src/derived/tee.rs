//! [`TeeStream`]: passes rows on and shows them to a recording.
//!
//! Knows the end of a stream from its being dropped: only a stream that said "no more" has given all its rows.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{Stream, StreamExt};

use super::{NotRecorded, Recording};

pub(super) struct TeeStream {
    recording: Arc<Recording>,
    partition: usize,
    schema: SchemaRef,
    input: SendableRecordBatchStream,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    New,
    Running,
    Ended,
}

impl TeeStream {
    pub(super) fn new(
        recording: Arc<Recording>,
        partition: usize,
        schema: SchemaRef,
        input: SendableRecordBatchStream,
    ) -> Self {
        Self { recording, partition, schema, input, stage: Stage::New }
    }
}

impl Stream for TeeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stage == Stage::New {
            self.stage = Stage::Running;
            self.recording.polled();
        }
        let polled = self.input.poll_next_unpin(context);
        match &polled {
            // Rows after the end, or after an error, belong to nothing that could be kept.
            Poll::Ready(Some(Ok(_))) if self.stage == Stage::Ended => self.recording.abandon(NotRecorded::RanTwice),
            Poll::Ready(Some(Ok(batch))) => self.recording.push(batch),
            Poll::Ready(Some(Err(_))) => self.recording.abandon(NotRecorded::Failed),
            Poll::Ready(None) if self.stage != Stage::Ended => {
                self.stage = Stage::Ended;
                self.recording.ended(self.partition);
            }
            Poll::Ready(None) | Poll::Pending => {}
        }
        polled
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.input.size_hint()
    }
}

impl RecordBatchStream for TeeStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for TeeStream {
    fn drop(&mut self) {
        if self.stage != Stage::Ended {
            self.recording.dropped();
        }
    }
}
