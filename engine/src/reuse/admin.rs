//! [`CacheAdmin`]: looking after the cache by hand. Deleting anything here is harmless: it is computed again.

use nectarine_catalog::{EntrySummary, Fingerprint};

use super::Reuse;
use crate::{EngineError, ErrorKind, Result};

/// The cache of one home.
#[derive(Clone)]
pub struct CacheAdmin {
    reuse: Reuse,
}

impl CacheAdmin {
    pub(crate) fn new(reuse: Reuse) -> Self {
        Self { reuse }
    }

    /// The one entry whose fingerprint starts like this.
    pub async fn find(&self, beginning: &str) -> Result<Fingerprint> {
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

    /// Deletes entries.
    pub async fn remove(&self, keys: &[Fingerprint]) {
        self.reuse.drop_entries(keys).await;
    }

    /// Deletes all entries; returns how many there were.
    pub async fn clear(&self) -> usize {
        self.reuse.refresh().await;
        let keys: Vec<_> = self.reuse.cache.entries().into_iter().map(|entry| entry.key).collect();
        self.reuse.drop_entries(&keys).await;
        keys.len()
    }
}
