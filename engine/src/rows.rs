//! [`RecordedStream`]: rows on their way to the client, with what must happen when they end.
//!
//! Keeps true   before the end is told, the external extents that were read are looked at once more: a file that changed
//!              meanwhile makes the answer an error, not a mixture of old and new.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::EngineError;
use crate::progress::Progress;
use crate::record::Record;
use crate::statement::{Planning, StatementCatalog, wrap};

/// Where the stream is.
enum Step {
    Rows(Box<Running>),
    Ended,
}

struct Running {
    stream: SendableRecordBatchStream,
    record: Record,
    progress: Progress,
    rows: u64,
    catalog: Option<Arc<StatementCatalog>>,
    /// What the statement was planned with stays until its last row.
    _planning: Arc<Planning>,
}

/// Names the room; all it does is in `wrap`.
pub(crate) struct RecordedStream;

impl RecordedStream {
    pub(crate) fn wrap(
        stream: SendableRecordBatchStream,
        record: Record,
        progress: Progress,
        verify: Option<Arc<StatementCatalog>>,
        planning: Arc<Planning>,
    ) -> SendableRecordBatchStream {
        let schema = stream.schema();
        let running = Running { stream, record, progress, rows: 0, catalog: verify, _planning: planning };
        let steps = futures::stream::unfold(Step::Rows(Box::new(running)), |step| async move {
            let Step::Rows(mut running) = step else { return None };
            match running.stream.next().await {
                Some(Ok(batch)) => {
                    running.rows += batch.num_rows() as u64;
                    Some((Ok(batch), Step::Rows(running)))
                }
                Some(Err(error)) => Some((Err(running.fail(error)), Step::Ended)),
                None => match look_again(running.catalog.take()).await {
                    Ok(()) => {
                        running.progress.done();
                        running.record.finished(running.rows);
                        None
                    }
                    Err(error) => Some((Err(running.fail(error)), Step::Ended)),
                },
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, steps))
    }
}

/// Looks at the external extents once more.
async fn look_again(catalog: Option<Arc<StatementCatalog>>) -> Result<(), DataFusionError> {
    let Some(catalog) = catalog else { return Ok(()) };
    for extents in catalog.external_extents() {
        catalog.shared.tracker.verify(&extents).await.map_err(wrap)?;
    }
    Ok(())
}

impl Running {
    fn fail(&self, error: DataFusionError) -> DataFusionError {
        self.progress.done();
        // The client gets the same error converted again: the original must go on.
        let shared = Arc::new(error);
        self.record.failed(&EngineError::from(DataFusionError::Shared(Arc::clone(&shared))));
        DataFusionError::Shared(shared)
    }
}
