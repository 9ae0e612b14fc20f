//! What entries were made of, and programs that ran, in memory; the twin of `sqlite/cache/{sources, places, provenance, ..}`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::{Cache, Record};
use crate::cache::{
    DataScope, DroppedEntries, EntryPart, EntryProvenance, EvictionNote, ExtentPlace, InputProvenance, ProgramRun,
    Publication, StoredProgram,
};
use crate::{AddedEntries, ByteRange, Extent, Fingerprint, TableId, plain_location};

/// Where the extents of a list are.
pub(super) type Places = Vec<(Arc<str>, Option<ByteRange>)>;

impl Cache {
    pub(in super::super) fn publish(&mut self, publication: &Publication) -> AddedEntries {
        if publication.purges.is_some_and(|purges| purges != self.purges) {
            return AddedEntries { version: None, added: vec![false; publication.entries.len()] };
        }
        self.save_program_runs(publication.run.as_slice());
        let source = publication.run.as_ref().map(|run| run.source);
        let pairs: Vec<_> = publication.entries.iter().map(|new| (new.entry.clone(), new.program.clone())).collect();
        let outcome = self.add(&pairs);
        for (new, added) in publication.entries.iter().zip(&outcome.added) {
            let Some(record) = self.entries.get_mut(&new.entry.key).filter(|_| *added) else { continue };
            record.source = source;
            record.lineage.clone_from(&new.lineage);
            for (list, input) in new.entry.inputs.iter().zip(new.lineage.iter().flat_map(|lineage| &lineage.inputs)) {
                let place = |extent: &Arc<Extent>| (Arc::from(plain_location(&extent.location)), extent.range);
                self.places.entry(Arc::clone(list)).or_insert_with(|| input.extents.iter().map(place).collect());
            }
        }
        if outcome.version.is_some() {
            self.move_pins(&publication.pins);
        }
        outcome
    }

    pub(in super::super) fn save_program_runs(&mut self, runs: &[ProgramRun]) {
        for run in runs {
            if let Some(known) = self.sources.get_mut(&run.source) {
                known.runs += run.runs;
                known.first_run_at = known.first_run_at.min(run.first_run_at);
                known.last_run_at = known.last_run_at.max(run.last_run_at);
            } else if let Some(what) = &run.what {
                let (program, how) = what.as_ref();
                self.programs.entry(program.program).or_insert_with(|| program.clone());
                let stored = StoredProgram {
                    source: run.source,
                    program: run.program,
                    how: how.clone(),
                    first_run_at: run.first_run_at,
                    last_run_at: run.last_run_at,
                    runs: run.runs,
                    bytes_stored: (program.encoding.len() + how.sql.len()) as u64,
                };
                self.sources.insert(run.source, stored);
            }
        }
    }

    pub(in super::super) fn program_source(&self, source: &Fingerprint) -> Option<StoredProgram> {
        self.sources.get(source).cloned()
    }

    pub(in super::super) fn program_sources(&self, after: Option<&Fingerprint>, limit: usize) -> Vec<StoredProgram> {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = self.sources.range::<Fingerprint, _>((start, Bound::Unbounded)).take(limit);
        page.map(|(_, stored)| stored.clone()).collect()
    }

    pub(in super::super) fn provenance(&self, keys: &[Fingerprint]) -> Vec<EntryProvenance> {
        keys.iter().filter_map(|key| self.entries.get(key)).map(|record| self.made_of(record)).collect()
    }

    fn made_of(&self, record: &Record) -> EntryProvenance {
        let mut inputs = vec![];
        for (at, list) in record.entry.inputs.iter().enumerate() {
            let lineage = record.lineage.as_ref().and_then(|lineage| lineage.inputs.get(at));
            let places = self.places.get(list);
            let extent = |(at, fingerprint): (usize, &Fingerprint)| {
                let place = places.and_then(|places| places.get(at));
                ExtentPlace {
                    fingerprint: *fingerprint,
                    location: place.map(|(location, _)| Arc::clone(location)),
                    range: place.and_then(|(_, range)| *range),
                    is_reused: lineage.is_some_and(|lineage| lineage.reused.get(at) == Some(&true)),
                }
            };
            inputs.push(InputProvenance {
                table: lineage.map(|lineage| lineage.table.clone()),
                table_id: lineage.and_then(|lineage| lineage.table_id),
                extents: list.iter().enumerate().map(extent).collect(),
            });
        }
        EntryProvenance {
            key: record.entry.key,
            program: record.entry.program,
            source: record.source,
            inputs,
            origins: record.lineage.as_ref().map(|lineage| lineage.origins.clone()).unwrap_or_default(),
        }
    }

