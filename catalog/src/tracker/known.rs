//! [`KnownTable`]: what is known of a table's files, in memory, and its records in the metadata store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::identity::{FileIdentity, Seen};
use crate::listing::{ListedFile, Memory};
use crate::store::{GoneFile, KnownFile};
use crate::text::{TextRange, UNFINISHED_NS};
use crate::{Extent, ExternalSource, Result};

/// A file as it was last looked at.
#[derive(Debug, PartialEq)]
pub(super) struct KnownEntry {
    pub(super) identity: FileIdentity,
    /// So fresh then that its identity alone must not be trusted.
    pub(super) racy: bool,
    /// Its fingerprints name content, not identity.
    pub(super) by_content: bool,
    /// The last extent is a record without an end.
    pub(super) tail: bool,
    /// Behind the last extent is a record that was not whole then: once it has rested for long, it is an error.
    pub(super) waits: bool,
    /// Since when a racy file of a web host looks as it does, by our clock.
    pub(super) since_ns: Option<i64>,
    /// None for an empty file, several for a text file that grew.
    pub(super) extents: Vec<Arc<Extent>>,
}

impl KnownEntry {
    /// The extents as the text reader knows them.
    pub(super) fn ranges(&self) -> Vec<TextRange> {
        let last = self.extents.len().saturating_sub(1);
        let range = |(at, extent): (usize, &Arc<Extent>)| TextRange {
            range: extent.range,
            fingerprint: extent.fingerprint,
            tail: self.tail && at == last,
            lines: extent.lines,
        };
        self.extents.iter().enumerate().map(range).collect()
    }

    fn is_settled(&self, file: &ListedFile, now_ns: i64) -> bool {
        let waits_no_more = self.waits && self.identity.mtime_ns <= now_ns.saturating_sub(UNFINISHED_NS);
        !self.racy && !waits_no_more && self.identity.is_unchanged(&file.identity)
    }
}

/// What to do about a listed file.
pub(super) enum Change {
    /// Nothing.
    None(Arc<KnownEntry>),
    /// Look at it, with what was known of it.
    Look(ListedFile, Option<Arc<KnownEntry>>),
}

/// The files of a table, in listing order.
#[derive(Default)]
pub(super) struct KnownTable {
    pub(super) loaded: bool,
    pub(super) entries: Vec<Arc<KnownEntry>>,
    /// Records that were loaded and do not fit each other. They have to go, or nobody would believe those of the same file that
    /// are written from now on.
    strays: Vec<GoneFile>,
    /// Names that were listed last.
    pub(super) listing: Memory,
    /// When the last listing began, and what it gave.
    pub(super) snapshot: Option<(u64, Arc<[Arc<Extent>]>)>,
}

impl KnownTable {
    /// Takes what was saved by whoever looked at this table before. Not knowing only costs time.
    pub(super) fn load(&mut self, saved: Result<Vec<KnownFile>>, source: &ExternalSource) {
        self.loaded = true;
        let mut saved = saved.unwrap_or_else(|error| {
            tracing::warn!(location = source.location, %error, "cannot load what is known of a table's files");
            Vec::new()
        });
        saved.sort_by(|one, two| {
            let start = |file: &KnownFile| byte_start(&file.extent);
            one.extent.location.cmp(&two.extent.location).then_with(|| start(one).cmp(&start(two)))
        });
        // One file after the other, and no room for more than it has: there may be a hundred thousand.
        let mut saved = saved.into_iter().peekable();
        let mut values: Arc<[Option<Arc<str>>]> = Arc::from([]);
        // Neighbours mostly are in one folder.
        let mut share = |mut file: KnownFile| {
            if *file.extent.partition_values != *values {
                values = file.extent.partition_values;
            }
            file.extent.partition_values = Arc::clone(&values);
            file
        };
        let files = std::iter::from_fn(|| {
            let mut parts = Parts::of(share(saved.next()?));
            while let Some(next) = saved.next_if(|next| next.extent.location == parts.location) {
                parts.add(share(next));
            }
            Some(parts.entry())
        });
        let strays = &mut self.strays;
        let known = |parts: Result<KnownEntry, Vec<GoneFile>>| match parts {
            Ok(entry) => Some(Arc::new(entry)),
            Err(unknown) => {
                strays.extend(unknown);
                None
            }
        };
        self.entries = files.filter_map(known).collect();
    }

