//! [`Answer`]: what a statement gives back.
//!
//! Rows arrive as the stream is polled; dropping the answer before its end cancels the statement.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{Stream, StreamExt, TryStreamExt};
use nectarine_catalog::QueryId;
use nectarine_executor::Interrupt;

use crate::deadline::Deadline;
use crate::reuse::ReceiptSlot;
use crate::{EngineError, Receipt, Result, compute};

/// The outcome of one statement.
pub struct Answer {
    query_id: QueryId,
    kind: AnswerKind,
    notices: Vec<Notice>,
    stream: SendableRecordBatchStream,
    receipt: ReceiptSlot,
}

/// What sort of statement it was, for those who print.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnswerKind {
    /// A query: print its rows.
    Rows,
    /// A command: print its tag, as psql does (`CREATE TABLE`, `SET`); its stream has no rows.
    Command {
        /// In upper case.
        tag: String,
    },
    /// A command that wrote rows (`INSERT`, `COPY`): its stream is one row with one number, `count`.
    Written {
        /// In upper case; the count follows it in print.
        tag: String,
    },
}

/// Something the user should know that is no error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notice {
    /// One line, lower case.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Answer {
    pub(crate) fn new(
        query_id: QueryId,
        kind: AnswerKind,
        notices: Vec<Notice>,
        stream: SendableRecordBatchStream,
    ) -> Self {
        Self { query_id, kind, notices, stream, receipt: ReceiptSlot::default() }
    }

    pub(crate) fn with_receipt(mut self, receipt: ReceiptSlot) -> Self {
        self.receipt = receipt;
        self
    }

    /// The rows come from threads that compute.
    pub(crate) fn computed(mut self, interrupt: Arc<Interrupt>) -> Self {
        if self.kind == AnswerKind::Rows {
            self.stream = compute::rows(self.stream, interrupt);
        }
        self
    }

    /// Ends the rows with an error when time is up.
    pub(crate) fn until(mut self, deadline: Option<Deadline>) -> Self {
        if let (Some(deadline), AnswerKind::Rows) = (deadline, &self.kind) {
            self.stream = deadline.end(self.stream);
        }
        self
    }

    /// Keeps something until the rows have ended or are dropped.
    pub(crate) fn holding(mut self, kept: impl Send + 'static) -> Self {
        let schema = self.stream.schema();
        let steps = futures::stream::unfold((self.stream, kept), |(mut rows, kept)| async move {
            let batch = rows.next().await?;
            Some((batch, (rows, kept)))
        });
        self.stream = Box::pin(RecordBatchStreamAdapter::new(schema, steps));
        self
    }

    /// A handle on what the answer used; whole when its rows have ended. Ask for it before the rows are taken.
    pub fn receipt(&self) -> impl Fn() -> Receipt + Send + Sync + 'static {
        let receipt = self.receipt.clone();
        move || receipt.get()
    }

    /// Finds this statement in `system.queries`.
    pub fn query_id(&self) -> QueryId {
        self.query_id
    }

    /// What sort of statement it was.
    pub fn kind(&self) -> &AnswerKind {
        &self.kind
    }

    /// What the user should be told beside the rows.
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Columns of the rows.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The rows as they come.
    pub fn into_stream(self) -> impl Stream<Item = Result<RecordBatch>> + Send + Unpin {
        self.stream.map_err(EngineError::from)
    }

    /// All rows at once.
    pub async fn collect(self) -> Result<Vec<RecordBatch>> {
        self.into_stream().boxed().try_collect().await
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer").field("query_id", &self.query_id).field("kind", &self.kind).finish_non_exhaustive()
    }
}
