//! Whether what a statement read is what it pinned.
//!
//! Local files are looked at again; where the identity does not tell, the content is read. A text file that grew beyond a
//! pinned range is fine, because the range did not. Remote objects are listed again, or asked for one by one if few.
//!
//! The same bytes are not enough: a file that was swapped and put back holds what was pinned, but not what was read. So a
//! file that somebody wrote to since it was pinned, other than to make it longer, counts as changed whatever it holds.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt};
use url::Url;

use super::discover::{blocking, failed};
use super::known::KnownEntry;
use super::{CONCURRENT_LOOKS, ExtentTracker};
use crate::identity::{FileIdentity, content_fingerprint, hash_local, hash_object};
use crate::location::local_path;
use crate::object_stores::plain_location;
use crate::pieces::in_pieces;
use crate::{CatalogError, Extent, Result, object_path, text};

/// From here on one listing is cheaper than a request per object.
const MANY_OBJECTS: usize = 32;

/// How often a log is looked at that has another time but no more bytes.
const LOOKS_AT_A_LOG: usize = 20;
/// Between two of those.
const APPEND_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);

/// An extent, and the look at its file if its fingerprint names content.
type Pinned = (Arc<Extent>, Option<Arc<KnownEntry>>);

impl ExtentTracker {
    /// Fails with `Changed` if an extent is no longer what was pinned. To be called after reading.
    pub async fn verify(&self, extents: &[Arc<Extent>]) -> Result<()> {
        let pinned: Vec<Pinned> = {
            let looks = self.by_content.lock();
            extents.iter().map(|extent| (Arc::clone(extent), looks.get(&extent.fingerprint).map(Arc::clone))).collect()
        };
        let (local, remote): (Vec<Pinned>, Vec<Pinned>) =
            pinned.into_iter().partition(|(extent, _)| extent.location.starts_with("file:"));
        if !local.is_empty() {
            blocking(move || verify_local(&local)).await?;
        }
        self.verify_remote(&remote).await
    }

    /// An extent of long ago as it is now, if its bytes are still where they were. Files that are `ours` are never written
    /// to again: that they are there is enough.
    pub async fn find_again(&self, extent: &Extent, ours: bool) -> Option<Extent> {
        let pinned: Pinned =
            (Arc::new(extent.clone()), self.by_content.lock().get(&extent.fingerprint).map(Arc::clone));
        let now = match local_path(&extent.location) {
            Some(_) => blocking(move || find_local(&pinned, ours)).await.ok()?,
            None => self.find_remote(&pinned).await.ok()?,
        };
        let FileIdentity { size, etag, .. } = &now;
        let modified_at = now.modified_at();
        Some(Extent { file_bytes: *size, modified_at, etag: etag.clone(), ..extent.clone() })
    }

    async fn find_remote(&self, (extent, look): &Pinned) -> Result<FileIdentity> {
        let (url, path) = object_path(&extent.location)?;
        let store = self.stores.get(&url)?;
        let meta = store.head(&path).await.map_err(|error| unreadable(&extent.location, error))?;
        let now = FileIdentity::of_object(Arc::clone(&extent.location), &meta);
        if is_trusted(extent, look.as_deref(), &now) {
            return Ok(now);
        }
        let content = hash_object(store.as_ref(), &path, GetOptions::default()).await;
        let content = content.map_err(|error| unreadable(&extent.location, error))?;
        match content_fingerprint(&extent.location, 0, &content, &extent.partition_values) == extent.fingerprint {
            true => Ok(now),
            false => Err(changed(extent)),
        }
    }

    async fn verify_remote(&self, pinned: &[Pinned]) -> Result<()> {
        let mut by_store: BTreeMap<Url, Vec<(ObjectPath, Pinned)>> = BTreeMap::new();
        for one in pinned {
            let (url, path) = object_path(&one.0.location)?;
            by_store.entry(url).or_default().push((path, one.clone()));
        }
        for (url, objects) in by_store {
            let store = self.stores.get(&url)?;
            let mut listed = BTreeMap::new();
            if objects.len() >= MANY_OBJECTS && !url.scheme().starts_with("http") {
                let prefix = common_folder(&objects);
                let found = store
                    .list(prefix.as_ref())
                    .map_ok(|meta| (meta.location.clone(), meta))
                    .try_collect::<BTreeMap<_, _>>();
                listed = found.await.map_err(|error| unreadable(url.as_str(), error))?;
            }
            let (store, listed) = (store.as_ref(), &listed);
            stream::iter(objects)
                .map(|(path, (extent, look))| async move {
                    let meta = match listed.get(&path) {
                        Some(meta) => meta.clone(),
                        None => store.head(&path).await.map_err(|error| unreadable(&extent.location, error))?,
                    };
                    let now = FileIdentity::of_object(Arc::clone(&extent.location), &meta);
                    verify_object(store, &path, &extent, look.as_deref(), &now).await
                })
                .buffer_unordered(CONCURRENT_LOOKS)
                .try_collect::<()>()
                .await?;
        }
        Ok(())
    }
}

async fn verify_object(
    store: &dyn ObjectStore,
    path: &ObjectPath,
    extent: &Extent,
    look: Option<&KnownEntry>,
    now: &FileIdentity,
) -> Result<()> {
    if is_trusted(extent, look, now) {
        return Ok(());
    }
    if look.is_some() && now.size == extent.file_bytes {
        let content = hash_object(store, path, GetOptions::default())
            .await
            .map_err(|error| unreadable(&extent.location, error))?;
        let is_same =
            content_fingerprint(&extent.location, 0, &content, &extent.partition_values) == extent.fingerprint;
        if is_same && look.is_some_and(|look| look.identity.is_unchanged(now)) {
            return Ok(());
        }
    }
    Err(changed(extent))
}

