//! [`twice`] and [`half`]: what another budget would have saved, estimated from what is known anyway. Pure.
//!
//! ```text
//!   twice   the further room would have held what was evicted last, as much as fits. What was made again while it would still
//!           have been there need not have been made.
//!   half    the policy is asked which entries would go now. What reading them saved so far would have been computed.
//! ```
//!
//! Bounds, not forecasts: the truth was between them in simulations (`nectarine-benchmarks simulate`), and far from either.
//!
//! ```text
//!   twice   too little, by far: only what went and came back under the same key is seen. What found no room, or was too large for
//!           the budget, left no record; nor did a miss that was answered by computing other extents or another prefix.
//!   half    too much, up to several times: an entry that is missed is made again and read for a while, so not all its uses
//!           would be lost.
//! ```

use super::{EvictionCandidate, EvictionPolicy, Levels, evict};

/// An entry that is there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Kept<K> {
    /// What the policy knows of it.
    pub(crate) candidate: EvictionCandidate<K>,
    /// What reading it saved so far, microseconds.
    pub(crate) saved_us: u64,
}

/// An entry that went to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Gone {
    pub(crate) bytes: u64,
    /// Microseconds since 1970.
    pub(crate) evicted_at: i64,
    /// When it was made again, and what that took in microseconds.
    pub(crate) remade: Option<(i64, u64)>,
}

/// What would be different.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Shadow {
    /// With this budget.
    pub(crate) budget: u64,
    /// Entries that would have been there, or would not.
    pub(crate) entries: u64,
    /// What they take.
    pub(crate) bytes: u64,
    /// Microseconds of work that they would have saved, or did.
    pub(crate) us: u64,
}

/// What twice the budget would have saved at least. `gone` is in the order in which they went, the oldest first.
pub(crate) fn twice(levels: Levels, gone: &[Gone]) -> Shadow {
    let mut shadow = Shadow { budget: levels.budget.saturating_mul(2), ..Shadow::default() };
    // Bytes of the first so many. A clock that was set back does not undo an eviction: time only goes on here.
    let (mut sums, mut times): (Vec<u64>, Vec<i64>) = (vec![0], vec![]);
    for one in gone {
        sums.push(sums[sums.len() - 1].saturating_add(one.bytes));
        times.push(times.last().map_or(one.evicted_at, |last| one.evicted_at.max(*last)));
    }
    for (idx, one) in gone.iter().enumerate() {
        let Some((remade_at, cost_us)) = one.remade else { continue };
        let n_until = times.partition_point(|at| *at < remade_at).max(idx + 1);
        // Itself, and what went after it and would lie on top.
        if sums[n_until] - sums[idx] <= levels.low {
            shadow.entries += 1;
            shadow.bytes = shadow.bytes.saturating_add(one.bytes);
            shadow.us = shadow.us.saturating_add(cost_us);
        }
    }
    shadow
}

/// What half the budget would have cost at most, by what is known of entries now.
pub(crate) fn half<K: Copy + Ord>(levels: Levels, kept: &[Kept<K>]) -> Shadow {
    let half = Levels { budget: levels.budget / 2, high: levels.high / 2, low: levels.low / 2 };
    // What is larger than the largest entry would never have been kept.
    let is_too_large = |one: &&Kept<K>| one.candidate.bytes > half.entry_bytes_max() && !one.candidate.pinned;
    let (too_large, others): (Vec<&Kept<K>>, Vec<&Kept<K>>) = kept.iter().partition(is_too_large);
    let used = others.iter().fold(0_u64, |sum, one| sum.saturating_add(one.candidate.bytes));
    let to_free = if used > half.high { used - half.low } else { 0 };
    let candidates: Vec<_> = others.iter().map(|one| one.candidate).collect();
    let mut keys = evict(EvictionPolicy::Nectar, &candidates, to_free).keys;
    keys.sort_unstable();
    let would_go = others.into_iter().filter(|one| keys.binary_search(&one.candidate.key).is_ok());
    let mut shadow = Shadow { budget: half.budget, ..Shadow::default() };
    for one in too_large.into_iter().chain(would_go) {
        shadow.entries += 1;
        shadow.bytes = shadow.bytes.saturating_add(one.candidate.bytes);
        shadow.us = shadow.us.saturating_add(one.saved_us);
    }
    shadow
}

#[cfg(test)]
mod tests;
