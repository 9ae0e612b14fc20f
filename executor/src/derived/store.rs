//! [`DerivedStore`]: where derived data is.
//!
//! ```text
//!   the home's folder     parts that older settings left there, and new ones unless the settings say otherwise
//!   one other place       new parts, if the settings name one: a folder, or a URL such as s3://bucket/results
//!   any other place       that some entry names; opened when it is first asked for
//! ```
//!
//! Keeps true   a part has a name of its own, appears whole or not at all and is never written again. Rows leave only after
//!              [`part::decode`] found nothing to say against them. Which parts make an entry is not known here: what no
//!              entry names is garbage.
//! Remembers    small entries in memory, decoded, within a budget in bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use moka::sync::Cache;
use nectarine_catalog::{CacheEntry, EntryPart, Fingerprint, ObjectStores};
use object_store::ObjectStore;
use object_store::path::Path;
use parking_lot::RwLock;
use url::Url;

use super::in_flight::InFlight;
use super::location::Writer;
use super::part::{self, Encoded};
use super::place::Place;
use super::room::{Reserved, Room, Unbounded};
use super::undeleted::Undeleted;
use super::{DerivedError, location};

/// Bytes that are decoded where they are; more of them would keep a worker thread too long.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// Parts of an entry that are fetched at the same time, and parts that are deleted so.
const AT_ONCE: usize = 4;
/// A cached result that needs many tries is not worth them: it can be computed.
const MAX_RETRIES: &str = "1";

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
    /// As in [`EntryPart::location`].
    pub location: String,
    /// Size.
    pub bytes: u64,
    /// When it was written, in microseconds since 1970.
    pub modified_us: i64,
}

/// The derived store; clones share everything.
#[derive(Clone)]
pub struct DerivedStore {
    places: Arc<Places>,
    writer: Writer,
    room: Arc<dyn Room>,
    in_flight: Arc<InFlight>,
    undeleted: Arc<Undeleted>,
    memory: Cache<Fingerprint, Arc<LoadedEntry>>,
    memory_bytes_max: u64,
}

struct Places {
    home: Arc<Place>,
    /// Where new parts go, if not into the home.
    new: Option<Arc<Place>>,
    /// By URL; includes `new`.
    elsewhere: RwLock<BTreeMap<String, Arc<Place>>>,
    stores: ObjectStores,
}

impl DerivedStore {
    /// Parts are kept in `objects` below `base`; decoded entries in memory, up to `memory_bytes_max` bytes.
    pub fn new(objects: Arc<dyn ObjectStore>, base: Path, memory_bytes_max: u64) -> Self {
        Self::of(Place::objects(None, objects, base), None, ObjectStores::new(), memory_bytes_max)
    }

    /// Parts are kept in `folder`, which is made if it is not there.
    pub fn local(folder: &Folder, memory_bytes_max: u64) -> Result<Self, DerivedError> {
        Self::open(folder, None, ObjectStores::new(), memory_bytes_max)
    }

    /// Parts are kept in `folder`, the home's, or at `elsewhere` if that is given. Opens no connection.
    pub fn open(
        folder: &Folder,
        elsewhere: Option<&Url>,
        stores: ObjectStores,
        memory_bytes_max: u64,
    ) -> Result<Self, DerivedError> {
        // Where the home's own is away, nothing is kept; a place that was asked for must be there.
        let _ = make_folder(folder);
        let home = Place::folder(None, folder.to_path_buf());
        let new = elsewhere.map(|url| place_at(url.as_str().trim_end_matches('/'), &stores)).transpose()?;
        if let Some(folder) = elsewhere.filter(|url| url.scheme() == "file").and_then(|url| url.to_file_path().ok()) {
            make_folder(&folder)?;
        }
        Ok(Self::of(home, new, stores, memory_bytes_max))
    }

