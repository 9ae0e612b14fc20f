//! Where results come from: what an entry was made of, and which entries were made of something.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{CacheEntry, PinMoves, ProgramRecord, ProgramRun};
use crate::{ByteRange, Extent, Fingerprint, Location, TableId};

/// Entries that one statement made, on their way into the store.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    /// The entries.
    pub entries: Vec<NewEntry>,
    /// The statement.
    pub run: Option<ProgramRun>,
    /// How many purges there had been when the statement began; if there was another since, nothing is published. `None`
    /// for who has read nothing that could have been purged.
    pub purges: Option<i64>,
    /// Views whose newest results are among the entries.
    pub pins: PinMoves,
}

/// An entry on its way into the store.
#[derive(Clone, Debug)]
pub struct NewEntry {
    /// The entry.
    pub entry: CacheEntry,
    /// Its program.
    pub program: ProgramRecord,
    /// What it was made of, if that is known.
    pub lineage: Option<EntryLineage>,
}

/// What an entry was made of.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct EntryLineage {
    /// For each input of the entry, in order, what it is.
    pub inputs: Vec<InputLineage>,
    /// Entries that were read for it.
    pub origins: Vec<Fingerprint>,
}

/// What an input of an entry is.
#[derive(Clone, PartialEq, Debug)]
pub struct InputLineage {
    /// The table's name, or the location that stood for one.
    pub table: String,
    /// Of a table that the catalog has.
    pub table_id: Option<TableId>,
    /// Its extents, in order.
    pub extents: Arc<[Arc<Extent>]>,
    /// For each of them whether it came by way of another entry; empty if none did.
    pub reused: Vec<bool>,
}

/// What is known of an entry's making.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntryProvenance {
    /// FP_PD.
    pub key: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// The source of the statement that made it.
    pub source: Option<Fingerprint>,
    /// One for each input.
    pub inputs: Vec<InputProvenance>,
    /// Entries that it was made from, which may be gone.
    pub origins: Vec<Fingerprint>,
}

/// An input of an entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputProvenance {
    /// The table's name then; not known of entries of older formats.
    pub table: Option<String>,
    /// Of a table that the catalog had.
    pub table_id: Option<TableId>,
    /// Its extents.
    pub extents: Vec<ExtentPlace>,
}

/// An extent and where it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExtentPlace {
    /// What it is.
    pub fingerprint: Fingerprint,
    /// Full URL; not known of entries of older formats.
    pub location: Option<Arc<str>>,
    /// `None` for a whole file.
    pub range: Option<ByteRange>,
    /// Whether its rows came by way of another entry.
    pub is_reused: bool,
}

/// Data that entries may have been made from.
#[derive(Clone, Default)]
pub struct DataScope {
    /// Tables of the catalog: all that they ever had.
    pub tables: Vec<TableId>,
    /// Names of tables, as they were called then.
    pub table_names: Vec<String>,
    /// Files, folders or globs.
    pub locations: Vec<Location>,
    /// Files by their full URLs.
    pub files: Vec<String>,
    /// Files by what their full URLs begin with.
    pub file_beginnings: Vec<String>,
    /// Folders of files that are reached through links, and where they are without: full URLs that end in a slash. Locations
    /// and files that are named through links are to be here without them as well.
    pub links: BTreeMap<String, String>,
    /// Entries.
    pub entries: Vec<Fingerprint>,
    /// Whether entries count of which nobody knows what they were made from.
    pub unknown: bool,
}

impl DataScope {
    /// Whether it names a file, given by its full URL, or the one that this is through links.
    pub(crate) fn names_file(&self, url: &str) -> bool {
        self.names(url) || self.without_links(url).is_some_and(|real| self.names(&real))
    }

    fn names(&self, url: &str) -> bool {
        self.files.iter().any(|file| file == url)
            || self.file_beginnings.iter().any(|beginning| url.starts_with(beginning))
            || self.locations.iter().any(|location| location.names_file(url))
    }

    /// The file's URL without links, if it is reached through some.
    pub(crate) fn without_links(&self, url: &str) -> Option<String> {
        let (folder, name) = url.split_at(url.rfind('/')? + 1);
        self.links.get(folder).map(|real| format!("{real}{name}"))
    }
}

impl fmt::Debug for DataScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let locations: Vec<&str> = self.locations.iter().map(Location::as_str).collect();
        f.debug_struct("DataScope")
            .field("tables", &self.tables)
            .field("table_names", &self.table_names)
            .field("locations", &locations)
            .finish_non_exhaustive()
    }
}

/// Cuts a list of extents into groups where its content says so: lists that share a run of extents share the groups in it.
pub(crate) fn groups_of(extents: &[Fingerprint]) -> Vec<&[Fingerprint]> {
    /// One extent in so many ends a group.
    const CUT: u8 = 64;
    const EXTENTS_MAX: usize = 256;
    let mut groups = vec![];
    let mut start = 0;
    for (at, extent) in extents.iter().enumerate() {
        if extent.as_bytes()[0] % CUT == 0 || at + 1 - start == EXTENTS_MAX || at + 1 == extents.len() {
            groups.push(&extents[start..=at]);
            start = at + 1;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: std::ops::Range<u64>) -> Vec<Fingerprint> {
        numbers.map(|number| Fingerprint::of_bytes(&number.to_le_bytes())).collect()
    }

    #[test]
    fn lists_that_grow_share_their_groups() {
        let all = list(0..5000);
        let groups = groups_of(&all);
        assert_eq!(groups.concat(), all);
        assert!(groups.len() > 40 && groups.iter().all(|group| group.len() <= 256), "{}", groups.len());
        let is_new = |list: &[Fingerprint]| groups_of(list).iter().filter(|group| !groups.contains(*group)).count();
        assert!(is_new(&list(0..5100)) <= 5, "grown at the end");
        assert!(is_new(&all[37..]) <= 1, "cut at the beginning");
        assert_eq!(groups_of(&[]), [] as [&[Fingerprint]; 0]);
    }
}
