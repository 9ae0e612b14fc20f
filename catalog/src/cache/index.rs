//! [`Index`]: the summaries of all entries, by key and by program, as of a version of the store.
//!
//! Changes are applied over older ones only (see `change`), so that what this process did and what the store tells of it
//! may arrive in either order, and twice.

use super::change::CacheChange;
use super::digest_map::{DigestMap, Keyed, NO_SLOT};
use super::{EntryKind, EntrySummary, UseCount};
use crate::Fingerprint;

/// Evictions that `system.evictions` shows.
pub(super) const EVICTIONS_KEPT: usize = 10_000;

/// Dropped keys that are remembered for explanations; twice as many as the store remembers are never reached.
pub(super) const DROPPED_KEPT: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Everything up to this version of the store is known.
    pub(super) version: i64,
    entries: DigestMap<Record>,
    programs: DigestMap<Program>,
    dropped: DigestMap<Dropped>,
    bytes: u64,
    n_empty: usize,
}

/// An entry. One hundred and twelve bytes, times a million.
#[derive(Debug)]
struct Record {
    key: Fingerprint,
    program: u32,
    /// The program's other entries, a list.
    previous: u32,
    next: u32,
    kind: EntryKind,
    rows: u64,
    bytes: u64,
    cost_us: u64,
    uses: u64,
    saved_us: u64,
    created_at: i64,
    last_used_at: i64,
    version: i64,
}

/// A program that has entries.
#[derive(Debug)]
struct Program {
    program: Fingerprint,
    first: u32,
    n_entries: u32,
}

#[derive(Debug)]
struct Dropped {
    key: Fingerprint,
    version: i64,
}

impl Keyed for Record {
    fn key(&self) -> &Fingerprint {
        &self.key
    }
}

impl Keyed for Program {
    fn key(&self) -> &Fingerprint {
        &self.program
    }
}

impl Keyed for Dropped {
    fn key(&self) -> &Fingerprint {
        &self.key
    }
}

