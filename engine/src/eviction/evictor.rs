//! [`Evictor`]: drops entries until the low-water mark is reached.
//!
//! ```text
//!   statistics --policy--> keys, the least worth first --some at a time--> records dropped --> files deleted
//! ```
//!
//! In small steps  after each the store is asked again how much there is: two processes that evict at once do not drop twice as
//!                 much, and what one dropped the other does not find.
//! Counted         files of dropped entries count until they are deleted; a process that dies in between leaves its lease, and
//!                 the collector deletes them. What can not be deleted is written down in the metadata store, counts for all
//!                 processes, and is tried again.
//! Not in vain     where dropping frees nothing, it stops, and only now and then one entry is tried.
//! Cancelled       by nobody: what began to be dropped is, and its room is given back, whatever becomes of the statement that
//!                 waits for it.
//! Empty results   take no room in the derived store, but a record each: there are so many at most.
//! Late readers    where other processes have the home open, files stay for a moment after their entry is dropped.
//! Pinned          what is pinned stays; also what is pinned between the choice and the drop.
//! Any clock       an age that can not be (the clock was set back) is none: idle for no time, and not fresh.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{Clock, EntrySummary, Fingerprint, ViewCache, fail_point};
use nectarine_executor::DerivedStore;

use super::{EvictionCandidate, EvictionPolicy, InVain, Ledger, Readers, evict, too_many_empty};
use crate::home::Processes;
use crate::reuse::Trouble;
use crate::{EngineError, ErrorKind, Result};

/// Entries that are dropped in one transaction, at most.
const STEP_ENTRIES: usize = 256;
/// And the share of what is to be freed.
const STEP_SHARE: u64 = 8;
/// How long files stay for readers in other processes.
const LATE_READERS: Duration = Duration::from_millis(250);
/// Files of dropped entries that are tried again before more is dropped.
const TRIED_AGAIN: usize = 16;
/// Empty results that may be there, and what each counts as, so that there are fewer where the budget is small.
const EMPTY_MAX: u64 = 10_000;
const EMPTY_BYTES: u64 = 1 << 10;

/// Why entries are dropped; as `system.evictions` shows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// To make room.
    Space,
    /// Somebody said so.
    ByHand,
    /// It was missing or damaged.
    Lost,
    /// It was computed anew, and was not the same.
    Wrong,
    /// All that was made of something had to go.
    Purged,
}

impl Why {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::ByHand => "by hand",
            Self::Lost => "lost",
            Self::Wrong => "wrong",
            Self::Purged => "purged",
        }
    }
}

/// What was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Evicted {
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
    /// Of these bytes, those whose files could not be deleted.
    pub(crate) left: u64,
}

/// What came of trying again to delete files of dropped entries.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct TriedAgain {
    pub(crate) n_gone: usize,
    pub(crate) gone_bytes: u64,
}

/// See the module.
pub(crate) struct Evictor {
    pub(crate) cache: ViewCache,
    pub(crate) derived: DerivedStore,
    pub(crate) metadata: Arc<dyn MetadataStore>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) readers: Readers,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) processes: Processes,
    /// How long a new entry is not evicted.
    pub(crate) fresh: Duration,
    /// Who tells that files can not be deleted.
    pub(crate) trouble: Trouble,
    pub(crate) in_vain: InVain,
}

