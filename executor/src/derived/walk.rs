//! What there is in the derived store, for the collector, whether an entry names it or not.
//!
//! ```text
//!   a folder    section by section: the first digits of keys, 256 of them; names only
//!   a bucket    as it is listed, so many at a time
//! ```
//!
//! Stays inside  folders that have no name of ours are not entered, links are neither followed nor removed: several homes may
//!               share a place, and each has a folder of its own there.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path as Folder, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use nectarine_catalog::{EntryPart, Fingerprint};

use super::location::{self, Writer};
use super::place::Place;
use super::{DerivedError, DerivedStore};

/// Objects that are looked at together.
const OBJECTS: usize = 1000;

/// What something in the derived store is, by its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FoundKind {
    /// A part.
    Part,
    /// A part that was not written to its end, or is being written.
    Unfinished,
    /// Nothing that a computation made.
    Foreign,
}

/// Something in the derived store.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it is.
    pub kind: FoundKind,
    /// As in [`EntryPart::location`], of a part; else for people.
    pub location: String,
    /// The process that wrote it; not known of what older versions wrote.
    pub writer: Option<Writer>,
    /// Its size; 0 until it was looked at.
    pub bytes: u64,
    /// When it was last written to, microseconds since 1970; `None` until it was looked at.
    pub modified_us: Option<i64>,
    /// Where it is, if that is a file.
    path: Option<PathBuf>,
}

/// What came of deleting.
#[derive(Debug, Default)]
pub struct Removed {
    /// It is gone now.
    pub gone: Vec<Found>,
    /// It is still there, and why.
    pub left: Vec<(Found, Arc<dyn std::error::Error + Send + Sync>)>,
}

/// Some of what there is.
#[derive(Debug)]
pub struct Section {
    /// What is there.
    pub found: Vec<Found>,
    /// If this is all that is there between two locations: from the first (included) to the second (excluded).
    pub range: Option<(String, String)>,
}

impl DerivedStore {
    /// All that is in the home and where new parts go, section by section; names only.
    pub fn sections(&self) -> BoxStream<'static, Result<Section, DerivedError>> {
        let places = self.places_swept();
        stream::iter(places).flat_map(|place| sections_of(&place)).boxed()
    }

    /// Size and age of what is still there.
    pub async fn look_at(&self, found: Vec<Found>) -> Vec<Found> {
        let look = move || found.into_iter().filter_map(looked_at).collect::<Vec<_>>();
        tokio::task::spawn_blocking(look).await.unwrap_or_default()
    }

    /// Whether the part is there; `None` if that can not be told.
    pub async fn is_there(&self, location: &str) -> Option<bool> {
        let path = self.local_path(location)?;
        match tokio::task::spawn_blocking(move || std::fs::symlink_metadata(path)).await.ok()? {
            Ok(_) => Some(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
            Err(_) => None,
        }
    }

    /// Deletes what was found.
    pub async fn remove(&self, garbage: Vec<Found>) -> Removed {
        let (files, objects): (Vec<_>, Vec<_>) = garbage.into_iter().partition(|one| one.path.is_some());
        let delete = move || {
            let mut removed = Removed::default();
            for file in files {
                match file.path.as_deref().map(std::fs::remove_file) {
                    Some(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Some(Err(error)) => removed.left.push((file, Arc::new(error))),
                    _ => removed.gone.push(file),
                }
            }
            removed
        };
        let mut removed = tokio::task::spawn_blocking(delete).await.unwrap_or_default();
        for object in objects {
            match self.delete(&[object.part()]).await {
                Ok(()) => removed.gone.push(object),
                Err(DerivedError::Unavailable { source, .. }) => removed.left.push((object, source)),
                Err(error) => removed.left.push((object, Arc::new(error))),
            }
        }
        removed
    }
}

impl Found {
    /// As a part that nobody will read.
    pub fn part(&self) -> EntryPart {
        EntryPart { location: self.location.clone(), bytes: self.bytes, rows: 0, checksum: Fingerprint::of_bytes(b"") }
    }
}

fn looked_at(mut found: Found) -> Option<Found> {
    if let Some(path) = &found.path {
        let metadata = std::fs::symlink_metadata(path).ok()?;
        found.bytes = metadata.len();
        let modified = metadata.modified().ok()?;
        found.modified_us = Some(match modified.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
            Err(_) => 0,
        });
    }
    Some(found)
}

fn sections_of(place: &Arc<Place>) -> BoxStream<'static, Result<Section, DerivedError>> {
    match place.local_folder() {
        Some(folder) => folders(Arc::clone(place), folder.to_path_buf()),
        None => {
            let parts = place.list().map_ok(|part| Found {
                kind: FoundKind::Part,
                writer: location::writer(&part.location),
                location: part.location,
                bytes: part.bytes,
                modified_us: Some(part.modified_us),
                path: None,
            });
            parts.try_chunks(OBJECTS).map_ok(|found| Section { found, range: None }).map_err(|error| error.1).boxed()
        }
    }
}