    /// The extents of the last snapshot, if every file is what it was then.
    pub(super) fn unchanged(&self, files: &[ListedFile], now_ns: i64) -> Option<Arc<[Arc<Extent>]>> {
        let (_, extents) = self.snapshot.as_ref()?;
        let same = self.entries.len() == files.len()
            && self.entries.iter().zip(files).all(|(entry, file)| entry.is_settled(file, now_ns));
        same.then(|| Arc::clone(extents))
    }

    /// What each listed file is to what is known.
    pub(super) fn compare(&self, files: Vec<ListedFile>, now_ns: i64) -> Vec<Change> {
        // Listings mostly repeat themselves: the next file is mostly the next entry. The index is for the others.
        let mut index: Option<BTreeMap<&str, usize>> = None;
        let mut next = 0;
        let mut find = |location: &str| {
            if self.entries.get(next).is_none_or(|entry| *entry.identity.location != *location) {
                let positions = || self.entries.iter().enumerate().map(|(at, entry)| (&*entry.identity.location, at));
                next = *index.get_or_insert_with(|| positions().collect()).get(location)?;
            }
            next += 1;
            self.entries.get(next - 1)
        };
        let change = |file: ListedFile| match find(&file.identity.location) {
            Some(entry) if entry.is_settled(&file, now_ns) => Change::None(Arc::clone(entry)),
            known => Change::Look(file, known.map(Arc::clone)),
        };
        files.into_iter().map(change).collect()
    }

    /// Records to save and to forget, once `entries` replace what is known.
    pub(super) fn difference(&self, entries: &[Arc<KnownEntry>]) -> (Vec<KnownFile>, Vec<GoneFile>) {
        let mut before: BTreeMap<&str, &Arc<KnownEntry>> =
            self.entries.iter().map(|entry| (&*entry.identity.location, entry)).collect();
        let (mut learnt, mut gone) = (Vec::new(), Vec::new());
        let mut position = 0;
        for entry in entries {
            let first = position;
            position += entry.extents.len() as u32;
            let old = before.remove(&*entry.identity.location);
            if old.is_some_and(|old| Arc::ptr_eq(old, entry) || old == entry) {
                continue;
            }
            learnt.extend(records(entry, first));
            if let Some(old) = old {
                gone.extend(
                    gone_files(old)
                        .filter(|gone| entry.extents.iter().all(|extent| byte_start(extent) != gone.byte_start)),
                );
            }
        }
        gone.extend(before.into_values().flat_map(gone_files));
        if !self.strays.is_empty() {
            let is_learnt = |stray: &&GoneFile| {
                learnt.iter().any(|file| {
                    *file.extent.location == *stray.location && byte_start(&file.extent) == stray.byte_start
                })
            };
            gone.extend(self.strays.iter().filter(|stray| !is_learnt(stray)).cloned());
        }
        (learnt, gone)
    }

    /// Takes the result of a listing that began at `listed_at`.
    pub(super) fn replace(&mut self, entries: Vec<Arc<KnownEntry>>, listed_at: u64) -> Arc<[Arc<Extent>]> {
        let extents: Arc<[Arc<Extent>]> = entries.iter().flat_map(|entry| &entry.extents).map(Arc::clone).collect();
        self.entries = entries;
        self.strays.clear();
        self.snapshot = Some((listed_at, Arc::clone(&extents)));
        extents
    }
}

