//! [`RecordedStream`]: rows on their way to the client, with what must happen when they end.
//!
//! Keeps true   before the end is told, the external extents that were read are looked at once more: a file that changed
//!              meanwhile makes the answer an error, not a mixture of old and new. Only then is anything published.
//!              A statement that runs out of memory before its first row, and whose plan was changed for the sake of the cache,
//!              runs once more as if there were none: what is read and kept takes memory too. So does one that meets what has no
//!              value (a division by zero), where the cache made it compute more than it needs.
//! Waits not    for publishing: that goes on when the answer has ended. The next statement waits for it, unless the results go
//!              to another machine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use datafusion::common::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use nectarine_catalog::Fingerprint;
use nectarine_planner::reuse::{ExtentCounts, Hit};

use crate::EngineError;
use crate::derived::still_there;
use crate::discretion::Places;
use crate::progress::Progress;
use crate::record::Record;
use crate::reuse::{Keeping, Leader, Ran, Read, ReceiptSlot, Remembered, Reuse, Reused};
use crate::statement::{Planning, StatementCatalog, wrap};
use crate::trace::Part;

/// What happens when the rows have ended.
pub(crate) struct Ending {
    pub(crate) record: Record,
    pub(crate) progress: Progress,
    /// Whether the extents are looked at again even if nothing is kept.
    pub(crate) verify: bool,
    pub(crate) catalog: Arc<StatementCatalog>,
    /// What the statement was planned with stays until its last row.
    pub(crate) planning: Option<Arc<Planning>>,
    pub(crate) reuse: Reuse,
    /// Entries that the plan reads.
    pub(crate) hits: Vec<Hit>,
    pub(crate) extents: Option<ExtentCounts>,
    /// Entries that the plan makes.
    pub(crate) keeping: Option<Keeping>,
    pub(crate) leader: Option<Leader>,
    pub(crate) receipt: ReceiptSlot,
    pub(crate) planning_time: Duration,
    /// How to answer the same statement next time without planning it.
    pub(crate) remember: Option<Remember>,
    /// How to run it without the cache, if the plan has anything to do with it.
    pub(crate) plain: Option<Plain>,
    /// Its program, to be written down.
    pub(crate) ran: Option<Arc<Ran>>,
}

/// A statement as it would be planned without a cache.
pub(crate) struct Plain {
    pub(crate) logical: LogicalPlan,
    pub(crate) context: Arc<TaskContext>,
    /// Whether it computes less that way, and may not meet what has no value.
    pub(crate) sees_less: bool,
}

impl Plain {
    /// Whether it may do without the cache what it could not do with it.
    fn is_better(&self, error: &DataFusionError) -> bool {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => true,
            error => self.sees_less && is_of_values(error),
        }
    }
}

/// Whether a value could not be computed.
fn is_of_values(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::Execution(_) => true,
        DataFusionError::ArrowError(error, _) => matches!(
            **error,
            ArrowError::DivideByZero
                | ArrowError::ArithmeticOverflow(_)
                | ArrowError::ComputeError(_)
                | ArrowError::CastError(_)
                | ArrowError::ParseError(_)
                | ArrowError::InvalidArgumentError(_)
        ),
        _ => false,
    }
}

/// A statement whose answer depends on its text and its tables alone.
pub(crate) struct Remember {
    /// Names the statement.
    pub(crate) statement: Fingerprint,
    /// FP_PD of its answer.
    pub(crate) root: Fingerprint,
    /// Its columns.
    pub(crate) schema: SchemaRef,
    /// Extents that it is about.
    pub(crate) n_extents: usize,
}

/// Where the stream is.
enum Step {
    Rows(Box<Running>),
    Ended,
}

struct Running {
    stream: Option<SendableRecordBatchStream>,
    rows: u64,
    /// Time spent on making rows, not on waiting for the client.
    busy: Duration,
    ending: Ending,
}

/// Names the room; all it does is in `wrap`.
pub(crate) struct RecordedStream;

impl RecordedStream {
    pub(crate) fn wrap(stream: SendableRecordBatchStream, ending: Ending) -> SendableRecordBatchStream {
        let schema = stream.schema();
        let busy = ending.planning_time;
        if let Some(leader) = &ending.leader {
            // Rows may wait for somebody to ask for them; those who want the same ones do not wait with them for long.
            leader.paused();
        }
        let running = Running { stream: Some(stream), rows: 0, busy, ending };
        let steps = futures::stream::unfold(Step::Rows(Box::new(running)), |step| async move {
            let Step::Rows(mut running) = step else { return None };
            match running.next_or_plain().await {
                Some(Ok(batch)) => {
                    running.rows += batch.num_rows() as u64;
                    Some((Ok(batch), Step::Rows(running)))
                }
                Some(Err(error)) => Some((Err(running.fail(error)), Step::Ended)),
                None => match running.end().await {
                    Ok(()) => None,
                    Err(error) => Some((Err(running.fail(error)), Step::Ended)),
                },
            }
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, steps))
    }
}

