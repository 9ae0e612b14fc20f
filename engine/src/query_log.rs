//! [`QueryLog`]: every statement leaves a record in `system.queries`.
//!
//! One task owns the log and writes in batches, what comes within a moment in one; a statement only sends a message. A log that
//! cannot be written never fails a statement.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use nectarine_catalog::QueryId;
use nectarine_catalog::store::{MetadataStore, QueryRecord};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use crate::trace::{Trace, Tracer};

/// Records written in one transaction at the most.
const BATCH_MAX: usize = 256;
/// How long the first record of a batch waits for others: a transaction costs more than hundreds of records.
const GATHERED_FOR: Duration = Duration::from_millis(20);
/// Records that may wait; when the disk is that far behind, records are dropped, statements are not slowed.
const QUEUE_MAX: usize = 16_384;
/// Longer statements are cut in the log.
const SQL_BYTES_MAX: usize = 64 * 1024;

enum Message {
    Record(Box<QueryRecord>),
    Flush(oneshot::Sender<()>),
}

/// What statements of this process came to.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) finished: u64,
    pub(crate) failed: u64,
    pub(crate) cancelled: u64,
    pub(crate) exact: u64,
    pub(crate) partial: u64,
    pub(crate) saved_us: u64,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
}

impl Counts {
    fn add(&mut self, record: &QueryRecord) {
        match record.state.as_str() {
            "finished" => self.finished += 1,
            "failed" => self.failed += 1,
            "cancelled" => self.cancelled += 1,
            _ => return,
        }
        match record.reuse.as_deref() {
            Some("exact") => self.exact += 1,
            Some("partial") => self.partial += 1,
            _ => {}
        }
        self.saved_us += record.saved_ms.map_or(0, |saved| (saved * 1000.0) as u64);
        self.rows += record.rows_returned.map_or(0, i64::cast_unsigned);
        self.bytes += record.bytes_scanned.map_or(0, i64::cast_unsigned);
    }
}

/// A handle to the log.
#[derive(Debug, Clone)]
pub(crate) struct QueryLog {
    counts: Arc<Mutex<Counts>>,
    process: Arc<str>,
    sender: mpsc::Sender<Message>,
    /// Somebody waits for the log.
    hurry: Arc<Notify>,
    tracer: Option<Tracer>,
}

impl QueryLog {
    /// Starts the task that owns the log. Records carry the name of the process.
    pub(crate) fn start(store: Arc<dyn MetadataStore>, keep: usize, process: &str, tracer: Option<Tracer>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE_MAX);
        let hurry = Arc::new(Notify::new());
        tokio::spawn(own(store, keep, receiver, Arc::clone(&hurry)));
        Self { counts: Arc::default(), process: Arc::from(process), sender, hurry, tracer }
    }

    /// The trace of a statement, if somebody wants it.
    pub(crate) fn trace(&self, query_id: QueryId) -> Option<Trace> {
        self.tracer.as_ref().map(|tracer| Trace::start(tracer, query_id))
    }

    /// Adds or replaces a record, soon.
    pub(crate) fn write(&self, mut record: QueryRecord) {
        self.counts.lock().add(&record);
        truncate(&mut record.sql, SQL_BYTES_MAX);
        record.process = Some(self.process.to_string());
        if self.sender.try_send(Message::Record(Box::new(record))).is_err() {
            tracing::debug!("the query log is full or closed; a record is lost");
        }
    }

    /// What statements came to since the process began.
    pub(crate) fn counts(&self) -> Counts {
        *self.counts.lock()
    }

    /// Waits until all that was written before is in the store.
    pub(crate) async fn flush(&self) {
        let (done, is_done) = oneshot::channel();
        if self.sender.send(Message::Flush(done)).await.is_ok() {
            self.hurry.notify_one();
            let _ = is_done.await;
        }
    }

    /// The same for traces.
    pub(crate) async fn flush_traces(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.flush().await;
        }
    }
}

async fn own(store: Arc<dyn MetadataStore>, keep: usize, mut receiver: mpsc::Receiver<Message>, hurry: Arc<Notify>) {
    let mut messages = Vec::with_capacity(BATCH_MAX);
    while receiver.recv_many(&mut messages, BATCH_MAX).await > 0 {
        if messages.len() < BATCH_MAX {
            // Not woken by each record that comes meanwhile.
            let _ = tokio::time::timeout(GATHERED_FOR, hurry.notified()).await;
            while messages.len() < BATCH_MAX
                && let Ok(message) = receiver.try_recv()
            {
                messages.push(message);
            }
        }
        let mut records: Vec<QueryRecord> = vec![];
        let mut waiting = vec![];
        // A short statement begins and ends within one batch: its end says it all.
        let mut positions = HashMap::new();
        for message in messages.drain(..) {
            match message {
                Message::Record(record) => match positions.entry(record.query_id) {
                    Entry::Occupied(position) => {
                        let position: &usize = position.get();
                        records[*position] = *record;
                    }
                    Entry::Vacant(position) => {
                        position.insert(records.len());
                        records.push(*record);
                    }
                },
                Message::Flush(done) => waiting.push(done),
            }
        }
        if !records.is_empty()
            && let Err(error) = store.log_queries(&records, keep).await
        {
            tracing::warn!(%error, "cannot write the query log");
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

fn truncate(text: &mut String, bytes: usize) {
    if text.len() > bytes {
        let end = (0..=bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}
