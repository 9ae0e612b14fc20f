//! Where statements are planned and computed: threads of their own.
//!
//! A thread that computes may look up only after seconds. Those who wait for it (a client, a signal, a clock, other
//! connections) have other threads, so that a statement can be cancelled and told of whatever it is doing.
//!
//! ```text
//!   caller's threads                       threads that compute
//!   session.execute ── statement ────────> plan, run
//!   answer          <── batches (two) ──── rows
//!        dropped    ── stop ─────────────> joins look at it, see `nectarine_executor::Interrupt`
//! ```
//!
//! Keeps true   nothing is computed before the first row is asked for, and no more than two batches ahead.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use futures::{FutureExt, Stream, StreamExt};
use nectarine_executor::Interrupt;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tracing::Instrument;

/// Stack of a thread: deeply nested statements are planned by recursion.
const STACK_BYTES: usize = 8 << 20;

/// The threads of this process; where none could be started, the caller's.
fn threads() -> Handle {
    static THREADS: OnceLock<Option<Runtime>> = OnceLock::new();
    let start = || {
        let threads = Builder::new_multi_thread()
            .enable_all()
            .thread_name("nectarine-compute")
            .thread_stack_size(STACK_BYTES)
            .build();
        threads.inspect_err(|error| tracing::warn!(%error, "no threads of their own for statements")).ok()
    };
    THREADS.get_or_init(start).as_ref().map_or_else(Handle::current, |threads| threads.handle().clone())
}

/// Does something there; dropping it stops it.
pub(crate) struct Computing<T> {
    task: JoinHandle<T>,
    interrupt: Arc<Interrupt>,
}

impl<T: Send + 'static> Computing<T> {
    pub(crate) fn start(work: impl Future<Output = T> + Send + 'static, interrupt: Arc<Interrupt>) -> Self {
        Self { task: threads().spawn(work.in_current_span()), interrupt }
    }
}

impl<T> Future for Computing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match ready!(self.task.poll_unpin(cx)) {
            Ok(done) => Poll::Ready(done),
            // Nobody but the owner of this stops it.
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }
}

impl<T> Drop for Computing<T> {
    fn drop(&mut self) {
        if !self.task.is_finished() {
            self.interrupt.stop();
            self.task.abort();
        }
    }
}

/// The same rows, computed there.
pub(crate) fn rows(rows: SendableRecordBatchStream, interrupt: Arc<Interrupt>) -> SendableRecordBatchStream {
    Box::pin(Rows { schema: rows.schema(), state: State::Waiting(Some(rows)), interrupt })
}

struct Rows {
    schema: SchemaRef,
    state: State,
    interrupt: Arc<Interrupt>,
}

enum State {
    /// Nobody asked yet.
    Waiting(Option<SendableRecordBatchStream>),
    Running {
        batches: mpsc::Receiver<Result<RecordBatch, DataFusionError>>,
        task: Computing<()>,
    },
    Ended,
}

impl Stream for Rows {
    type Item = Result<RecordBatch, DataFusionError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let interrupt = Arc::clone(&self.interrupt);
            match &mut self.state {
                State::Waiting(rows) => {
                    let Some(rows) = rows.take() else { return Poll::Ready(None) };
                    let (sender, batches) = mpsc::channel(1);
                    self.state = State::Running { batches, task: Computing::start(pass_on(rows, sender), interrupt) };
                }
                State::Running { batches, task } => {
                    if let Some(batch) = ready!(batches.poll_recv(cx)) {
                        return Poll::Ready(Some(batch));
                    }
                    ready!(task.poll_unpin(cx));
                    self.state = State::Ended;
                }
                State::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl RecordBatchStream for Rows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

async fn pass_on(mut rows: SendableRecordBatchStream, sender: mpsc::Sender<Result<RecordBatch, DataFusionError>>) {
    while let Some(batch) = rows.next().await {
        if sender.send(batch).await.is_err() {
            return;
        }
    }
}