impl Evictor {
    /// Makes room if there is too much; `is_wanted` also if there is not, because somebody found too little.
    pub(crate) async fn make_room(self: &Arc<Self>, is_wanted: bool) -> Result<Evicted> {
        let mut evicted = Evicted::default();
        self.ledger.budget.look_again();
        self.write_down_undeleted().await;
        let mut to_free = self.to_free(is_wanted).await?;
        self.drop_empty().await?;
        if to_free == 0 {
            return Ok(evicted);
        }
        if !self.in_vain.is_worth_a_try() {
            return Ok(evicted);
        }
        // Costs nobody anything, and shows whether there is any point in the rest.
        if self.ledger.undeleted() > 0 && self.try_again(TRIED_AGAIN).await?.n_gone > 0 {
            self.in_vain.learn(true);
            to_free = self.to_free(true).await?;
        }
        let candidates = self.candidates().await?;
        let chosen = evict(EvictionPolicy::Nectar, &candidates, to_free);
        let bytes_of = |key: &Fingerprint| self.cache.lookup(key).map_or(0, |entry| entry.bytes);
        let mut keys = chosen.keys.as_slice();
        while !keys.is_empty() && to_free > 0 {
            // One that turns out to free nothing is enough.
            let n = if self.in_vain.is_doubtful(self.ledger.undeleted()) { 1 } else { step(keys, to_free, bytes_of) };
            let (now, later) = keys.split_at(n);
            keys = later;
            let gone = self.drop_unread(now).await?;
            evicted.entries += gone.entries;
            evicted.bytes += gone.bytes;
            evicted.left += gone.left;
            to_free = self.to_free(true).await?;
            if gone.bytes > 0 {
                self.in_vain.learn(gone.left < gone.bytes);
            }
            if gone.left > 0 && gone.left == gone.bytes {
                break;
            }
        }
        tracing::debug!(?evicted, still_too_much = to_free, "made room in the derived store");
        Ok(evicted)
    }

    /// Drops entries with their files; to its end, also if whoever waits for it is cancelled.
    pub(crate) async fn drop_entries(self: &Arc<Self>, keys: &[Fingerprint], why: Option<Why>) -> Result<Evicted> {
        let (evictor, keys) = (Arc::clone(self), keys.to_vec());
        let dropping = tokio::spawn(async move { evictor.drop_counted(&keys, why).await });
        let unfinished = |error: tokio::task::JoinError| {
            let message = "cannot drop cache entries: the task did not end";
            Err(EngineError::new(ErrorKind::Internal, message).with_source(error))
        };
        dropping.await.unwrap_or_else(unfinished)
    }

    async fn drop_counted(&self, keys: &[Fingerprint], why: Option<Why>) -> Result<Evicted> {
        keys.iter().for_each(|key| self.derived.forget(key));
        let bytes: u64 = keys.iter().filter_map(|key| self.cache.lookup(key)).map(|entry| entry.bytes).sum();
        if bytes == 0 {
            return self.drop_held(keys, why).await;
        }
        let held = self.ledger.hold(bytes).await;
        let outcome = self.drop_held(keys, why).await;
        drop(held);
        self.ledger.tidy().await;
        outcome
    }

    async fn drop_held(&self, keys: &[Fingerprint], why: Option<Why>) -> Result<Evicted> {
        fail_point("eviction_begun");
        let (entries, parts) = match why {
            Some(why) => {
                let dropped = match why {
                    Why::Space => self.cache.evict_unpinned(keys, why.as_str()).await?,
                    _ => self.cache.evict(keys, why.as_str()).await?,
                };
                (dropped.keys.len(), dropped.parts)
            }
            None => {
                let parts = self.cache.remove(keys).await?;
                (0, parts)
            }
        };
        fail_point("eviction_dropped");
        if why == Some(Why::Space) && !parts.is_empty() && self.processes.has_others() {
            tokio::time::sleep(LATE_READERS).await;
        }
        let bytes = parts.iter().map(|part| part.bytes).sum();
        let left = self.derived.dispose(parts, None).await;
        // Before what is held is given back: until then it counts there, afterwards here.
        self.write_down_undeleted().await;
        fail_point("eviction_deleted");
        Ok(Evicted { entries, bytes, left })
    }

