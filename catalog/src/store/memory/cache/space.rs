//! Leases and evictions in memory; the twin of `sqlite/cache/{space,evictions,sweep}`.

use std::collections::{BTreeMap, VecDeque};

use super::Cache;
use crate::Fingerprint;
use crate::cache::{
    CacheEntry, CacheLease, DroppedEntries, EvictionNote, EvictionRecord, EvictionTotals, SpaceOutcome, SpaceRequest,
};

#[derive(Debug, Default)]
pub(super) struct Space {
    leases: BTreeMap<String, CacheLease>,
    /// The newest last.
    evictions: VecDeque<EvictionRecord>,
    totals: EvictionTotals,
}

impl Space {
    pub(super) fn remade(&mut self, entry: &CacheEntry) {
        let gone = self.evictions.iter_mut().filter(|gone| gone.key == entry.key && gone.remade.is_none());
        gone.for_each(|gone| gone.remade = Some((entry.created_at, entry.cost_us)));
    }
}

impl Cache {
    /// Drops entries and writes down why.
    pub(in super::super) fn evict(
        &mut self,
        keys: &[Fingerprint],
        remember: usize,
        note: &EvictionNote<'_>,
    ) -> DroppedEntries {
        let may_go = |key: &&Fingerprint| !note.spares_pinned || !self.is_pinned(key);
        let keys: Vec<Fingerprint> = keys.iter().filter(may_go).copied().collect();
        self.record_evictions(&keys, note);
        self.drop(&keys, remember)
    }

    fn record_evictions(&mut self, keys: &[Fingerprint], note: &EvictionNote<'_>) {
        let mut gone: Vec<_> = keys.iter().filter_map(|key| self.entries.get(key)).collect();
        gone.sort_by_key(|record| record.id);
        gone.dedup_by_key(|record| record.id);
        for record in gone {
            self.space.totals.entries += 1;
            self.space.totals.bytes += record.summary.bytes;
            self.space.evictions.push_back(EvictionRecord {
                key: record.entry.key,
                program: record.entry.program,
                description: record.entry.description.clone(),
                bytes: record.summary.bytes,
                cost_us: record.summary.cost_us,
                uses: record.summary.uses,
                reason: note.reason.to_owned(),
                evicted_at: note.at,
                remade: None,
            });
        }
        let too_many = self.space.evictions.len().saturating_sub(note.keep);
        self.space.evictions.drain(..too_many);
    }

    pub(in super::super) fn evictions(&self, limit: usize) -> Vec<EvictionRecord> {
        self.space.evictions.iter().rev().take(limit).cloned().collect()
    }

    pub(in super::super) fn eviction_totals(&self) -> EvictionTotals {
        self.space.totals
    }

    pub(in super::super) fn reserve(&mut self, request: &SpaceRequest) -> SpaceOutcome {
        if request.version != self.version {
            return SpaceOutcome::Stale;
        }
        let others = self.space.leases.values().filter(|lease| lease.holder != request.holder);
        let others = others.fold(self.undeleted_bytes(), |sum: u64, lease| sum.saturating_add(lease.reserved));
        let room = request.budget.saturating_sub(request.used).saturating_sub(others);
        if room < request.least {
            return SpaceOutcome::Refused { others };
        }
        let reserved = request.most.min(room).max(request.least);
        self.save_lease(&CacheLease { holder: request.holder.clone(), reserved, expires_at: request.expires_at });
        SpaceOutcome::Granted(reserved)
    }

    pub(in super::super) fn save_lease(&mut self, lease: &CacheLease) {
        self.space.leases.insert(lease.holder.clone(), lease.clone());
    }

    pub(in super::super) fn drop_lease(&mut self, holder: &str) {
        self.space.leases.remove(holder);
    }

    pub(in super::super) fn leases(&self) -> Vec<CacheLease> {
        self.space.leases.values().cloned().collect()
    }

    pub(in super::super) fn locations_between(&self, from: &str, to: &str) -> Vec<(String, Fingerprint)> {
        let parts = self.entries.values().flat_map(|record| record.entry.parts.iter().map(move |part| (part, record)));
        let is_between = |location: &str| from <= location && location < to;
        let between = parts.filter(|(part, _)| is_between(&part.location));
        between.map(|(part, record)| (part.location.clone(), record.entry.key)).collect()
    }
}
