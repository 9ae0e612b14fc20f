//! [`WebStore`]: files of web hosts, which may know no ranges, and may fall silent.
//!
//! ```text
//!   a range ── given ──────────────────────────────> as it comes
//!           └─ refused: the host gives whole files
//!                └─ small ── kept for a while ─────> cut out of it
//!                └─ large ── asked for each time ──> cut out of it as it passes
//! ```
//!
//! Guarantees   what is kept came after the last look at the file (HEAD, or GET of all of it). Statements look before they
//!              read and again afterwards, so they see what they would see without. Who is silent for long is an error.
//! Caveats      what is kept stays until the next look at its file, or until others want its room.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    OBJECT_STORE_COALESCE_DEFAULT, ObjectMeta, ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions,
    PutPayload, PutResult, RenameOptions, Result, coalesce_ranges,
};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The longest that one answer may take, however steadily it comes: a large file over a slow line.
pub(super) const ANSWER_MAX: Duration = Duration::from_secs(600);

/// How long nothing may come. Attempts that are made again count together.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// What the kept files of one host may take together.
const KEPT_BYTES_MAX: u64 = 128 << 20;

/// How long a kept file may be of no use before its room is given to another one.
const IDLE: Duration = Duration::from_secs(60);

/// Files without ranges that are remembered; not knowing one costs a request.
const FILES_MAX: usize = 10_000;

/// The files of one web host.
#[derive(Debug)]
pub(super) struct WebStore {
    inner: Arc<dyn ObjectStore>,
    /// Those that the host gives as a whole only.
    whole: Mutex<BTreeMap<Path, Arc<WholeFile>>>,
    /// In kilobytes.
    room: Arc<Semaphore>,
    /// How long nothing may come.
    silence_max: Duration,
}

#[derive(Debug, Default)]
struct WholeFile {
    /// Looks at it so far.
    n_looks: AtomicU64,
    /// Held while the file is fetched, so that all who want a part of it fetch it once.
    kept: tokio::sync::Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    /// Looks there had been when it was asked for.
    n_looks: u64,
    bytes: Bytes,
    meta: ObjectMeta,
    attributes: Attributes,
    used: Instant,
    _room: OwnedSemaphorePermit,
}

/// A file to cut parts out of.
enum Whole {
    Kept { bytes: Bytes, meta: ObjectMeta, attributes: Attributes },
    Passing(GetResult),
}

impl WebStore {
    pub(super) fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self::with_room(inner, KEPT_BYTES_MAX)
    }

    fn with_room(inner: Arc<dyn ObjectStore>, kept_bytes_max: u64) -> Self {
        let room = usize::try_from(kept_bytes_max / 1024).unwrap_or(Semaphore::MAX_PERMITS);
        Self { inner, whole: Mutex::default(), room: Arc::new(Semaphore::new(room)), silence_max: SILENCE_MAX }
    }

    async fn ask(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let answer = timeout(self.silence_max, self.inner.get_opts(location, options)).await;
        let mut result = answer.map_err(|_| silent())??;
        result.payload = match result.payload {
            GetResultPayload::Stream(bytes) => GetResultPayload::Stream(talking(bytes, self.silence_max)),
            file => file,
        };
        Ok(result)
    }

    fn whole_file(&self, location: &Path) -> Option<Arc<WholeFile>> {
        self.whole.lock().get(location).map(Arc::clone)
    }

    fn gives_whole_only(&self, location: &Path) -> Arc<WholeFile> {
        let mut files = self.whole.lock();
        if files.len() >= FILES_MAX && !files.contains_key(location) {
            files.clear();
        }
        Arc::clone(files.entry(location.clone()).or_default())
    }

    /// What was fetched before now is not given to those who ask from now on.
    fn looked_at(&self, location: &Path) {
        let Some(file) = self.whole_file(location) else { return };
        file.n_looks.fetch_add(1, Ordering::SeqCst);
        // Who has it in hands right now keeps it for those who wait with him, and finds it to be of no use next time.
        if let Ok(mut kept) = file.kept.try_lock() {
            *kept = None;
        }
    }

    /// The whole file, fetched unless it is kept. `options` without a range.
    async fn fetch(&self, location: &Path, options: GetOptions, file: &WholeFile) -> Result<Whole> {
        let mut kept = file.kept.lock().await;
        let n_looks = file.n_looks.load(Ordering::SeqCst);
        if let Some(kept) = kept.as_mut().filter(|kept| kept.n_looks == n_looks) {
            options.check_preconditions(&kept.meta)?;
            kept.used = Instant::now();
            let (bytes, meta, attributes) = (kept.bytes.clone(), kept.meta.clone(), kept.attributes.clone());
            return Ok(Whole::Kept { bytes, meta, attributes });
        }
        *kept = None;
        let result = self.ask(location, options).await?;
        let Some(room) = self.room_for(result.meta.size) else { return Ok(Whole::Passing(result)) };
        let (meta, attributes) = (result.meta.clone(), result.attributes.clone());
        let bytes = result.bytes().await?;
        if bytes.len() as u64 != meta.size {
            return Err(cut_short());
        }
        *kept = Some(Kept {
            n_looks,
            bytes: bytes.clone(),
            meta: meta.clone(),
            attributes: attributes.clone(),
            used: Instant::now(),
            _room: room,
        });
        Ok(Whole::Kept { bytes, meta, attributes })
    }

    fn room_for(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kilobytes = u32::try_from(bytes.div_ceil(1024)).ok()?;
        let take = || Arc::clone(&self.room).try_acquire_many_owned(kilobytes).ok();
        take().or_else(|| {
            // A statement that was cancelled left its files here.
            for file in self.whole.lock().values() {
                if let Ok(mut kept) = file.kept.try_lock()
                    && kept.as_ref().is_some_and(|kept| kept.used.elapsed() >= IDLE)
                {
                    *kept = None;
                }
            }
            take()
        })
    }
}

