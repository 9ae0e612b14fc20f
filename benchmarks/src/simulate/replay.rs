//! [`replay`]: what a cache of a given size saves of a workload.
//!
//! ```text
//!   look up    every program of the job counts
//!   choose     an exact hit, or entries over some extents, of whichever prefix saves most
//!   keep       the answer; of what was computed on the way, what the admission policy admits; what is new of an input that grew
//! ```
//!
//! Approximated   a job arrives, runs and leaves its results in one moment. What is computed over new extents reads no entries of
//!                prefixes further down. A job is a chain: a plan of several branches reads at most one of them from the cache.

use nectarine_engine::{AdmissionPolicy, EvictionPolicy, Inquiry, PrefixKind};

use super::home::{Home, Totals};
use super::segments::{heaviest, missing};
use super::workload::{Job, Kind, Prefix, Stream, Workload};

/// A segment hit must save at least one part in so many of what the prefix takes.
const SAVES_AT_LEAST: u64 = 20;
/// Reading more entries than this is worth one over all extents.
const PARTS_MAX: usize = 4;
/// Entries that one job makes of what was not known of a window.
const PIECES_MAX: u32 = 16;
/// What nobody asked for yet may take one part in so many of its computation to write.
const WRITES_AT_MOST: u64 = 8;

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) n_jobs: u64,
    /// What all jobs take without a cache.
    pub(crate) cost_us: u64,
    pub(crate) saved_us: u64,
    /// Jobs that read their whole answer.
    pub(crate) n_exact: u64,
    /// Jobs that read a prefix.
    pub(crate) n_prefix: u64,
    /// Jobs that read results over some extents.
    pub(crate) n_segment: u64,
    pub(crate) totals: Totals,
    /// Of what there is in the end, what nobody ever read.
    pub(crate) bytes_unread: u64,
}

impl Outcome {
    pub(crate) fn n_hits(&self) -> u64 {
        self.n_exact + self.n_prefix + self.n_segment
    }

    pub(crate) fn saved_share(&self) -> f64 {
        share(self.saved_us, self.cost_us)
    }

    pub(crate) fn hit_rate(&self) -> f64 {
        share(self.n_hits(), self.n_jobs)
    }

    /// Of several homes together.
    pub(crate) fn add(&mut self, other: &Self) {
        self.n_jobs += other.n_jobs;
        self.cost_us += other.cost_us;
        self.saved_us += other.saved_us;
        self.n_exact += other.n_exact;
        self.n_prefix += other.n_prefix;
        self.n_segment += other.n_segment;
        self.totals.evicted += other.totals.evicted;
        self.totals.bytes_max += other.totals.bytes_max;
        self.totals.bytes_written += other.totals.bytes_written;
        self.bytes_unread += other.bytes_unread;
    }
}

/// 0 of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Runs all jobs of a workload on a new home.
pub(crate) fn replay(workload: &Workload, policy: EvictionPolicy, budget: u64) -> Outcome {
    let mut home = Home::new(policy, budget);
    let mut outcome = Outcome::default();
    for job in &workload.jobs {
        let hit = run(&mut home, job, &workload.streams);
        outcome.n_jobs += 1;
        outcome.cost_us += job.cost_us;
        if let Some(hit) = hit {
            outcome.saved_us += hit.saved_us.min(job.cost_us);
            match (hit.gaps.is_empty(), hit.idx) {
                (false, _) => outcome.n_segment += 1,
                (true, 0) => outcome.n_exact += 1,
                (true, _) => outcome.n_prefix += 1,
            }
        }
    }
    Outcome { totals: home.totals, bytes_unread: home.bytes_unread(), ..outcome }
}

/// What a job reads.
struct Hit {
    /// Of which prefix.
    idx: usize,
    reads: Vec<Prefix>,
    /// Extents that none of them has.
    gaps: Vec<(u32, u32)>,
    saved_us: u64,
}

