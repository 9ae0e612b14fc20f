//! [`doubled`]: which neighbours among small parts to merge, so that a window over n extents has about 2 log n parts.
//!
//! ```text
//!   extents of each part      1 1 1 1 2 4 8 8  4 2 1
//!   after                     2 . 8 . . . 16 . 4 2 1        larger and larger toward the middle, from both ends
//! ```
//!
//! The size of a part is told by the power of two below it; two neighbours of one size are one of the next. Like a binary
//! counter at either end: what is added at the tail is merged when there are two of a size, and what the head leaves of a
//! large part is read from the smaller ones it was made of, all of which were written.
//! By size only: where a window begins, and what was removed before it, does not matter to what was merged earlier.

/// A part of a window: an entry, or what is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    /// Its first position among the extents of the window.
    pub(crate) first: usize,
    /// Its last.
    pub(crate) last: usize,
    /// How many it has, which is fewer if there are gaps.
    pub(crate) n_extents: usize,
    /// Whether it is small enough to be merged.
    pub(crate) is_small: bool,
}

/// Parts by their ordinals, and what is to be merged of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doubled {
    /// As it is.
    One(usize),
    /// Two neighbours, merged.
    Two(Box<(Doubled, Doubled)>),
}

/// A part on its way.
struct Run {
    doubled: Doubled,
    n_extents: usize,
    first: usize,
    last: usize,
    is_small: bool,
}

/// The parts in their order, at most `merges_max` times two of them as one. `parts` are in order and disjoint.
pub(crate) fn doubled(parts: &[Part], merges_max: usize) -> Vec<Doubled> {
    let run = |(ordinal, part): (usize, &Part)| Run {
        doubled: Doubled::One(ordinal),
        n_extents: part.n_extents,
        first: part.first,
        last: part.last,
        // One with gaps would leave them to nobody.
        is_small: part.is_small && part.n_extents == part.last - part.first + 1,
    };
    let mut before: Vec<Run> = parts.iter().enumerate().map(run).collect();
    // The first of the largest.
    let largest = before.iter().enumerate().max_by_key(|(ordinal, part)| (part.size(), std::cmp::Reverse(*ordinal)));
    let after = before.split_off(largest.map_or(0, |(ordinal, _)| ordinal));
    let mut n_merges = 0;
    let mut head = counted(before.into_iter().rev(), merges_max, &mut n_merges);
    head.reverse();
    let tail = counted(after.into_iter(), merges_max, &mut n_merges);
    head.into_iter().chain(tail).map(|run| run.doubled).collect()
}

/// Goes away from the largest part, and merges where a part is not smaller than the one before it.
fn counted(parts: impl Iterator<Item = Run>, merges_max: usize, n_merges: &mut usize) -> Vec<Run> {
    let mut done: Vec<Run> = vec![];
    for part in parts {
        let mut next = part;
        while let Some(before) = done.pop() {
            if *n_merges >= merges_max || next.size() < before.size() || !before.touches(&next) {
                done.push(before);
                break;
            }
            *n_merges += 1;
            next = before.with(next);
        }
        done.push(next);
    }
    done
}

impl Run {
    /// The power of two below it.
    fn size(&self) -> u32 {
        self.n_extents.checked_ilog2().unwrap_or(0)
    }

    fn touches(&self, other: &Self) -> bool {
        let is_next = self.last + 1 == other.first || other.last + 1 == self.first;
        is_next && self.is_small && other.is_small
    }