fn verify_local(pinned: &[Pinned]) -> Result<()> {
    // Ranges of one file follow each other.
    let files = pinned.chunk_by(|(one, _), (two, _)| one.location == two.location);
    in_pieces(files, pinned.len(), verify_file)
}

/// The file of an extent as it is now, if it still holds the extent.
fn find_local(pinned: &Pinned, ours: bool) -> Result<FileIdentity> {
    let (extent, look) = pinned;
    let path = local_path(&extent.location).ok_or_else(|| changed(extent))?;
    let metadata = std::fs::metadata(&path).map_err(|error| failed("look at", &path, error))?;
    let now = FileIdentity::of_local(Arc::clone(&extent.location), &metadata);
    let is_same = match ours {
        true => now.size == extent.file_bytes,
        false => is_trusted(extent, look.as_deref(), &now),
    };
    match is_same {
        true => Ok(now),
        false if ours => Err(changed(extent)),
        false => verify_content(&path, &[pinned], &now).map(|()| now),
    }
}

/// All pinned ranges of one file, or the one extent that it is.
fn verify_file(ranges: &[Pinned]) -> Result<()> {
    let Some((first, _)) = ranges.first() else { return Ok(()) };
    let path = local_path(&first.location).ok_or_else(|| changed(first))?;
    let metadata = std::fs::metadata(&path).map_err(|error| failed("look at", &path, error))?;
    let now = FileIdentity::of_local(Arc::clone(&first.location), &metadata);
    let untrusted: Vec<&Pinned> =
        ranges.iter().filter(|(extent, look)| !is_trusted(extent, look.as_deref(), &now)).collect();
    if !untrusted.is_empty() {
        verify_content(&path, &untrusted, &now)?;
    }
    let written_to = |now: &FileIdentity| {
        let found = ranges.iter().find(|(extent, look)| was_written_to(extent, look.as_deref(), now));
        found.map(|(extent, _)| changed(extent))
    };
    let Some(mut error) = written_to(&now) else { return Ok(()) };
    // Whoever appends to a log gives it a new time first and more bytes then: the end of that is waited for.
    let is_log = ranges.iter().all(|(extent, _)| extent.range.is_some());
    let mut looks = if is_log { LOOKS_AT_A_LOG } else { 0 };
    loop {
        if looks == 0 {
            return Err(error);
        }
        looks -= 1;
        std::thread::sleep(APPEND_PAUSE);
        let metadata = std::fs::metadata(&path).map_err(|error| failed("look at", &path, error))?;
        match written_to(&FileIdentity::of_local(Arc::clone(&first.location), &metadata)) {
            Some(still) => error = still,
            None => return Ok(()),
        }
    }
}

/// Whether the identity alone shows that the extent is the same.
fn is_trusted(extent: &Extent, look: Option<&KnownEntry>, now: &FileIdentity) -> bool {
    match look {
        Some(look) => !look.racy && look.identity.is_unchanged(now),
        None => now.fingerprint(&extent.partition_values) == extent.fingerprint,
    }
}

/// Whether somebody wrote to a local file since the extent was pinned. The last look may be younger than that, but the extent
/// knows its time.
fn was_written_to(extent: &Extent, look: Option<&KnownEntry>, now: &FileIdentity) -> bool {
    let same_inode = look.is_none_or(|look| look.identity.inode == now.inode);
    let same_time = extent.modified_at == now.modified_at();
    match extent.range {
        // A log is written to all the time; its old ranges were verified.
        Some(_) => !same_inode || (!same_time && now.size <= extent.file_bytes),
        None => !same_time || look.is_some_and(|look| !look.identity.is_unchanged(now)),
    }
}

fn verify_content(path: &Path, pinned: &[&Pinned], now: &FileIdentity) -> Result<()> {
    let mut file = File::open(path).map_err(|error| failed("read", path, error))?;
    for (extent, _) in pinned {
        let same = match extent.range {
            Some(range) => {
                text::verify(&mut file, &extent.location, range, &extent.fingerprint, &extent.partition_values)
                    .map_err(|error| failed("read", path, error))?
            }
            None if now.size != extent.file_bytes => false,
            None => {
                let content = hash_local(path, now.size).map_err(|error| failed("read", path, error))?;
                content_fingerprint(&extent.location, 0, &content, &extent.partition_values) == extent.fingerprint
            }
        };
        if !same {
            return Err(changed(extent));
        }
    }
    Ok(())
}

/// The deepest folder that holds all objects.
fn common_folder(objects: &[(ObjectPath, Pinned)]) -> Option<ObjectPath> {
    let folders = |path: &ObjectPath| -> Vec<String> {
        let mut parts: Vec<String> = path.parts().map(|part| part.as_ref().to_owned()).collect();
        parts.pop();
        parts
    };
    let mut common = folders(&objects.first()?.0);
    for (path, _) in objects {
        let other = folders(path);
        let same = common.iter().zip(&other).take_while(|(one, two)| one == two).count();
        common.truncate(same);
    }
    ObjectPath::parse(common.join("/")).ok().filter(|path| !path.is_root())
}

fn changed(extent: &Extent) -> CatalogError {
    let location = match local_path(&extent.location) {
        Some(path) => path.display().to_string(),
        None => plain_location(&extent.location).into_owned(),
    };
    CatalogError::Changed { location }
}

fn unreadable(location: &str, error: object_store::Error) -> CatalogError {
    match error {
        object_store::Error::NotFound { .. } => {
            CatalogError::Changed { location: plain_location(location).into_owned() }
        }
        error => {
            CatalogError::Location { attempted: "look at", location: location.to_owned(), source: Arc::new(error) }
        }
    }
}