impl fmt::Display for WebStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for WebStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, mut options: GetOptions) -> Result<GetResult> {
        let wanted = match options.range.clone() {
            Some(wanted) if !options.head => wanted,
            _ => {
                let looked = self.ask(location, options).await;
                // Not before: what is fetched while the answer is on its way may be older than that.
                self.looked_at(location);
                return looked;
            }
        };
        let file = match self.whole_file(location) {
            Some(file) => file,
            None => match self.ask(location, options.clone()).await {
                Err(Error::NotSupported { .. }) => self.gives_whole_only(location),
                given => return given,
            },
        };
        options.range = None;
        match self.fetch(location, options, &file).await? {
            Whole::Kept { bytes, meta, attributes } => {
                let range = within(&wanted, meta.size)?;
                let part = copied(&bytes, &range)?;
                let payload = GetResultPayload::Stream(stream::once(async move { Ok(part) }).boxed());
                Ok(GetResult { payload, meta, range, attributes })
            }
            Whole::Passing(mut result) => {
                let range = within(&wanted, result.meta.size)?;
                result.range = range.clone();
                let (meta, attributes) = (result.meta.clone(), result.attributes.clone());
                let payload = GetResultPayload::Stream(part_of(result.into_stream(), range.clone()));
                Ok(GetResult { payload, meta, range, attributes })
            }
        }
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let Some(file) = self.whole_file(location) else {
            return coalesce_ranges(ranges, |range| self.get_range(location, range), OBJECT_STORE_COALESCE_DEFAULT)
                .await;
        };
        let wanted = |size: u64| -> Result<Vec<Range<u64>>> {
            ranges.iter().map(|range| within(&GetRange::Bounded(range.clone()), size)).collect()
        };
        match self.fetch(location, GetOptions::default(), &file).await? {
            Whole::Kept { bytes, meta, .. } => wanted(meta.size)?.iter().map(|range| copied(&bytes, range)).collect(),
            Whole::Passing(result) => {
                let wanted = wanted(result.meta.size)?;
                parts_of(result.into_stream(), &wanted).await
            }
        }
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

/// The same bytes, or an error when none come for long.
fn talking(bytes: BoxStream<'static, Result<Bytes>>, silence_max: Duration) -> BoxStream<'static, Result<Bytes>> {
    let pieces = stream::try_unfold(bytes, move |mut bytes| async move {
        match timeout(silence_max, bytes.next()).await {
            Ok(Some(Ok(piece))) => Ok(Some((piece, bytes))),
            Ok(Some(Err(error))) => Err(error),
            Ok(None) => Ok(None),
            Err(_) => Err(silent()),
        }
    });
    pieces.boxed()
}

/// The part of a file of that size that a range means.
fn within(wanted: &GetRange, size: u64) -> Result<Range<u64>> {
    wanted.as_range(size).map_err(|error| Error::Generic { store: "HTTP", source: Box::new(error) })
}

/// Copied: a part keeps no file in memory.
fn copied(bytes: &Bytes, range: &Range<u64>) -> Result<Bytes> {
    bytes.get(range.start as usize..range.end as usize).map(Bytes::copy_from_slice).ok_or_else(cut_short)
}

/// One part of a file that passes by.
fn part_of(bytes: BoxStream<'static, Result<Bytes>>, range: Range<u64>) -> BoxStream<'static, Result<Bytes>> {
    let pieces = stream::try_unfold((bytes, 0_u64, range), |(mut bytes, mut at, range)| async move {
        while at < range.end {
            let Some(piece) = bytes.try_next().await? else { return Err(cut_short()) };
            let (start, end) = (at, at + piece.len() as u64);
            at = end;
            if end > range.start {
                let first = range.start.saturating_sub(start) as usize;
                let last = (range.end.min(end) - start) as usize;
                return Ok(Some((piece.slice(first..last), (bytes, at, range))));
            }
        }
        Ok(None)
    });
    pieces.boxed()
}

/// Several parts of a file that passes by once.
async fn parts_of(mut bytes: BoxStream<'static, Result<Bytes>>, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
    let mut parts: Vec<BytesMut> = ranges.iter().map(|_| BytesMut::new()).collect();
    let all_end = ranges.iter().map(|range| range.end).max().unwrap_or_default();
    let mut at = 0;
    while at < all_end {
        let Some(piece) = bytes.try_next().await? else { return Err(cut_short()) };
        let end = at + piece.len() as u64;
        for (range, part) in ranges.iter().zip(&mut parts) {
            let (first, last) = (range.start.max(at), range.end.min(end));
            if first < last {
                part.extend_from_slice(&piece[(first - at) as usize..(last - at) as usize]);
            }
        }
        at = end;
    }
    Ok(parts.into_iter().map(BytesMut::freeze).collect())
}

fn silent() -> Error {
    failed(io::Error::new(io::ErrorKind::TimedOut, "the host does not answer"))
}

fn cut_short() -> Error {
    failed(io::Error::new(io::ErrorKind::UnexpectedEof, "the host sent fewer bytes than it said"))
}

fn failed(error: io::Error) -> Error {
    Error::Generic { store: "HTTP", source: Box::new(error) }
}

#[cfg(test)]
mod tests;
