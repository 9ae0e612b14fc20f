//! [`ExtentWriter`]: rows into immutable, fingerprinted extents.
//!
//! ```text
//!   staging/<id>.parquet  --rows, hashed while written-->  synced  --rename-->  tables/<table>/<id>.parquet
//! ```
//!
//! Keeps true   a file appears under its final name only when it is whole and on disk. Until [`ExtentWriter::finish`] has
//!              moved them, all files are in the staging folder; dropping the writer removes them.
//! Blocking     encoding and disk: call it from a blocking task.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::datasource::physical_plan::parquet::metadata::DFParquetMetadata;
use nectarine_catalog::{Extent, FileFormatKind, Fingerprint, stats};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use url::Url;

use crate::{ExecutorError, Result, null_counts};

/// Where and how extents are written.
#[derive(Debug, Clone)]
pub struct WriteTarget {
    /// Files are made here; same file system as `folder`.
    pub staging: PathBuf,
    /// Finished files are moved here.
    pub folder: PathBuf,
    /// Parquet or Arrow.
    pub format: FileFormatKind,
    /// Columns of the table.
    pub schema: SchemaRef,
    /// A new extent is begun when one has grown to this.
    pub extent_bytes_max: u64,
    /// Microseconds since 1970, for `first_seen_at`.
    pub now: i64,
}

/// Writes the rows of one statement.
pub struct ExtentWriter {
    target: WriteTarget,
    open: Option<OpenFile>,
    done: Vec<DoneFile>,
}

struct OpenFile {
    staged: PathBuf,
    name: String,
    rows: u64,
    encoder: Encoder,
}

enum Encoder {
    Parquet(Box<ArrowWriter<HashingFile>>),
    Arrow(Box<FileWriter<HashingFile>>),
}

struct DoneFile {
    staged: PathBuf,
    name: String,
    rows: u64,
    bytes: u64,
    fingerprint: Fingerprint,
    statistics: Statistics,
}

impl ExtentWriter {
    /// A writer that has not touched the disk yet.
    pub fn new(target: WriteTarget) -> Self {
        Self { target, open: None, done: vec![] }
    }

    /// Adds rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let mut file = match self.open.take() {
            Some(file) => file,
            None => self.create()?,
        };
        let written = file.write(batch);
        let bytes = file.bytes();
        // Put back before anything can fail, so that dropping the writer removes the file.
        let staged = file.staged.clone();
        self.open = Some(file);
        written.map_err(|source| fault("write", &staged, source))?;
        if bytes >= self.target.extent_bytes_max {
            self.close()?;
        }
        Ok(())
    }

    /// Moves all files to their final place and says what they are. Nothing refers to them yet.
    pub fn finish(mut self) -> Result<Vec<Extent>> {
        self.close()?;
        if self.done.is_empty() {
            return Ok(vec![]);
        }
        let folder = self.target.folder.clone();
        fs::create_dir_all(&folder).map_err(|source| fault("create", &folder, source))?;
        let mut extents: Vec<Extent> = vec![];
        for file in std::mem::take(&mut self.done) {
            let path = folder.join(&file.name);
            if let Err(source) = fs::rename(&file.staged, &path) {
                remove_quietly(&file.staged);
                discard(&extents);
                return Err(fault("rename", &file.staged, source));
            }
            extents.push(self.extent(&path, file));
        }
        // The names must be on disk before the metadata says that they are there.
        sync_folder(&folder).map_err(|source| fault("sync", &folder, source))?;
        Ok(extents)
    }

    fn extent(&self, path: &Path, file: DoneFile) -> Extent {
        // An absolute path always has a URL; a relative one cannot occur in a home.
        let location = Url::from_file_path(path).map_or_else(|()| path.display().to_string(), String::from);
        Extent {
            location: Arc::from(location),
            range: None,
            lines: false,
            file_bytes: file.bytes,
            modified_at: self.target.now,
            etag: None,
            fingerprint: file.fingerprint,
            rows: Some(file.rows),
            stats: stats::encode(&file.statistics, &self.target.schema),
            partition_values: Arc::from([]),
            first_seen_at: self.target.now,
        }
    }

    fn create(&self) -> Result<OpenFile> {
        let ending = match self.target.format {
            FileFormatKind::Arrow => "arrow",
            _ => "parquet",
        };
        let name = format!("{}.{ending}", uuid::Uuid::now_v7().as_simple());
        let staging = &self.target.staging;
        fs::create_dir_all(staging).map_err(|source| fault("create", staging, source))?;
        let staged = staging.join(&name);
        let file = File::create_new(&staged).map_err(|source| fault("create", &staged, source))?;
        let file =
            HashingFile { file: BufWriter::with_capacity(1 << 20, file), hasher: blake3::Hasher::new(), bytes: 0 };
        let schema = Arc::clone(&self.target.schema);
        let encoder = match self.target.format {
            FileFormatKind::Arrow => {
                let options = IpcWriteOptions::default()
                    .try_with_compression(Some(CompressionType::LZ4_FRAME))
                    .map_err(|source| fault("write", &staged, source))?;
                FileWriter::try_new_with_options(file, &schema, options)
                    .map(|writer| Encoder::Arrow(Box::new(writer)))
                    .map_err(|source| fault("write", &staged, source))
            }
            _ => {
                let zstd = ZstdLevel::try_new(1).unwrap_or_default();
                let properties = WriterProperties::builder().set_compression(Compression::ZSTD(zstd)).build();
                ArrowWriter::try_new(file, schema, Some(properties))
                    .map(|writer| Encoder::Parquet(Box::new(writer)))
                    .map_err(|source| fault("write", &staged, source))
            }
        };
        match encoder {
            Ok(encoder) => Ok(OpenFile { staged, name, rows: 0, encoder }),
            Err(error) => {
                remove_quietly(&staged);
                Err(error)
            }
        }
    }

    fn close(&mut self) -> Result<()> {
        let Some(file) = self.open.take() else { return Ok(()) };
        let staged = file.staged.clone();
        match file.close(&self.target.schema) {
            Ok(done) => {
                self.done.push(done);
                Ok(())
            }
            Err(source) => {
                remove_quietly(&staged);
                Err(ExecutorError::Write { attempted: "write", location: staged.display().to_string(), source })
            }
        }
    }
}

