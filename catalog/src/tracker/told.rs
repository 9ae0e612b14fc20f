//! [`Told`]: what one process tells another of an extent. [`SameFiles`]: whether the other has the same.
//!
//! What tells files apart on one machine, inode and ctime, means nothing on another. What is left:
//!
//! ```text
//!                      before reading                               after reading
//!   known by content   its bytes have the fingerprint               not touched since; a log may have grown, and is read again
//!   local              size and time, to the microsecond            not touched since
//!   object             size and etag; without one, size and time    the same
//!   of a web host      size, etag and time                          the same
//! ```
//!
//! Guarantees   what was read in between are the bytes that were told.
//! Caveats      a local file that is not known by its content, and has the size and the time of the one that was told, passes for it.
//! Cost         bytes that were read once are not read again while inode, ctime and the rest stay as they are.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;

use super::discover::blocking;
use super::{CONCURRENT_LOOKS, ExtentTracker};
use crate::identity::content::hash_reader;
use crate::identity::{FileIdentity, content_fingerprint, deciding, hash_object};
use crate::location::local_path;
use crate::object_stores::plain_location;
use crate::{ByteRange, CatalogError, Clock, Extent, Fingerprint, Result, SystemClock, object_path};

/// Extents whose bytes are remembered to have been read.
const READ_MAX: usize = 100_000;

/// What one process tells another of an extent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Told {
    /// Full URL, without passwords.
    pub location: Arc<str>,
    /// `None` for a whole file.
    pub range: Option<ByteRange>,
    /// Size of the whole file when the extent was pinned.
    pub file_bytes: u64,
    /// Last modification of the file, microseconds since 1970.
    pub modified_at: i64,
    /// What the object store says of the content, if it does.
    pub etag: Option<Arc<str>>,
    /// What the extent is.
    pub fingerprint: Fingerprint,
    /// Whether the fingerprint names bytes, so that whoever has them can tell.
    pub by_content: bool,
    /// Values of Hive partition columns: a part of the fingerprint.
    pub partition_values: Arc<[Option<Arc<str>>]>,
}

impl Told {
    /// What there is to tell of an extent.
    pub fn of(extent: &Extent, by_content: bool) -> Self {
        Self {
            location: Arc::from(plain_location(&extent.location).as_ref()),
            range: extent.range,
            file_bytes: extent.file_bytes,
            modified_at: extent.modified_at,
            etag: extent.etag.clone(),
            fingerprint: extent.fingerprint,
            by_content,
            partition_values: Arc::clone(&extent.partition_values),
        }
    }

    /// Whether it is on a disk, not in an object store.
    pub fn is_local(&self) -> bool {
        self.location.starts_with("file:")
    }

    fn other(&self, detail: impl Into<String>) -> CatalogError {
        let location = match local_path(&self.location) {
            Some(path) => path.display().to_string(),
            None => self.location.to_string(),
        };
        CatalogError::OtherFile { location, detail: detail.into() }
    }

    fn unreadable(&self, error: &io::Error) -> CatalogError {
        match error.kind() {
            io::ErrorKind::NotFound => self.other("is not there"),
            io::ErrorKind::UnexpectedEof => self.other("is shorter"),
            _ => self.other(format!("can not be read: {error}")),
        }
    }

    /// The bytes that the fingerprint names.
    fn bytes(&self) -> ByteRange {
        self.range.unwrap_or(ByteRange { start: 0, end: self.file_bytes })
    }

    fn is_of(&self, content: &[u8; 32]) -> bool {
        let named = content_fingerprint(&self.location, self.bytes().start, content, &self.partition_values);
        // Files of our own are named by their bytes alone.
        named == self.fingerprint || (self.range.is_none() && Fingerprint::from_bytes(*content) == self.fingerprint)
    }
}

/// An extent that is about to be read.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// What was told of it.
    pub told: Told,
    /// The store that it is in, unless it is local.
    pub store: Option<Arc<dyn ObjectStore>>,
}