/// Looks at the external extents once more.
pub(crate) async fn look_again(catalog: &StatementCatalog) -> Result<(), DataFusionError> {
    for extents in catalog.external_extents() {
        catalog.shared.tracker.verify(&extents).await.map_err(wrap)?;
    }
    Ok(())
}

impl Running {
    /// The next batch; where the cache made the statement fail before the first, that of the same statement without it.
    async fn next_or_plain(&mut self) -> Option<Result<RecordBatch, DataFusionError>> {
        let batch = self.next().await;
        let is_first = self.rows == 0;
        match batch {
            Some(Err(error)) if is_first && self.ending.plain.as_ref().is_some_and(|plain| plain.is_better(&error)) => {
                match self.start_plain(&error).await {
                    Ok(true) => self.next().await,
                    Ok(false) => Some(Err(error)),
                    Err(error) => Some(Err(error)),
                }
            }
            batch => batch,
        }
    }

    /// Starts the statement without the cache; `false` if that would be nothing new.
    async fn start_plain(&mut self, error: &DataFusionError) -> Result<bool, DataFusionError> {
        let Some(Plain { logical, context, .. }) = self.ending.plain.take() else { return Ok(false) };
        let Some(planning) = self.ending.planning.clone() else { return Ok(false) };
        tracing::info!(%error, "running again without the cache");
        // Memory first: what the plan holds goes with it.
        self.stream = None;
        match error.find_root() {
            DataFusionError::ResourcesExhausted(_) => {
                self.ending.keeping.take().into_iter().for_each(|keeping| keeping.discard());
            }
            _ => self.leave_behind(),
        }
        self.ending.remember = None;
        self.ending.extents = None;
        self.ending.hits = vec![];
        let plan = Box::pin(planning.state().create_physical_plan(&logical)).await?;
        // What was read from the entry of a derived table is scanned now.
        Box::pin(still_there(&self.ending.catalog, None)).await.map_err(wrap)?;
        self.ending.progress.running(&plan);
        self.stream = Some(execute_stream(plan, context)?);
        Ok(true)
    }

    async fn next(&mut self) -> Option<Result<RecordBatch, DataFusionError>> {
        let stream = self.stream.as_mut()?;
        if let Some(leader) = &self.ending.leader {
            leader.active();
        }
        let asked = Instant::now();
        let batch = stream.next().await;
        self.busy += asked.elapsed();
        if let Some(leader) = &self.ending.leader
            && batch.is_some()
        {
            leader.paused();
        }
        // Nothing will come of it that those who wait for it could read: they compute for themselves, and now.
        if self.ending.keeping.as_ref().is_some_and(Keeping::has_given_up) {
            self.ending.leader.take().into_iter().for_each(Leader::finish);
        }
        batch
    }

    async fn end(&mut self) -> Result<(), DataFusionError> {
        // Done with: what it holds is not needed while the last things are seen to.
        self.stream = None;
        let keeping = self.ending.keeping.take();
        if self.ending.verify {
            look_again(&self.ending.catalog).await?;
        }
        let mut later = None;
        if let Some(keeping) = keeping {
            match self.ending.verify || look_again(&self.ending.catalog).await.is_ok() {
                true if keeping.tells() => _ = keeping.publish(self.busy).await.map_err(wrap)?,
                true => later = Some(keeping),
                false => keeping.discard(),
            }
        }
        match (&mut later, &self.ending.ran) {
            // With what it leaves behind.
            (Some(keeping), _) => keeping.ended(),
            (None, Some(ran)) => {
                let reuse = &self.ending.reuse;
                reuse.programs.ran(ran.runs(&reuse.programs, 1), &reuse.cache, &reuse.background);
            }
            (None, None) => {}
        }
        self.ending.settle(self.busy, later.as_ref().map_or(0, Keeping::n_whole));
        self.ending.progress.done();
        self.ending.record.finished(self.rows);
        let afterwards = self.ending.afterwards();
        match later {
            None => afterwards.now(),
            Some(keeping) => {
                let publishing = self.ending.record.part("publish");
                Box::pin(publish_later(keeping, afterwards, self.busy, publishing)).await;
            }
        }
        Ok(())
    }

