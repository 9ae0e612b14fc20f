//! [`Ledger`]: room is set aside before anything is written, by all processes of a home together.
//!
//! ```text
//!   entries + leases of all processes <= budget          checked in one transaction of the metadata store
//!   lease of this process  >= granted >= held            granted: what may be held without asking; held: what is in flight
//! ```
//!
//! Asks in chunks   so that a part costs no transaction; a small entry takes from what was granted before.
//! An entry that is published counts by itself from then on: what it held leaves `granted` as well.
//! Never waits for room: who finds none does not write, and eviction is told.
//! What can not be deleted counts for all processes, by a list of its own.
//! A process that dies leaves its lease behind, and so the room stays set aside until the collector has swept what it wrote.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{CacheLease, Clock, SpaceOutcome, SpaceRequest, ViewCache};
use nectarine_executor::Room;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Budget, Levels};

/// Room that is asked for at once, at most; a share of the budget if that is less.
const CHUNK_BYTES_MAX: u64 = 32 << 20;
const CHUNK_SHARE: u64 = 64;
/// How long a lease is believed if nobody can tell whether its holder lives.
const LEASE: Duration = Duration::from_secs(600);
/// How often to ask again when others publish all the time.
const TRIES_MAX: usize = 8;
/// After a refusal nobody asks again for so long, unless entries came or went, or this process gave something back.
const REFUSED: Duration = Duration::from_millis(500);

/// Bytes that are counted while this lives.
#[derive(Debug)]
pub(crate) struct Held {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.ledger.release(self.bytes, false);
    }
}

/// What one process has set aside.
#[derive(Debug)]
pub(crate) struct Ledger {
    cache: ViewCache,
    store: Arc<dyn MetadataStore>,
    clock: Arc<dyn Clock>,
    holder: String,
    pub(crate) budget: Budget,
    local: Mutex<Local>,
    /// Bytes of dropped entries that could not be deleted, by anybody, when that was last looked at.
    undeleted: AtomicU64,
    /// Held while the store is asked, so that leases are written in their order.
    asking: tokio::sync::Mutex<()>,
    /// Tells that room is wanted.
    pub(crate) wanted: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Local {
    /// In flight.
    held: u64,
    /// May be held without asking.
    granted: u64,
    /// What the lease in the store says; `None` if there is none.
    lease: Option<u64>,
    renewed: Option<Instant>,
    /// What became entries, ever.
    published: u64,
    refused: Option<(Instant, i64)>,
}

impl Ledger {
    pub(crate) fn new(
        cache: ViewCache,
        store: Arc<dyn MetadataStore>,
        clock: Arc<dyn Clock>,
        holder: String,
        budget: Budget,
    ) -> Self {
        Self {
            cache,
            store,
            clock,
            holder,
            budget,
            local: Mutex::default(),
            undeleted: AtomicU64::default(),
            asking: tokio::sync::Mutex::default(),
            wanted: Arc::default(),
        }
    }

    /// Bytes of entries, and the marks to compare with.
    pub(crate) fn usage(&self) -> (u64, Levels) {
        let (used, _) = self.cache.bytes_at_version();
        (used, self.budget.levels(used))
    }

    /// Whether only what somebody asked for is kept.
    pub(crate) fn is_tight(&self) -> bool {
        let (used, levels) = self.usage();
        used.saturating_add(self.held()).saturating_add(self.undeleted()) > levels.low
    }

    /// Bytes of files that no entry has any more and that could not be deleted.
    pub(crate) fn undeleted(&self) -> u64 {
        self.undeleted.load(Ordering::Relaxed)
    }

    /// That is how many there are now.
    pub(crate) fn learn_undeleted(&self, bytes: u64) {
        self.undeleted.store(bytes, Ordering::Relaxed);
    }

    /// Whether there was no room the last time that somebody asked.
    pub(crate) fn was_refused(&self) -> bool {
        self.local.lock().refused.is_some()
    }

    /// In flight.
    pub(crate) fn held(&self) -> u64 {
        self.local.lock().held
    }

    /// Counts bytes that are about to be no entry's any more but are still there, whatever the budget says; until what is
    /// returned is dropped.
    pub(crate) async fn hold(self: &Arc<Self>, bytes: u64) -> Held {
        let _asking = self.asking.lock().await;
        let (held, lease) = {
            let mut local = self.local.lock();
            local.held += bytes;
            local.granted += bytes;
            (Held { ledger: Arc::clone(self), bytes }, local.granted)
        };
        self.save(lease).await;
        held
    }

