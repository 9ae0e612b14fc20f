//! [`Folder`]: an open folder, the names in it and how its files look, with little more work per file than the system's own.
//!
//! Cost   all names share one buffer, and a file is asked for relative to the open folder, by several threads if there are
//!        many.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::io;
use std::path::Path;

use crate::identity::Attributes;
use crate::pieces::in_pieces;

/// What an entry of a folder is, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    File,
    Folder,
    /// A socket, a pipe, a device, a link to nowhere.
    Other,
}

/// Names that were chosen among a folder's, each ended by a zero byte.
#[derive(Default)]
pub(super) struct Names {
    text: Vec<u8>,
    entries: Vec<Name>,
}

#[derive(Clone, Copy)]
struct Name {
    start: usize,
    end: usize,
    is_folder: bool,
}

impl Names {
    pub(super) fn push(&mut self, name: &str, is_folder: bool) {
        let start = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        self.entries.push(Name { start, end: self.text.len(), is_folder });
        self.text.push(0);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Names and whether they are folders.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, bool)> {
        self.entries.iter().map(|name| {
            let text = std::str::from_utf8(&self.text[name.start..name.end]);
            // Only text goes in.
            (text.unwrap_or_default(), name.is_folder)
        })
    }

    /// A file takes part with its name, a folder with a slash behind it: that is the order of whole paths.
    pub(super) fn sort(&mut self) {
        let text = &self.text;
        self.entries.sort_unstable_by(|one, two| compare(text, *one, *two));
    }
}

fn compare(text: &[u8], one: Name, two: Name) -> Ordering {
    let (first, second) = (&text[one.start..one.end], &text[two.start..two.end]);
    let common = first.len().min(second.len());
    first[..common].cmp(&second[..common]).then_with(|| {
        let slash = |name: Name| if name.is_folder { "/" } else { "" }.bytes();
        let (first, second) = (first[common..].iter().copied(), second[common..].iter().copied());
        first.chain(slash(one)).cmp(second.chain(slash(two)))
    })
}

#[cfg(target_os = "linux")]
pub(super) struct Folder {
    dir: rustix::fs::Dir,
}

#[cfg(target_os = "linux")]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Dir, Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self { dir: Dir::new(rustix::fs::open(path, flags, Mode::empty())?)? })
    }

    /// Hands on every entry but `.` and `..`.
    pub(super) fn read<E: From<io::Error>>(
        &mut self,
        mut visit: impl FnMut(&std::ffi::OsStr, Kind) -> Result<(), E>,
    ) -> Result<(), E> {
        use std::os::unix::ffi::OsStrExt;
        while let Some(entry) = self.dir.read() {
            let entry = entry.map_err(io::Error::from)?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                rustix::fs::FileType::RegularFile => Kind::File,
                rustix::fs::FileType::Directory => Kind::Folder,
                // Some file systems do not tell. A link to nowhere, or a ring of links, is as if it were not there.
                rustix::fs::FileType::Symlink | rustix::fs::FileType::Unknown => self.kind(name),
                _ => Kind::Other,
            };
            visit(std::ffi::OsStr::from_bytes(name.to_bytes()), kind)?;
        }
        Ok(())
    }

    fn kind(&self, name: &std::ffi::CStr) -> Kind {
        let found = self.dir.fd().and_then(|folder| rustix::fs::statat(folder, name, rustix::fs::AtFlags::empty()));
        match found.map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode)) {
            Ok(rustix::fs::FileType::RegularFile) => Kind::File,
            Ok(rustix::fs::FileType::Directory) => Kind::Folder,
            _ => Kind::Other,
        }
    }

    /// How the files among `names` look now, links followed; nothing for folders.
    pub(super) fn look(&self, names: &Names) -> io::Result<Vec<Option<io::Result<Attributes>>>> {
        let folder = self.dir.fd()?;
        Ok(look(names, |name| {
            let name = std::ffi::CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
            Ok(Attributes::from(&rustix::fs::statat(folder, name, rustix::fs::AtFlags::empty())?))
        }))
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) struct Folder {
    path: std::path::PathBuf,
    entries: std::fs::ReadDir,
}

#[cfg(not(target_os = "linux"))]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), entries: std::fs::read_dir(path)? })
    }

    pub(super) fn read<E: From<io::Error>>(
        &mut self,
        mut visit: impl FnMut(&std::ffi::OsStr, Kind) -> Result<(), E>,
    ) -> Result<(), E> {
        for entry in &mut self.entries {
            let entry = entry?;
            let kind = match std::fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_file() => Kind::File,
                Ok(metadata) if metadata.is_dir() => Kind::Folder,
                _ => Kind::Other,
            };
            visit(&entry.file_name(), kind)?;
        }
        Ok(())
    }

    pub(super) fn look(&self, names: &Names) -> io::Result<Vec<Option<io::Result<Attributes>>>> {
        Ok(look(names, |name| {
            let name = std::str::from_utf8(name).map_err(io::Error::other)?.trim_end_matches('\0');
            Ok(Attributes::from(&std::fs::metadata(self.path.join(name))?))
        }))
    }
}

/// Asks for each file once.
fn look(names: &Names, ask: impl Fn(&[u8]) -> io::Result<Attributes> + Sync) -> Vec<Option<io::Result<Attributes>>> {
    let mut found: Vec<Option<io::Result<Attributes>>> = Vec::new();
    found.resize_with(names.len(), || None);
    let files = names.entries.iter().zip(&mut found).filter(|(name, _)| !name.is_folder);
    let looked = in_pieces(files, names.len(), |(name, found)| {
        *found = Some(ask(&names.text[name.start..=name.end]));
        Ok::<_, Infallible>(())
    });
    match looked {
        Ok(()) => found,
    }
}
