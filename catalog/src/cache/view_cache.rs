//! [`ViewCache`]: Lookup, Inquire and AddEntry, answered from memory and written to the metadata store.
//!
//! ```text
//!   lookup inquire used ..      memory only; never wait for the store
//!   refresh                     one cheap read; the changes of other processes if there are any
//!   add remove flush            one transaction each; the index follows when it is committed
//!   entry page program          the whole records, from the store
//! ```
//!
//! Whole        an entry is in the index only after its transaction is committed.
//! Behind       what others did is seen at the next `refresh`. A key may therefore name files that are gone: whoever fails
//!              to read an entry calls [`ViewCache::remove`] and computes.
//! Waiting      the locks over memory are held for no I/O. `refresh` waits for another refresh, never for a writer.
//! Memory       about 130 bytes an entry and 60 a program; lists of extents and parts stay in the store.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::counts::{LOOKUPS_KEPT, Lookups, Uses};
use super::index::{DROPPED_KEPT, EVICTIONS_KEPT, Index};
use super::inputs::{EntryInputs, KnownInputs};
use super::{
    CacheChange, CacheEntry, DataScope, DroppedEntries, EntryPart, EntryProvenance, EntrySummary, EvictionNote,
    NewEntry, ProgramRecord, ProgramRun, Publication, RelativeRecord, StoredProgram, UseCount, bounded,
};
use crate::store::MetadataStore;
use crate::{CatalogError, Clock, Fingerprint, Result, SystemClock};

/// The view cache of one home; cheap to clone.
#[derive(Clone, Debug)]
pub struct ViewCache {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Arc<dyn MetadataStore>,
    clock: Arc<dyn Clock>,
    // Locked in this order where several are needed.
    pub(super) index: RwLock<Index>,
    uses: Mutex<Uses>,
    pub(super) lookups: Mutex<Lookups>,
    inputs: KnownInputs,
    /// Entries that others dropped since somebody asked; `None` for any number of them.
    gone: Mutex<Option<Vec<Fingerprint>>>,
    /// Held while changes are read, so that they are applied in the order of their versions.
    refreshing: tokio::sync::Mutex<()>,
    /// Held while counts are written down.
    flushing: tokio::sync::Mutex<()>,
}

/// What is known of one prefix of a query.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Inquiry {
    /// The entry with exactly this key.
    pub hit: Option<EntrySummary>,
    /// How often the program was looked up before this question, over whatever extents.
    pub lookups: u64,
    /// Entries of the program, over whatever extents.
    pub entries_of_program: u32,
    /// Whether there was such an entry once, and it was dropped. Only the newest drops are remembered.
    pub dropped: bool,
}

/// What all entries come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// How many there are.
    pub entries: u64,
    /// Bytes of their files; files that entries share count for each.
    pub bytes: u64,
    /// Programs that have entries.
    pub programs: u64,
    /// Entries that have no bytes: results without rows.
    pub empty: u64,
}

impl ViewCache {
    /// Reads all summaries. Records that are damaged are left out: nobody has computed those results.
    pub async fn open(store: Arc<dyn MetadataStore>) -> Result<Self> {
        Self::open_with(store, Arc::new(SystemClock)).await
    }

