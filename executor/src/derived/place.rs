//! [`Place`]: one folder or one bucket with parts in it.
//!
//! Bounded      every call ends, and soon: a store that does not answer within [`PATIENCE`] has failed, and is then left
//!              alone for a while; see [`Health`].
//! Whole        a part appears whole or not at all: object stores say so, and [`local`] writes beside and renames.

use std::fmt;
use std::future::Future;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::EntryPart;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use super::health::Health;
use super::{DerivedError, StoredObject, local, location};

/// How long a store may be silent while it is read. Writing may take some times as long: nobody waits for it.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many times as long.
const WRITE_PATIENCE: u32 = 4;

/// Parts below one folder or URL.
pub(super) struct Place {
    /// What the locations of its parts begin with; `None` in the home.
    url: Option<String>,
    kind: Kind,
    reading: Health,
    writing: Health,
    patience: Duration,
}

enum Kind {
    Folder(PathBuf),
    Objects { objects: Arc<dyn ObjectStore>, base: Path },
}

/// Why a store did not do what it was asked to.
enum Trouble {
    NotThere,
    Failed(Arc<dyn std::error::Error + Send + Sync>),
}

#[derive(Debug, thiserror::Error)]
enum Silence {
    #[error("it did not answer within {0:?}")]
    Now(Duration),
    #[error("it did not answer a moment ago")]
    Before,
}

impl Place {
    pub(super) fn folder(url: Option<String>, folder: PathBuf) -> Self {
        Self::new(url, Kind::Folder(folder))
    }

    pub(super) fn objects(url: Option<String>, objects: Arc<dyn ObjectStore>, base: Path) -> Self {
        Self::new(url, Kind::Objects { objects, base })
    }

    fn new(url: Option<String>, kind: Kind) -> Self {
        Self { url, kind, reading: Health::default(), writing: Health::default(), patience: PATIENCE }
    }

    #[cfg(test)]
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// Its folder, if it is one of this machine.
    pub(super) fn local_folder(&self) -> Option<&Folder> {
        match &self.kind {
            Kind::Folder(folder) => Some(folder),
            Kind::Objects { .. } => None,
        }
    }

    /// Whether it is the home's own.
    pub(super) fn is_home(&self) -> bool {
        self.url.is_none()
    }

    /// Whether it is on another machine.
    pub(super) fn is_remote(&self) -> bool {
        matches!(self.kind, Kind::Objects { .. })
    }

    /// Whether there is any point in writing now.
    pub(super) fn is_writable(&self) -> bool {
        self.writing.is_well()
    }

    /// The location of the part with that name.
    pub(super) fn location(&self, name: &str) -> String {
        match &self.url {
            Some(url) => format!("{url}/{name}"),
            None => name.to_owned(),
        }
    }

    /// Writes a part.
    pub(super) async fn put(&self, name: &str, bytes: &Bytes) -> Result<(), DerivedError> {
        let work = async {
            match &self.kind {
                Kind::Folder(folder) => {
                    let (path, bytes) = (folder.join(name), bytes.clone());
                    blocking(move || local::write(&path, &bytes)).await
                }
                Kind::Objects { objects, base } => {
                    let payload = PutPayload::from_bytes(bytes.clone());
                    objects.put(&below(base, name), payload).await.map(drop).map_err(Trouble::from)
                }
            }
        };
        self.bounded(&self.writing, self.patience * WRITE_PATIENCE, work)
            .await
            .map_err(|trouble| self.error("write", name, trouble))
    }

    /// The bytes of a part, as many as it should have.
    pub(super) async fn get(&self, name: &str, part: &EntryPart) -> Result<Bytes, DerivedError> {
        let size_differs = |found: u64| DerivedError::Damaged {
            location: part.location.clone(),
            detail: format!("it has {found} bytes instead of {}", part.bytes),
        };
        let failed = |trouble| self.error("read", name, trouble);
        let (objects, base) = match &self.kind {
            Kind::Objects { objects, base } => (objects, base),
            Kind::Folder(folder) => {
                let (path, bytes_max) = (folder.join(name), part.bytes);
                let work = blocking(move || local::read(&path, bytes_max));
                let read = self.bounded(&self.reading, self.patience, work).await.map_err(failed)?;
                return read.map_err(size_differs);
            }
        };
        let path = below(base, name);
        let asked = async { objects.get(&path).await.map_err(Trouble::from) };
        let found = self.bounded(&self.reading, self.patience, asked).await.map_err(failed)?;
        // Before the bytes: a part may have become anything.
        if found.meta.size != part.bytes {
            return Err(size_differs(found.meta.size));
        }
        let mut bytes = BytesMut::with_capacity(part.bytes as usize);
        let mut chunks = found.into_stream();
        // Each chunk for itself: a store that is slow but at work is left to whoever knows what the rows are worth.
        loop {
            let asked = async { chunks.try_next().await.map_err(Trouble::from) };
            match self.bounded(&self.reading, self.patience, asked).await.map_err(failed)? {
                Some(chunk) => bytes.extend_from_slice(&chunk),
                None => return Ok(bytes.freeze()),
            }
        }
    }