fn folders(place: Arc<Place>, folder: PathBuf) -> BoxStream<'static, Result<Section, DerivedError>> {
    let is_home = place.is_home();
    let names = {
        let folder = folder.clone();
        async move {
            let listed = tokio::task::spawn_blocking(move || top(&folder, is_home)).await;
            listed.unwrap_or_else(|error| Err(std::io::Error::other(error)))
        }
    };
    let name_of_place = place.to_string();
    stream::once(names)
        .map(move |top| match top {
            Ok((foreign, names)) => {
                let first = Section { found: foreign, range: None };
                let (place, folder) = (Arc::clone(&place), folder.clone());
                let rest = stream::iter(names).then(move |name| section(Arc::clone(&place), folder.clone(), name));
                stream::once(async { Ok(first) }).chain(rest).boxed()
            }
            // A disk that is not there today: nothing can be said of what is on it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => stream::empty().boxed(),
            Err(error) => {
                let error = DerivedError::unavailable("list", &name_of_place, error);
                stream::once(async { Err(error) }).boxed()
            }
        })
        .flatten()
        .boxed()
}

/// Files that should not be at the top, and the names of the folders to look into: also those that are not there, because an
/// entry may say that they are.
fn top(folder: &Folder, is_home: bool) -> std::io::Result<(Vec<Found>, BTreeSet<String>)> {
    let (mut foreign, mut names) = (vec![], (0..=255_u8).map(|byte| format!("{byte:02x}")).collect::<BTreeSet<_>>());
    let entries = match std::fs::read_dir(folder) {
        // The home's own was deleted: it is empty.
        Err(error) if is_home && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((foreign, names));
        }
        entries => entries?,
    };
    for entry in entries.flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        match entry.file_name().to_str() {
            Some(name) if kind.is_dir() && location::is_folder(name) => _ = names.insert(name.to_owned()),
            _ if kind.is_file() => foreign.push(foreign_file(entry.path())),
            _ => {}
        }
    }
    Ok((foreign, names))
}

/// All below one folder of the first level.
async fn section(place: Arc<Place>, folder: PathBuf, name: String) -> Result<Section, DerivedError> {
    let listed = tokio::task::spawn_blocking(move || {
        let mut found = vec![];
        let (from, to) = (place.location(&format!("{name}/")), place.location(&format!("{name}0")));
        let first = folder.join(&name);
        for (second_name, kind) in entries(&first)? {
            let path = first.join(&second_name);
            match second_name.to_str() {
                Some(second) if kind.is_dir() && location::is_folder(second) => {
                    for (file, kind) in entries(&path)? {
                        if kind.is_file() {
                            found.push(file_found(&place, &format!("{name}/{second}"), path.join(&file), &file));
                        }
                    }
                }
                _ if kind.is_file() => found.push(foreign_file(path)),
                _ => {}
            }
        }
        Ok::<_, std::io::Error>(Section { found, range: Some((from, to)) })
    });
    let failed = |error: std::io::Error| DerivedError::unavailable("list", "a folder of the derived store", error);
    listed.await.unwrap_or_else(|error| Err(std::io::Error::other(error))).map_err(failed)
}

type Entry = (std::ffi::OsString, std::fs::FileType);

/// What is in a folder; nothing if it is not there, or no folder.
fn entries(folder: &Folder) -> std::io::Result<Vec<Entry>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let entries = match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(vec![]),
        entries => entries?,
    };
    Ok(entries.flatten().filter_map(|entry| Some((entry.file_name(), entry.file_type().ok()?))).collect())
}

fn file_found(place: &Place, folder: &str, path: PathBuf, file: &OsStr) -> Found {
    let Some(file) = file.to_str() else { return foreign_file(path) };
    let (stem, kind) = match file.split_once('#') {
        Some((stem, _)) => (stem, FoundKind::Unfinished),
        None => (file, FoundKind::Part),
    };
    let name = format!("{folder}/{stem}");
    match location::is_name(&name) {
        true => Found {
            kind,
            writer: location::writer(&name),
            location: place.location(&name),
            bytes: 0,
            modified_us: None,
            path: Some(path),
        },
        false => foreign_file(path),
    }
}

fn foreign_file(path: PathBuf) -> Found {
    let location = path.display().to_string();
    Found { kind: FoundKind::Foreign, location, writer: None, bytes: 0, modified_us: None, path: Some(path) }
}

#[cfg(test)]
mod tests;