    pub(super) fn of(home: Place, new: Option<Place>, stores: ObjectStores, memory_bytes_max: u64) -> Self {
        let memory = Cache::builder()
            .max_capacity(memory_bytes_max)
            .weigher(|_, entry: &Arc<LoadedEntry>| u32::try_from(entry.memory_bytes()).unwrap_or(u32::MAX))
            .build();
        let new = new.map(Arc::new);
        let elsewhere = new.iter().map(|place| (place.to_string(), Arc::clone(place))).collect();
        let places = Places { home: Arc::new(home), new, elsewhere: RwLock::new(elsewhere), stores };
        Self {
            places: Arc::new(places),
            writer: Writer::unnamed(),
            room: Arc::new(Unbounded),
            in_flight: Arc::default(),
            undeleted: Arc::default(),
            memory,
            memory_bytes_max,
        }
    }

    /// Parts are written in the name of a process, and only if there is room for them.
    #[must_use]
    pub fn written_by(self, writer: Writer, room: Arc<dyn Room>) -> Self {
        Self { writer, room, ..self }
    }

    /// Who writes here.
    pub fn writer(&self) -> Writer {
        self.writer
    }

    /// The folder that new parts go to, if it is one of this machine.
    pub fn folder(&self) -> Option<&Folder> {
        self.places.for_new().local_folder()
    }

    /// The largest entry that is held in memory: one must not push out all others.
    pub fn memory_entry_bytes_max(&self) -> u64 {
        self.memory_bytes_max / 8
    }

    /// Whether new parts go to another machine: then nobody should wait until they are there.
    pub fn is_remote(&self) -> bool {
        self.places.for_new().is_remote()
    }

    /// Whether there is any point in recording: a store that made others wait in vain is left alone for a while.
    pub fn is_writable(&self) -> bool {
        self.places.for_new().is_writable()
    }

    /// Encodes and writes one part of the entry `key`.
    pub async fn write_part(
        &self,
        key: &Fingerprint,
        ordinal: usize,
        schema: &Schema,
        batches: &[RecordBatch],
    ) -> Result<EntryPart, DerivedError> {
        let encoded = part::encode(key, ordinal, schema, batches)
            .map_err(|error| DerivedError::unavailable("write", "a new part", error))?;
        self.put_new(key, &encoded).await
    }

    pub(crate) async fn put_new(&self, key: &Fingerprint, encoded: &Encoded) -> Result<EntryPart, DerivedError> {
        let (place, name) = (self.places.for_new(), location::new_name(key, self.writer));
        let location = place.location(&name);
        self.in_flight.begin(&location);
        if let Err(error) = place.put(&name, &encoded.bytes).await {
            self.in_flight.forget(&location);
            return Err(error);
        }
        Ok(EntryPart { location, bytes: encoded.bytes.len() as u64, rows: encoded.rows, checksum: encoded.checksum })
    }

    /// Sets room aside for bytes that are about to be written.
    pub(crate) async fn reserve(&self, bytes: u64, is_wanted: bool) -> Option<Reserved> {
        Reserved::new(&self.room, bytes, is_wanted).await
    }

    pub(crate) fn nothing_reserved(&self) -> Reserved {
        Reserved::none(Arc::clone(&self.room))
    }