/// The records of one file, put together.
struct Parts {
    location: Arc<str>,
    /// Of the last record; `None` once they do not fit each other.
    seen: Option<Seen>,
    racy: bool,
    extents: Vec<Arc<Extent>>,
}

impl Parts {
    fn of(first: KnownFile) -> Self {
        let location = Arc::clone(&first.extent.location);
        let seen = Seen::decode(&location, &first.identity);
        let etag = seen.as_ref().and_then(|seen| seen.identity.etag.clone());
        let lines = seen.as_ref().is_some_and(|seen| seen.lines);
        Self { location, seen, racy: first.racy, extents: vec![Arc::new(Extent { etag, lines, ..first.extent })] }
    }

    fn add(&mut self, file: KnownFile) {
        let next = Seen::decode(&self.location, &file.identity);
        let lines = next.as_ref().is_some_and(|next| next.lines);
        self.seen = match (self.seen.take(), next) {
            (Some(last), Some(next)) if last.identity == next.identity && last.by_content == next.by_content => {
                Some(next)
            }
            _ => None,
        };
        self.racy |= file.racy;
        let etag = self.seen.as_ref().and_then(|seen| seen.identity.etag.clone());
        self.extents.push(Arc::new(Extent { location: Arc::clone(&self.location), etag, lines, ..file.extent }));
    }

    /// What is known of the file, or what is to be forgotten of it.
    fn entry(self) -> Result<KnownEntry, Vec<GoneFile>> {
        let Self { seen, racy, extents, .. } = self;
        match seen {
            // Several processes may have cut a growing file at different places, and each forgets only records of its own.
            Some(Seen { identity, by_content, tail, since_ns, .. })
                if follow_each_other(&extents, identity.size, racy)
                    && (by_content || are_named(&identity, &extents)) =>
            {
                Ok(KnownEntry { identity, racy, by_content, tail, waits: false, since_ns, extents })
            }
            _ => Err(extents.iter().map(|extent| gone_file(extent)).collect()),
        }
    }
}

/// Whether the records of a file are ranges without gaps and overlaps, up to its end unless it is looked at again anyway.
fn follow_each_other(extents: &[Arc<Extent>], size: u64, racy: bool) -> bool {
    if let [extent] = extents
        && extent.range.is_none()
    {
        return true;
    }
    let mut at = 0;
    for extent in extents {
        match extent.range {
            Some(range) if range.start == at => at = range.end,
            _ => return false,
        }
    }
    at == size || racy
}

/// Whether extents of a web host have the names that their identity gives them: earlier versions named them by an etag alone.
fn are_named(identity: &FileIdentity, extents: &[Arc<Extent>]) -> bool {
    let is_named = |extent: &Arc<Extent>| identity.fingerprint(&extent.partition_values) == extent.fingerprint;
    !identity.is_on_web() || extents.iter().all(is_named)
}

fn records(entry: &KnownEntry, first: u32) -> impl Iterator<Item = KnownFile> {
    let last = entry.extents.len().saturating_sub(1);
    entry.extents.iter().enumerate().map(move |(at, extent)| KnownFile {
        extent: Extent::clone(extent),
        identity: Seen {
            identity: entry.identity.clone(),
            by_content: entry.by_content,
            tail: entry.tail && at == last,
            lines: extent.lines,
            since_ns: entry.since_ns,
        }
        .encode(),
        // Whoever comes to know the file by this looks at its end again.
        racy: entry.racy || entry.waits,
        position: first + at as u32,
    })
}

fn gone_files(entry: &Arc<KnownEntry>) -> impl Iterator<Item = GoneFile> {
    entry.extents.iter().map(|extent| gone_file(extent))
}

fn gone_file(extent: &Extent) -> GoneFile {
    GoneFile { location: extent.location.to_string(), byte_start: byte_start(extent) }
}

fn byte_start(extent: &Extent) -> u64 {
    extent.range.map_or(0, |range| range.start)
}
