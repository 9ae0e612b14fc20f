//! [`Deadline`]: when a statement must have ended; see `nectarine.statement_timeout`.

use std::time::Duration;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use tokio::time::Instant;

use crate::statement::wrap;
use crate::{EngineError, ErrorKind, Result};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    seconds: usize,
    at: Instant,
}

impl Deadline {
    /// So many seconds from now; none for 0.
    pub(crate) fn from_now(seconds: usize) -> Option<Self> {
        let at = Instant::now().checked_add(Duration::from_secs(seconds as u64))?;
        (seconds > 0).then_some(Self { seconds, at })
    }

    /// Does something, if it is done in time.
    pub(crate) async fn keep<T>(self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::time::timeout_at(self.at, work).await.unwrap_or_else(|_| Err(self.missed()))
    }

    /// Ends rows with an error when time is up, also while they wait to be computed.
    pub(crate) fn end(self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let schema = rows.schema();
        let steps = futures::stream::unfold(Some(rows), move |rows| async move {
            let mut rows = rows?;
            match tokio::time::timeout_at(self.at, rows.next()).await {
                Ok(Some(batch)) => Some((batch, Some(rows))),
                Ok(None) => None,
                Err(_) => Some((Err(wrap(self.missed())), None)),
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, steps))
    }

    fn missed(self) -> EngineError {
        let message = format!("the statement took longer than {} seconds", self.seconds);
        EngineError::new(ErrorKind::Resources, message)
            .with_hint("SET nectarine.statement_timeout = .. gives it more time, 0 all it needs")
    }
}