    /// Writes down which files could not be deleted, by whoever tried, so that they count until they are gone.
    pub(crate) async fn write_down_undeleted(&self) {
        let undeleted = self.derived.undeleted();
        let Some((_, error)) = undeleted.first() else { return };
        let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
        let parts: Vec<_> = undeleted.into_iter().map(|(part, _)| part).collect();
        match self.metadata.add_undeleted_parts(&parts).await {
            Ok(()) => {
                let known = self.ledger.undeleted();
                self.ledger.learn_undeleted(known + parts.iter().map(|part| part.bytes).sum::<u64>());
                self.trouble.learn_undeleted(&reason);
                self.derived.forget_undeleted(&parts);
            }
            // At the next look, then.
            Err(error) => tracing::warn!(%error, "cannot write down which files could not be deleted"),
        }
    }

    /// Tries to delete files of dropped entries that could not be deleted before, so many of them. Nothing that an entry has.
    pub(crate) async fn try_again(&self, n_max: usize) -> Result<TriedAgain> {
        let mut tried = TriedAgain::default();
        let mut parts = self.metadata.undeleted_parts().await?;
        parts.truncate(n_max);
        if parts.is_empty() {
            return Ok(tried);
        }
        let locations: Vec<_> = parts.iter().map(|part| part.location.clone()).collect();
        let referenced = self.cache.referenced(&locations).await?;
        let mut is_referenced = referenced.into_iter();
        parts.retain(|_| !is_referenced.next().unwrap_or(false));
        let left = self.derived.delete_each(&parts).await;
        let is_left = |location: &String| left.iter().any(|(part, _)| part.location == *location);
        // Those of entries as well: they count there.
        let gone: Vec<_> = locations.into_iter().filter(|location| !is_left(location)).collect();
        let gone_parts = parts.iter().filter(|part| !is_left(&part.location));
        tried.n_gone = gone_parts.clone().count();
        tried.gone_bytes = gone_parts.map(|part| part.bytes).sum();
        if !gone.is_empty() {
            self.metadata.forget_undeleted_parts(&gone).await?;
        }
        if let Some((_, error)) = left.first() {
            let reason = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
            self.trouble.learn_undeleted(&reason);
        }
        self.ledger.learn_undeleted(self.metadata.undeleted_bytes().await?);
        Ok(tried)
    }

    /// Drops empty results if there are too many of them, the least worth first.
    async fn drop_empty(self: &Arc<Self>) -> Result<()> {
        let (_, levels) = self.ledger.usage();
        let n_max = usize::try_from(EMPTY_MAX.min(levels.low / EMPTY_BYTES)).unwrap_or(usize::MAX);
        if self.cache.totals().empty <= n_max as u64 {
            return Ok(());
        }
        let keys = too_many_empty(&self.candidates().await?, n_max);
        for keys in keys.chunks(STEP_ENTRIES) {
            self.drop_unread(keys).await?;
        }
        Ok(())
    }

    async fn drop_unread(self: &Arc<Self>, keys: &[Fingerprint]) -> Result<Evicted> {
        let keys: Vec<_> = keys.iter().copied().filter(|key| !self.readers.has(key)).collect();
        match keys.is_empty() {
            true => Ok(Evicted::default()),
            false => self.drop_entries(&keys, Some(Why::Space)).await,
        }
    }

    /// What is above the low-water mark, if anything is to be done about it.
    async fn to_free(&self, is_wanted: bool) -> Result<u64> {
        self.cache.refresh().await?;
        let (used, levels) = self.ledger.usage();
        let leases = self.metadata.cache_leases().await?;
        self.ledger.learn_undeleted(self.metadata.undeleted_bytes().await?);
        let others = leases.iter().filter(|lease| lease.holder != self.processes.own());
        let own = self.ledger.held().saturating_add(self.ledger.undeleted());
        let reserved = others.fold(own, |sum, lease| sum.saturating_add(lease.reserved));
        let all = used.saturating_add(reserved);
        Ok(match is_wanted || all > levels.high {
            true => all.saturating_sub(levels.low).min(used),
            false => 0,
        })
    }

