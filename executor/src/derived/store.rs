//! [`DerivedStore`]: where derived data is.
//!
//! ```text
//!   <base>/1a/2b/0197c6a0-....arrow        parts; the folders are the first digits of the entry's key
//! ```
//!
//! Keeps true   a part has a name of its own, appears whole or not at all (object stores say so; the local one writes
//!              beside and renames) and is never written again. Rows leave only after [`part::decode`] found nothing to
//!              say against them. Which parts make an entry is not known here: what no entry names is garbage.
//! Remembers    small entries in memory, decoded, within a budget in bytes.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use moka::sync::Cache;
use nectarine_catalog::{CacheEntry, EntryPart, Fingerprint};
use object_store::path::{Path, PathPart};
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use uuid::Uuid;

use super::DerivedError;
use super::part::{self, Encoded};

/// Bytes that are decoded where they are; more of them would keep a worker thread too long.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// The rows of an entry in memory, part by part; columns are c0..cn.
#[derive(Debug, Clone)]
pub struct LoadedEntry {
    /// What was loaded.
    pub parts: Vec<EntryPart>,
    /// The rows of each part.
    pub batches: Vec<Vec<RecordBatch>>,
}

impl LoadedEntry {
    /// What it takes in memory.
    pub fn memory_bytes(&self) -> usize {
        self.batches.iter().flatten().map(RecordBatch::get_array_memory_size).sum::<usize>() + 1024
    }
}

/// An object in the store, for the collector.
#[derive(Debug, Clone)]
pub struct StoredObject {
    /// Relative to the root, as in [`EntryPart::location`].
    pub location: String,
    /// Size.
    pub bytes: u64,
    /// When it was written, in microseconds since 1970.
    pub modified_us: i64,
}

/// The derived store; clones share everything.
#[derive(Clone)]
pub struct DerivedStore {
    objects: Arc<dyn ObjectStore>,
    base: Path,
    memory: Cache<Fingerprint, Arc<LoadedEntry>>,
    memory_bytes_max: u64,
}

impl DerivedStore {
    /// Parts are kept in `objects` below `base`; decoded entries in memory, up to `memory_bytes_max` bytes.
    pub fn new(objects: Arc<dyn ObjectStore>, base: Path, memory_bytes_max: u64) -> Self {
        let memory = Cache::builder()
            .max_capacity(memory_bytes_max)
            .weigher(|_, entry: &Arc<LoadedEntry>| u32::try_from(entry.memory_bytes()).unwrap_or(u32::MAX))
            .build();
        Self { objects, base, memory, memory_bytes_max }
    }

