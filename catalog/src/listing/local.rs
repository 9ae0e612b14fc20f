//! Walks local folders: names first, then one `stat` per file that may belong to the table.
//!
//! Cost   that of the `stat`s, shared by threads (see folder.rs), and one allocation per file for its location.

mod folder;
mod memory;

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::folder::{Contents, Folder, Found, Kind, Names};
pub(crate) use self::memory::Memory;
use self::memory::Remembered;
use super::{ListedFile, PartitionReader, Taking};
use crate::location::{Part, Place, is_hidden, push_encoded};
use crate::{CatalogError, FileIdentity, Location, Result};

/// Deeper is a mistake, or a file system that lies.
const MAX_DEPTH: usize = 256;

/// `memory` is of earlier listings of the same location, for the same table.
pub(super) fn list(
    location: &Location,
    taking: &Taking,
    partitions: PartitionReader,
    memory: Option<&mut Memory>,
) -> Result<Vec<ListedFile>> {
    let Place::Local(root) = location.place() else { return Ok(Vec::new()) };
    let mut walk = Walk { taking, partitions, memory, files: Vec::new(), above: Vec::new(), n_others: 0 };
    if let Some(glob) = location.glob() {
        let alternatives = glob.alternatives();
        // They choose differently among the names of one folder.
        if alternatives.len() > 1 || alternatives.iter().flatten().any(|part| *part == Part::AnyDepth) {
            walk.memory = None;
        }
        for parts in alternatives {
            walk.glob(Path::new("/"), parts)?;
        }
        // `**` and braces come across files out of order, or twice.
        if alternatives.len() > 1 || alternatives.iter().flatten().any(|part| *part == Part::AnyDepth) {
            walk.files.sort_by_cached_key(|file| file.local_path().map(PathBuf::into_os_string));
            walk.files.dedup_by(|one, two| one.location() == two.location());
        }
        if walk.files.is_empty() {
            return Err(nothing_matches(location, root));
        }
    } else {
        let metadata = fs::metadata(root).map_err(|error| missing(location, root, error))?;
        if metadata.is_dir() {
            walk.folder(root)?;
            if walk.files.is_empty() {
                return Err(taking.nothing_fits(location, walk.n_others));
            }
        } else if location.names_folder() {
            return Err(located("list", root, io::Error::from(io::ErrorKind::NotADirectory)));
        } else {
            walk.file(root, &metadata)?;
        }
    }
    Ok(walk.files)
}

struct Walk<'a> {
    taking: &'a Taking,
    partitions: PartitionReader,
    memory: Option<&'a mut Memory>,
    files: Vec<ListedFile>,
    /// Device and inode of the folders we are in: one that is among them is a loop.
    above: Vec<(u64, u64)>,
    /// Files that were passed over, for the error message.
    n_others: usize,
}

