//! [`Recording`]: what one AddEntry collects, and whether that is whole.
//!
//! ```text
//!   partition 0 --tee--+
//!   partition 1 --tee--+--> buffer --about 4 MB--> encode, put (in the background) --> part 0, part 1, ..
//!                      |
//!                      +--> rows pass on untouched
//! ```
//!
//! Whole        when every partition of the node was executed once and read to its end. Anything else (LIMIT, an error, a
//!              cancelled statement, a partition that no one asked for or that ran twice) gives no entry.
//! Room         is asked for before each part is written, in the background; where there is none, the recording gives up.
//! Never        slows or fails the statement: when the store falls behind or fails, or the rows become too many, the
//!              recording gives up, drops what it holds, deletes what it wrote, and the rows pass on.
//! Order        parts are in the order in which rows passed: that of the rows, if there is one partition.
//! Memory       at most `parts_behind_max + 1` parts of about `part_bytes` wait to be written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_catalog::EntryPart;
use nectarine_planner::node::{PrefixKey, Worth};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::part::{self, Encoded};
use super::room::Reserved;
use super::store::LoadedEntry;
use super::tee::TeeStream;
use super::unpublished::{Unpublished, delete_later};
use super::{DerivedError, DerivedStore, NotRecorded, compact, storable, thrift};
use crate::operator::{Work, work_of};

/// Bounds of one recording.
#[derive(Debug, Clone)]
pub struct RecordingLimits {
    /// Bytes in the store.
    pub max_bytes: u64,
    /// Bytes in memory that make a part.
    pub part_bytes: usize,
    /// Parts that may wait for the store.
    pub parts_behind_max: usize,
    /// How long the end of a statement may wait for the store.
    pub finish_wait: Duration,
    /// What computing the rows is taken to have taken at least. Nothing, but for tests whose outcome must not depend on how
    /// fast the machine is.
    pub cost_min: Duration,
}

impl RecordingLimits {
    /// Parts of about so many bytes, of which as many may wait as fit into the same memory.
    #[must_use]
    pub fn in_parts_of(self, part_bytes: usize) -> Self {
        let behind_max = self.part_bytes.saturating_mul(self.parts_behind_max) / part_bytes.max(1);
        Self { part_bytes, parts_behind_max: behind_max.clamp(1, 1_000), ..self }
    }
}

impl Default for RecordingLimits {
    fn default() -> Self {
        Self {
            max_bytes: 1 << 30,
            part_bytes: 4 << 20,
            parts_behind_max: 8,
            finish_wait: Duration::from_secs(10),
            cost_min: Duration::ZERO,
        }
    }
}

/// A whole recording, ready to be published.
#[derive(Debug)]
pub struct Finished {
    /// The parts, in order. None for an empty result, which is a result all the same.
    pub parts: Vec<EntryPart>,
    /// Rows of all parts.
    pub rows: u64,
    /// Bytes of all parts.
    pub bytes: u64,
    /// The rows themselves, if they are few: for [`DerivedStore::remember`] once the entry is published.
    pub loaded: Option<Arc<LoadedEntry>>,
    /// Whether the parts are in the order of the rows: there was one partition.
    pub in_order: bool,
    /// From the first poll to the end of the last partition.
    pub wall: Duration,
    /// What the operators below spent, if the recording knew them.
    pub work: Work,
    /// The parts themselves, with their room: deleted when this is dropped, unless they are published.
    pub unpublished: Unpublished,
}

/// Collects the rows of one node of a plan, or of a statement's answer.
pub struct Recording {
    store: DerivedStore,
    prefix: Arc<PrefixKey>,
    limits: RecordingLimits,
    state: Mutex<State>,
    written: Notify,
}

