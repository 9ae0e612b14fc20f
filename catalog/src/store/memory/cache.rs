//! The view cache's records in memory; the twin of `sqlite/cache`.

mod pins;
mod provenance;
mod space;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use self::provenance::Places;
use self::space::Space;
use crate::Fingerprint;
use crate::cache::{
    AddedEntries, CacheChange, CacheChanges, CacheEntry, DroppedEntries, EntryLineage, EntryPart, EntrySummary,
    LookupCount, Pin, ProgramRecord, RelativeRecord, StoredProgram, UseCount,
};

#[derive(Debug)]
pub(super) struct Cache {
    version: i64,
    forgotten_to: i64,
    programs: BTreeMap<Fingerprint, ProgramRecord>,
    entries: BTreeMap<Fingerprint, Record>,
    dropped: BTreeMap<Fingerprint, i64>,
    lookups: BTreeMap<Fingerprint, LookupCount>,
    /// By an id that grows in the order of adding.
    relatives: BTreeMap<i64, RelativeRecord>,
    /// How many entries were ever added.
    n_added: u64,
    /// How many purges there were.
    purges: i64,
    /// Files that they left to delete, by location.
    undeleted_parts: BTreeMap<String, EntryPart>,
    /// By the names of their sources.
    sources: BTreeMap<Fingerprint, StoredProgram>,
    /// Of lists that entries have.
    places: BTreeMap<Arc<[Fingerprint]>, Places>,
    space: Space,
    /// The oldest first.
    pins: Vec<Pin>,
}

#[derive(Debug)]
struct Record {
    /// Grows in the order of adding.
    id: u64,
    entry: CacheEntry,
    summary: EntrySummary,
    version: i64,
    source: Option<Fingerprint>,
    lineage: Option<EntryLineage>,
}

impl Default for Cache {
    fn default() -> Self {
        Self {
            version: 1,
            forgotten_to: 0,
            programs: BTreeMap::new(),
            entries: BTreeMap::new(),
            dropped: BTreeMap::new(),
            lookups: BTreeMap::new(),
            relatives: BTreeMap::new(),
            n_added: 0,
            purges: 0,
            undeleted_parts: BTreeMap::new(),
            sources: BTreeMap::new(),
            places: BTreeMap::new(),
            space: Space::default(),
            pins: vec![],
        }
    }
}

impl Cache {
    pub(super) fn version(&self) -> i64 {
        self.version
    }

    pub(super) fn purges(&self) -> i64 {
        self.purges
    }

    pub(super) fn changes(&self, since: Option<i64>, visit: &mut (dyn FnMut(CacheChange) + Send)) -> CacheChanges {
        let since = since.filter(|since| *since >= self.forgotten_to);
        if since.is_none() {
            visit(CacheChange::Everything);
        }
        let is_news = |version: i64| since.is_none_or(|since| version > since);
        for Record { summary, version, .. } in self.entries.values().filter(|record| is_news(record.version)) {
            visit(CacheChange::Entry { summary: *summary, version: *version });
        }
        for (key, version) in self.dropped.iter().filter(|(_, version)| is_news(**version)) {
            visit(CacheChange::Dropped { key: *key, version: *version });
        }
        CacheChanges { version: self.version, n_damaged: 0 }
    }

    fn add(&mut self, entries: &[(CacheEntry, ProgramRecord)]) -> AddedEntries {
        let version = self.version + 1;
        let mut added = Vec::with_capacity(entries.len());
        for (entry, program) in entries {
            let is_new = !self.entries.contains_key(&entry.key);
            added.push(is_new);
            if is_new {
                let known = self.programs.entry(program.program).or_insert_with(|| program.clone());
                if known.encoding != program.encoding {
                    *known = program.clone();
                }
                self.dropped.remove(&entry.key);
                self.space.remade(entry);
                let id = self.n_added;
                self.n_added += 1;
                let (entry, summary) = (entry.clone(), entry.summary());
                self.entries.insert(entry.key, Record { id, entry, summary, version, source: None, lineage: None });
                self.version = version;
            }
        }
        AddedEntries { version: added.contains(&true).then_some(version), added }
    }

    pub(super) fn drop(&mut self, keys: &[Fingerprint], remember: usize) -> DroppedEntries {
        let version = self.version + 1;
        let (mut dropped, mut parts) = (Vec::new(), BTreeMap::new());
        for key in keys {
            if let Some(record) = self.entries.remove(key) {
                dropped.push(*key);
                self.dropped.insert(*key, version);
                self.version = version;
                parts.extend(record.entry.parts.into_iter().map(|part| (part.location.clone(), part)));
            }
        }
        let referenced = self.locations();
        parts.retain(|location, _| !referenced.contains(location.as_str()));
        let mut versions: Vec<_> = self.dropped.values().copied().collect();
        versions.sort_by_key(|version| Reverse(*version));
        if let Some(too_old) = versions.get(remember) {
            self.dropped.retain(|_, version| *version > *too_old);
            self.forgotten_to = *too_old;
        }
        self.forget_places();
        let version = (!dropped.is_empty()).then_some(version);
        DroppedEntries { version, keys: dropped, parts: parts.into_values().collect() }
    }