    /// Which files belong to a scope.
    pub(in super::super) fn files_of<'a>(&self, scope: &'a DataScope) -> impl Fn(&str) -> bool + use<'a> {
        let mut locations: BTreeSet<Arc<str>> = BTreeSet::new();
        for input in self.entries.values().flat_map(|record| self.made_of(record).inputs) {
            if is_of_table(scope, &input) {
                locations.extend(input.extents.iter().filter_map(|extent| extent.location.clone()));
            }
        }
        // A file is the same by whatever links it is reached.
        let real: Vec<Arc<str>> = locations.iter().filter_map(|url| scope.without_links(url)).map(Arc::from).collect();
        locations.extend(real);
        move |url: &str| {
            locations.contains(url)
                || scope.names_file(url)
                || scope.without_links(url).is_some_and(|real| locations.contains(real.as_str()))
        }
    }

    pub(in super::super) fn local_folders(&self) -> Vec<String> {
        let urls = self.places.values().flatten().map(|(url, _)| url).filter(|url| url.starts_with("file:///"));
        let folders: BTreeSet<&str> = urls.filter_map(|url| Some(&url[..=url.rfind('/')?])).collect();
        folders.into_iter().map(str::to_owned).collect()
    }

    /// What entries were made of is known by the table's name from now on.
    pub(in super::super) fn rename_table(&mut self, id: TableId, name: &str) {
        let lineages = self.entries.values_mut().filter_map(|record| record.lineage.as_mut());
        let inputs = lineages.flat_map(|lineage| &mut lineage.inputs).filter(|input| input.table_id == Some(id));
        inputs.for_each(|input| input.table = name.to_owned());
    }

    pub(in super::super) fn dependants(&self, scope: &DataScope) -> Vec<Fingerprint> {
        let all: BTreeMap<Fingerprint, EntryProvenance> =
            self.entries.iter().map(|(key, record)| (*key, self.made_of(record))).collect();
        let is_file = self.files_of(scope);
        let depends = |entry: &EntryProvenance| {
            entry.inputs.iter().any(|input| {
                let is_there = |extent: &ExtentPlace| extent.location.as_ref().is_some_and(|url| is_file(url));
                is_of_table(scope, input)
                    || (scope.unknown && input.table.is_none())
                    || input.extents.iter().any(is_there)
            }) || entry.origins.iter().any(|origin| scope.entries.contains(origin))
        };
        let mut found: BTreeSet<Fingerprint> =
            all.values().filter(|entry| depends(entry)).map(|entry| entry.key).collect();
        loop {
            let more: Vec<_> = all
                .values()
                .filter(|entry| {
                    !found.contains(&entry.key) && entry.origins.iter().any(|origin| found.contains(origin))
                })
                .map(|entry| entry.key)
                .collect();
            if more.is_empty() {
                return found.into_iter().collect();
            }
            found.extend(more);
        }
    }

    pub(in super::super) fn purge(
        &mut self,
        scope: &DataScope,
        remember: usize,
        note: &EvictionNote<'_>,
    ) -> DroppedEntries {
        self.purges += 1;
        let keys = self.dependants(scope);
        let dropped = self.evict(&keys, remember, note);
        self.add_undeleted_parts(&dropped.parts);
        dropped
    }

    pub(in super::super) fn add_undeleted_parts(&mut self, parts: &[EntryPart]) {
        for part in parts {
            self.undeleted_parts.entry(part.location.clone()).or_insert_with(|| part.clone());
        }
    }

    pub(in super::super) fn undeleted_bytes(&self) -> u64 {
        self.undeleted_parts.values().fold(0, |sum: u64, part| sum.saturating_add(part.bytes))
    }

    pub(in super::super) fn undeleted_parts(&self) -> Vec<EntryPart> {
        self.undeleted_parts.values().cloned().collect()
    }

    pub(in super::super) fn forget_undeleted_parts(&mut self, locations: &[String]) {
        self.undeleted_parts.retain(|location, _| !locations.contains(location));
    }

    /// Forgets where the extents of lists are that no entry has any more.
    pub(super) fn forget_places(&mut self) {
        let used: BTreeSet<&Arc<[Fingerprint]>> =
            self.entries.values().flat_map(|record| &record.entry.inputs).collect();
        self.places.retain(|list, _| used.contains(list));
    }
}

fn is_of_table(scope: &DataScope, input: &InputProvenance) -> bool {
    input.table_id.is_some_and(|id| scope.tables.contains(&id))
        || input.table.as_ref().is_some_and(|name| scope.table_names.contains(name))
}
