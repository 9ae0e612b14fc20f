//! [`rebuild`]: jobs from records. Pure.
//!
//! What was not recorded is approximated, and never in the cache's favour where that can be helped:
//!
//! ```text
//!   what a job takes without a cache   what it took, and what its hits saved
//!   prefixes below a hit               those that the newest statement asked for which missed it, if they cost less; else none
//!   prefixes that were never kept      left out: nobody knows what they take
//!   the order of prefixes              by cost, as a chain
//!   which extents a prefix has         as many as its entry has. If it was a segment hit: after those of the last prefix of the same
//!                                      program, as many further as were new. Else none that another prefix has
//!   whether a prefix decomposes        by the top node of its plan
//! ```

use std::cmp::Reverse;
use std::collections::HashMap;

use super::super::workload::{Job, Key, Kind, Prefix, Stream, Workload};

/// What a home knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    pub(super) queries: Vec<RecordedQuery>,
    pub(super) lookups: Vec<RecordedLookup>,
    pub(super) entries: Vec<RecordedEntry>,
}

/// A row of `system.queries`.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedQuery {
    pub(super) id: String,
    /// Microseconds since 1970.
    pub(super) started_us: i64,
    pub(super) elapsed_us: u64,
    pub(super) saved_us: u64,
    pub(super) extents: u64,
    pub(super) extents_reused: u64,
}

/// A row of `system.lookups`.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedLookup {
    pub(super) query: String,
    pub(super) prefix: String,
    pub(super) program: String,
    pub(super) node: String,
    pub(super) is_hit: bool,
    pub(super) is_segment: bool,
}

/// A row of `system.cache_entries` or of `system.evictions`.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedEntry {
    pub(super) prefix: String,
    pub(super) bytes: u64,
    pub(super) cost_us: u64,
    /// 0 if that is not known any more.
    pub(super) extents: u64,
}

/// The jobs of a home, by arrival.
pub(super) fn rebuild(name: String, records: Records) -> Workload {
    let Records { mut queries, lookups, entries } = records;
    let mut asked: HashMap<&str, Vec<&RecordedLookup>> = HashMap::new();
    for lookup in &lookups {
        asked.entry(&lookup.query).or_default().push(lookup);
    }
    let mut known: HashMap<&str, &RecordedEntry> = HashMap::new();
    for entry in &entries {
        // An entry that is there says more than one that went.
        let known = known.entry(&entry.prefix).or_insert(entry);
        if entry.extents > known.extents {
            *known = entry;
        }
    }
    queries.sort_by_key(|query| query.started_us);
    let start_us = queries.first().map_or(0, |query| query.started_us);
    let mut rebuilding = Rebuilding { known, ..Rebuilding::default() };
    let mut jobs = vec![];
    for query in &queries {
        let Some(lookups) = asked.get(query.id.as_str()) else { continue };
        let lookups = rebuilding.with_those_below(lookups);
        let mut prefixes: Vec<Prefix> = lookups.iter().filter_map(|lookup| rebuilding.prefix(lookup, query)).collect();
        prefixes.sort_by_key(|prefix| (Reverse(prefix.cost_us), prefix.key));
        let most = prefixes.first().map_or(0, |root| root.cost_us);
        jobs.push(Job {
            at_us: query.started_us.abs_diff(start_us),
            cost_us: query.elapsed_us.saturating_add(query.saved_us).max(most),
            prefixes,
        });
    }
    // Nobody recorded how large extents are: all weigh the same.
    let streams = rebuilding.ends.iter().map(|end| Stream::of((0..*end).map(|_| 1))).collect();
    Workload { name, streams, jobs }
}

#[derive(Default)]
struct Rebuilding<'a> {
    /// Entries by their prefix.
    known: HashMap<&'a str, &'a RecordedEntry>,
    /// What statements asked for beside a prefix that they missed.
    below: HashMap<&'a str, Vec<&'a RecordedLookup>>,
    /// Numbers of programs. Each has a stream of its own.
    programs: HashMap<&'a str, u32>,
    /// How many extents the stream of each has so far.
    ends: Vec<u32>,
    /// What was made of each prefix when it was first asked for.
    made: HashMap<&'a str, (Key, Kind)>,
}

impl<'a> Rebuilding<'a> {
    /// What a statement asked for, and would have asked for without its hits.
    fn with_those_below(&mut self, lookups: &[&'a RecordedLookup]) -> Vec<&'a RecordedLookup> {
        let mut all = lookups.to_vec();
        for hit in lookups.iter().filter(|lookup| lookup.is_hit && !lookup.is_segment) {
            let others = self.below.get(hit.prefix.as_str()).into_iter().flatten();
            all.extend(others.filter(|other| self.cost_us(other) < self.cost_us(hit)));
        }
        all.sort_by(|one, other| one.prefix.cmp(&other.prefix));
        all.dedup_by(|one, other| one.prefix == other.prefix);
        for miss in lookups.iter().filter(|lookup| !lookup.is_hit) {
            let others = all.iter().copied().filter(|other| other.prefix != miss.prefix);
            self.below.insert(&miss.prefix, others.collect());
        }
        all
    }

    fn cost_us(&self, lookup: &RecordedLookup) -> Option<u64> {
        self.known.get(lookup.prefix.as_str()).map(|entry| entry.cost_us)
    }

    fn prefix(&mut self, lookup: &'a RecordedLookup, query: &RecordedQuery) -> Option<Prefix> {
        let entry = *self.known.get(lookup.prefix.as_str())?;
        let (key, kind) = match self.made.get(lookup.prefix.as_str()) {
            Some(made) => *made,
            None => {
                let made = (self.key(lookup, entry, query)?, kind(&lookup.node));
                *self.made.entry(&lookup.prefix).or_insert(made)
            }
        };
        Some(Prefix { key, kind, cost_us: entry.cost_us, bytes: entry.bytes })
    }

    fn key(&mut self, lookup: &'a RecordedLookup, entry: &RecordedEntry, query: &RecordedQuery) -> Option<Key> {
        let next = u32::try_from(self.programs.len()).ok()?;
        let program = *self.programs.entry(&lookup.program).or_insert(next);
        if program == next {
            self.ends.push(0);
        }
        let last_end = self.ends[program as usize];
        let n_extents = if entry.extents > 0 { entry.extents } else { query.extents.max(1) };
        let n_extents = u32::try_from(n_extents).ok()?;
        let n_new = query.extents.saturating_sub(query.extents_reused).max(1);
        let n_new = u32::try_from(n_new).ok()?.min(n_extents);
        let end = match lookup.is_segment && last_end > 0 {
            true => last_end.checked_add(n_new)?.max(n_extents),
            false => last_end.checked_add(n_extents)?,
        };
        self.ends[program as usize] = end;
        Some(Key { program, stream: program, first: end - n_extents, end })
    }
}

/// By the node on top, as EXPLAIN prints it.
fn kind(node: &str) -> Kind {
    const ROWS: [&str; 6] =
        ["FilterExec", "ProjectionExec", "HashJoinExec", "SortMergeJoinExec", "UnionExec", "UnnestExec"];
    match node {
        node if node.starts_with("AggregateExec") => Kind::Groups,
        node if ROWS.iter().any(|name| node.starts_with(name)) => Kind::Rows,
        _ => Kind::Whole,
    }
}

#[cfg(test)]
mod tests;
