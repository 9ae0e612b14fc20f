//! [`Readers`]: entries that statements of this process are about to read.
//!
//! A lease lasts from when a plan names an entry until its rows are loaded and verified; after that the statement needs nothing
//! from the derived store. Dropping the statement drops the lease. Statements of other processes have none: between the look at
//! an entry's record and the loading of its files, the files of evicted entries stay for a moment (see `evictor`); who still
//! comes too late plans again.

use std::collections::HashMap;
use std::sync::Arc;

use nectarine_catalog::Fingerprint;
use parking_lot::Mutex;

/// Who reads what; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readers {
    n_readers: Arc<Mutex<HashMap<Fingerprint, usize>>>,
}

/// Keeps entries from being evicted while it lives.
#[derive(Debug)]
pub(crate) struct ReadLease {
    readers: Readers,
    keys: Vec<Fingerprint>,
}

impl Readers {
    pub(crate) fn lease(&self, keys: impl IntoIterator<Item = Fingerprint>) -> ReadLease {
        let keys: Vec<_> = keys.into_iter().collect();
        let mut n_readers = self.n_readers.lock();
        keys.iter().for_each(|key| *n_readers.entry(*key).or_default() += 1);
        drop(n_readers);
        ReadLease { readers: self.clone(), keys }
    }

    pub(crate) fn has(&self, key: &Fingerprint) -> bool {
        self.n_readers.lock().contains_key(key)
    }
}

impl Drop for ReadLease {
    fn drop(&mut self) {
        let mut n_readers = self.readers.n_readers.lock();
        for key in &self.keys {
            if let Some(n) = n_readers.get_mut(key) {
                *n -= 1;
                if *n == 0 {
                    n_readers.remove(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_reader_lets_go() {
        let readers = Readers::default();
        let (a, b) = (Fingerprint::of_bytes(b"a"), Fingerprint::of_bytes(b"b"));
        let first = readers.lease([a, b]);
        let second = readers.lease([a]);
        drop(first);
        assert!(readers.has(&a) && !readers.has(&b));
        drop(second);
        assert!(!readers.has(&a));
    }
}