    fn with(self, other: Self) -> Self {
        let (left, right) = if self.first < other.first { (self, other) } else { (other, self) };
        Self {
            n_extents: left.n_extents + right.n_extents,
            first: left.first,
            last: right.last,
            is_small: true,
            doubled: Doubled::Two(Box::new((left.doubled, right.doubled))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn parts(sizes: &[usize]) -> Vec<Part> {
        let mut first = 0;
        let part = |size: &usize| {
            first += size;
            Part { first: first - size, last: first - 1, n_extents: *size, is_small: true }
        };
        sizes.iter().map(part).collect()
    }

    fn ordinals(doubled: &Doubled, found: &mut Vec<usize>) {
        match doubled {
            Doubled::One(ordinal) => found.push(*ordinal),
            Doubled::Two(two) => {
                ordinals(&two.0, found);
                ordinals(&two.1, found);
            }
        }
    }

    /// Extents of each part in the end.
    fn sizes(parts: &[Part], doubled: &[Doubled]) -> Vec<usize> {
        let size = |doubled: &Doubled| {
            let mut found = vec![];
            ordinals(doubled, &mut found);
            found.into_iter().map(|ordinal| parts[ordinal].n_extents).sum()
        };
        doubled.iter().map(size).collect()
    }

    fn after(before: &[usize]) -> Vec<usize> {
        let parts = parts(before);
        sizes(&parts, &doubled(&parts, 100))
    }

    #[test]
    fn from_both_ends() {
        assert_eq!(after(&[]), Vec::<usize>::new());
        assert_eq!(after(&[1]), [1]);
        assert_eq!(after(&[1, 1]), [2]);
        assert_eq!(after(&[1, 2, 4, 8, 4, 2, 1]), [1, 2, 4, 8, 4, 2, 1]);
        assert_eq!(after(&[8, 4, 2, 1, 1]), [16]);
        assert_eq!(after(&[1, 1, 1, 1, 2, 4, 8, 8, 4, 2, 1]), [2, 8, 16, 4, 2, 1]);
        assert_eq!(after(&[1, 1, 1, 8, 1, 1, 1]), [1, 2, 8, 2, 1]);
        assert_eq!(after(&[32, 32, 32, 13, 1]), [64, 32, 13, 1]);
    }

    #[test]
    fn what_is_large_or_not_beside_it_stays() {
        let mut large = parts(&[1, 1, 8, 8]);
        large[3].is_small = false;
        assert_eq!(sizes(&large, &doubled(&large, 100)), [2, 8, 8]);
        let mut gap = parts(&[1, 1, 1, 1]);
        gap[2].first += 1;
        gap[2].last += 1;
        gap[3].first += 1;
        gap[3].last += 1;
        assert_eq!(sizes(&gap, &doubled(&gap, 100)), [2, 2]);
        let holes = [parts(&[2, 2])[0], Part { first: 2, last: 5, n_extents: 2, is_small: true }];
        assert_eq!(sizes(&holes, &doubled(&holes, 100)), [2, 2]);
    }

    #[test]
    fn no_more_than_allowed() {
        let many = parts(&[1; 64]);
        assert_eq!(doubled(&many, 0).len(), 64);
        assert_eq!(doubled(&many, 10).len(), 54);
        assert_eq!(doubled(&many, 100).len(), 1);
    }

    proptest! {
        #[test]
        fn every_part_once_and_in_order(before in prop::collection::vec((1_usize..9, any::<bool>()), 0..40), most in 0_usize..50) {
            let mut all = parts(&before.iter().map(|(size, _)| *size).collect::<Vec<_>>());
            all.iter_mut().zip(&before).for_each(|(part, (_, is_small))| part.is_small = *is_small);
            let mut found = vec![];
            doubled(&all, most).iter().for_each(|doubled| ordinals(doubled, &mut found));
            prop_assert_eq!(found, (0..all.len()).collect::<Vec<_>>());
        }
    }

    /// The entries that hold most of a window, the fewest of them.
    fn cover(entries: &HashMap<usize, Vec<usize>>, window: std::ops::Range<usize>) -> Vec<(usize, usize)> {
        let mut best = vec![(0_usize, 0_usize, None)];
        for end in window.start + 1..=window.end {
            let mut here = (best[best.len() - 1].0, best[best.len() - 1].1, None);
            for start in entries.get(&end).into_iter().flatten().filter(|start| **start >= window.start) {
                let (held, n, _) = best[start - window.start];
                if (held + end - start, std::cmp::Reverse(n + 1)) > (here.0, std::cmp::Reverse(here.1)) {
                    here = (held + end - start, n + 1, Some(*start));
                }
            }
            best.push(here);
        }
        let (mut at, mut found) = (window.end, vec![]);
        while at > window.start {
            match best[at - window.start].2 {
                Some(start) => {
                    found.push((start, at));
                    at = start;
                }
                None => at -= 1,
            }
        }
        found.reverse();
        found
    }

    /// A year that slides by a day for two years reads a score of entries at most, from the second window on.
    #[test]
    fn a_year_that_slides() {
        let mut entries: HashMap<usize, Vec<usize>> = HashMap::new();
        let mut n_merged = 0;
        for slide in 0..730_usize {
            let window = slide..slide + 365;
            let read = cover(&entries, window.clone());
            let mut all: Vec<(usize, usize)> = read.clone();
            let is_missing = |day: &usize| !read.iter().any(|(start, end)| (*start..*end).contains(day));
            all.extend(window.filter(is_missing).map(|day| (day, day + 1)));
            all.sort_unstable();
            if slide > 1 {
                assert!(read.len() <= 20, "{slide}: {}", read.len());
            }
            let part = |(start, end): &(usize, usize)| Part {
                first: *start,
                last: *end - 1,
                n_extents: end - start,
                is_small: true,
            };
            let parts: Vec<Part> = all.iter().map(part).collect();
            all.into_iter().for_each(|(start, end)| entries.entry(end).or_default().push(start));
            let mut pending = doubled(&parts, 1_000);
            while let Some(next) = pending.pop() {
                if let Doubled::Two(two) = next.clone() {
                    let mut found = vec![];
                    ordinals(&next, &mut found);
                    let (start, end) = (parts[found[0]].first, parts[found[found.len() - 1]].last + 1);
                    entries.entry(end).or_default().push(start);
                    n_merged += 1;
                    pending.extend([two.0, two.1]);
                }
            }
            entries.values_mut().for_each(|starts| {
                starts.sort_unstable();
                starts.dedup();
            });
        }
        assert!(n_merged < 3 * 730, "{n_merged}");
    }
}
