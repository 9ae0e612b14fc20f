//! [`Held`]: a verified entry that nobody can take away any more.
//!
//! ```text
//!   up to 32 MB                    decoded rows
//!   up to 1/8 of the memory pool   bytes as they were stored, counted by the pool
//!   more                           bytes in a temporary file of this process, counted as a spill
//! ```
//!
//! Keeps true   after an entry is held, its files may be deleted, cut, overwritten, or be on a machine that is gone: its
//!              rows come from here. What comes from a temporary file is checked once more.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use bytes::Bytes;
use datafusion::execution::SpillFile;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::stream::{self, StreamExt};
use nectarine_catalog::CacheEntry;
use parking_lot::Mutex;

use crate::derived::{DerivedError, DerivedStore, decode_part, decode_verified_part, relabel};

/// Stored bytes up to which an entry is decoded at once.
const DECODED_BYTES_MAX: u64 = 32 << 20;

/// The share of the memory pool that one entry may take; what is left is for operators that can not do without.
const POOL_SHARE: usize = 8;

/// Parts that are fetched at the same time.
const AT_ONCE: usize = 4;

/// The parts of one entry.
pub(super) enum Held {
    Rows(Vec<Vec<RecordBatch>>),
    Bytes { parts: Vec<Bytes>, _reservation: MemoryReservation },
    File(Arc<Spilled>),
}

/// Parts one after the other in a file.
pub(super) struct Spilled {
    /// Open before anything is written, so that also its name may go.
    file: Mutex<File>,
    /// Where each part begins.
    starts: Vec<u64>,
    /// Deletes the file.
    _spill: Arc<dyn SpillFile>,
}

impl Held {
    /// Reads, verifies and keeps all parts of an entry.
    pub(super) async fn new(
        entry: &CacheEntry,
        store: &DerivedStore,
        schema: &SchemaRef,
        runtime: &RuntimeEnv,
    ) -> Result<Self, DerivedError> {
        let rows: u64 = entry.parts.iter().map(|part| part.rows).sum();
        if rows != entry.rows {
            let detail = format!("its parts have {rows} rows instead of {}", entry.rows);
            return Err(DerivedError::Damaged { location: entry.key.to_string(), detail });
        }
        if entry.bytes <= DECODED_BYTES_MAX {
            let loaded = store.load(entry, schema).await?;
            let parts = loaded.batches.iter().zip(&entry.parts);
            let named = parts.map(|(batches, part)| named(batches, schema, &part.location));
            return Ok(Self::Rows(named.collect::<Result<_, _>>()?));
        }
        let reads = entry.parts.iter().enumerate();
        let reads = reads.map(|(ordinal, part)| store.verified_part(part, &entry.key, ordinal, Some(schema)));
        let mut parts = stream::iter(reads.collect::<Vec<_>>()).buffered(AT_ONCE);
        if let Some(reservation) = reserve(entry.bytes, runtime) {
            let mut bytes = Vec::with_capacity(entry.parts.len());
            while let Some(part) = parts.next().await {
                bytes.push(part?);
            }
            return Ok(Self::Bytes { parts: bytes, _reservation: reservation });
        }
        let unavailable = |error| DerivedError::unavailable("hold", &entry.key.to_string(), error);
        let spill = runtime.disk_manager.create_tmp_file("holding a cached result").map_err(unavailable)?;
        let missing = || DerivedError::Missing { location: "a temporary file".to_owned() };
        let file = File::open(spill.path().ok_or_else(missing)?)
            .map_err(|error| DerivedError::unavailable("hold", &entry.key.to_string(), error))?;
        let mut starts = Vec::with_capacity(entry.parts.len());
        let mut written = 0;
        while let Some(part) = parts.next().await {
            let part = part?;
            starts.push(written);
            written += part.len() as u64;
            let spill = Arc::clone(&spill);
            let append = move || {
                let mut writer = spill.open_writer()?;
                writer.write_all(&part)?;
                writer.finish()
            };
            match tokio::task::spawn_blocking(append).await {
                Ok(outcome) => outcome.map_err(unavailable)?,
                Err(error) => return Err(DerivedError::unavailable("hold", &entry.key.to_string(), error)),
            }
        }
        Ok(Self::File(Arc::new(Spilled { file: Mutex::new(file), starts, _spill: spill })))
    }

    /// The rows of one part under the names of `schema`.
    pub(super) async fn part(
        &self,
        entry: &CacheEntry,
        ordinal: usize,
        schema: &SchemaRef,
    ) -> Result<Vec<RecordBatch>, DerivedError> {
        let gone = || DerivedError::Missing { location: format!("part {ordinal} of {}", entry.key) };
        let part = entry.parts.get(ordinal).ok_or_else(gone)?;
        let batches = match self {
            Self::Rows(parts) => return parts.get(ordinal).cloned().ok_or_else(gone),
            Self::Bytes { parts, .. } => {
                let bytes = parts.get(ordinal).cloned().ok_or_else(gone)?;
                decode_verified_part(bytes, part, &entry.key, ordinal, schema).await?
            }
            Self::File(spilled) => {
                let (start, len) = (*spilled.starts.get(ordinal).ok_or_else(gone)?, part.bytes as usize);
                let spilled = Arc::clone(spilled);
                let read = tokio::task::spawn_blocking(move || spilled.read(start, len)).await;
                let failed = |error| DerivedError::unavailable("read the copy of", &part.location, error);
                let bytes = read.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(failed)?;
                decode_part(bytes, part, &entry.key, ordinal, schema).await?
            }
        };
        named(&batches, schema, &part.location)
    }
}

impl Spilled {
    fn read(&self, start: u64, len: usize) -> std::io::Result<Bytes> {
        let mut bytes = vec![0; len];
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut bytes)?;
        Ok(Bytes::from(bytes))
    }
}

/// Room for so many bytes, if that leaves enough to others.
fn reserve(bytes: u64, runtime: &RuntimeEnv) -> Option<MemoryReservation> {
    let bytes = usize::try_from(bytes).ok()?;
    let limit = match runtime.memory_pool.memory_limit() {
        MemoryLimit::Finite(limit) => limit,
        _ => usize::MAX,
    };
    let reservation = MemoryConsumer::new("CacheRead").register(&runtime.memory_pool);
    (bytes <= limit / POOL_SHARE && reservation.try_grow(bytes).is_ok()).then_some(reservation)
}

fn named(batches: &[RecordBatch], schema: &SchemaRef, location: &str) -> Result<Vec<RecordBatch>, DerivedError> {
    let damaged = |error: arrow::error::ArrowError| DerivedError::Damaged {
        location: location.to_owned(),
        detail: error.to_string(),
    };
    batches.iter().map(|batch| relabel(batch, schema)).collect::<Result<_, _>>().map_err(damaged)
}

#[cfg(test)]
mod tests;