#[derive(Default)]
struct State {
    phase: Phase,
    schema: Option<SchemaRef>,
    partitions: Vec<Partition>,
    buffer: Vec<RecordBatch>,
    buffer_bytes: usize,
    rows: u64,
    /// Bytes of rows so far, of what nobody asked for yet.
    passed_bytes: u64,
    n_parts: usize,
    in_flight: usize,
    /// Bytes written, or about to be.
    bytes: u64,
    parts: BTreeMap<usize, Part>,
    room: Option<Reserved>,
    first_poll: Option<Instant>,
    /// How long its reader stood still for it.
    waited: Duration,
    last_end: Option<Instant>,
    plan: Option<Arc<dyn ExecutionPlan>>,
}

#[derive(Default)]
enum Phase {
    #[default]
    Open,
    Abandoned(NotRecorded),
    Finished,
}

#[derive(Clone, Copy, PartialEq)]
enum Partition {
    NotAsked,
    Running,
    Ended,
}

struct Part {
    stored: EntryPart,
    batches: Option<Vec<RecordBatch>>,
}

impl Recording {
    /// Will record the entry of `prefix` into `store`.
    pub fn new(store: DerivedStore, prefix: Arc<PrefixKey>, limits: RecordingLimits) -> Arc<Self> {
        // Nobody waits for a store that made others wait in vain.
        let phase = if store.is_writable() { Phase::Open } else { Phase::Abandoned(NotRecorded::StoreTooSlow) };
        let state = Mutex::new(State { phase, ..State::default() });
        Arc::new(Self { store, prefix, limits, state, written: Notify::new() })
    }

    /// What it records.
    pub fn prefix(&self) -> &Arc<PrefixKey> {
        &self.prefix
    }

    /// The stream of one of `n_partitions` partitions, which shows what passes to this recording. A statement's answer
    /// is partition 0 of 1.
    pub fn tee(
        self: &Arc<Self>,
        partition: usize,
        n_partitions: usize,
        stream: SendableRecordBatchStream,
    ) -> SendableRecordBatchStream {
        let schema = stream.schema();
        let mut state = self.state.lock();
        if state.partitions.is_empty() {
            state.partitions = vec![Partition::NotAsked; n_partitions];
            state.schema = Some(Arc::clone(&schema));
            if let Some(detail) = storable::unstorable(&schema) {
                self.abandon_locked(&mut state, NotRecorded::Unstorable { detail });
            }
        }
        let same_plan = state.partitions.len() == n_partitions;
        match same_plan && state.partitions.get(partition) == Some(&Partition::NotAsked) {
            true => state.partitions[partition] = Partition::Running,
            false => self.abandon_locked(&mut state, NotRecorded::RanTwice),
        }
        drop(state);
        Box::pin(TeeStream::new(Arc::clone(self), partition, schema, stream))
    }

    /// Tells which plan the rows come from, so that [`finish`](Self::finish) can tell what it spent.
    pub fn observe(&self, plan: &Arc<dyn ExecutionPlan>) {
        self.state.lock().plan = Some(Arc::clone(plan));
    }

    /// Gives up. What was written is deleted; what still comes passes on.
    pub fn discard(&self) {
        self.abandon(NotRecorded::Discarded);
    }

    /// Whether every partition was read to its end, and nothing spoke against keeping it so far.
    pub fn is_whole(&self) -> bool {
        let state = self.state.lock();
        matches!(state.phase, Phase::Open) && is_whole(&state.partitions)
    }

