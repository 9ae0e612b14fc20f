//! Walks local folders: names first, then one `stat` per file that may belong to the table.
//!
//! Cost   10,000 files of one folder in a few milliseconds: entries are relative to the open folder, two threads ask for
//!        their metadata, and each file takes one allocation for its location.

use std::cmp::Ordering;
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ListedFile, PartitionReader, Taking};
use crate::location::{Part, Place, is_hidden, push_encoded};
use crate::{CatalogError, FileIdentity, Location, Result};

/// Below this a second thread costs more than it brings.
const PARALLEL_ENTRIES: usize = 1000;

/// Deeper is a mistake, or a file system that lies.
const MAX_DEPTH: usize = 256;

pub(super) fn list(location: &Location, taking: &Taking, partitions: PartitionReader) -> Result<Vec<ListedFile>> {
    let Place::Local(root) = location.place() else { return Ok(Vec::new()) };
    let mut walk = Walk { taking, partitions, files: Vec::new(), above: Vec::new(), n_others: 0 };
    if let Some(glob) = location.glob() {
        let alternatives = glob.alternatives();
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
        let entries = read_folder(path, wanted, &mut self.n_others)?;
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
        match read_folder(path, wanted, &mut self.n_others) {
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
}

/// What a folder holds; sockets, pipes and devices hold no extents, and reading one might never end.
enum Entry {
    Folder(String),
    File(FileIdentity),
}

/// An entry of which only the name and the kind are known.
struct Name {
    name: String,
    is_folder: bool,
    entry: DirEntry,
}

impl Name {
    /// A file takes part with its name, a folder with a slash behind it: that is the order of whole paths.
    fn compare(&self, other: &Self) -> Ordering {
        let slash = |name: &Self| if name.is_folder { "/" } else { "" }.bytes();
        let (one, two) = (self.name.as_bytes(), other.name.as_bytes());
        let common = one.len().min(two.len());
        one[..common].cmp(&two[..common]).then_with(|| {
            let (one, two) = (one[common..].iter().copied(), two[common..].iter().copied());
            one.chain(slash(self)).cmp(two.chain(slash(other)))
        })
    }
}

/// Those entries that `wanted(name, is_file)` lets through, links followed, in path order.
fn read_folder(path: &Path, wanted: impl Fn(&str, bool) -> bool, n_others: &mut usize) -> Result<Vec<Entry>> {
    let failed = |error: io::Error| located("list", path, error);
    let mut names: Vec<Name> = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        // A link to nowhere, or a ring of links, is as if it were not there.
        let kind = match kind.is_symlink() {
            false => kind,
            true => match fs::metadata(entry.path()) {
                Ok(metadata) => metadata.file_type(),
                Err(_) => continue,
            },
        };
        if !kind.is_dir() && !kind.is_file() {
            continue;
        }
        let name = entry.file_name();
        let name = match name.to_str().filter(|name| !name.bytes().any(|byte| byte.is_ascii_control())) {
            Some(name) => name.to_owned(),
            // Object stores name objects in UTF-8. A stranger is passed over, one of ours is an error.
            None if wanted(&name.to_string_lossy(), kind.is_file()) => return Err(unreadable_name(&entry.path())),
            None => continue,
        };
        if wanted(&name, kind.is_file()) {
            names.push(Name { name, is_folder: kind.is_dir(), entry });
        } else if kind.is_file() {
            *n_others += 1;
        }
    }
    names.sort_unstable_by(Name::compare);
    look_at_all(names, &folder_location(text(path)?))
}

/// Asks for the metadata of files, in order; by two threads if there are many.
fn look_at_all(mut names: Vec<Name>, base: &str) -> Result<Vec<Entry>> {
    let look = |names: Vec<Name>| -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(names.len());
        let mut location = String::new();
        for Name { name, is_folder, entry } in names {
            if is_folder {
                entries.push(Entry::Folder(name));
                continue;
            }
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let metadata = if is_link { fs::metadata(entry.path()) } else { entry.metadata() };
            match metadata {
                Ok(metadata) => {
                    location.clear();
                    location.push_str(base);
                    push_encoded(&mut location, &name);
                    entries.push(Entry::File(FileIdentity::of_local(Arc::from(location.as_str()), &metadata)));
                }
                // Gone since its name was read.
                Err(error) if is_absent(Some(&error)) => {}
                Err(error) => return Err(located("look at", &entry.path(), error)),
            }
        }
        Ok(entries)
    };
    if names.len() < PARALLEL_ENTRIES {
        return look(names);
    }
    let other_half = names.split_off(names.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| look(other_half));
        let mut entries = look(names)?;
        match other.join() {
            Ok(others) => entries.extend(others?),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        Ok(entries)
    })
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
