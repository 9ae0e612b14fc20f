//! Rows that a job leaves: one file in the home for each job, in Arrow's stream format.
//!
//! ```text
//!   tmp/<process>/staging/<job>-<attempt>-<n>.arrow  --written whole, synced, renamed-->  jobs/<job>-<attempt>-<n>.arrow
//! ```
//!
//! Keeps true   a file that a job names is whole: its digest is written down with the statement's end, after the file is in its place, and
//!              looked at before the first row is given out. A file that no job names is removed.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::common::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use futures::StreamExt;
use nectarine_catalog::{Fingerprint, Job, JobId, JobResult, fail_point};
use nectarine_planner::reuse::ExtentCounts;

use crate::engine::{Shared, options};
use crate::settings::parse_size;
use crate::{Answer, EngineError, ErrorKind, Receipt, Result, Reused, machine};

/// How names of results end.
const ENDING: &str = ".arrow";

/// Writes the rows of an answer to their place; nobody knows of them yet.
pub(super) async fn keep(shared: &Arc<Shared>, job: &Job, answer: Answer) -> Result<JobResult> {
    let limit = &options(shared.template.config_options()).job_result_limit;
    let limit = parse_size("nectarine.job_result_limit", limit, machine::free_disk_bytes(shared.home.root()))?;
    let file = format!("{}-{}-{}{ENDING}", job.id, job.attempt, job.n_done);
    let (staging, place) = (shared.home.staging().join(&file), shared.home.jobs().join(&file));
    let (schema, receipt) = (answer.schema(), answer.receipt());
    let mut rows = answer.into_stream();
    let path = staging.clone();
    let mut writer = blocking(move || Writer::create(&path, &schema)).await?;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        writer = blocking(move || writer.write(&batch)).await?;
        if writer.n_bytes() > limit {
            drop(writer);
            let _ = fs::remove_file(&staging);
            return Err(EngineError::new(ErrorKind::Resources, "the rows of the job take too much room")
                .with_detail(format!("they take more than {limit} bytes"))
                .with_hint("aggregate more, write them with COPY .. TO or CREATE TABLE .. AS, or raise nectarine.job_result_limit"));
        }
    }
    drop(rows);
    let (n_rows, n_bytes, digest) = blocking(move || writer.finish()).await?;
    fail_point("job_result_staged");
    let (from, to) = (staging, place);
    blocking(move || put(&from, &to)).await?;
    fail_point("job_result_placed");
    let receipt = receipt();
    Ok(JobResult {
        file,
        statement: usize::try_from(job.n_done).unwrap_or_default(),
        rows: n_rows,
        bytes: n_bytes,
        digest: digest.to_string(),
        reused: receipt.reused.word().to_string(),
        saved_us: u64::try_from(receipt.saved.as_micros()).unwrap_or(u64::MAX),
        entries: receipt.entries.iter().map(ToString::to_string).collect(),
        extents: receipt.extents.map(|extents| (extents.total, extents.reused)),
        data_to: receipt.data_to,
    })
}

/// The rows again, all of them.
pub(super) async fn open(shared: &Shared, result: &JobResult) -> Result<SendableRecordBatchStream> {
    let path = shared.home.jobs().join(&result.file);
    let expected = (result.bytes, Fingerprint::parse(&result.digest));
    let reader = blocking(move || checked(&path, expected)).await?;
    let mut rows = RecordBatchReceiverStream::builder(reader.schema(), 2);
    let sender = rows.tx();
    rows.spawn_blocking(move || {
        for batch in reader {
            if sender.blocking_send(batch.map_err(DataFusionError::from)).is_err() {
                break;
            }
        }
        Ok(())
    });
    Ok(rows.build())
}

/// The columns of the rows.
pub(super) async fn columns(shared: &Shared, result: &JobResult) -> Result<SchemaRef> {
    let path = shared.home.jobs().join(&result.file);
    blocking(move || Ok(reader(&path)?.schema())).await
}

/// What the answer used, as far as it is written down.
pub(super) fn receipt(result: &JobResult) -> Receipt {
    let reused = [Reused::None, Reused::Exact, Reused::Partial].into_iter().find(|known| known.word() == result.reused);
    Receipt {
        reused: reused.unwrap_or_default(),
        entries: result.entries.iter().filter_map(|entry| Fingerprint::parse(entry)).collect(),
        saved: std::time::Duration::from_micros(result.saved_us),
        extents: result.extents.map(|(total, reused)| ExtentCounts { total, reused }),
        data_to: result.data_to,
        kept: 0,
        notices: vec![],
    }
}

/// Forgets a file.
pub(super) async fn remove(shared: &Shared, result: Option<&JobResult>) {
    if let Some(result) = result {
        let path = shared.home.jobs().join(&result.file);
        // Whoever reads it has it open; if it cannot be removed now, it goes with what no job names.
        let _ = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
    }
}

/// Files that are there, with the jobs that they are of.
pub(super) async fn list(shared: &Shared) -> Vec<(JobId, String)> {
    let folder = shared.home.jobs();
    let listed = tokio::task::spawn_blocking(move || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter_map(|name| Some((owner_of(&name)?, name))).collect()
    });
    listed.await.unwrap_or_default()
}

/// The job that a file is of; what is not called like a result is somebody else's.
fn owner_of(name: &str) -> Option<JobId> {
    JobId::parse(name.strip_suffix(ENDING)?.split('-').next()?)
}