    /// Whether nothing will come of it.
    pub fn has_given_up(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Abandoned(_))
    }

    /// Why nothing came of it.
    pub fn why_not(&self) -> Option<NotRecorded> {
        match &self.state.lock().phase {
            Phase::Abandoned(reason) => Some(reason.clone()),
            Phase::Open | Phase::Finished => None,
        }
    }

    /// Waits until the last part is written. To be called when the statement has ended, well or not: a prefix that was
    /// read to its end is whole even if the statement failed above it. After this the parts belong to the
    /// caller.
    pub async fn finish(self: &Arc<Self>) -> Result<Finished, NotRecorded> {
        {
            let mut state = self.state.lock();
            self.check_whole(&mut state)?;
            if !state.buffer.is_empty() {
                let is_all = state.n_parts == 0;
                self.write_buffer(&mut state, is_all);
            }
        }
        if !self.only_wait(0).await {
            self.abandon(NotRecorded::StoreTooSlow);
        }
        let mut state = self.state.lock();
        self.check_whole(&mut state)?;
        Ok(self.take(&mut state))
    }

    /// Waits until the store is not far behind: for who reads rows only so that they are kept. Who waited so long in all waits no
    /// more, and nothing will come of it. Returns how long that was, which is no time that computing took.
    pub async fn catch_up(&self, wait_max: Duration) -> Duration {
        let started = Instant::now();
        let left = wait_max.saturating_sub(self.state.lock().waited);
        let is_near = self.wait_until(self.limits.parts_behind_max / 2, left).await;
        if !is_near {
            self.abandon(NotRecorded::StoreTooSlow);
        }
        let mut state = self.state.lock();
        state.waited += started.elapsed();
        state.waited
    }

    /// Waits until no more than so many parts wait to be written, or nothing will come of them; `false` if that takes too long.
    async fn only_wait(&self, in_flight_max: usize) -> bool {
        self.wait_until(in_flight_max, self.limits.finish_wait).await
    }

    async fn wait_until(&self, in_flight_max: usize, wait: Duration) -> bool {
        let only_some = async {
            loop {
                let written = self.written.notified();
                tokio::pin!(written);
                // Must listen before looking, or the last wake-up may come between the two.
                written.as_mut().enable();
                let is_over = {
                    let state = self.state.lock();
                    // Nobody stays to see what was given up being deleted.
                    state.in_flight <= in_flight_max || matches!(state.phase, Phase::Abandoned(_))
                };
                if is_over {
                    return;
                }
                written.await;
            }
        };
        tokio::time::timeout(wait, only_some).await.is_ok()
    }

    /// Before the first batch of any partition.
    pub(super) fn polled(&self) {
        self.state.lock().first_poll.get_or_insert_with(Instant::now);
    }

    /// A batch that passes.
    pub(super) fn push(self: &Arc<Self>, batch: &RecordBatch) {
        if batch.num_rows() == 0 || !self.is_open() {
            return;
        }
        let bytes = compact::row_bytes(batch);
        if self.prefix.worth != Worth::Wanted && !self.can_afford(bytes) {
            return self.abandon(NotRecorded::TooDear);
        }
        let batch = match compact::unpinned(batch, bytes) {
            Ok(batch) => batch,
            Err(error) => return self.abandon(NotRecorded::Unstorable { detail: error.to_string() }),
        };
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Open) {
            return;
        }
        if let Some(detail) = state.schema.as_deref().and_then(|schema| contradiction(&batch, schema)) {
            return self.abandon_locked(&mut state, NotRecorded::Unstorable { detail });
        }
        state.rows += batch.num_rows() as u64;
        // A batch without columns is not free either.
        state.buffer_bytes += bytes + size_of::<RecordBatch>();
        state.buffer.push(batch);
        if state.buffer_bytes >= self.limits.part_bytes {
            match state.in_flight >= self.limits.parts_behind_max {
                true => self.abandon_locked(&mut state, NotRecorded::StoreTooSlow),
                false => self.write_buffer(&mut state, false),
            }
        }
    }

    /// Whether these bytes more are worth it, for something that nobody asked for yet.
    fn can_afford(&self, bytes: usize) -> bool {
        let mut state = self.state.lock();
        state.passed_bytes += bytes as u64;
        let elapsed = state.first_poll.map_or(Duration::ZERO, |start| start.elapsed()).saturating_sub(state.waited);
        thrift::can_afford(state.passed_bytes, elapsed.max(self.limits.cost_min))
    }

    /// Lets a filter of the statement through, if nobody asked for this yet: what passes from now on is not all there is, and
    /// is not recorded. `false`: all rows are wanted.
    pub(crate) fn give_way(&self) -> bool {
        if self.prefix.worth != Worth::GivesWay {
            return false;
        }
        self.abandon(NotRecorded::GaveWay);
        // What was finished before can not be given up any more.
        matches!(self.state.lock().phase, Phase::Abandoned(_))
    }

    /// A partition was read to its end.
    pub(super) fn ended(&self, partition: usize) {
        let mut state = self.state.lock();
        state.last_end = Some(Instant::now());
        if let Some(slot) = state.partitions.get_mut(partition) {
            *slot = Partition::Ended;
        }
    }

    /// A partition was dropped before its end.
    pub(super) fn dropped(&self) {
        let mut state = self.state.lock();
        let reason = not_all_rows(&state.partitions);
        self.abandon_locked(&mut state, reason);
    }

    pub(crate) fn abandon(&self, reason: NotRecorded) {
        self.abandon_locked(&mut self.state.lock(), reason);
    }

    fn is_open(&self) -> bool {
        matches!(self.state.lock().phase, Phase::Open)
    }

    fn abandon_locked(&self, state: &mut State, reason: NotRecorded) {
        if matches!(state.phase, Phase::Open) {
            tracing::debug!(entry = ?self.prefix.key, %reason, "not recorded");
            state.phase = Phase::Abandoned(reason);
            state.buffer = vec![];
            let parts = std::mem::take(&mut state.parts).into_values().map(|part| part.stored).collect();
            delete_later(&self.store, parts, state.room.take());
        }
    }

    fn check_whole(&self, state: &mut State) -> Result<(), NotRecorded> {
        if !is_whole(&state.partitions) {
            let reason = not_all_rows(&state.partitions);
            self.abandon_locked(state, reason);
        }
        match &state.phase {
            Phase::Open => Ok(()),
            Phase::Abandoned(reason) => Err(reason.clone()),
            Phase::Finished => Err(NotRecorded::FinishedBefore),
        }
    }

    fn take(&self, state: &mut State) -> Finished {
        state.phase = Phase::Finished;
        let (mut parts, mut batches) = (vec![], Some(vec![]));
        for part in std::mem::take(&mut state.parts).into_values() {
            parts.push(part.stored);
            batches = batches.zip(part.batches).map(|(mut all, these)| {
                all.push(these);
                all
            });
        }
        let wall = match (state.first_poll, state.last_end) {
            (Some(start), Some(end)) => end.saturating_duration_since(start),
            _ => Duration::ZERO,
        };
        Finished {
            rows: state.rows,
            bytes: state.bytes,
            loaded: batches.map(|batches| Arc::new(LoadedEntry { parts: parts.clone(), batches })),
            in_order: state.partitions.len() == 1,
            wall,
            work: state.plan.take().map(|plan| work_of(&plan)).unwrap_or_default(),
            unpublished: Unpublished::new(self.store.clone(), parts.clone(), state.room.take()),
            parts,
        }
    }

    /// Hands the buffer to the background. If it `is_all` there is, it may be few enough to be held in memory: then it is
    /// read back from its bytes, which also shows that they can be read.
    fn write_buffer(self: &Arc<Self>, state: &mut State, is_all: bool) {
        let batches = std::mem::take(&mut state.buffer);
        let bytes = std::mem::take(&mut state.buffer_bytes) as u64;
        let read_back = is_all && bytes <= self.store.memory_entry_bytes_max();
        let ordinal = state.n_parts;
        state.n_parts += 1;
        let (Some(schema), Ok(runtime)) = (state.schema.clone(), Handle::try_current()) else {
            let detail = "there is no runtime to write in".to_owned();
            return self.abandon_locked(state, NotRecorded::Unstorable { detail });
        };
        state.in_flight += 1;
        let recording = Arc::clone(self);
        runtime.spawn(async move {
            let landed = Landed(recording);
            if let Err(reason) = landed.0.write(ordinal, schema, batches, read_back).await {
                landed.0.abandon(reason);
            }
        });
    }

    async fn write(
        &self,
        ordinal: usize,
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
        read_back: bool,
    ) -> Result<(), NotRecorded> {
        let prefix = Arc::clone(&self.prefix);
        let encoding = tokio::task::spawn_blocking(move || {
            let encoded = part::encode(&prefix.key, ordinal, &schema, &batches)
                .map_err(|error| NotRecorded::Unstorable { detail: error.to_string() })?;
            drop(batches);
            let batches = read_back.then(|| read_again(&encoded, &prefix, ordinal, &schema)).transpose()?;
            Ok((encoded, batches))
        });
        let (encoded, batches) = match encoding.await {
            Ok(encoded) => encoded?,
            Err(error) => return Err(NotRecorded::Unstorable { detail: error.to_string() }),
        };
        {
            let mut state = self.state.lock();
            if !matches!(state.phase, Phase::Open) {
                return Ok(());
            }
            state.bytes += encoded.bytes.len() as u64;
            if state.bytes > self.limits.max_bytes {
                return Err(NotRecorded::TooLarge { bytes_max: self.limits.max_bytes });
            }
        }
        let bytes = encoded.bytes.len() as u64;
        let room = self.store.reserve(bytes, self.prefix.worth == Worth::Wanted).await;
        let room = room.ok_or_else(|| NotRecorded::NoRoom { bytes: self.state.lock().bytes })?;
        let stored = self.store.put_new(&self.prefix.key, &encoded).await.map_err(NotRecorded::Store)?;
        let mut state = self.state.lock();
        match state.phase {
            Phase::Open => {
                state.parts.insert(ordinal, Part { stored, batches });
                state.room.get_or_insert_with(|| self.store.nothing_reserved()).absorb(room);
            }
            // Given up meanwhile: this part was not among those deleted then.
            _ => _ = delete_later(&self.store, vec![stored], Some(room)),
        }
        Ok(())
    }
}