    /// These parts belong to entries now, or to nobody: the collector may judge them by what entries say.
    pub fn settle<'a>(&self, parts: impl IntoIterator<Item = &'a EntryPart>) {
        self.in_flight.end(parts);
    }

    /// Whether this process wrote the part and has not settled what becomes of it.
    pub fn is_in_flight(&self, location: &str) -> bool {
        self.in_flight.has(location)
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
        decode_part(bytes, part, key, ordinal, types).await
    }

    /// The bytes of one part, after everything about it was checked that can be told without decoding its rows.
    pub(crate) async fn verified_part(
        &self,
        part: &EntryPart,
        key: &Fingerprint,
        ordinal: usize,
        types: Option<&Schema>,
    ) -> Result<Bytes, DerivedError> {
        let bytes = self.fetch(part).await?;
        let (wanted, key, types, content) = (part.clone(), *key, types.cloned(), bytes.clone());
        let check = move || part::verify(&content, &wanted, &key, ordinal, types.as_ref());
        checked(part, bytes.len(), check).await?;
        Ok(bytes)
    }

    /// Reads a whole entry and says what is wrong with it, without keeping its rows.
    pub async fn verify(&self, entry: &CacheEntry) -> Result<(), DerivedError> {
        let damaged = |detail| DerivedError::Damaged { location: entry.key.to_string(), detail };
        let sum = |of: fn(&EntryPart) -> u64| entry.parts.iter().map(of).sum::<u64>();
        let (rows, bytes) = (sum(|part| part.rows), sum(|part| part.bytes));
        if (rows, bytes) != (entry.rows, entry.bytes) {
            let detail =
                format!("its parts have {rows} rows and {bytes} bytes, not {} and {}", entry.rows, entry.bytes);
            return Err(damaged(detail));
        }
        for (ordinal, part) in entry.parts.iter().enumerate() {
            self.verified_part(part, &entry.key, ordinal, None).await?;
        }
        Ok(())
    }

    /// All rows of an entry, from memory or from its parts.
    pub async fn load(&self, entry: &CacheEntry, types: &Schema) -> Result<Arc<LoadedEntry>, DerivedError> {
        if let Some(loaded) = self.in_memory(entry, types) {
            return Ok(loaded);
        }
        let parts = entry.parts.iter().enumerate();
        let reads = parts.map(|(ordinal, part)| self.read_part(part, &entry.key, ordinal, types)).collect::<Vec<_>>();
        let batches = stream::iter(reads).buffered(AT_ONCE).try_collect().await?;
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

    /// Drops all entries from memory but those that are still there.
    pub fn forget_unless(&self, is_there: impl Fn(&Fingerprint) -> bool) {
        let gone: Vec<Fingerprint> = self.memory.iter().map(|(key, _)| *key).filter(|key| !is_there(key)).collect();
        gone.iter().for_each(|key| self.forget(key));
    }

    /// Whether rows of an entry are in memory, whatever they are.
    pub fn remembers(&self, key: &Fingerprint) -> bool {
        self.memory.contains_key(key)
    }

    /// How many entries are in memory.
    pub fn n_remembered(&self) -> usize {
        self.memory.iter().count()
    }

    /// Deletes parts; those that are gone already are no error. All are tried, one of the failures is told.
    pub async fn delete(&self, parts: &[EntryPart]) -> Result<(), DerivedError> {
        self.delete_each(parts).await.pop().map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The same; tells which could not be deleted, and why.
    pub async fn delete_each(&self, parts: &[EntryPart]) -> Vec<(EntryPart, DerivedError)> {
        let delete = |part: EntryPart| async move {
            let deleted = match self.places.of(&part.location) {
                Ok((place, name)) => place.delete(name).await,
                // What is no location of ours is not ours to delete.
                Err(DerivedError::Missing { .. }) => Ok(()),
                Err(error) => Err(error),
            };
            deleted.err().map(|error| (part, error))
        };
        let deletes = parts.iter().cloned().map(delete).collect::<Vec<_>>();
        let left = stream::iter(deletes).buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await;
        // What could not be deleted is the collector's.
        self.in_flight.end(parts);
        left
    }

    /// Deletes what no entry names, and only then gives its room back. What can not be deleted keeps it, until somebody has
    /// written down what is [left](Self::undeleted); returns how many bytes that is.
    pub async fn dispose(&self, parts: Vec<EntryPart>, room: Option<Reserved>) -> u64 {
        let left = self.delete_each(&parts).await;
        if let Some((part, error)) = left.first() {
            tracing::debug!(location = part.location, %error, "cannot delete a part that nobody needs");
        }
        let bytes = left.iter().map(|(part, _)| part.bytes).sum();
        if !left.is_empty() {
            self.undeleted.add(left, room);
        }
        bytes
    }

    /// Parts that could not be deleted, and why.
    pub fn undeleted(&self) -> Vec<(EntryPart, DerivedError)> {
        self.undeleted.all()
    }

    /// It is written down that these could not be deleted, and where that is they count.
    pub fn forget_undeleted(&self, parts: &[EntryPart]) {
        self.undeleted.forget(parts);
    }

    /// All parts in the home and where new ones go, whether an entry names them or not.
    pub fn list(&self) -> BoxStream<'static, Result<StoredObject, DerivedError>> {
        match &self.places.new {
            Some(new) => self.places.home.list().chain(new.list()).boxed(),
            None => self.places.home.list(),
        }
    }

    /// The home's place and the one for new parts.
    pub(super) fn places_swept(&self) -> Vec<Arc<Place>> {
        [Some(&self.places.home), self.places.new.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// The file of a part that is on this machine.
    pub(super) fn local_path(&self, location: &str) -> Option<PathBuf> {
        let (place, name) = self.places.of(location).ok()?;
        place.local_folder().map(|folder| folder.join(name))
    }

    async fn fetch(&self, part: &EntryPart) -> Result<Bytes, DerivedError> {
        let (place, name) = self.places.of(&part.location)?;
        place.get(name, part).await
    }
}

impl Places {
    fn for_new(&self) -> &Arc<Place> {
        self.new.as_ref().unwrap_or(&self.home)
    }

    /// The place of a part, and its name there. `Missing` for what can not be a location of ours.
    fn of<'a>(&self, location: &'a str) -> Result<(Arc<Place>, &'a str), DerivedError> {
        let missing = || DerivedError::Missing { location: location.to_owned() };
        let (url, name) = location::split(location).ok_or_else(missing)?;
        let Some(url) = url else { return Ok((Arc::clone(&self.home), name)) };
        if let Some(place) = self.elsewhere.read().get(url) {
            return Ok((Arc::clone(place), name));
        }
        let place = Arc::new(place_at(url, &self.stores)?);
        Ok((Arc::clone(self.elsewhere.write().entry(url.to_owned()).or_insert(place)), name))
    }
}

/// The place that a URL names; opens no connection.
fn place_at(text: &str, stores: &ObjectStores) -> Result<Place, DerivedError> {
    let failed = |error: Arc<dyn std::error::Error + Send + Sync>| DerivedError::Unavailable {
        attempted: "open",
        location: text.to_owned(),
        source: error,
    };
    let url = Url::parse(text).map_err(|error| failed(Arc::new(error)))?;
    if url.scheme() == "file" {
        let folder = url.to_file_path().map_err(|()| DerivedError::Missing { location: text.to_owned() })?;
        return Ok(Place::folder(Some(text.to_owned()), folder));
    }
    let options = ["aws", "gcp", "azure"].map(|vendor| (format!("{vendor}.max_retries"), MAX_RETRIES.to_owned()));
    let (_, objects) = stores.with_options(&url, &options.into()).map_err(|error| failed(Arc::new(error)))?;
    let base = Path::from_url_path(url.path()).map_err(|error| failed(Arc::new(error)))?;
    Ok(Place::objects(Some(text.to_owned()), objects, base))
}

/// Makes the folder.
fn make_folder(folder: &Folder) -> Result<(), DerivedError> {
    let failed = |error| DerivedError::unavailable("open", &folder.display().to_string(), error);
    std::fs::create_dir_all(folder).map_err(failed)
}

/// The rows in the bytes of a part, after everything about them was checked.
pub(crate) async fn decode_part(
    bytes: Bytes,
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: &Schema,
) -> Result<Vec<RecordBatch>, DerivedError> {
    let (wanted, key, types, n_bytes) = (part.clone(), *key, types.clone(), bytes.len());
    checked(part, n_bytes, move || part::decode(&bytes, &wanted, &key, ordinal, &types)).await
}

/// The rows in bytes that [`DerivedStore::verified_part`] gave, and that were in memory since.
pub(crate) async fn decode_verified_part(
    bytes: Bytes,
    part: &EntryPart,
    key: &Fingerprint,
    ordinal: usize,
    types: &Schema,
) -> Result<Vec<RecordBatch>, DerivedError> {
    let (wanted, key, types, n_bytes) = (part.clone(), *key, types.clone(), bytes.len());
    checked(part, n_bytes, move || part::decode_verified(&bytes, &wanted, &key, ordinal, &types)).await
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

impl fmt::Debug for DerivedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DerivedStore").field("new parts", &self.places.for_new().to_string()).finish()
    }
}

#[cfg(test)]
mod tests;
