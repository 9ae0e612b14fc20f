//! [`Home`]: the cache of one home, with the engine's own decisions and a clock that is told.
//!
//! ```text
//!   room       refused above the budget, and above the low-water mark to what nobody asked for; then room is made
//!   eviction   above the high-water mark, until the low-water mark; what is fresh stays
//! ```
//!
//! Marks and the choice of what goes are the engine's. Eviction takes no time here: it is done before the next job arrives.

use std::collections::{BTreeMap, HashMap};

use nectarine_engine::{EvictionCandidate, EvictionPolicy, Levels, evict};

use super::workload::{Key, Prefix};

/// How long a new entry is not evicted: the engine's default.
const FRESH_US: u64 = 60_000_000;
/// Where eviction ends, as a share of the budget: the engine's default.
const LOW_WATER: f64 = 0.8;

/// See the module.
pub(crate) struct Home {
    policy: EvictionPolicy,
    levels: Levels,
    entries: BTreeMap<Key, Entry>,
    /// How often programs were looked up.
    lookups: HashMap<u32, u64>,
    /// For greedy-dual-size.
    inflation: f64,
    used: u64,
    pub(crate) totals: Totals,
}

/// What came and went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) evicted: u64,
    /// The most that there was.
    pub(crate) bytes_max: u64,
    /// All that was ever written.
    pub(crate) bytes_written: u64,
}

struct Entry {
    prefix: Prefix,
    uses: u64,
    made_us: u64,
    used_us: u64,
    inflation: f64,
}

impl Home {
    pub(crate) fn new(policy: EvictionPolicy, budget: u64) -> Self {
        Self {
            policy,
            levels: Levels::new(budget, LOW_WATER),
            entries: BTreeMap::new(),
            lookups: HashMap::new(),
            inflation: 0.0,
            used: 0,
            totals: Totals::default(),
        }
    }

    /// How often the program was looked up before this time.
    pub(crate) fn count_lookup(&mut self, program: u32) -> u64 {
        let n = self.lookups.entry(program).or_default();
        *n += 1;
        *n - 1
    }

    /// Whether only what somebody asked for is kept.
    pub(crate) fn is_tight(&self) -> bool {
        self.used > self.levels.low
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    /// Entries of the same program over extents that the prefix has too.
    pub(crate) fn parts(&self, prefix: &Prefix) -> Vec<Prefix> {
        let Key { first, end, .. } = prefix.key;
        let within = self.entries.range(prefix.key.over(first, 0)..prefix.key.over(end, 0));
        within.map(|(_, entry)| entry.prefix).filter(|part| part.key.end <= end).collect()
    }

    /// An entry is read.
    pub(crate) fn read(&mut self, key: &Key, now_us: u64) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.uses += 1;
            entry.used_us = now_us;
            entry.inflation = self.inflation;
        }
    }

    /// Keeps a result if there is room for it.
    pub(crate) fn keep(&mut self, prefix: &Prefix, is_wanted: bool, now_us: u64) {
        let bytes = prefix.bytes;
        if prefix.saves_us() == 0 || self.has(&prefix.key) || bytes > self.levels.entry_bytes_max() {
            return;
        }
        if !is_wanted && self.is_tight() {
            return;
        }
        if self.used.saturating_add(bytes) > self.levels.budget {
            // This one is lost; the next ones find room.
            self.make_room(now_us);
            return;
        }
        let entry = Entry { prefix: *prefix, uses: 0, made_us: now_us, used_us: now_us, inflation: self.inflation };
        self.entries.insert(prefix.key, entry);
        self.used += bytes;
        self.totals.bytes_written += bytes;
        self.totals.bytes_max = self.totals.bytes_max.max(self.used);
        if self.used > self.levels.high {
            self.make_room(now_us);
        }
    }

    /// Bytes of entries that were never read.
    pub(crate) fn bytes_unread(&self) -> u64 {
        self.entries.values().filter(|entry| entry.uses == 0).map(|entry| entry.prefix.bytes).sum()
    }

    fn make_room(&mut self, now_us: u64) {
        let candidate = |(key, entry): (&Key, &Entry)| EvictionCandidate {
            key: *key,
            bytes: entry.prefix.bytes,
            idle_us: now_us - entry.used_us,
            uses: entry.uses,
            cost_us: entry.prefix.cost_us,
            pinned: false,
            leased: now_us - entry.made_us < FRESH_US,
            inflation: entry.inflation,
        };
        let candidates: Vec<_> = self.entries.iter().map(candidate).collect();
        let evictions = evict(self.policy, &candidates, self.used.saturating_sub(self.levels.low));
        self.inflation = self.inflation.max(evictions.inflation);
        for key in &evictions.keys {
            if let Some(entry) = self.entries.remove(key) {
                self.used -= entry.prefix.bytes;
                self.totals.evicted += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Kind;
    use super::*;

    const HOUR_US: u64 = 3_600_000_000;

    fn prefix(program: u32, first: u32, end: u32, bytes: u64) -> Prefix {
        Prefix { key: Key { program, stream: 0, first, end }, kind: Kind::Rows, cost_us: 1_000_000, bytes }
    }

    fn extents(home: &Home, of: &Prefix) -> Vec<(u32, u32)> {
        home.parts(of).iter().map(|part| (part.key.first, part.key.end)).collect()
    }

    #[test]
    fn parts_are_of_the_same_program_and_within() {
        let mut home = Home::new(EvictionPolicy::Nectar, u64::MAX);
        for (program, first, end) in [(1, 0, 3), (1, 3, 5), (1, 4, 9), (2, 3, 5), (1, 5, 6)] {
            home.keep(&prefix(program, first, end, 10), true, 0);
        }
        assert_eq!(extents(&home, &prefix(1, 3, 6, 10)), [(3, 5), (5, 6)]);
        assert_eq!(extents(&home, &prefix(3, 0, 9, 10)), []);
    }

    #[test]
    fn the_budget_holds_and_what_is_not_wanted_stays_out_above_low_water() {
        let mut home = Home::new(EvictionPolicy::Lru, 1_000);
        for program in 0..9 {
            home.keep(&prefix(program, 0, 1, 100), true, HOUR_US * u64::from(program));
        }
        assert!(home.is_tight() && home.used == 900);
        home.keep(&prefix(90, 0, 1, 10), false, 9 * HOUR_US);
        home.keep(&prefix(91, 0, 1, 201), true, 9 * HOUR_US);
        assert_eq!(home.used, 900, "neither what nobody asked for nor what is too large");
        // 1000 is above high water: the longest unused go, down to 800.
        home.read(&prefix(0, 0, 1, 0).key, 9 * HOUR_US);
        home.keep(&prefix(92, 0, 1, 100), true, 10 * HOUR_US);
        assert_eq!((home.used, home.totals.evicted, home.totals.bytes_max), (800, 2, 1_000));
        assert!(home.has(&prefix(0, 0, 1, 0).key) && !home.has(&prefix(1, 0, 1, 0).key));
        assert_eq!(home.bytes_unread(), 700);
        // All are fresh: there is no room to make, and what would exceed the budget is lost.
        let mut fresh = Home::new(EvictionPolicy::Nectar, 1_000);
        (0..20).for_each(|program| fresh.keep(&prefix(program, 0, 1, 90), true, 0));
        assert_eq!((fresh.used, fresh.totals.evicted), (990, 0));
    }
}