    /// As [`Self::open`], with a clock that tests can drive.
    pub async fn open_with(store: Arc<dyn MetadataStore>, clock: Arc<dyn Clock>) -> Result<Self> {
        let mut index = Index::default();
        let changes = store.cache_changes(None, &mut |change| index.apply(change)).await?;
        index.version = changes.version;
        if changes.n_damaged > 0 {
            tracing::warn!(n_damaged = changes.n_damaged, "cache entries that cannot be read were left out");
        }
        let mut lookups = Lookups::default();
        store.cache_lookups(&mut |count| lookups.load(count)).await?;
        let inner = Inner {
            store,
            clock,
            index: RwLock::new(index),
            uses: Mutex::default(),
            lookups: Mutex::new(lookups),
            inputs: KnownInputs::default(),
            gone: Mutex::new(Some(vec![])),
            refreshing: tokio::sync::Mutex::default(),
            flushing: tokio::sync::Mutex::default(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sees what other processes did since the last call; one cheap read when nothing changed.
    pub async fn refresh(&self) -> Result<()> {
        let versions = self.inner.store.versions().await?;
        self.refresh_to(versions.cache).await
    }

    /// As [`Self::refresh`], for a caller that has just read the store's versions; touches nothing when they are known.
    pub async fn refresh_to(&self, version: i64) -> Result<()> {
        if self.version() >= version {
            return Ok(());
        }
        let _refreshing = self.inner.refreshing.lock().await;
        let since = self.version();
        if since >= version {
            return Ok(());
        }
        // Collected first: the lock over the index must not be held while reading.
        let (mut fresh, mut collected) = (None, Vec::new());
        let mut collect = |change| match &mut fresh {
            Some(index) => Index::apply(index, change),
            None if change == CacheChange::Everything => fresh = Some(Index::default()),
            None => collected.push(change),
        };
        let changes = self.inner.store.cache_changes(Some(since), &mut collect).await?;
        if changes.n_damaged > 0 {
            tracing::warn!(n_damaged = changes.n_damaged, "cache entries that cannot be read were left out");
        }
        let dropped = collected.iter().filter_map(|change| match change {
            CacheChange::Dropped { key, .. } => Some(*key),
            _ => None,
        });
        let mut gone = self.inner.gone.lock();
        match (&fresh, gone.as_mut()) {
            (None, Some(gone)) => gone.extend(dropped),
            (Some(_), _) => *gone = None,
            (None, None) => {}
        }
        drop(gone);
        let mut index = self.inner.index.write();
        match fresh {
            // What this process added after those changes were read is missing until the next refresh tells of it.
            Some(mut fresh) => {
                fresh.version = changes.version;
                let old = std::mem::replace(&mut *index, fresh);
                drop(index);
                // Freeing a million entries takes a moment that nobody should wait for.
                drop(old);
            }
            None => {
                collected.into_iter().for_each(|change| index.apply(change));
                index.version = index.version.max(changes.version);
            }
        }
        Ok(())
    }

    /// Entries that others dropped, as far as refreshes since the last call told: who holds rows of theirs lets them go.
    /// `None` if all that is not there may have been.
    pub fn take_gone(&self) -> Option<Vec<Fingerprint>> {
        self.inner.gone.lock().replace(vec![])
    }

    /// The version of the store that the index has caught up with.
    pub fn version(&self) -> i64 {
        self.inner.index.read().version
    }

    /// The entry with this key.
    pub fn lookup(&self, key: &Fingerprint) -> Option<EntrySummary> {
        let entry = self.inner.index.read().get(key)?;
        Some(self.inner.uses.lock().with(entry))
    }

    /// One question for all prefixes `(key, program)` of a query. With `count` the programs are looked up once more,
    /// each once however often the query holds it.
    pub fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], count: bool) -> Vec<Inquiry> {
        let now = self.now();
        let index = self.inner.index.read();
        let uses = self.inner.uses.lock();
        let mut lookups = self.inner.lookups.lock();
        if count {
            lookups.ask();
        }
        let answer = |(key, program): &(Fingerprint, Fingerprint)| Inquiry {
            hit: index.get(key).map(|entry| uses.with(entry)),
            lookups: if count { lookups.count(program, now) } else { lookups.known(program) },
            entries_of_program: index.n_entries_of(program),
            dropped: index.was_dropped(key),
        };
        prefixes.iter().map(answer).collect()
    }

    /// All entries of a program, the youngest first.
    pub fn entries_of(&self, program: &Fingerprint) -> Vec<EntrySummary> {
        let mut entries = self.inner.index.read().entries_of(program);
        let uses = self.inner.uses.lock();
        entries.iter_mut().for_each(|entry| *entry = uses.with(*entry));
        entries
    }

    /// The extents of an entry, if they are in memory; else [`Self::load_inputs`] brings them there.
    pub fn inputs(&self, key: &Fingerprint) -> Option<EntryInputs> {
        self.inner.inputs.get(key)
    }

    /// Reads the extents of entries into memory. Those that cannot be read stay unknown.
    pub async fn load_inputs(&self, keys: &[Fingerprint]) -> Result<()> {
        for key in keys {
            if let Ok(Some(entry)) = self.inner.store.cache_entry(key).await {
                self.inner.inputs.put(*key, &entry.inputs);
            }
        }
        Ok(())
    }

    /// All entries, in no order.
    pub fn entries(&self) -> Vec<EntrySummary> {
        let mut entries: Vec<_> = self.inner.index.read().entries().collect();
        let uses = self.inner.uses.lock();
        entries.iter_mut().for_each(|entry| *entry = uses.with(*entry));
        entries
    }

    /// What all entries come to.
    pub fn totals(&self) -> Totals {
        let index = self.inner.index.read();
        Totals {
            entries: index.n_entries() as u64,
            bytes: index.bytes(),
            programs: index.n_programs() as u64,
            empty: index.n_empty() as u64,
        }
    }

    /// What all entries come to, and the version of which that is true.
    pub fn bytes_at_version(&self) -> (u64, i64) {
        let index = self.inner.index.read();
        (index.bytes(), index.version)
    }

    /// A whole entry, from the store. `Damaged` if it cannot be read; then [`Self::remove`] makes room for a new one.
    pub async fn entry(&self, key: &Fingerprint) -> Result<Option<CacheEntry>> {
        self.inner.store.cache_entry(key).await
    }

    /// Whole entries, from the store, in the order of their keys: the first `limit` after a key, or of all. Those that
    /// cannot be read are left out; the pages are over when one is empty.
    pub async fn page(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<CacheEntry>> {
        self.inner.store.cache_entries(after, limit).await
    }

    /// Entries that a query over these lists of extents may be like, from the store, the youngest first; see
    /// [`MetadataStore::cache_neighbours`]. For explanations.
    pub async fn neighbours(
        &self,
        inputs: &[Arc<[Fingerprint]>],
        limit: usize,
    ) -> Result<Vec<(CacheEntry, ProgramRecord)>> {
        self.inner.store.cache_neighbours(inputs, limit).await
    }

    /// A program that has, or had, an entry.
    pub async fn program(&self, program: &Fingerprint) -> Result<Option<ProgramRecord>> {
        self.inner.store.cache_program(program).await
    }

    /// Which of these files, named as in [`EntryPart::location`], some entry has; asks the store, not the index.
    pub async fn referenced(&self, locations: &[String]) -> Result<Vec<bool>> {
        self.inner.store.cache_files_referenced(locations).await
    }

    /// Writes down which rows programs give; see [`MetadataStore::save_relatives`].
    pub async fn save_relatives(&self, relatives: &[RelativeRecord], keep: usize) -> Result<()> {
        self.inner.store.save_relatives(relatives, keep).await
    }

    /// Programs by the rows they give, those written down after `after`; see [`MetadataStore::relatives`].
    pub async fn relatives(&self, after: i64, limit: usize) -> Result<(i64, Vec<RelativeRecord>)> {
        self.inner.store.relatives(after, limit).await
    }

    /// AddEntry: publishes an entry whose files are in place. If its key is there already, the old entry stays and
    /// `false` is returned; the caller deletes its files.
    pub async fn add(&self, entry: CacheEntry, program: ProgramRecord) -> Result<bool> {
        let added = self.add_all(vec![(entry, program)]).await?;
        Ok(added == [true])
    }

    /// Publishes several entries in one transaction; see [`Self::add`].
    pub async fn add_all(&self, entries: Vec<(CacheEntry, ProgramRecord)>) -> Result<Vec<bool>> {
        let new = |(entry, program)| NewEntry { entry, program, lineage: None };
        self.publish(Publication { entries: entries.into_iter().map(new).collect(), ..Publication::default() }).await
    }

    /// Publishes what a statement made, in one transaction; see [`Self::add`]. Nothing is added if something was purged
    /// since the statement began.
    pub async fn publish(&self, mut publication: Publication) -> Result<Vec<bool>> {
        for NewEntry { entry, program, .. } in &mut publication.entries {
            if entry.program != program.program {
                let what = format!("cache entry \"{}\"", entry.key);
                return Err(CatalogError::Damaged { what, detail: "it comes with another program".to_owned() });
            }
            entry.description = bounded(std::mem::take(&mut entry.description));
            program.description = bounded(std::mem::take(&mut program.description));
        }
        let outcome = self.inner.store.publish(&publication).await?;
        let entries = &publication.entries;
        if let Some(version) = outcome.version {
            let added = entries.iter().zip(&outcome.added).filter(|(_, added)| **added);
            let changes = added.map(|(new, _)| CacheChange::Entry { summary: new.entry.summary(), version });
            self.inner.index.write().apply_own(version, changes);
            entries.iter().for_each(|new| self.inner.inputs.put(new.entry.key, &new.entry.inputs));
        }
        Ok(outcome.added)
    }

    /// Drops all entries that were made from something in the scope, and refuses what statements that run now make. Returns
    /// the keys of those that went, and their files that no entry references any more, for the caller to delete. It is written
    /// down why.
    pub async fn purge(&self, scope: &DataScope, reason: &str) -> Result<(Vec<Fingerprint>, Vec<EntryPart>)> {
        let outcome = self.inner.store.purge(scope, DROPPED_KEPT, &self.note(reason, false)).await?;
        self.dropped(&outcome);
        Ok((outcome.keys, outcome.parts))
    }

    /// Entries that were made from something in the scope, from the store.
    pub async fn dependants(&self, scope: &DataScope) -> Result<Vec<Fingerprint>> {
        self.inner.store.dependants(scope).await
    }

    /// What entries were made of, from the store; those that are not there are left out.
    pub async fn provenance(&self, keys: &[Fingerprint]) -> Result<Vec<EntryProvenance>> {
        self.inner.store.provenance(keys).await
    }

    /// Writes down runs of programs.
    pub async fn save_program_runs(&self, runs: &[ProgramRun]) -> Result<()> {
        self.inner.store.save_program_runs(runs).await
    }

    /// How a program came to be.
    pub async fn program_source(&self, source: &Fingerprint) -> Result<Option<StoredProgram>> {
        self.inner.store.program_source(source).await
    }

    /// Programs that ran; see [`MetadataStore::program_sources`].
    pub async fn program_sources(&self, after: Option<&Fingerprint>, limit: usize) -> Result<Vec<StoredProgram>> {
        self.inner.store.program_sources(after, limit).await
    }

    /// Drops entries. Returns their files that no entry references any more, for the caller to delete. That they were
    /// there is remembered for a while; see [`Inquiry::dropped`].
    pub async fn remove(&self, keys: &[Fingerprint]) -> Result<Vec<EntryPart>> {
        let outcome = self.inner.store.drop_cache_entries(keys, DROPPED_KEPT).await?;
        self.dropped(&outcome);
        Ok(outcome.parts)
    }

    /// As [`Self::remove`], and it is written down why; returns what was there, for the caller to delete the files.
    pub async fn evict(&self, keys: &[Fingerprint], reason: &str) -> Result<DroppedEntries> {
        self.evict_noted(keys, &self.note(reason, false)).await
    }

    /// As [`Self::evict`], but what is pinned stays.
    pub async fn evict_unpinned(&self, keys: &[Fingerprint], reason: &str) -> Result<DroppedEntries> {
        self.evict_noted(keys, &self.note(reason, true)).await
    }

    async fn evict_noted(&self, keys: &[Fingerprint], note: &EvictionNote<'_>) -> Result<DroppedEntries> {
        let outcome = self.inner.store.evict_cache_entries(keys, DROPPED_KEPT, note).await?;
        self.dropped(&outcome);
        Ok(outcome)
    }

    fn note<'a>(&self, reason: &'a str, spares_pinned: bool) -> EvictionNote<'a> {
        EvictionNote { reason, at: self.now(), keep: EVICTIONS_KEPT, spares_pinned }
    }