/// Files as they were before they were read.
#[derive(Debug)]
pub struct Looked(Vec<(Wanted, FileIdentity)>);

/// Looks at files that another process told of. Cheap to clone; clones remember together.
#[derive(Clone, Debug)]
pub struct SameFiles {
    clock: Arc<dyn Clock>,
    read: Arc<Mutex<BTreeSet<Read>>>,
}

/// A file whose bytes had a fingerprint, as it was then.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Read {
    fingerprint: Fingerprint,
    path: PathBuf,
    /// Size, mtime, ctime, inode and device.
    attributes: (u64, i64, i64, u64, u64),
}

impl Read {
    fn new(told: &Told, path: &Path, now: &FileIdentity) -> Self {
        let attributes = (now.size, now.mtime_ns, now.ctime_ns, now.inode, now.device);
        Self { fingerprint: told.fingerprint, path: path.to_path_buf(), attributes }
    }
}

impl Default for SameFiles {
    fn default() -> Self {
        Self { clock: Arc::new(SystemClock), read: Arc::default() }
    }
}

impl SameFiles {
    /// Before reading: fails with `OtherFile` if one of them is not here, or another.
    pub async fn look(&self, wanted: Vec<Wanted>) -> Result<Looked> {
        let (local, remote): (Vec<Wanted>, Vec<Wanted>) = wanted.into_iter().partition(|wanted| wanted.told.is_local());
        let mut looked = vec![];
        if !local.is_empty() {
            let this = self.clone();
            let look = move |wanted: Wanted| this.look_local(&wanted.told).map(|now| (wanted, now));
            looked = blocking(move || local.into_iter().map(look).collect::<Result<Vec<_>>>()).await?;
        }
        let remote = stream::iter(remote).map(|wanted| async move {
            let now = head(&wanted).await?;
            compare_object(&wanted, &now).await?;
            Ok::<_, CatalogError>((wanted, now))
        });
        looked.extend(remote.buffer_unordered(CONCURRENT_LOOKS).try_collect::<Vec<_>>().await?);
        Ok(Looked(looked))
    }

    /// After reading: fails with `OtherFile` if one of them is no longer what it was before.
    pub async fn look_again(&self, looked: Looked) -> Result<()> {
        let (local, remote): (Vec<_>, Vec<_>) = looked.0.into_iter().partition(|(wanted, _)| wanted.told.is_local());
        if !local.is_empty() {
            let this = self.clone();
            let look = move |(wanted, before): &(Wanted, FileIdentity)| this.look_local_again(&wanted.told, before);
            blocking(move || local.iter().try_for_each(look)).await?;
        }
        let clock = &self.clock;
        stream::iter(remote)
            .map(|(wanted, before)| async move {
                let now = head(&wanted).await?;
                match now.is_unchanged(&before) {
                    // As above: a web host's clock may tick once a second.
                    true if wanted.told.by_content && now.is_racy(clock.now_ns()) => {
                        compare_object(&wanted, &now).await
                    }
                    true => Ok(()),
                    false => Err(written_to(&wanted.told)),
                }
            })
            .buffer_unordered(CONCURRENT_LOOKS)
            .try_collect::<()>()
            .await
    }

    fn look_local(&self, told: &Told) -> Result<FileIdentity> {
        let (path, now) = stat(told)?;
        match told.by_content {
            true => self.read(told, &path, &now)?,
            false if now.size != told.file_bytes => return Err(other_size(told, now.size)),
            false if now.modified_at() != told.modified_at => return Err(other_time(told)),
            false => {}
        }
        Ok(now)
    }