/// A file that is being written.
struct Writer {
    rows: StreamWriter<Hashing>,
    n_rows: u64,
}

/// What is written, counted and hashed.
struct Hashing {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    n_bytes: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.file.write(bytes)?;
        self.hasher.update(&bytes[..n_written]);
        self.n_bytes += n_written as u64;
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Writer {
    fn create(path: &Path, schema: &SchemaRef) -> Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = BufWriter::new(File::create(path)?);
        let hashing = Hashing { file, hasher: blake3::Hasher::new(), n_bytes: 0 };
        Ok(Self { rows: StreamWriter::try_new(hashing, schema)?, n_rows: 0 })
    }

    fn write(mut self, batch: &RecordBatch) -> Result<Self> {
        self.rows.write(batch)?;
        self.n_rows += batch.num_rows() as u64;
        Ok(self)
    }

    fn n_bytes(&self) -> u64 {
        self.rows.get_ref().n_bytes
    }

    /// How many rows, how many bytes, and what they hash to; on disk when this returns.
    fn finish(mut self) -> Result<(u64, u64, Fingerprint)> {
        self.rows.finish()?;
        let mut hashing = self.rows.into_inner()?;
        hashing.flush()?;
        hashing.file.get_ref().sync_all()?;
        Ok((self.n_rows, hashing.n_bytes, Fingerprint::from_bytes(*hashing.hasher.finalize().as_bytes())))
    }
}

/// Renames a file into its folder; on disk when this returns.
fn put(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().map(Path::to_path_buf).unwrap_or_else(|| PathBuf::from("/"));
    fs::create_dir_all(&folder)?;
    fs::rename(from, to)?;
    #[cfg(unix)]
    File::open(&folder)?.sync_all()?;
    Ok(())
}

fn reader(path: &Path) -> Result<StreamReader<BufReader<File>>> {
    let file = File::open(path).map_err(|error| unreadable(&error))?;
    StreamReader::try_new(BufReader::new(file), None).map_err(|error| unreadable(&error))
}

/// Looks at the whole file before the first row is given out.
fn checked(path: &Path, (n_bytes, digest): (u64, Option<Fingerprint>)) -> Result<StreamReader<BufReader<File>>> {
    let mut file = File::open(path).map_err(|error| unreadable(&error))?;
    let (mut hasher, mut found, mut buffer) = (blake3::Hasher::new(), 0_u64, vec![0_u8; 1 << 20]);
    loop {
        let n_read = file.read(&mut buffer).map_err(|error| unreadable(&error))?;
        if n_read == 0 {
            break;
        }
        hasher.update(&buffer[..n_read]);
        found += n_read as u64;
    }
    if found != n_bytes || digest != Some(Fingerprint::from_bytes(*hasher.finalize().as_bytes())) {
        return Err(EngineError::new(ErrorKind::Data, "the rows of the job are damaged")
            .with_detail("their file is not what was written")
            .with_hint("submit the job again"));
    }
    reader(path)
}

fn unreadable(error: &dyn std::error::Error) -> EngineError {
    EngineError::new(ErrorKind::Io, "the rows of the job cannot be read").with_detail(error.to_string())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| EngineError::new(ErrorKind::Internal, "a file was left").with_source(error))?
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, StringArray};
    use arrow::datatypes::Int32Type;

    use super::*;

    fn batch(words: [&str; 2]) -> RecordBatch {
        let words: DictionaryArray<Int32Type> = words.into_iter().collect();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("n", Arc::new(Int64Array::from(vec![Some(1), None]))),
            ("text", Arc::new(StringArray::from(vec!["ü", ""]))),
            ("word", Arc::new(words)),
        ];
        RecordBatch::try_from_iter(columns).expect("a batch")
    }

    #[test]
    fn rows_come_back_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let (from, to) = (folder.path().join("staging/x"), folder.path().join("jobs/x"));
        // Dictionaries of two batches may have nothing in common.
        let batches = [batch(["a", "b"]), batch(["c", "d"])];
        let mut writer = Writer::create(&from, &batches[0].schema()).expect("a file");
        for batch in &batches {
            writer = writer.write(batch).expect("written");
        }
        let (n_rows, n_bytes, digest) = writer.finish().expect("finished");
        put(&from, &to).expect("in its place");
        assert_eq!((n_rows, n_bytes), (4, fs::metadata(&to).expect("a file").len()));
        let read: Vec<_> =
            checked(&to, (n_bytes, Some(digest))).expect("whole").collect::<Result<_, _>>().expect("rows");
        assert_eq!(read, batches);
        let mut bytes = fs::read(&to).expect("bytes");
        bytes[n_bytes as usize / 2] ^= 1;
        fs::write(&to, &bytes).expect("written");
        assert!(checked(&to, (n_bytes, Some(digest))).is_err(), "one bit is another");
        fs::write(&to, &bytes[..bytes.len() - 1]).expect("written");
        assert!(checked(&to, (n_bytes, Some(digest))).is_err(), "it is cut");
    }

    #[test]
    fn only_results_are_taken_for_results() {
        let id = JobId::new();
        assert_eq!(owner_of(&format!("{id}-3-1.arrow")), Some(id));
        for name in ["x.arrow", "notes.txt", ".arrow", &format!("{id}.csv")] {
            assert_eq!(owner_of(name), None, "{name}");
        }
    }
}