/// Counts a part as no longer in flight, however its task ended.
struct Landed(Arc<Recording>);

impl Drop for Landed {
    fn drop(&mut self) {
        self.0.state.lock().in_flight -= 1;
        self.0.written.notify_waiters();
    }
}

/// A recording that no one finished leaves nothing behind.
impl Drop for Recording {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if matches!(state.phase, Phase::Open) {
            let parts = std::mem::take(&mut state.parts).into_values().map(|part| part.stored).collect();
            delete_later(&self.store, parts, state.room.take());
        }
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("entry", &self.prefix.key).finish()
    }
}

fn is_whole(partitions: &[Partition]) -> bool {
    !partitions.is_empty() && partitions.iter().all(|slot| *slot == Partition::Ended)
}

fn not_all_rows(partitions: &[Partition]) -> NotRecorded {
    let ended = partitions.iter().filter(|slot| **slot == Partition::Ended).count();
    NotRecorded::NotAllRows { ended, partitions: partitions.len() }
}

/// What a batch has that its stream said it would not.
fn contradiction(batch: &RecordBatch, schema: &arrow::datatypes::Schema) -> Option<String> {
    if batch.num_columns() != schema.fields().len() {
        return Some(format!("a batch has {} columns instead of {}", batch.num_columns(), schema.fields().len()));
    }
    batch.columns().iter().zip(schema.fields()).find_map(|(column, field)| {
        let (name, wanted, found) = (field.name(), field.data_type(), column.data_type());
        if wanted != found {
            return Some(format!("column \"{name}\" is {found} instead of {wanted}"));
        }
        (!field.is_nullable() && column.null_count() > 0).then(|| format!("column \"{name}\" has nulls"))
    })
}

fn read_again(
    encoded: &Encoded,
    prefix: &PrefixKey,
    ordinal: usize,
    schema: &SchemaRef,
) -> Result<Vec<RecordBatch>, NotRecorded> {
    let part = EntryPart {
        location: String::new(),
        bytes: encoded.bytes.len() as u64,
        rows: encoded.rows,
        checksum: encoded.checksum,
    };
    part::decode_verified(&encoded.bytes, &part, &prefix.key, ordinal, schema)
        .map_err(|detail| NotRecorded::Store(DerivedError::Damaged { location: "a new part".to_owned(), detail }))
}

#[cfg(test)]
mod tests;