    /// All entries, as the policy knows them.
    pub(crate) async fn candidates(&self) -> Result<Vec<EvictionCandidate<Fingerprint>>> {
        let now = self.clock.now_ns() / 1000;
        let pinned: HashSet<Fingerprint> = self.metadata.pins().await?.into_iter().map(|pin| pin.key).collect();
        let entries = self.cache.entries();
        let known = |entry: EntrySummary| EvictionCandidate {
            pinned: pinned.contains(&entry.key),
            ..candidate(&entry, now, self.fresh, self.readers.has(&entry.key))
        };
        Ok(entries.into_iter().map(known).collect())
    }
}

/// What the policy is to know of an entry.
fn candidate(entry: &EntrySummary, now: i64, fresh: Duration, is_read: bool) -> EvictionCandidate<Fingerprint> {
    let age = now.saturating_sub(entry.created_at).unsigned_abs();
    EvictionCandidate {
        key: entry.key,
        bytes: entry.bytes,
        idle_us: u64::try_from(now.saturating_sub(entry.last_used_at)).unwrap_or(0),
        uses: entry.uses,
        cost_us: entry.cost_us,
        pinned: false,
        leased: is_read || u128::from(age) < fresh.as_micros(),
        inflation: 0.0,
    }
}

/// How many of the keys go in one step: at least one.
fn step(keys: &[Fingerprint], to_free: u64, bytes_of: impl Fn(&Fingerprint) -> u64) -> usize {
    let mut bytes = 0_u64;
    let is_enough = |key: &Fingerprint| {
        bytes = bytes.saturating_add(bytes_of(key));
        bytes > to_free / STEP_SHARE
    };
    keys.iter().position(is_enough).map_or(keys.len(), |last| last + 1).min(STEP_ENTRIES)
}

#[cfg(test)]
mod tests {
    use nectarine_catalog::EntryKind;

    use super::*;

    const FRESH: Duration = Duration::from_secs(60);
    const MINUTE: i64 = 60_000_000;

    fn key(number: u8) -> Fingerprint {
        Fingerprint::of_bytes(&[number])
    }

    fn seen(created_at: i64, last_used_at: i64, now: i64) -> (u64, bool) {
        let entry = EntrySummary {
            key: key(1),
            program: key(2),
            kind: EntryKind::Rows,
            rows: 1,
            bytes: 10,
            cost_us: 5,
            uses: 3,
            saved_us: 9,
            created_at,
            last_used_at,
        };
        let candidate = candidate(&entry, now, FRESH, false);
        (candidate.idle_us, candidate.leased)
    }

    #[test]
    fn clocks_that_jump_are_harmless() {
        let now = 1_000 * MINUTE;
        assert_eq!(seen(now - MINUTE + 1, now - 5, now), (5, true), "it is fresh");
        assert_eq!(seen(now - MINUTE, now - 5, now), (5, false), "it was fresh");
        // Set back by an hour: an entry from the future is not protected until the clock has caught up.
        assert_eq!(seen(now + 60 * MINUTE, now + 60 * MINUTE, now), (0, false));
        // But one that another thread made a moment ago is.
        assert_eq!(seen(now + 7, now + 7, now), (0, true));
        // Far ahead, or nonsense.
        assert_eq!(seen(now, now, i64::MAX), ((i64::MAX - now) as u64, false));
        assert_eq!(seen(i64::MIN, i64::MIN, i64::MAX), (i64::MAX as u64, false));
        assert_eq!(seen(i64::MAX, i64::MAX, i64::MIN), (0, false));
    }

    #[test]
    fn steps_are_small() {
        let keys: Vec<_> = (0..100).map(key).collect();
        assert_eq!(step(&keys, 800, |_| 10), 11);
        assert_eq!(step(&keys, 8, |_| 1000), 1, "at least one");
        assert_eq!(step(&keys, u64::MAX, |_| 1), 100);
        let many: Vec<_> = (0..1000).map(|_| key(1)).collect();
        assert_eq!(step(&many, u64::MAX, |_| 1), STEP_ENTRIES);
    }
}