    fn dropped(&self, outcome: &DroppedEntries) {
        if let Some(version) = outcome.version {
            let changes = outcome.keys.iter().map(|key| CacheChange::Dropped { key: *key, version });
            self.inner.index.write().apply_own(version, changes);
        }
    }

    /// A query read an entry, which saved it so much. Counted in memory until [`Self::flush`].
    pub fn used(&self, key: &Fingerprint, saved_us: u64) {
        let last_used_at = self.now();
        let index = self.inner.index.read();
        if index.get(key).is_some() {
            self.inner.uses.lock().count(UseCount { key: *key, uses: 1, saved_us, last_used_at });
        }
    }

    /// Writes down uses and look-ups; other processes see the uses at their next refresh. Nothing is written if nothing
    /// was counted. What could not be written stays counted, for the next time.
    pub async fn flush(&self) -> Result<()> {
        let _flushing = self.inner.flushing.lock().await;
        let uses = self.inner.uses.lock().begin();
        let (lookups, forgot) = self.inner.lookups.lock().begin();
        if uses.is_empty() && lookups.is_empty() && !forgot {
            return Ok(());
        }
        let keep_lookups = forgot.then_some(LOOKUPS_KEPT);
        match self.inner.store.save_cache_counts(&uses, &lookups, keep_lookups).await {
            Ok(version) => {
                let mut index = self.inner.index.write();
                if let Some(version) = version {
                    index.count_own(version, &uses);
                }
                self.inner.uses.lock().finish();
                Ok(())
            }
            Err(error) => {
                self.inner.lookups.lock().give_back(&lookups, forgot);
                Err(error)
            }
        }
    }

    fn now(&self) -> i64 {
        self.inner.clock.now_ns() / 1000
    }
}