    /// Deletes a part; one that is gone already is no error.
    pub(super) async fn delete(&self, name: &str) -> Result<(), DerivedError> {
        let work = async {
            match &self.kind {
                Kind::Folder(folder) => {
                    let path = folder.join(name);
                    blocking(move || std::fs::remove_file(&path)).await
                }
                Kind::Objects { objects, base } => objects.delete(&below(base, name)).await.map_err(Trouble::from),
            }
        };
        match self.bounded(&self.writing, self.patience, work).await {
            Ok(()) | Err(Trouble::NotThere) => Ok(()),
            Err(trouble) => Err(self.error("delete", name, trouble)),
        }
    }

    /// All parts that are there, whether an entry names them or not.
    pub(super) fn list(&self) -> BoxStream<'static, Result<StoredObject, DerivedError>> {
        let name = self.to_string();
        let failed = move |error: object_store::Error| DerivedError::unavailable("list", &name, error);
        let (objects, base): (Arc<dyn ObjectStore>, Path) = match &self.kind {
            Kind::Objects { objects, base } => (Arc::clone(objects), base.clone()),
            Kind::Folder(folder) => match LocalFileSystem::new_with_prefix(folder) {
                Ok(objects) => (Arc::new(objects), Path::default()),
                Err(error) => return stream::iter([Err(failed(error))]).boxed(),
            },
        };
        let (prefix_len, url) = (base.as_ref().len(), self.url.clone());
        let listed = objects.list(Some(&base)).map_err(failed);
        let found = listed.try_filter_map(move |meta| {
            let name = meta.location.as_ref()[prefix_len..].trim_start_matches('/').to_owned();
            // Somebody else's files are none of our business.
            let is_ours = matches!(location::split(&name), Some((None, _)));
            let location = match &url {
                Some(url) => format!("{url}/{name}"),
                None => name,
            };
            let found = StoredObject { location, bytes: meta.size, modified_us: meta.last_modified.timestamp_micros() };
            futures::future::ready(Ok(is_ours.then_some(found)))
        });
        found.boxed()
    }

    /// What `work` says, unless that takes too long.
    async fn bounded<T>(
        &self,
        health: &Health,
        patience: Duration,
        work: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, Trouble> {
        if !health.is_well() {
            return Err(Trouble::Failed(Arc::new(Silence::Before)));
        }
        let began = Instant::now();
        let outcome = tokio::time::timeout(patience, work).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Trouble::Failed(Arc::new(Silence::Now(patience)))));
        let answered = !matches!(outcome, Err(Trouble::Failed(_)));
        health.learn(began, answered);
        if !answered && !self.reading.is_well() {
            // What does not let itself be read need not be written either.
            self.writing.learn(began, false);
        }
        outcome
    }

    fn error(&self, attempted: &'static str, name: &str, trouble: Trouble) -> DerivedError {
        let location = self.location(name);
        match trouble {
            Trouble::NotThere => DerivedError::Missing { location },
            Trouble::Failed(source) => DerivedError::Unavailable { attempted, location, source },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.url, &self.kind) {
            (Some(url), _) => f.write_str(url),
            (None, Kind::Folder(folder)) => write!(f, "{}", folder.display()),
            (None, Kind::Objects { objects, base }) => write!(f, "{objects}/{base}"),
        }
    }
}

impl From<object_store::Error> for Trouble {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::NotThere,
            error => Self::Failed(Arc::new(error)),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::NotFound => Self::NotThere,
            _ => Self::Failed(Arc::new(error)),
        }
    }
}

/// Work on files, on a thread that may wait for a disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> Result<T, Trouble> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.map_err(Trouble::from),
        Err(error) => Err(Trouble::Failed(Arc::new(error))),
    }
}

fn below(base: &Path, name: &str) -> Path {
    // A name has no characters that would have to be encoded.
    base.parts().chain(Path::from(name).parts()).collect()
}