impl Walk<'_> {
    /// One file, whatever its name.
    fn file(&mut self, path: &Path, metadata: &Metadata) -> Result<()> {
        let folder = text(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.file_name().map(Path::new).map(text).transpose()?.unwrap_or_default();
        let partition_values = self.partitions.read(folder)?;
        let mut location = folder_location(folder);
        push_encoded(&mut location, name);
        let identity = FileIdentity::of_local(Arc::from(location), metadata);
        self.files.push(ListedFile { identity, partition_values });
        Ok(())
    }

    /// All that fits below a folder, in path order.
    fn folder(&mut self, path: &Path) -> Result<()> {
        if !self.enter(path)? {
            return Ok(());
        }
        let taking = self.taking;
        let wanted = |name: &str, is_file: bool| !is_hidden(name) && (!is_file || taking.takes(name));
        let entries = self.read_folder(path, wanted)?;
        self.entries(path, entries, &mut Self::folder)?;
        self.above.pop();
        Ok(())
    }

    /// Takes the files among a folder's entries, and hands its folders on, in path order.
    fn entries(
        &mut self,
        path: &Path,
        entries: Vec<Entry>,
        on_folder: &mut dyn FnMut(&mut Self, &Path) -> Result<()>,
    ) -> Result<()> {
        let folder = text(path)?;
        self.files.reserve(entries.len());
        for entry in entries {
            match entry {
                Entry::Folder(name) => on_folder(self, &path.join(name))?,
                Entry::File(identity) => {
                    let partition_values = self.partitions.read(folder)?;
                    self.files.push(ListedFile { identity, partition_values });
                }
            }
        }
        Ok(())
    }

    /// What a glob names, from `path` on.
    fn glob(&mut self, path: &Path, parts: &[Part]) -> Result<()> {
        let Some((part, rest)) = parts.split_first() else {
            let Some(metadata) = found(path)? else { return Ok(()) };
            return if metadata.is_dir() { self.folder(path) } else { self.file(path, &metadata) };
        };
        // Files count where the pattern ends; before that, only folders lead on.
        let last = rest.is_empty();
        match part {
            Part::Literal(name) => self.glob(&path.join(name), rest),
            Part::Wild(_) => {
                let entries = self.entries_of_glob(path, |name, is_file| part.fits(name) && (last || !is_file))?;
                self.entries(path, entries, &mut |walk, below| {
                    if last { walk.folder(below) } else { walk.glob(below, rest) }
                })
            }
            Part::AnyDepth => {
                if found(path)?.is_none() || !self.enter(path)? {
                    return Ok(());
                }
                // `a/**` is every file below a; `a/**/b` tries b here and in every folder below.
                if !last {
                    self.glob(path, rest)?;
                }
                let mut entries = self.entries_of_glob(path, |name, is_file| part.fits(name) && (last || !is_file))?;
                // Links that turned out to be files.
                entries.retain(|entry| last || matches!(entry, Entry::Folder(_)));
                self.entries(path, entries, &mut |walk, below| walk.glob(below, parts))?;
                self.above.pop();
                Ok(())
            }
        }
    }

    /// Entries of a folder on a glob's way; none if it is no folder or not there.
    fn entries_of_glob(&mut self, path: &Path, wanted: impl Fn(&str, bool) -> bool) -> Result<Vec<Entry>> {
        match self.read_folder(path, wanted) {
            Err(CatalogError::Location { source, .. }) if is_absent(source.downcast_ref::<io::Error>()) => {
                Ok(Vec::new())
            }
            entries => entries,
        }
    }

    /// False if we are in this folder already, by way of a link.
    fn enter(&mut self, path: &Path) -> Result<bool> {
        let metadata = fs::metadata(path).map_err(|error| located("list", path, error))?;
        let key = device_and_inode(&metadata);
        if key.is_some_and(|key| self.above.contains(&key)) || self.above.len() > MAX_DEPTH {
            return Ok(false);
        }
        self.above.push(key.unwrap_or_default());
        Ok(true)
    }

    /// Those entries that `wanted(name, is_file)` lets through, links followed, in path order.
    fn read_folder(&mut self, path: &Path, wanted: impl Fn(&str, bool) -> bool) -> Result<Vec<Entry>> {
        let failed = |error: io::Error| located("list", path, error);
        let mut folder = Folder::open(path).map_err(failed)?;
        let afresh = |folder: &Folder, contents: Contents| {
            let now = chosen(path, contents, wanted)?;
            let looks = folder.look(&now.names);
            Ok((now, looks))
        };
        let (now, looks) = match self.memory.as_mut().and_then(|memory| memory.take(path)) {
            None => {
                let contents = folder.read().map_err(failed)?;
                afresh(&folder, contents)?
            }
            Some(before) => match folder.read_again(&before.contents, &before.names).map_err(failed)? {
                Found::Same(looks) => (before, looks),
                Found::Other(contents) => afresh(&folder, contents)?,
            },
        };
        self.n_others += now.n_others;
        let mut entries = Vec::with_capacity(looks.len());
        for (at, (location, look)) in now.locations.iter().zip(looks).enumerate() {
            match (location, look) {
                (Some(location), Some(Ok(attributes))) => {
                    entries.push(Entry::File(FileIdentity::of_attributes(Arc::clone(location), attributes)));
                }
                // Gone since its name was read.
                (_, Some(Err(error))) if is_absent(Some(&error)) => {}
                (_, Some(Err(error))) => return Err(located("look at", &path.join(now.names.name(at)), error)),
                _ => entries.push(Entry::Folder(now.names.name(at).to_owned())),
            }
        }
        if let Some(memory) = &mut self.memory {
            memory.keep(path, now);
        }
        Ok(entries)
    }
}

