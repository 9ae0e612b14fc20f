//! What this process is at, and what is nobody's any more: for work that is written down before it is done, and done by one of
//! several processes.
//!
//! Keeps true   a process that holds something is believed dead only if its lock in the home is free; where there are no locks, only
//!              after its lease.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::home::{Home, Liveness};

/// How long a process that cannot be asked counts as alive after it was heard of.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// What this process is at.
#[derive(Clone, Debug)]
pub(crate) struct Active<K>(Arc<Mutex<HashSet<K>>>);

impl<K> Default for Active<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash + Clone> Active<K> {
    /// Takes something; `None` if somebody here has it.
    pub(crate) fn take(&self, key: K) -> Option<Held<K>> {
        self.0.lock().insert(key.clone()).then(|| Held { active: self.clone(), key })
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.0.lock().contains(key)
    }
}

/// Something that this process is at, until this goes.
#[derive(Debug)]
pub(crate) struct Held<K: Eq + Hash> {
    active: Active<K>,
    key: K,
}

impl<K: Eq + Hash> Drop for Held<K> {
    fn drop(&mut self) {
        self.active.0.lock().remove(&self.key);
    }
}

/// Whether what `holder` began is nobody's any more; `is_active` tells whether this process is at it.
pub(crate) fn is_abandoned(
    home: &Home,
    holder: Option<&str>,
    lease_until: Option<i64>,
    now: i64,
    is_active: impl FnOnce() -> bool,
) -> bool {
    let Some(holder) = holder else { return true };
    if holder == home.process() {
        return !is_active();
    }
    match home.processes().liveness(holder) {
        Liveness::Alive => false,
        Liveness::Dead => true,
        Liveness::Unknown => lease_until.is_none_or(|until| until < now),
    }
}
