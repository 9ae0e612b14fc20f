//! [`CacheAdmin`]: looking after the cache by hand. Deleting anything here is harmless: it is computed again.

use nectarine_catalog::Fingerprint;

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