/// What a folder holds; sockets, pipes and devices hold no extents, and reading one might never end.
enum Entry {
    Folder(String),
    File(FileIdentity),
}

/// What `wanted(name, is_file)` lets through, in path order.
fn chosen(path: &Path, contents: Contents, wanted: impl Fn(&str, bool) -> bool) -> Result<Remembered> {
    let (mut names, mut n_others) = (Names::default(), 0);
    for (name, kind) in contents.iter().filter(|(_, kind)| *kind != Kind::Other) {
        let is_file = kind == Kind::File;
        match std::str::from_utf8(name).ok().filter(|name| !name.bytes().any(|byte| byte.is_ascii_control())) {
            Some(name) if wanted(name, is_file) => names.push(name, !is_file),
            Some(_) => n_others += usize::from(is_file),
            // Object stores name objects in UTF-8. A stranger is passed over, one of ours is an error.
            None => {
                let name = String::from_utf8_lossy(name);
                if wanted(&name, is_file) {
                    return Err(unreadable_name(&path.join(&*name)));
                }
            }
        }
    }
    names.sort();
    let mut location = folder_location(text(path)?);
    let base = location.len();
    let locations = (0..names.len()).map(|at| {
        (!names.is_folder(at)).then(|| {
            location.truncate(base);
            push_encoded(&mut location, names.name(at));
            Arc::from(location.as_str())
        })
    });
    let locations = locations.collect();
    Ok(Remembered { contents, names, locations, n_others })
}

fn found(path: &Path) -> Result<Option<Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_absent(Some(&error)) => Ok(None),
        Err(error) => Err(located("look at", path, error)),
    }
}

fn is_absent(error: Option<&io::Error>) -> bool {
    error.is_some_and(|error| matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory))
}

fn folder_location(folder: &str) -> String {
    let mut location = String::with_capacity(folder.len() + 16);
    location.push_str("file://");
    for component in folder.split('/').filter(|component| !component.is_empty()) {
        location.push('/');
        push_encoded(&mut location, component);
    }
    location.push('/');
    location
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().ok_or_else(|| unreadable_name(path))
}

fn unreadable_name(path: &Path) -> CatalogError {
    CatalogError::InvalidLocation {
        location: path.display().to_string(),
        detail: "its name is not UTF-8 or holds control characters".to_owned(),
    }
}

fn located(attempted: &'static str, path: &Path, error: io::Error) -> CatalogError {
    CatalogError::Location { attempted, location: path.display().to_string(), source: Arc::new(error) }
}

fn missing(location: &Location, path: &Path, error: io::Error) -> CatalogError {
    if !is_absent(Some(&error)) {
        return located("read", path, error);
    }
    CatalogError::NoFiles { location: location.as_str().to_owned(), hint: hint_for_missing(path) }
}

/// Says how far the path leads, and what has a similar name there.
fn hint_for_missing(path: &Path) -> String {
    let Some(parent) = path.parent() else { return String::new() };
    if !parent.is_dir() {
        let exists = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(Path::new("/"));
        return format!(": there is no folder \"{}\" (\"{}\" exists)", parent.display(), exists.display());
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    let mut similar: Vec<String> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|other| {
            other.to_lowercase() == name || (!stem.is_empty() && other.to_lowercase().split('.').next() == Some(stem))
        })
        .collect();
    similar.sort();
    match similar.first() {
        Some(other) => format!(": no such file or folder, did you mean \"{}\"?", parent.join(other).display()),
        None => ": no such file or folder".to_owned(),
    }
}

fn nothing_matches(location: &Location, root: &Path) -> CatalogError {
    let hint = if root.is_dir() { String::new() } else { format!(": there is no folder \"{}\"", root.display()) };
    CatalogError::NoFiles { location: location.as_str().to_owned(), hint }
}

#[cfg(unix)]
fn device_and_inode(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn device_and_inode(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(test)]
mod tests;
