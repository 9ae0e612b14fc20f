//! [`heaviest`]: entries over disjoint extents that together save most. Weighted interval scheduling, as the planner does it.

use super::workload::Prefix;

/// Those to read, by their extents.
pub(crate) fn heaviest(mut entries: Vec<Prefix>) -> Vec<Prefix> {
    entries.retain(|entry| entry.saves_us() > 0);
    entries.sort_by_key(|entry| (entry.key.end, entry.key.first));
    // For the first so many entries: the most that they save, and whether the last of them is among those that do.
    let mut best = vec![(0_u64, false)];
    for (n, entry) in entries.iter().enumerate() {
        let with = entry.saves_us() + best[n_before(&entries, n)].0;
        best.push(if with > best[n].0 { (with, true) } else { (best[n].0, false) });
    }
    let mut chosen = vec![];
    let mut n = entries.len();
    while n > 0 {
        if best[n].1 {
            chosen.push(entries[n - 1]);
            n = n_before(&entries, n - 1);
        } else {
            n -= 1;
        }
    }
    chosen.reverse();
    chosen
}

/// How many entries end before the `n`th begins.
fn n_before(entries: &[Prefix], n: usize) -> usize {
    entries[..n].partition_point(|other| other.key.end <= entries[n].key.first)
}

/// What of `first..end` none of the entries has; they are disjoint and in order.
pub(crate) fn missing(first: u32, end: u32, entries: &[Prefix]) -> Vec<(u32, u32)> {
    let mut gaps = vec![];
    let mut from = first;
    for entry in entries {
        if entry.key.first > from {
            gaps.push((from, entry.key.first));
        }
        from = entry.key.end;
    }
    if end > from {
        gaps.push((from, end));
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::super::workload::{Key, Kind};
    use super::*;

    fn entry(first: u32, end: u32, cost_us: u64) -> Prefix {
        Prefix { key: Key { program: 1, stream: 0, first, end }, kind: Kind::Rows, cost_us, bytes: 0 }
    }

    fn extents(entries: Vec<Prefix>) -> Vec<(u32, u32)> {
        heaviest(entries).iter().map(|entry| (entry.key.first, entry.key.end)).collect()
    }

    #[test]
    fn the_heaviest_disjoint_ones() {
        assert_eq!(extents(vec![]), []);
        assert_eq!(extents(vec![entry(0, 5, 9_000), entry(0, 2, 4_000), entry(2, 5, 4_000)]), [(0, 5)]);
        assert_eq!(extents(vec![entry(0, 5, 7_000), entry(0, 2, 4_000), entry(2, 5, 4_000)]), [(0, 2), (2, 5)]);
        assert_eq!(extents(vec![entry(0, 5, 100)]), [], "reading it takes longer");
    }

    #[test]
    fn gaps() {
        assert_eq!(missing(0, 9, &[]), [(0, 9)]);
        assert_eq!(missing(0, 9, &[entry(0, 2, 1), entry(4, 8, 1)]), [(2, 4), (8, 9)]);
        assert_eq!(missing(0, 9, &[entry(0, 9, 1)]), []);
    }
}
