//! [`CacheAdmin`]: looking after the cache by hand. Deleting anything here is harmless: it is computed again.

use nectarine_catalog::{EntrySummary, Fingerprint};

use super::Reuse;
use crate::collector::{Collected, Pace};
use crate::eviction::Why;
use crate::{EngineError, ErrorKind, Result, provenance};

/// How much there is, and may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CacheStats {
    /// Bytes of results.
    pub used: u64,
    /// Bytes that all processes have set aside for results that are not published yet.
    pub reserved: u64,
    /// What both may come to.
    pub budget: u64,
    /// Where eviction ends.
    pub low_water: u64,
    /// Results that were ever evicted.
    pub evicted: u64,
    /// What they took.
    pub evicted_bytes: u64,
    /// Bytes of files of dropped results that could not be deleted; they count until they are gone.
    pub undeleted: u64,
}

/// The cache of one home.
#[derive(Clone)]
pub struct CacheAdmin {
    reuse: Reuse,
}

impl CacheAdmin {
    pub(crate) fn new(reuse: Reuse) -> Self {
        Self { reuse }
    }

    /// Waits until what ended statements left behind is published. Statements and the calls below do so by themselves; this is
    /// for those who look at the files, or from another process.
    pub async fn settled(&self) {
        self.reuse.settled().await;
    }

    /// The one entry whose fingerprint starts like this.
    pub async fn find(&self, beginning: &str) -> Result<Fingerprint> {
        self.reuse.settled().await;
        self.reuse.refresh().await;
        let beginning = beginning.trim().to_ascii_lowercase();
        let keys = self.reuse.cache.entries().into_iter().map(|entry| entry.key);
        let mut found = keys.filter(|key| key.to_string().starts_with(&beginning));
        match (found.next(), found.next()) {
            (Some(key), None) => Ok(key),
            (Some(_), Some(_)) => {
                Err(EngineError::new(ErrorKind::Sql, format!("several cached results start with \"{beginning}\""))
                    .with_hint("give more of the fingerprint"))
            }
            (None, _) => Err(EngineError::new(ErrorKind::Sql, format!("no cached result starts with \"{beginning}\""))
                .with_hint("nectarine cache ls lists them")),
        }
    }

    /// Reads all entries and says what is wrong with those that can not be used, without changing anything. Also returns how
    /// many there are.
    pub async fn verify(&self) -> Result<(usize, Vec<(Fingerprint, String)>)> {
        self.reuse.settled().await;
        self.reuse.refresh().await;
        let mut faults = vec![];
        let mut entries = self.reuse.cache.entries();
        entries.sort_by_key(|entry| entry.key);
        for EntrySummary { key, .. } in &entries {
            let fault = match self.reuse.cache.entry(key).await {
                Ok(Some(entry)) => match self.reuse.store.verify(&entry).await {
                    Ok(()) => None,
                    // Its files go after it: somebody may just be dropping it.
                    Err(_) if self.reuse.cache.entry(key).await.is_ok_and(|now| now != Some(entry)) => None,
                    Err(error) => Some(error.to_string()),
                },
                // Dropped meanwhile.
                Ok(None) => None,
                Err(error) => Some(error.to_string()),
            };
            faults.extend(fault.map(|fault| (*key, fault)));
        }
        Ok((entries.len(), faults))
    }

    /// Where one entry comes from, or all of them, for Graphviz.
    pub async fn provenance_dot(&self, entry: Option<Fingerprint>) -> Result<String> {
        self.reuse.settled().await;
        provenance::dot(&self.reuse, entry).await
    }

    /// All entries that are there now, in no order.
    pub async fn entries(&self) -> Vec<EntrySummary> {
        self.reuse.settled().await;
        self.reuse.refresh().await;
        self.reuse.cache.entries()
    }

    /// How many entries have their rows in this process's memory.
    pub fn entries_in_memory(&self) -> usize {
        self.reuse.store.n_remembered()
    }

    /// Deletes entries.
    pub async fn remove(&self, keys: &[Fingerprint]) {
        self.reuse.settled().await;
        self.reuse.drop_entries(keys, Some(Why::ByHand)).await;
    }

    /// How much there is, and may be.
    pub async fn stats(&self) -> Result<CacheStats> {
        self.reuse.settled().await;
        self.reuse.refresh().await;
        let metadata = &self.reuse.caretaker.evictor.metadata;
        let (used, levels) = self.reuse.caretaker.ledger.usage();
        let (leases, totals) = (metadata.cache_leases().await?, metadata.eviction_totals().await?);
        Ok(CacheStats {
            used,
            reserved: leases.iter().map(|lease| lease.reserved).sum(),
            budget: levels.budget,
            low_water: levels.low,
            evicted: totals.entries,
            evicted_bytes: totals.bytes,
            undeleted: metadata.undeleted_bytes().await?,
        })
    }

    /// Evicts until the low-water mark is reached; returns how many results went. Happens by itself when the budget is nearly
    /// used up.
    pub async fn evict(&self) -> Result<usize> {
        self.reuse.settled().await;
        Ok(self.reuse.caretaker.evictor.make_room(true).await?.entries)
    }

    /// Sweeps the derived store now. Happens by itself now and then.
    pub async fn collect(&self) -> Result<Collected> {
        self.reuse.settled().await;
        self.reuse.caretaker.collector.collect(Pace::Fast).await
    }

    /// The same at the pace that it has in the background.
    pub async fn collect_gently(&self) -> Result<Collected> {
        self.reuse.caretaker.collector.collect(Pace::Gentle).await
    }

    /// Deletes all entries; returns how many there were.
    pub async fn clear(&self) -> usize {
        self.reuse.settled().await;
        self.reuse.refresh().await;
        let keys: Vec<_> = self.reuse.cache.entries().into_iter().map(|entry| entry.key).collect();
        self.reuse.drop_entries(&keys, Some(Why::ByHand)).await;
        keys.len()
    }
}