    pub(super) fn entry(&self, key: &Fingerprint) -> Option<CacheEntry> {
        self.entries.get(key).map(|record| record.entry.clone())
    }

    pub(super) fn page(&self, after: Option<&Fingerprint>, limit: usize) -> Vec<CacheEntry> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = self.entries.range::<Fingerprint, _>((start, Bound::Unbounded)).take(limit);
        page.map(|(_, record)| record.entry.clone()).collect()
    }

    pub(super) fn neighbours(&self, inputs: &[Arc<[Fingerprint]>], limit: usize) -> Vec<(CacheEntry, ProgramRecord)> {
        let mut youngest: Vec<&Record> = self.entries.values().collect();
        youngest.sort_by_key(|record| Reverse(record.id));
        let mut near: BTreeMap<Reverse<u64>, &Record> = BTreeMap::new();
        for list in inputs {
            let over_it = youngest.iter().filter(|record| record.entry.inputs.contains(list));
            near.extend(over_it.take(limit).map(|record| (Reverse(record.id), *record)));
        }
        near.extend(youngest.iter().take(limit).map(|record| (Reverse(record.id), *record)));
        let with_program =
            |record: &Record| Some((record.entry.clone(), self.programs.get(&record.entry.program)?.clone()));
        near.into_values().filter_map(with_program).collect()
    }

    pub(super) fn program(&self, program: &Fingerprint) -> Option<ProgramRecord> {
        self.programs.get(program).cloned()
    }

    pub(super) fn files_referenced(&self, locations: &[String]) -> Vec<bool> {
        let referenced = self.locations();
        locations.iter().map(|location| referenced.contains(location.as_str())).collect()
    }

    pub(super) fn save_counts(
        &mut self,
        uses: &[UseCount],
        lookups: &[LookupCount],
        keep_lookups: Option<usize>,
    ) -> Option<i64> {
        let version = self.version + 1;
        for used in uses {
            if let Some(record) = self.entries.get_mut(&used.key) {
                record.summary.uses = record.summary.uses.saturating_add(used.uses);
                record.summary.saved_us = record.summary.saved_us.saturating_add(used.saved_us);
                record.summary.last_used_at = record.summary.last_used_at.max(used.last_used_at);
                record.version = version;
                self.version = version;
            }
        }
        for count in lookups {
            let none = LookupCount { lookups: 0, ..*count };
            let known = self.lookups.entry(count.program).or_insert(none);
            known.lookups += count.lookups;
            known.last_lookup_at = known.last_lookup_at.max(count.last_lookup_at);
        }
        if let Some(keep) = keep_lookups {
            let mut ages: Vec<_> = self.lookups.values().map(|known| (known.last_lookup_at, known.program)).collect();
            ages.sort_by_key(|age| Reverse(*age));
            for (_, program) in ages.into_iter().skip(keep) {
                self.lookups.remove(&program);
            }
        }
        (self.version == version).then_some(version)
    }

    pub(super) fn lookups(&self, visit: &mut (dyn FnMut(LookupCount) + Send)) {
        self.lookups.values().copied().for_each(visit);
    }

    pub(super) fn save_relatives(&mut self, relatives: &[RelativeRecord], keep: usize) {
        let mut next_id = self.relatives.last_key_value().map_or(1, |(id, _)| id + 1);
        for relative in relatives {
            let is_there = self.relatives.values().any(|known| known.program == relative.program);
            if !is_there {
                self.relatives.insert(next_id, relative.clone());
            }
            next_id += 1;
        }
        let oldest = next_id.saturating_sub(i64::try_from(keep).unwrap_or(i64::MAX));
        self.relatives.retain(|id, _| *id >= oldest);
    }

    pub(super) fn relatives(&self, after: i64, limit: usize) -> (i64, Vec<RelativeRecord>) {
        let mut young: Vec<_> = self.relatives.range(after.saturating_add(1)..).rev().take(limit).collect();
        young.reverse();
        let last = young.last().map_or(after, |(id, _)| **id);
        (last, young.into_iter().map(|(_, relative)| relative.clone()).collect())
    }

    /// Where all entries' files are.
    fn locations(&self) -> BTreeSet<&str> {
        let parts = self.entries.values().flat_map(|record| &record.entry.parts);
        parts.map(|part| part.location.as_str()).collect()
    }
}
