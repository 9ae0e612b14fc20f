//! [`Spool`]: rows of a job that are all here before the first is given out.
//!
//! Rows on the disk of an executor go with it, and rows that were given out cannot be taken back. So the answer is fetched and counted
//! as a whole first: what is lost meanwhile is computed again without anybody noticing.
//!
//! Memory       up to a bound, if the pool has it; the rest waits in a temporary file, which counts as a spill.

use std::fs::File;
use std::io::BufReader;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use ballista_core::execution_plans::ShuffleReaderExec;
use datafusion::common::{DataFusionError, Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, SpillFile, SpillWriter, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, Partitioning};
use futures::{StreamExt, stream};

use super::graph::ResultPart;
use crate::derived::relabel;

/// Bytes of rows that wait in memory.
const MEMORY_BYTES: usize = 64 << 20;

/// An executor that sends nothing for so long is taken to be gone.
const SILENCE: Duration = Duration::from_secs(20);

/// A folder that does not exist: rows are never looked for on this machine's disk.
const NO_FOLDER: &str = "/nonexistent";

/// All rows of an answer.
pub(super) struct Spool {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    _reservation: MemoryReservation,
    rest: Option<Arc<dyn SpillFile>>,
}

/// A temporary file, and who writes it.
type Writing = (Arc<dyn SpillFile>, StreamWriter<Box<dyn SpillWriter>>);

/// What is being collected.
struct Collecting {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    bytes: usize,
    reservation: MemoryReservation,
    rest: Option<Writing>,
}

impl Spool {
    /// Fetches all parts, under the names of `schema`. Fails if one has other rows than were told.
    pub(super) async fn fetch(parts: Vec<ResultPart>, schema: SchemaRef, context: Arc<TaskContext>) -> Result<Self> {
        let runtime = context.runtime_env();
        let reservation = MemoryConsumer::new("ClusterAnswer").register(&runtime.memory_pool);
        let mut collecting =
            Collecting { schema: Arc::clone(&schema), batches: vec![], bytes: 0, reservation, rest: None };
        for part in parts.into_iter().filter(|part| part.rows > 0) {
            let wanted = part.rows;
            let partitions = Partitioning::UnknownPartitioning(1);
            let reader = ShuffleReaderExec::try_new(0, vec![vec![part.location]], Arc::clone(&schema), partitions)?;
            let mut rows = reader.with_work_dir(NO_FOLDER.to_owned()).execute(0, Arc::clone(&context))?;
            let mut n_rows = 0;
            while let Some(batch) = tokio::time::timeout(SILENCE, rows.next()).await.map_err(silent)? {
                let batch = relabel(&batch?, &schema)?;
                n_rows += batch.num_rows() as u64;
                collecting.push(batch, &runtime)?;
            }
            if n_rows != wanted {
                return internal_err!("{n_rows} rows came where {wanted} were written");
            }
        }
        collecting.finish()
    }

    /// Gives them out.
    pub(super) fn into_stream(self) -> SendableRecordBatchStream {
        let Self { schema, batches, _reservation, rest } = self;
        let held = stream::iter(batches.into_iter().map(Ok));
        let relabelled = Arc::clone(&schema);
        let rest = stream::iter(rest)
            .map(move |file| Rest::open(file, Arc::clone(&relabelled)))
            .flat_map(|rest| stream::iter(Opened::from(rest)));
        // The reservation goes with the last row.
        let rows = held.chain(rest).map(move |batch| {
            let _held = &_reservation;
            batch
        });
        Box::pin(RecordBatchStreamAdapter::new(schema, rows))
    }
}

fn silent(_: tokio::time::error::Elapsed) -> DataFusionError {
    DataFusionError::Execution("an executor does not send its rows".to_owned())
}

impl Collecting {
    fn push(&mut self, batch: RecordBatch, runtime: &RuntimeEnv) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        let fits = self.rest.is_none() && self.bytes + bytes <= MEMORY_BYTES;
        if fits && self.reservation.try_grow(bytes).is_ok() {
            self.bytes += bytes;
            self.batches.push(batch);
            return Ok(());
        }
        if self.rest.is_none() {
            let file = runtime.disk_manager.create_tmp_file("an answer of the cluster")?;
            let writer = StreamWriter::try_new(file.open_writer()?, &self.schema)?;
            self.rest = Some((file, writer));
        }
        if let Some((_, writer)) = &mut self.rest {
            writer.write(&batch)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Spool> {
        let rest = match self.rest {
            None => None,
            Some((file, writer)) => {
                let mut bytes = writer.into_inner()?;
                bytes.finish()?;
                Some(file)
            }
        };
        Ok(Spool { schema: self.schema, batches: self.batches, _reservation: self.reservation, rest })
    }
}

/// Rows in a temporary file.
struct Rest {
    reader: StreamReader<BufReader<File>>,
    schema: SchemaRef,
    /// Deletes the file.
    _file: Arc<dyn SpillFile>,
}

impl Rest {
    fn open(file: Arc<dyn SpillFile>, schema: SchemaRef) -> Result<Self> {
        let Some(path) = file.path() else { return internal_err!("a temporary file has no path") };
        let reader = StreamReader::try_new(BufReader::new(File::open(path)?), None)?;
        Ok(Self { reader, schema, _file: file })
    }
}

impl Iterator for Rest {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.reader.next()?;
        Some(batch.and_then(|batch| relabel(&batch, &self.schema)).map_err(DataFusionError::from))
    }
}

/// The rows of a file, or why it could not be opened.
enum Opened {
    Rows(Box<Rest>),
    Failed(Option<DataFusionError>),
}

impl From<Result<Rest>> for Opened {
    fn from(opened: Result<Rest>) -> Self {
        match opened {
            Ok(rest) => Self::Rows(Box::new(rest)),
            Err(error) => Self::Failed(Some(error)),
        }
    }
}

impl Iterator for Opened {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Rows(rest) => rest.next(),
            Self::Failed(error) => error.take().map(Err),
        }
    }
}