    /// Gives back what nobody uses, and tells others that this process lives, if that is due.
    pub(crate) async fn tidy(&self) {
        let _asking = self.asking.lock().await;
        let (held, lease) = {
            let mut local = self.local.lock();
            local.granted = local.held;
            (local.held, local.lease)
        };
        let is_due = self.local.lock().renewed.is_none_or(|renewed| renewed.elapsed() > LEASE / 3);
        match lease {
            Some(_) if held == 0 => self.give_up().await,
            Some(lease) if lease != held || is_due => self.save(held).await,
            _ => {}
        }
    }

    async fn give_up(&self) {
        match self.store.drop_cache_lease(&self.holder).await {
            Ok(()) => self.local.lock().lease = None,
            Err(error) => tracing::debug!(%error, "a lease stays"),
        }
    }

    async fn save(&self, reserved: u64) {
        let lease = CacheLease { holder: self.holder.clone(), reserved, expires_at: self.expiry() };
        match self.store.save_cache_lease(&lease).await {
            Ok(()) => self.leased(reserved),
            Err(error) => tracing::warn!(%error, "cannot renew the lease on derived data"),
        }
    }

    fn leased(&self, reserved: u64) {
        let mut local = self.local.lock();
        local.lease = Some(reserved);
        local.renewed = Some(Instant::now());
    }

    fn expiry(&self) -> i64 {
        (self.clock.now_ns() / 1000).saturating_add(LEASE.as_micros() as i64)
    }

    /// Takes from what was granted.
    fn take(&self, bytes: u64) -> bool {
        let mut local = self.local.lock();
        let is_there = local.held.saturating_add(bytes) <= local.granted;
        if is_there {
            local.held += bytes;
        }
        is_there
    }

    /// Asks the store for so much more; whether it was taken.
    async fn ask(&self, bytes: u64) -> bool {
        let _asking = self.asking.lock().await;
        for _ in 0..TRIES_MAX {
            if self.take(bytes) {
                return true;
            }
            if let Err(error) = self.cache.refresh().await {
                tracing::debug!(%error, "cannot tell how much room there is");
                return false;
            }
            let (used, version) = self.cache.bytes_at_version();
            let levels = self.budget.levels(used);
            let (held, published) = {
                let local = self.local.lock();
                if local.refused.is_some_and(|(at, known)| known == version && at.elapsed() < REFUSED) {
                    return false;
                }
                (local.held, local.published)
            };
            let least = held.saturating_add(bytes);
            let chunk = CHUNK_BYTES_MAX.min(levels.budget / CHUNK_SHARE);
            let request = SpaceRequest {
                holder: self.holder.clone(),
                least,
                most: least.saturating_add(chunk),
                budget: levels.budget,
                used,
                version,
                expires_at: self.expiry(),
            };
            match self.store.reserve_cache_space(&request).await {
                Ok(SpaceOutcome::Granted(granted)) => {
                    self.leased(granted);
                    let mut local = self.local.lock();
                    // What became entries meanwhile was not among those that the store had counted.
                    local.granted = granted.saturating_sub(local.published - published);
                    local.refused = None;
                }
                Ok(SpaceOutcome::Refused { others }) => {
                    tracing::debug!(bytes, used, others, budget = levels.budget, "no room in the derived store");
                    self.local.lock().refused = Some((Instant::now(), version));
                    self.wanted.notify_one();
                    return false;
                }
                Ok(SpaceOutcome::Stale) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot set room aside");
                    return false;
                }
            }
        }
        false
    }
}

#[async_trait]
impl Room for Ledger {
    async fn reserve(&self, bytes: u64, is_wanted: bool) -> bool {
        if !is_wanted && self.is_tight() {
            return false;
        }
        self.take(bytes) || self.ask(bytes).await
    }

    fn release(&self, bytes: u64, is_entry: bool) {
        {
            let mut local = self.local.lock();
            local.held = local.held.saturating_sub(bytes);
            match is_entry {
                true => {
                    local.granted = local.granted.saturating_sub(bytes);
                    local.published += bytes;
                }
                // There is room now that was not there when it was refused.
                false => local.refused = None,
            }
        }
        let (used, levels) = self.usage();
        if is_entry && used.saturating_add(self.held()).saturating_add(self.undeleted()) > levels.high {
            self.wanted.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
