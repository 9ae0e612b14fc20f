//! Weighted interval scheduling: of overlapping segments those that are worth most together.
//!
//! Cost   n log n in the number of segments.

/// A run of extents that something covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Interval {
    /// First position.
    pub(super) first: usize,
    /// Last position.
    pub(super) last: usize,
    /// What it is worth.
    pub(super) weight: u64,
}

/// Ordinals of intervals that do not overlap and whose weights sum to the most, from the left.
pub(super) fn schedule(intervals: &[Interval]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..intervals.len()).collect();
    // Of equals the one named first wins, so that the same question has the same answer.
    order.sort_by_key(|ordinal| (intervals[*ordinal].last, intervals[*ordinal].first, *ordinal));
    // best[n]: the most that the first n of `order` can give, and whether the n-th is part of that.
    let mut best: Vec<(u64, bool)> = vec![(0, false)];
    let before = |ordinal: usize| order.partition_point(|other| intervals[*other].last < intervals[ordinal].first);
    for (n, ordinal) in order.iter().enumerate() {
        let with = best[before(*ordinal)].0.saturating_add(intervals[*ordinal].weight);
        let without = best[n].0;
        best.push(if with > without { (with, true) } else { (without, false) });
    }
    let mut chosen = vec![];
    let mut n = order.len();
    while n > 0 {
        match best[n].1 {
            true => {
                chosen.push(order[n - 1]);
                n = before(order[n - 1]);
            }
            false => n -= 1,
        }
    }
    chosen.reverse();
    chosen
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn intervals(all: &[(usize, usize, u64)]) -> Vec<Interval> {
        all.iter().map(|(first, last, weight)| Interval { first: *first, last: *last, weight: *weight }).collect()
    }

    #[test]
    fn the_heaviest_that_fit() {
        assert_eq!(schedule(&intervals(&[(0, 2, 5), (3, 4, 5), (0, 4, 9)])), [0, 1]);
        assert_eq!(schedule(&intervals(&[(0, 2, 5), (3, 4, 5), (0, 4, 11)])), [2]);
        assert_eq!(schedule(&intervals(&[(0, 2, 5), (2, 4, 6), (4, 6, 5)])), [0, 2]);
        assert!(schedule(&[]).is_empty());
    }

    proptest! {
        #[test]
        fn no_subset_is_better(all in prop::collection::vec((0_usize..12, 0_usize..5, 0_u64..20), 0..9)) {
            let all: Vec<_> = all.into_iter().map(|(first, more, weight)| (first, first + more, weight)).collect();
            let all = intervals(&all);
            let fits = |chosen: &[usize]| chosen.iter().enumerate().all(|(n, one)| {
                chosen[n + 1..].iter().all(|two| all[*one].last < all[*two].first || all[*two].last < all[*one].first)
            });
            let worth = |chosen: &[usize]| chosen.iter().map(|ordinal| all[*ordinal].weight).sum::<u64>();
            let best = (0_u32..1 << all.len()).filter_map(|mask| {
                let chosen: Vec<usize> = (0..all.len()).filter(|bit| mask & (1 << bit) != 0).collect();
                fits(&chosen).then(|| worth(&chosen))
            }).max();
            let chosen = schedule(&all);
            prop_assert!(fits(&chosen));
            prop_assert_eq!(Some(worth(&chosen)), best);
        }
    }
}