    /// The largest entry that is held in memory: one must not push out all others.
    pub fn memory_entry_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 8
    }

    /// Encodes and writes one part of the entry `key`.
    pub async fn write_part(
        &self,
        key: &Fingerprint,
        ordinal: usize,
        schema: &Schema,
        batches: &[RecordBatch],
    ) -> Result<EntryPart, DerivedError> {
        let location = new_location(key);
        let encoded = part::encode(key, ordinal, schema, batches)
            .map_err(|error| DerivedError::unavailable("write", &location, error))?;
        self.put(location, &encoded).await
    }

    pub(crate) async fn put_new(&self, key: &Fingerprint, encoded: &Encoded) -> Result<EntryPart, DerivedError> {
        self.put(new_location(key), encoded).await
    }

    async fn put(&self, location: String, encoded: &Encoded) -> Result<EntryPart, DerivedError> {
        let path = self.path(&location).ok_or_else(|| DerivedError::Missing { location: location.clone() })?;
        let payload = PutPayload::from_bytes(encoded.bytes.clone());
        let put = self.objects.put(&path, payload).await;
        put.map_err(|error| DerivedError::unavailable("write", &location, error))?;
        Ok(EntryPart { location, bytes: encoded.bytes.len() as u64, rows: encoded.rows, checksum: encoded.checksum })
    }

    /// The rows of one part, after everything about it was checked. Columns are c0..cn; their types are those of `types`.
    pub async fn read_part(
        &self,
        part: &EntryPart,
        key: &Fingerprint,
        ordinal: usize,
        types: &Schema,
    ) -> Result<Vec<RecordBatch>, DerivedError> {
        let bytes = self.fetch(part).await?;
        let (wanted, key, types) = (part.clone(), *key, types.clone());
        checked(part, bytes.len(), move || part::decode(&bytes, &wanted, &key, ordinal, &types)).await
    }

    /// Reads one part and checks it, without keeping its rows.
    pub async fn verify_part(
        &self,
        part: &EntryPart,
        key: &Fingerprint,
        ordinal: usize,
        types: &Schema,
    ) -> Result<(), DerivedError> {
        let bytes = self.fetch(part).await?;
        let (wanted, key, types) = (part.clone(), *key, types.clone());
        checked(part, bytes.len(), move || part::verify(&bytes, &wanted, &key, ordinal, &types)).await
    }

    /// All rows of an entry, from memory or from its parts.
    pub async fn load(&self, entry: &CacheEntry, types: &Schema) -> Result<Arc<LoadedEntry>, DerivedError> {
        if let Some(loaded) = self.in_memory(entry, types) {
            return Ok(loaded);
        }
        let mut batches = Vec::with_capacity(entry.parts.len());
        for (ordinal, part) in entry.parts.iter().enumerate() {
            batches.push(self.read_part(part, &entry.key, ordinal, types).await?);
        }
        let loaded = Arc::new(LoadedEntry { parts: entry.parts.clone(), batches });
        self.remember(entry.key, &loaded);
        Ok(loaded)
    }

    /// The rows of an entry if they are in memory.
    pub fn in_memory(&self, entry: &CacheEntry, types: &Schema) -> Option<Arc<LoadedEntry>> {
        let loaded = self.memory.get(&entry.key)?;
        // The key may have been dropped and published again with other parts.
        let same_types = |batch: &RecordBatch| {
            let (stored, wanted) = (batch.schema(), types.fields());
            stored.fields().len() == wanted.len()
                && stored.fields().iter().zip(wanted).all(|(stored, wanted)| stored.data_type() == wanted.data_type())
        };
        let same = loaded.parts == entry.parts && loaded.batches.iter().flatten().all(same_types);
        same.then_some(loaded)
    }

    /// Keeps the rows of an entry in memory, if they are few.
    pub fn remember(&self, key: Fingerprint, loaded: &Arc<LoadedEntry>) {
        if loaded.memory_bytes() as u64 <= self.memory_entry_bytes_max() {
            self.memory.insert(key, Arc::clone(loaded));
        }
    }

    /// Drops an entry from memory; its parts stay.
    pub fn forget(&self, key: &Fingerprint) {
        self.memory.invalidate(key);
    }

    /// Deletes parts; those that are gone already are no error. All are tried, the first failure is told.
    pub async fn delete(&self, parts: &[EntryPart]) -> Result<(), DerivedError> {
        let mut outcome = Ok(());
        for part in parts {
            let Some(path) = self.path(&part.location) else { continue };
            match self.objects.delete(&path).await {
                Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) if outcome.is_ok() => {
                    outcome = Err(DerivedError::unavailable("delete", &part.location, error));
                }
                Err(_) => {}
            }
        }
        outcome
    }

    /// Everything that is in the store, whether an entry names it or not.
    pub fn list(&self) -> BoxStream<'static, Result<StoredObject, DerivedError>> {
        let base = self.base.clone();
        let prefix_len = self.base.as_ref().len();
        self.objects
            .list(Some(&base))
            .map_ok(move |meta| StoredObject {
                location: meta.location.as_ref()[prefix_len..].trim_start_matches('/').to_owned(),
                bytes: meta.size,
                modified_us: meta.last_modified.timestamp_micros(),
            })
            .map_err(move |error| DerivedError::unavailable("list", base.as_ref(), error))
            .boxed()
    }

    async fn fetch(&self, part: &EntryPart) -> Result<Bytes, DerivedError> {
        let missing = || DerivedError::Missing { location: part.location.clone() };
        let failed = |error: object_store::Error| match error {
            object_store::Error::NotFound { .. } => missing(),
            error => DerivedError::unavailable("read", &part.location, error),
        };
        let path = self.path(&part.location).ok_or_else(missing)?;
        let found = self.objects.get(&path).await.map_err(failed)?;
        // Before the bytes: a part may have become anything.
        if found.meta.size != part.bytes {
            let detail = format!("it has {} bytes instead of {}", found.meta.size, part.bytes);
            return Err(DerivedError::Damaged { location: part.location.clone(), detail });
        }
        found.bytes().await.map_err(failed)
    }

    /// `None` for what can not be a location of ours.
    fn path(&self, location: &str) -> Option<Path> {
        let relative = Path::parse(location).ok()?;
        Some(Path::from_iter(self.base.parts().chain(relative.parts()).collect::<Vec<PathPart<'_>>>()))
    }
}

/// What `check` says of a part; large ones are checked on a thread that may take its time.
async fn checked<T: Send + 'static>(
    part: &EntryPart,
    bytes: usize,
    check: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, DerivedError> {
    let outcome = match bytes <= INLINE_BYTES_MAX {
        true => check(),
        false => tokio::task::spawn_blocking(check).await.unwrap_or_else(|error| Err(error.to_string())),
    };
    outcome.map_err(|detail| DerivedError::Damaged { location: part.location.clone(), detail })
}

/// A name that no one else uses.
fn new_location(key: &Fingerprint) -> String {
    let bytes = key.as_bytes();
    format!("{:02x}/{:02x}/{}.arrow", bytes[0], bytes[1], Uuid::now_v7())
}

impl fmt::Debug for DerivedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedStore").field("objects", &self.objects.to_string()).field("base", &self.base).finish()
    }
}