    fn look_local_again(&self, told: &Told, before: &FileIdentity) -> Result<()> {
        let (path, now) = stat(told)?;
        if now.is_unchanged(before) {
            // Whoever writes within a tick of the clock leaves no other trace than bytes.
            return match told.by_content && now.is_racy(self.clock.now_ns()) {
                true => self.read(told, &path, &now),
                false => Ok(()),
            };
        }
        // A log is written to all the time.
        match told.range.is_some() && now.inode == before.inode && now.size > before.size {
            true => self.read(told, &path, &now),
            false => Err(written_to(told)),
        }
    }

    /// Fails unless the bytes have the fingerprint.
    fn read(&self, told: &Told, path: &Path, now: &FileIdentity) -> Result<()> {
        let bytes = told.bytes();
        if now.size < bytes.end || (told.range.is_none() && now.size != bytes.end) {
            return Err(other_size(told, now.size));
        }
        let read = Read::new(told, path, now);
        if self.read.lock().contains(&read) {
            return Ok(());
        }
        let hash = || {
            let mut file = File::open(path)?;
            file.seek(SeekFrom::Start(bytes.start))?;
            hash_reader(&mut file, bytes.len())
        };
        let content = hash().map_err(|error| told.unreadable(&error))?;
        if !told.is_of(&content) {
            return Err(told.other("holds something else"));
        }
        if !now.is_racy(self.clock.now_ns()) {
            let mut known = self.read.lock();
            if known.len() >= READ_MAX {
                known.clear();
            }
            known.insert(read);
        }
        Ok(())
    }
}

impl ExtentTracker {
    /// What there is to tell of an extent, whose file is `ours` or not.
    pub fn tell(&self, extent: &Extent, ours: bool) -> Told {
        let by_content = ours || extent.range.is_some() || self.by_content.lock().contains_key(&extent.fingerprint);
        Told::of(extent, by_content)
    }
}

fn stat(told: &Told) -> Result<(PathBuf, FileIdentity)> {
    let path = local_path(&told.location).ok_or_else(|| told.other("is not a path"))?;
    let metadata = std::fs::metadata(&path).map_err(|error| told.unreadable(&error))?;
    let now = FileIdentity::of_local(Arc::clone(&told.location), &metadata);
    Ok((path, now))
}

async fn head(Wanted { told, store }: &Wanted) -> Result<FileIdentity> {
    let (_, path) = object_path(&told.location)?;
    let Some(store) = store else { return Err(told.other("is in no store")) };
    match store.head(&path).await {
        Ok(meta) => Ok(FileIdentity::of_object(Arc::clone(&told.location), &meta)),
        Err(object_store::Error::NotFound { .. }) => Err(told.other("is not there")),
        Err(error) => Err(told.other(format!("can not be read: {error}"))),
    }
}

async fn compare_object(Wanted { told, store }: &Wanted, now: &FileIdentity) -> Result<()> {
    if now.size != told.file_bytes {
        return Err(other_size(told, now.size));
    }
    let etags = (deciding(&told.location, told.etag.as_deref()), deciding(&told.location, now.etag.as_deref()));
    if let (Some(wanted), Some(found)) = etags {
        return match wanted == found {
            true => Ok(()),
            false => Err(told.other("holds something else")),
        };
    }
    if told.by_content
        && let Some(store) = store
    {
        let (_, path) = object_path(&told.location)?;
        let content = hash_object(store.as_ref(), &path, GetOptions::default()).await;
        let content = content.map_err(|error| told.other(format!("can not be read: {error}")))?;
        return match told.is_of(&content) {
            true => Ok(()),
            false => Err(told.other("holds something else")),
        };
    }
    match now.etag == told.etag && now.modified_at() == told.modified_at {
        true => Ok(()),
        false => Err(other_time(told)),
    }
}

fn other_size(told: &Told, size: u64) -> CatalogError {
    told.other(format!("has {size} bytes, not {}", told.file_bytes))
}

fn other_time(told: &Told) -> CatalogError {
    told.other("was modified at another time")
}

fn written_to(told: &Told) -> CatalogError {
    told.other("was written to while it was read")
}

#[cfg(test)]
mod tests;