impl Index {
    pub(super) fn n_entries(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn n_programs(&self) -> usize {
        self.programs.len()
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Entries without bytes.
    pub(super) fn n_empty(&self) -> usize {
        self.n_empty
    }

    /// Memory that is reserved.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.entries.heap_bytes() + self.programs.heap_bytes() + self.dropped.heap_bytes()
    }

    pub(super) fn get(&self, key: &Fingerprint) -> Option<EntrySummary> {
        self.entries.get(key).map(|record| self.summary(record))
    }

    /// Whether the entry was there once.
    pub(super) fn was_dropped(&self, key: &Fingerprint) -> bool {
        self.dropped.find(key).is_some()
    }

    pub(super) fn n_entries_of(&self, program: &Fingerprint) -> u32 {
        self.programs.get(program).map_or(0, |program| program.n_entries)
    }

    /// The entries of a program, the youngest first.
    pub(super) fn entries_of(&self, program: &Fingerprint) -> Vec<EntrySummary> {
        let Some(program) = self.programs.get(program) else { return vec![] };
        let mut entries = Vec::with_capacity(program.n_entries as usize);
        let mut slot = program.first;
        while let Some(record) = self.entries.at(slot) {
            entries.push(self.summary(record));
            slot = record.next;
        }
        entries.sort_by_key(|entry| std::cmp::Reverse((entry.created_at, entry.key)));
        entries
    }

    /// All entries, in no order.
    pub(super) fn entries(&self) -> impl Iterator<Item = EntrySummary> {
        self.entries.iter().map(|record| self.summary(record))
    }

    /// Takes over what the store tells.
    pub(super) fn apply(&mut self, change: CacheChange) {
        match change {
            CacheChange::Everything => *self = Self::default(),
            CacheChange::Entry { summary, version } => self.put(&summary, version),
            CacheChange::Dropped { key, version } => self.drop(key, version),
        }
    }

    /// Takes over changes that this process made in transaction `version`, before the store tells of them.
    ///
    /// Once the index is past that version the store has told, and of what happened since as well: then a change applied
    /// now could bring back what another process dropped meanwhile.
    pub(super) fn apply_own(&mut self, version: i64, changes: impl IntoIterator<Item = CacheChange>) {
        if version <= self.version {
            return;
        }
        changes.into_iter().for_each(|change| self.apply(change));
        self.passed(version);
    }

    /// Adds uses that this process wrote down in transaction `version`.
    pub(super) fn count_own(&mut self, version: i64, uses: &[UseCount]) {
        if version <= self.version {
            return;
        }
        for used in uses {
            // What is as young has been read back from the store, with these uses in it.
            if let Some(record) = self.entries.get_mut(&used.key).filter(|record| record.version < version) {
                record.uses += used.uses;
                record.saved_us = record.saved_us.saturating_add(used.saved_us);
                record.last_used_at = record.last_used_at.max(used.last_used_at);
                record.version = version;
            }
        }
        self.passed(version);
    }

    /// With nothing of others in between, there is nothing to ask the store for.
    fn passed(&mut self, version: i64) {
        if version == self.version + 1 {
            self.version = version;
        }
    }

    fn put(&mut self, summary: &EntrySummary, version: i64) {
        if let Some(slot) = self.entries.find(&summary.key) {
            if self.entries.at(slot).is_some_and(|record| record.version > version) {
                return;
            }
            self.take(slot);
        }
        if let Some(slot) = self.dropped.find(&summary.key) {
            if self.dropped.at(slot).is_some_and(|dropped| dropped.version > version) {
                return;
            }
            self.dropped.remove(slot);
        }
        let program = match self.programs.find(&summary.program) {
            Some(program) => program,
            None => self.programs.insert(Program { program: summary.program, first: NO_SLOT, n_entries: 0 }),
        };
        let next = self.programs.at(program).map_or(NO_SLOT, |program| program.first);
        let slot = self.entries.insert(Record {
            key: summary.key,
            program,
            previous: NO_SLOT,
            next,
            kind: summary.kind,
            rows: summary.rows,
            bytes: summary.bytes,
            cost_us: summary.cost_us,
            uses: summary.uses,
            saved_us: summary.saved_us,
            created_at: summary.created_at,
            last_used_at: summary.last_used_at,
            version,
        });
        if let Some(next) = self.entries.at_mut(next) {
            next.previous = slot;
        }
        if let Some(program) = self.programs.at_mut(program) {
            program.first = slot;
            program.n_entries += 1;
        }
        self.bytes = self.bytes.saturating_add(summary.bytes);
        self.n_empty += usize::from(summary.bytes == 0);
    }

    fn drop(&mut self, key: Fingerprint, version: i64) {
        if let Some(slot) = self.entries.find(&key) {
            if self.entries.at(slot).is_some_and(|record| record.version > version) {
                return;
            }
            self.take(slot);
        }
        match self.dropped.get_mut(&key) {
            Some(dropped) => dropped.version = dropped.version.max(version),
            None => {
                self.dropped.insert(Dropped { key, version });
            }
        }
        if self.dropped.len() > 2 * DROPPED_KEPT {
            let mut versions: Vec<_> = self.dropped.iter().map(|dropped| dropped.version).collect();
            let (_, oldest_kept, _) = versions.select_nth_unstable(DROPPED_KEPT);
            let oldest_kept = *oldest_kept;
            self.dropped.retain(|dropped| dropped.version > oldest_kept);
        }
    }

    /// Takes an entry out of all lists.
    fn take(&mut self, slot: u32) {
        let Some(record) = self.entries.remove(slot) else { return };
        self.bytes = self.bytes.saturating_sub(record.bytes);
        self.n_empty -= usize::from(record.bytes == 0);
        if let Some(next) = self.entries.at_mut(record.next) {
            next.previous = record.previous;
        }
        if let Some(previous) = self.entries.at_mut(record.previous) {
            previous.next = record.next;
        }
        let Some(program) = self.programs.at_mut(record.program) else { return };
        program.n_entries -= 1;
        if program.first == slot {
            program.first = record.next;
        }
        if program.n_entries == 0 {
            self.programs.remove(record.program);
        }
    }

    fn summary(&self, record: &Record) -> EntrySummary {
        // A record's program is there as long as the record is; the key stands in only so that nothing can panic.
        let program = self.programs.at(record.program).map_or(record.key, |program| program.program);
        EntrySummary {
            key: record.key,
            program,
            kind: record.kind,
            rows: record.rows,
            bytes: record.bytes,
            cost_us: record.cost_us,
            uses: record.uses,
            saved_us: record.saved_us,
            created_at: record.created_at,
            last_used_at: record.last_used_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CacheChange::{Dropped, Entry};
    use super::*;
    use crate::store::conformance_cache::{entry, key};

    /// What a process did itself and what it is told of it may come in either order.
    #[test]
    fn own_changes_do_not_bring_back_what_others_dropped() {
        let summary = entry(1).0.summary();
        let mut index = Index { version: 5, ..Default::default() };
        // We added in 6, another process dropped in 7, and a refresh told of that before our own call came back.
        index.apply(Dropped { key: key(1), version: 7 });
        index.version = 7;
        index.apply_own(6, [Entry { summary, version: 6 }]);
        assert_eq!(index.get(&key(1)), None);

        // An old drop is told after we added again.
        let mut index = Index { version: 5, ..Default::default() };
        index.apply_own(8, [Entry { summary, version: 8 }]);
        assert_eq!(index.version, 5, "others did something in between");
        index.apply(Dropped { key: key(1), version: 7 });
        assert_eq!(index.get(&key(1)), Some(summary));
        assert!(!index.was_dropped(&key(1)));

        // And the other way round: an old entry after a younger drop.
        index.apply(Dropped { key: key(1), version: 9 });
        index.apply(Entry { summary, version: 8 });
        assert_eq!(index.get(&key(1)), None);
    }
}