fn run(home: &mut Home, job: &Job, streams: &[Stream]) -> Option<Hit> {
    let lookups: Vec<u64> = job.prefixes.iter().map(|prefix| home.count_lookup(prefix.key.program)).collect();
    let hit = choose(home, job);
    let reads = hit.iter().flat_map(|hit| &hit.reads);
    reads.for_each(|entry| home.read(&entry.key, job.at_us));
    let has_grown = hit.as_ref().is_some_and(|hit| !hit.gaps.is_empty());
    let policy = AdmissionPolicy { eager: !home.is_tight(), ..AdmissionPolicy::default() };
    // What lies below a hit is not computed.
    let computed = hit.as_ref().map_or(job.prefixes.len(), |hit| hit.idx);
    for (idx, prefix) in job.prefixes.iter().enumerate().take(computed) {
        let is_root = idx == 0;
        if prefix.kind == Kind::WindowGroups && !is_root {
            let stream = &streams[prefix.key.stream as usize];
            keep_pieces(home, prefix, stream, (prefix.key.first, prefix.key.end), job.at_us);
            continue;
        }
        let inquiry = Inquiry { lookups: lookups[idx], ..Inquiry::default() };
        let parent_lookups = if is_root { 0 } else { lookups[idx - 1] };
        let is_wanted = is_root || has_grown || policy.is_wanted(&inquiry, parent_lookups);
        let is_admitted = is_root || policy.admits(prefix_kind(prefix.kind), &inquiry, parent_lookups);
        if is_admitted && (is_wanted || prefix.read_us() <= prefix.cost_us / WRITES_AT_MOST) {
            home.keep(prefix, is_wanted, job.at_us);
        }
    }
    if let Some(hit) = &hit
        && has_grown
    {
        let prefix = &job.prefixes[hit.idx];
        let stream = &streams[prefix.key.stream as usize];
        hit.gaps.iter().for_each(|gap| keep_pieces(home, prefix, stream, *gap, job.at_us));
        if hit.idx == 0 || hit.reads.len() > PARTS_MAX {
            home.keep(prefix, true, job.at_us);
        }
    }
    hit
}

/// What saves most; of equals the one nearest to the root.
fn choose(home: &Home, job: &Job) -> Option<Hit> {
    let mut best: Option<Hit> = None;
    for (idx, prefix) in job.prefixes.iter().enumerate() {
        let reads = match prefix {
            _ if home.has(&prefix.key) => vec![*prefix],
            prefix if prefix.kind.decomposes() => heaviest(home.parts(prefix)),
            _ => vec![],
        };
        let gaps = missing(prefix.key.first, prefix.key.end, &reads);
        let saved_us: u64 = reads.iter().map(Prefix::saves_us).sum();
        let is_enough = saved_us > 0 && (gaps.is_empty() || saved_us >= prefix.cost_us / SAVES_AT_LEAST);
        if is_enough && best.as_ref().is_none_or(|best| saved_us > best.saved_us) {
            best = Some(Hit { idx, reads, gaps, saved_us });
        }
    }
    best
}

/// Keeps what was computed over some extents: of a window in pieces, else as one.
fn keep_pieces(home: &mut Home, prefix: &Prefix, stream: &Stream, extents: (u32, u32), now_us: u64) {
    let (first, end) = extents;
    let n_pieces = if prefix.kind == Kind::WindowGroups { PIECES_MAX } else { 1 };
    let width = (end - first).div_ceil(n_pieces).max(1);
    let mut from = first;
    while from < end {
        let to = (from + width).min(end);
        home.keep(&prefix.over(stream, from, to), true, now_us);
        from = to;
    }
}

fn prefix_kind(kind: Kind) -> PrefixKind {
    match kind {
        Kind::Rows => PrefixKind::Filter,
        Kind::Groups | Kind::WindowGroups => PrefixKind::Aggregate,
        Kind::Whole => PrefixKind::Window,
    }
}

#[cfg(test)]
mod tests;
