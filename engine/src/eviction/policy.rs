//! [`evict`]: which entries go, in which order, so that so many bytes become free. Pure: no clock, no store, no luck.
//!
//! ```text
//!   nectar             largest (size x idle) / (uses x cost) first: what takes much room, is long unused and cheap to remake
//!   lru                longest unused first
//!   greedy-dual-size   least (inflation when last used + cost / size) first; the least that went becomes the inflation
//! ```
//!
//! Keeps true   what is pinned or leased never goes. Nothing goes that was not needed: without the last one there would be
//!              too little room. What takes no room is left alone: dropping it would free nothing.
//!              Of such there may be so many; see [`too_many_empty`].
//! Same in, same out   ties are broken by key, so that two processes with the same statistics choose the same entries.
//! Making counts as a use. The ratio of an entry that nobody used yet would otherwise be without bound, and the one second of
//!              work that made a large result would outweigh the hour behind a small one.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// What a policy knows of an entry.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EvictionCandidate<K> {
    /// Its name.
    pub key: K,
    /// What dropping it would free.
    pub bytes: u64,
    /// Time since it was last used, or made; microseconds.
    pub idle_us: u64,
    /// How often it was used since it was made.
    pub uses: u64,
    /// What remaking it would take; microseconds.
    pub cost_us: u64,
    /// Somebody said that it stays.
    pub pinned: bool,
    /// It is too fresh to be judged, or somebody is about to read it.
    pub leased: bool,
    /// [`Evictions::inflation`] of the eviction before its last use; only greedy-dual-size asks for it. 0 at first.
    pub inflation: f64,
}

/// How to choose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EvictionPolicy {
    /// That of Nectar, section 3.2.
    #[default]
    Nectar,
    /// Least recently used.
    Lru,
    /// Cao and Irani's, with the cost of remaking as cost.
    GreedyDualSize,
}

/// What goes.
#[derive(Clone, PartialEq, Debug)]
pub struct Evictions<K> {
    /// In the order in which they should go.
    pub keys: Vec<K>,
    /// What that frees. Less than was asked for if there is no more.
    pub bytes: u64,
    /// For candidates that are used from now on; see [`EvictionCandidate::inflation`].
    pub inflation: f64,
}

/// Chooses entries until `bytes_to_free` are free.
pub fn evict<K: Copy + Ord>(
    policy: EvictionPolicy,
    candidates: &[EvictionCandidate<K>],
    bytes_to_free: u64,
) -> Evictions<K> {
    let mut evictions = Evictions { keys: vec![], bytes: 0, inflation: inflation_of(candidates) };
    if bytes_to_free == 0 {
        return evictions;
    }
    let may_go = |one: &&EvictionCandidate<K>| !one.pinned && !one.leased && one.bytes > 0;
    let ranked = candidates.iter().filter(may_go).map(|one| Ranked { rank: rank(policy, one), one });
    // Not sorted: a few of a million go.
    let mut heap: BinaryHeap<Ranked<'_, K>> = ranked.collect();
    while evictions.bytes < bytes_to_free
        && let Some(Ranked { one, .. }) = heap.pop()
    {
        evictions.keys.push(one.key);
        evictions.bytes = evictions.bytes.saturating_add(one.bytes);
        if policy == EvictionPolicy::GreedyDualSize {
            evictions.inflation = evictions.inflation.max(dual_value(one));
        }
    }
    evictions
}

/// Entries without bytes that go so that `n_max` of them are left, the least worth first. They are ranked as if each were as large
/// as the other.
pub(crate) fn too_many_empty<K: Copy + Ord>(candidates: &[EvictionCandidate<K>], n_max: usize) -> Vec<K> {
    let empty: Vec<EvictionCandidate<K>> =
        candidates.iter().filter(|one| one.bytes == 0).map(|one| EvictionCandidate { bytes: 1, ..*one }).collect();
    evict(EvictionPolicy::Nectar, &empty, empty.len().saturating_sub(n_max) as u64).keys
}

/// The larger, the sooner it goes.
fn rank<K>(policy: EvictionPolicy, one: &EvictionCandidate<K>) -> f64 {
    match policy {
        EvictionPolicy::Nectar => {
            // Nothing is multiplied with nothing: a clock that stands still leaves size against cost.
            let room = one.bytes as f64 * (one.idle_us as f64 + 1.0);
            room / ((one.uses as f64 + 1.0) * (one.cost_us as f64 + 1.0))
        }
        EvictionPolicy::Lru => one.idle_us as f64,
        EvictionPolicy::GreedyDualSize => -dual_value(one),
    }
}

fn dual_value<K>(one: &EvictionCandidate<K>) -> f64 {
    one.inflation + one.cost_us as f64 / one.bytes.max(1) as f64
}

/// Inflation never falls: it is at least that of the last use of anything that is there.
fn inflation_of<K>(candidates: &[EvictionCandidate<K>]) -> f64 {
    candidates.iter().map(|one| one.inflation).fold(0.0, f64::max)
}

struct Ranked<'a, K> {
    rank: f64,
    one: &'a EvictionCandidate<K>,
}

impl<K: Ord> Ord for Ranked<'_, K> {
    fn cmp(&self, other: &Self) -> Ordering {
        let larger_first = || self.one.bytes.cmp(&other.one.bytes);
        // The smallest key of equals comes out of the heap first.
        let by_key = || other.one.key.cmp(&self.one.key);
        self.rank.total_cmp(&other.rank).then_with(larger_first).then_with(by_key)
    }
}

impl<K: Ord> PartialOrd for Ranked<'_, K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Ord> PartialEq for Ranked<'_, K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<K: Ord> Eq for Ranked<'_, K> {}

#[cfg(test)]
mod tests;
