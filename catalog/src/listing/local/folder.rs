//! [`Folder`]: an open folder, the names in it and how its files look, with little more work per file than the system's own.
//!
//! Cost   all names share one buffer, and a file is asked for relative to the open folder, by several threads if there are
//!        many; if its name was known before, already while the folder is read.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::io;
use std::path::Path;

use crate::identity::Attributes;
use crate::pieces::{in_pieces, in_pieces_meanwhile};

/// What an entry of a folder is, links followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    File,
    Folder,
    /// A socket, a pipe, a device, a link to nowhere.
    Other,
}

/// Names that were chosen among a folder's, each ended by a zero byte.
#[derive(Default, Debug)]
pub(super) struct Names {
    text: Vec<u8>,
    entries: Vec<Name>,
}

#[derive(Clone, Copy, Debug)]
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

    /// The name at a position.
    pub(super) fn name(&self, at: usize) -> &str {
        let Name { start, end, .. } = self.entries[at];
        // Only text goes in.
        std::str::from_utf8(&self.text[start..end]).unwrap_or_default()
    }

    /// Whether it is a folder's.
    pub(super) fn is_folder(&self, at: usize) -> bool {
        self.entries[at].is_folder
    }

    /// A file takes part with its name, a folder with a slash behind it: that is the order of whole paths.
    pub(super) fn sort(&mut self) {
        let text = &self.text;
        self.entries.sort_unstable_by(|one, two| compare(text, *one, *two));
        self.text.shrink_to_fit();
        self.entries.shrink_to_fit();
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

/// All that a folder holds, in the order in which the system told: a letter for the kind, the name, a zero byte.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Contents(Vec<u8>);

impl Contents {
    fn push(&mut self, name: &[u8], kind: Kind) {
        let letter = match kind {
            Kind::File => b'f',
            Kind::Folder => b'd',
            Kind::Other => b'o',
        };
        self.0.push(letter);
        self.0.extend_from_slice(name);
        self.0.push(0);
    }

    /// Names, which need not be text, and what they name.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Kind)> {
        self.0.split(|byte| *byte == 0).filter_map(|entry| {
            let (letter, name) = entry.split_first()?;
            let kind = match letter {
                b'f' => Kind::File,
                b'd' => Kind::Folder,
                _ => Kind::Other,
            };
            Some((name, kind))
        })
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

/// How files look; nothing for folders.
pub(super) type Looks = Vec<Option<io::Result<Attributes>>>;

/// What was found by whoever expected something.
pub(super) enum Found {
    /// What was expected: how its files look now.
    Same(Looks),
    /// Something else.
    Other(Contents),
}

/// An open folder.
pub(super) struct Folder {
    reader: Reader,
    looker: Looker,
}

impl Folder {
    /// All that is in it but `.` and `..`.
    pub(super) fn read(&mut self) -> io::Result<Contents> {
        self.reader.read(&self.looker)
    }

    /// How the files among `names` look now, links followed.
    pub(super) fn look(&self, names: &Names) -> Looks {
        let mut found = unseen(names);
        let looked = in_pieces(names.entries.iter().zip(&mut found), names.len(), |(name, found)| {
            self.looker.look(names, *name, found);
            Ok::<_, Infallible>(())
        });
        match looked {
            Ok(()) => found,
        }
    }

    /// Reads it while other threads look at the files that were in it before, by `names`.
    pub(super) fn read_again(&mut self, before: &Contents, names: &Names) -> io::Result<Found> {
        let Self { reader, looker } = self;
        let mut found = unseen(names);
        let looked = in_pieces_meanwhile(
            names.entries.iter().zip(&mut found),
            names.len(),
            |(name, found)| {
                looker.look(names, *name, found);
                Ok(())
            },
            || match reader.read(looker) {
                Ok(now) if now == *before => Ok(()),
                other => Err(other),
            },
        );
        match looked {
            Ok(()) => Ok(Found::Same(found)),
            Err(other) => other.map(Found::Other),
        }
    }
}

fn unseen(names: &Names) -> Looks {
    let mut found = Vec::new();
    found.resize_with(names.len(), || None);
    found
}

impl Looker {
    fn look(&self, names: &Names, name: Name, found: &mut Option<io::Result<Attributes>>) {
        if !name.is_folder {
            *found = Some(self.attributes(&names.text[name.start..=name.end]));
        }
    }
}

#[cfg(target_os = "linux")]
struct Reader(rustix::fs::Dir);

/// The same folder, for asking while it is read.
#[cfg(target_os = "linux")]
struct Looker(std::os::fd::OwnedFd);

#[cfg(target_os = "linux")]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Dir, Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(path, flags, Mode::empty())?;
        let looker = Looker(folder.try_clone()?);
        Ok(Self { reader: Reader(Dir::new(folder)?), looker })
    }
}

#[cfg(target_os = "linux")]
impl Reader {
    fn read(&mut self, looker: &Looker) -> io::Result<Contents> {
        let mut contents = Contents::default();
        while let Some(entry) = self.0.read() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let kind = match entry.file_type() {
                rustix::fs::FileType::RegularFile => Kind::File,
                rustix::fs::FileType::Directory => Kind::Folder,
                // Some file systems do not tell. A link to nowhere, or a ring of links, is as if it were not there.
                rustix::fs::FileType::Symlink | rustix::fs::FileType::Unknown => looker.kind(name),
                _ => Kind::Other,
            };
            contents.push(name.to_bytes(), kind);
        }
        Ok(contents)
    }
}

#[cfg(target_os = "linux")]
impl Looker {
    fn kind(&self, name: &std::ffi::CStr) -> Kind {
        let found = rustix::fs::statat(&self.0, name, rustix::fs::AtFlags::empty());
        match found.map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode)) {
            Ok(rustix::fs::FileType::RegularFile) => Kind::File,
            Ok(rustix::fs::FileType::Directory) => Kind::Folder,
            _ => Kind::Other,
        }
    }

    fn attributes(&self, name: &[u8]) -> io::Result<Attributes> {
        let name = std::ffi::CStr::from_bytes_with_nul(name).map_err(io::Error::other)?;
        Ok(Attributes::from(&rustix::fs::statat(&self.0, name, rustix::fs::AtFlags::empty())?))
    }
}

#[cfg(not(target_os = "linux"))]
struct Reader(std::fs::ReadDir);

#[cfg(not(target_os = "linux"))]
struct Looker(std::path::PathBuf);

#[cfg(not(target_os = "linux"))]
impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { reader: Reader(std::fs::read_dir(path)?), looker: Looker(path.to_owned()) })
    }
}

#[cfg(not(target_os = "linux"))]
impl Reader {
    fn read(&mut self, _: &Looker) -> io::Result<Contents> {
        let mut contents = Contents::default();
        for entry in &mut self.0 {
            let entry = entry?;
            let kind = match std::fs::metadata(entry.path()) {
                Ok(metadata) if metadata.is_file() => Kind::File,
                Ok(metadata) if metadata.is_dir() => Kind::Folder,
                _ => Kind::Other,
            };
            contents.push(entry.file_name().as_encoded_bytes(), kind);
        }
        Ok(contents)
    }
}

#[cfg(not(target_os = "linux"))]
impl Looker {
    fn attributes(&self, name: &[u8]) -> io::Result<Attributes> {
        let name = std::str::from_utf8(name).map_err(io::Error::other)?.trim_end_matches('\0');
        Ok(Attributes::from(&std::fs::metadata(self.0.join(name))?))
    }
}
