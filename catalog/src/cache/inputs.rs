//! [`KnownInputs`]: the extents of entries that were asked for lately, so that choosing among them waits for nothing.
//!
//! Bounded by bytes: lists of extents can be long. What is not here is read from the store, once.

use std::sync::Arc;

use moka::sync::Cache;

use crate::Fingerprint;

/// Memory for all lists.
const BYTES_MAX: u64 = 64 << 20;

/// The extents of an entry, for each of its inputs.
pub type EntryInputs = Arc<[Arc<[Fingerprint]>]>;

/// Lists of extents, by the key of their entry.
#[derive(Clone, Debug)]
pub(super) struct KnownInputs {
    lists: Cache<Fingerprint, EntryInputs>,
}

impl Default for KnownInputs {
    fn default() -> Self {
        let weigh = |_: &Fingerprint, inputs: &EntryInputs| {
            let bytes = inputs.iter().map(|list| 64 + list.len() * size_of::<Fingerprint>()).sum::<usize>() + 128;
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self { lists: Cache::builder().max_capacity(BYTES_MAX).weigher(weigh).build() }
    }
}

impl KnownInputs {
    pub(super) fn get(&self, key: &Fingerprint) -> Option<EntryInputs> {
        self.lists.get(key)
    }

    pub(super) fn put(&self, key: Fingerprint, inputs: &[Arc<[Fingerprint]>]) {
        self.lists.insert(key, inputs.into());
    }
}