    /// What is whole is published, in the background; the stream has to be gone, because only then is known what is.
    fn leave_behind(&mut self) {
        let Some(keeping) = self.ending.keeping.take() else { return };
        let (catalog, busy) = (Arc::clone(&self.ending.catalog), self.busy);
        let (is_remote, background) = (keeping.takes_its_time(), self.ending.reuse.background.clone());
        let work = async move {
            match look_again(&catalog).await {
                Ok(()) => drop(keeping.publish(busy).await),
                Err(_) => keeping.discard(),
            }
        };
        match is_remote {
            true => background.spawn(work),
            // Dropped if there is no room.
            false => drop(background.publish(work)),
        }
    }

    fn fail(&mut self, error: DataFusionError) -> DataFusionError {
        self.ending.progress.done();
        if !self.ending.catalog.rights.is_admin() {
            let told = Places::hide(&self.ending.catalog, EngineError::from(error));
            self.ending.record.failed(&told);
            return wrap(told);
        }
        // The client gets the same error converted again: the original must go on.
        let shared = Arc::new(error);
        self.ending.record.failed(&EngineError::from(DataFusionError::Shared(Arc::clone(&shared))));
        DataFusionError::Shared(shared)
    }
}

/// Publishes in the background, if there is room. `busy` is what the statement took.
async fn publish_later(keeping: Keeping, afterwards: Afterwards, busy: Duration, publishing: Option<Part>) {
    let (is_remote, background) = (keeping.takes_its_time(), afterwards.reuse.background.clone());
    // Who waits for this very answer need not wait for a store on another machine.
    if is_remote && let Some(leader) = &afterwards.leader {
        leader.paused();
    }
    let work = async move {
        // Only a check has errors to tell.
        let _ = keeping.publish(busy).await;
        drop(publishing);
        afterwards.now();
    };
    match is_remote {
        true => background.spawn(work),
        false => {
            if let Err(work) = background.publish(work) {
                background.to_its_end(work).await;
            }
        }
    }
}

impl Ending {
    /// What is left to do when everything that will be kept is kept.
    fn afterwards(&mut self) -> Afterwards {
        let source = self.ran.as_ref().map(|ran| ran.source);
        let remember = self.remember.take().map(|remember| (remember, self.catalog.reads(), source));
        Afterwards { remember, leader: self.leader.take(), reuse: self.reuse.clone() }
    }

    /// Writes the receipt.
    fn settle(&self, busy: Duration, n_kept: usize) {
        let cost: u64 = self.hits.iter().map(|hit| hit.found.cost_us).sum();
        let is_exact = self.hits.iter().any(|hit| hit.is_root);
        let spent = busy.as_micros() as u64;
        // What reading took is known for whole answers only; for parts it is little beside the rest.
        let saved_us = if is_exact { cost.saturating_sub(spent) } else { cost };
        for hit in &self.hits {
            self.reuse.cache.used(&hit.key, if is_exact { saved_us } else { hit.found.cost_us });
        }
        let extents = self.catalog.extents_read();
        let data_to = extents.iter().flat_map(|list| list.iter()).map(|extent| extent.modified_at).max();
        self.receipt.change(|receipt| {
            receipt.reused = match (self.hits.is_empty(), is_exact) {
                (true, _) => Reused::None,
                (false, true) => Reused::Exact,
                (false, false) => Reused::Partial,
            };
            receipt.entries = self.hits.iter().map(|hit| hit.key).collect();
            receipt.saved = Duration::from_micros(saved_us);
            receipt.extents = self.extents;
            receipt.kept = n_kept;
            receipt.data_to = data_to;
        });
        self.record.reused(&self.receipt.get());
    }
}

/// What is left to do when the entries of a statement are published.
struct Afterwards {
    remember: Option<(Remember, Vec<Read>, Option<Fingerprint>)>,
    leader: Option<Leader>,
    reuse: Reuse,
}

impl Afterwards {
    fn now(self) {
        // Makes the next same statement quick, if its answer is there.
        if let Some((Remember { statement, root, schema, n_extents }, reads, source)) = self.remember
            && self.reuse.cache.lookup(&root).is_some()
        {
            self.reuse.fast_path.remember(statement, Remembered::new(reads, root, schema, n_extents, source));
        }
        // Those who wait for this very answer find it now.
        if let Some(leader) = self.leader {
            leader.finish();
        }
    }
}

/// What a failed or cancelled statement had finished stays usable.
impl Drop for Running {
    fn drop(&mut self) {
        self.stream = None;
        self.leave_behind();
    }
}