impl Drop for ExtentWriter {
    fn drop(&mut self) {
        let staged = self.done.iter().map(|file| &file.staged).chain(self.open.iter().map(|file| &file.staged));
        staged.for_each(|path| remove_quietly(path));
    }
}

type Cause = Arc<dyn std::error::Error + Send + Sync>;

impl OpenFile {
    fn write(&mut self, batch: &RecordBatch) -> std::result::Result<(), Cause> {
        self.rows += batch.num_rows() as u64;
        match &mut self.encoder {
            Encoder::Parquet(writer) => writer.write(batch).map_err(|error| Arc::new(error) as Cause),
            Encoder::Arrow(writer) => writer.write(batch).map_err(|error| Arc::new(error) as Cause),
        }
    }

    fn bytes(&self) -> u64 {
        match &self.encoder {
            Encoder::Parquet(writer) => (writer.bytes_written() + writer.in_progress_size()) as u64,
            Encoder::Arrow(writer) => writer.get_ref().bytes,
        }
    }

    fn close(self, schema: &SchemaRef) -> std::result::Result<DoneFile, Cause> {
        let rows = self.rows;
        let ((bytes, fingerprint), statistics) = match self.encoder {
            Encoder::Parquet(mut writer) => {
                let metadata = writer.finish().map_err(|error| Arc::new(error) as Cause)?;
                let mut statistics = DFParquetMetadata::statistics_from_parquet_metadata(&metadata, schema)
                    .map_err(|error| Arc::new(error) as Cause)?;
                null_counts::correct(&mut statistics, &metadata, schema);
                (writer.inner_mut().finish().map_err(|error| Arc::new(error) as Cause)?, statistics)
            }
            Encoder::Arrow(mut writer) => {
                writer.finish().map_err(|error| Arc::new(error) as Cause)?;
                let mut statistics = Statistics::new_unknown(schema);
                statistics.num_rows = Precision::Exact(rows as usize);
                (writer.get_mut().finish().map_err(|error| Arc::new(error) as Cause)?, statistics)
            }
        };
        Ok(DoneFile { staged: self.staged, name: self.name, rows, bytes, fingerprint, statistics })
    }
}

/// Counts and hashes what goes to disk.
struct HashingFile {
    file: BufWriter<File>,
    hasher: blake3::Hasher,
    bytes: u64,
}

impl HashingFile {
    /// All bytes are on disk when this returns.
    fn finish(&mut self) -> io::Result<(u64, Fingerprint)> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        Ok((self.bytes, Fingerprint::from_bytes(*self.hasher.finalize().as_bytes())))
    }
}

impl Write for HashingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.file.write(bytes)?;
        self.hasher.update(&bytes[..n]);
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Removes files that nothing will ever refer to.
pub(crate) fn discard(extents: &[Extent]) {
    for extent in extents {
        if let Some(path) = Url::parse(&extent.location).ok().and_then(|url| url.to_file_path().ok()) {
            remove_quietly(&path);
        }
    }
}

fn remove_quietly(path: &Path) {
    if let Err(error) = fs::remove_file(path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(path = %path.display(), %error, "cannot remove an unfinished extent");
    }
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn fault(attempted: &'static str, path: &Path, source: impl Into<Fault>) -> ExecutorError {
    ExecutorError::Write { attempted, location: path.display().to_string(), source: source.into().0 }
}

/// Takes both a plain error and one that is shared already.
struct Fault(Cause);

impl From<Cause> for Fault {
    fn from(cause: Cause) -> Self {
        Self(cause)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl From<arrow::error::ArrowError> for Fault {
    fn from(error: arrow::error::ArrowError) -> Self {
        Self(Arc::new(error))
    }
}

impl From<parquet::errors::ParquetError> for Fault {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self(Arc::new(error))
    }
}
