//! [`Discovery`]: looks at one file that is new, changed or racy, and finds its extents.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::Schema;

use super::known::KnownEntry;
use super::{Description, ExtentReader};
use crate::identity::{FileIdentity, content_fingerprint, hash_local, hash_object};
use crate::listing::ListedFile;
use crate::object_stores::plain_location;
use crate::text::{self, TextDialect, TextLook, TextRange, Unfinished};
use crate::{CatalogError, Extent, ExternalSource, Fingerprint, ObjectStores, RACY_NS, Result, object_path, stats};

/// How often a file that changes under our hands is looked at again.
const ATTEMPTS: usize = 4;

/// How often a file that may be growing is asked.
const GROWTH_POLL: Duration = Duration::from_millis(50);

/// All that one listing's looks have in common.
pub(super) struct Discovery<'a> {
    pub(super) stores: &'a ObjectStores,
    pub(super) source: &'a ExternalSource,
    pub(super) schema: &'a Schema,
    pub(super) reader: &'a dyn ExtentReader,
    /// Before the listing began.
    pub(super) now_ns: i64,
    /// After it ended.
    pub(super) listed_ns: i64,
}

impl Discovery<'_> {
    /// What the file is now. `Changed` if it is gone or does not stand still.
    pub(super) async fn look(&self, file: ListedFile, known: Option<Arc<KnownEntry>>) -> Result<Arc<KnownEntry>> {
        if file.identity.size == 0 {
            // Whoever writes a file creates it first. Without a row, formats other than text have bytes: one that had some
            // before and has none now was cut.
            if !self.source.format.is_text() && known.is_some_and(|known| !known.extents.is_empty()) {
                let location = match file.local_path() {
                    Some(path) => path.display().to_string(),
                    None => plain_location(file.location()).into_owned(),
                };
                let emptied = io::Error::new(io::ErrorKind::InvalidData, "the file is empty, and was not before");
                return Err(CatalogError::Location { attempted: "read", location, source: Arc::new(emptied) });
            }
            let empty = KnownEntry {
                identity: file.identity,
                racy: false,
                by_content: false,
                tail: false,
                waits: false,
                since_ns: None,
                extents: Vec::new(),
            };
            return Ok(Arc::new(empty));
        }
        let path = file.local_path();
        let name = file.location().rsplit('/').next().unwrap_or_default();
        let entry = match (&path, TextDialect::of(self.source, name)) {
            (Some(path), Some(dialect)) => self.look_at_text(path.clone(), &file, dialect, known.as_deref()).await?,
            _ => self.look_at_whole(path, file, known.as_deref()).await?,
        };
        Ok(Arc::new(entry))
    }

    async fn look_at_text(
        &self,
        path: PathBuf,
        file: &ListedFile,
        dialect: TextDialect,
        known: Option<&KnownEntry>,
    ) -> Result<KnownEntry> {
        let old = known.map(KnownEntry::ranges).unwrap_or_default();
        let look = self.look_at_records(path, file, dialect, old).await?;
        let extents: Vec<Arc<Extent>> = look
            .ranges
            .iter()
            .map(|range| {
                let mut extent = self.extent(&look.identity, file, range.fingerprint, known);
                extent.range = range.range;
                extent.lines = range.lines;
                Arc::new(extent)
            })
            .collect();
        // A text file tells nothing of its rows, but its reader may refuse one whose beginning it has not seen: a header
        // that is not the table's.
        if extents.first().is_some_and(|first| !is_known(known, &first.fingerprint)) {
            let file = ListedFile { identity: look.identity.clone(), ..file.clone() };
            self.reader.describe(self.source, &file).await?;
        }
        Ok(KnownEntry {
            racy: !look.steady || look.identity.is_racy(self.now_ns),
            by_content: true,
            tail: look.ranges.last().is_some_and(|range| range.tail),
            waits: look.unfinished == Unfinished::Waits,
            since_ns: None,
            identity: look.identity,
            extents,
        })
    }

    /// Finds out whether rows that an open quote makes part of a field are being written, or lost: whoever writes goes on.
    async fn look_at_records(
        &self,
        path: PathBuf,
        file: &ListedFile,
        dialect: TextDialect,
        old: Vec<TextRange>,
    ) -> Result<TextLook> {
        let look_at = |now_ns: i64| {
            let (path, old) = (path.clone(), old.clone());
            let (location, values) = (Arc::clone(file.location()), Arc::clone(&file.partition_values));
            blocking(move || {
                let look = text::look(&path, &location, &dialect, &old, &values, now_ns);
                look.map_err(|error| failed("read", &path, error))
            })
        };
        let look = look_at(self.now_ns).await?;
        if look.unfinished != Unfinished::Swallows {
            return Ok(look);
        }
        let mut waited_ns = 0;
        while waited_ns < RACY_NS {
            tokio::time::sleep(GROWTH_POLL).await;
            waited_ns += GROWTH_POLL.as_nanos() as i64;
            if !restat(&path, file.location()).await?.is_unchanged(&look.identity) {
                // It goes on, so it is not over: what is whole now is what there is.
                return look_at(self.now_ns).await;
            }
        }
        // Nobody goes on: it is what it is meant to be.
        look_at(look.identity.mtime_ns.max(look.identity.ctime_ns).saturating_add(RACY_NS)).await
    }

    async fn look_at_whole(
        &self,
        path: Option<PathBuf>,
        mut file: ListedFile,
        known: Option<&KnownEntry>,
    ) -> Result<KnownEntry> {
        for _ in 0..ATTEMPTS {
            let looked = self.look_once(path.as_deref(), &file, known).await;
            let Some(path) = &path else { return looked };
            // Footer and content were read after the listing: they are those of this identity only if it is the same now.
            let after = restat(path, file.location()).await?;
            if after.is_unchanged(&file.identity) {
                return looked;
            }
            file.identity = after;
        }
        Err(CatalogError::Changed { location: file.location().to_string() })
    }

    async fn look_once(
        &self,
        path: Option<&Path>,
        file: &ListedFile,
        known: Option<&KnownEntry>,
    ) -> Result<KnownEntry> {
        let since_ns = self.since(&file.identity, known);
        let has_rested = since_ns.is_some_and(|since_ns| file.identity.has_rested(since_ns, self.now_ns));
        let racy = file.identity.is_racy(self.now_ns) && !has_rested;
        // A file that was read by content before may have been touched only; reading it tells.
        let by_content = racy || self.source.content_fingerprint || known.is_some_and(|known| known.by_content);
        let fingerprint = if by_content {
            let content = self.content(path, file).await?;
            content_fingerprint(file.location(), 0, &content, &file.partition_values)
        } else {
            file.identity.fingerprint(&file.partition_values)
        };
        let mut extent = self.extent(&file.identity, file, fingerprint, known);
        if !is_known(known, &fingerprint) {
            let Description { rows, stats } = self.reader.describe(self.source, file).await?;
            extent.rows = rows;
            extent.stats = stats::encode(&stats, self.schema);
        }
        Ok(KnownEntry {
            identity: file.identity.clone(),
            racy,
            by_content,
            tail: false,
            waits: false,
            since_ns: since_ns.filter(|_| racy),
            extents: vec![Arc::new(extent)],
        })
    }

    /// Since when a file of a web host looks as it does, as far as we know.
    fn since(&self, identity: &FileIdentity, known: Option<&KnownEntry>) -> Option<i64> {
        let known = known.filter(|known| known.identity.is_unchanged(identity)).and_then(|known| known.since_ns);
        // The host may have answered long after it was asked.
        identity.is_on_web().then(|| known.unwrap_or(self.listed_ns))
    }

    async fn content(&self, path: Option<&Path>, file: &ListedFile) -> Result<[u8; 32]> {
        let location = || file.location().to_string();
        if let Some(path) = path {
            let (path, size) = (path.to_owned(), file.identity.size);
            return blocking(move || hash_local(&path, size).map_err(|error| failed("read", &path, error))).await;
        }
        let (url, path) = object_path(file.location())?;
        let store = self.stores.get(&url)?;
        hash_object(store.as_ref(), &path, file.get_options()).await.map_err(|error| match error {
            object_store::Error::NotFound { .. } | object_store::Error::Precondition { .. } => {
                CatalogError::Changed { location: location() }
            }
            error => CatalogError::Location { attempted: "read", location: location(), source: Arc::new(error) },
        })
    }

    /// An extent of the file; what was known of the same bytes stays known.
    fn extent(
        &self,
        identity: &FileIdentity,
        file: &ListedFile,
        fingerprint: Fingerprint,
        known: Option<&KnownEntry>,
    ) -> Extent {
        let same = known.and_then(|known| known.extents.iter().find(|extent| extent.fingerprint == fingerprint));
        Extent {
            location: Arc::clone(&identity.location),
            range: None,
            lines: false,
            file_bytes: identity.size,
            modified_at: identity.modified_at(),
            etag: identity.etag.clone(),
            fingerprint,
            rows: same.and_then(|same| same.rows),
            stats: same.map_or_else(|| Arc::from([]), |same| Arc::clone(&same.stats)),
            partition_values: Arc::clone(&file.partition_values),
            first_seen_at: same.map_or(self.now_ns.div_euclid(1000), |same| same.first_seen_at),
        }
    }
}

fn is_known(known: Option<&KnownEntry>, fingerprint: &Fingerprint) -> bool {
    known.is_some_and(|known| known.extents.iter().any(|old| old.fingerprint == *fingerprint))
}

async fn restat(path: &Path, location: &Arc<str>) -> Result<FileIdentity> {
    match tokio::fs::metadata(path).await {
        Ok(metadata) => Ok(FileIdentity::of_local(Arc::clone(location), &metadata)),
        Err(error) => Err(failed("look at", path, error)),
    }
}

/// Gone or shrunk is `Changed`: whoever listed it lists again.
pub(super) fn failed(attempted: &'static str, path: &Path, error: io::Error) -> CatalogError {
    let location = path.display().to_string();
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::UnexpectedEof => CatalogError::Changed { location },
        _ => CatalogError::Location { attempted, location, source: Arc::new(error) },
    }
}

/// Runs what waits for the disk where waiting harms nobody.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => Err(CatalogError::Location {
            attempted: "read",
            location: "local files".to_owned(),
            source: Arc::new(error),
        }),
    }
}
