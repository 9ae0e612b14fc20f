//! What whole hits below a prefix are good for, beside an entry of the prefix itself.
//!
//! ```text
//!   HashJoinExec              entry: 4,000,000 rows, 2 s to read
//!     AggregateExec           entry: 1,000 rows, cost 5 s
//!     ExtentScanExec          joining costs 0.3 s
//! ```
//!
//! The largest prefix is read, unless smaller ones and the rest of the work are clearly faster.

use super::Found;
use super::candidate::candidate;
use super::rule::{Rewrite, read_us};
use crate::canonical::{Prefix, PrefixKind, PrefixNode};

/// Times are longer when the machine is busy: by less than this nothing is beaten.
const CLEARLY: u64 = 2;
/// Below this, in microseconds, the largest is good enough.
const LITTLE_US: u64 = 2_000;
/// Rows that come out of any work in a microsecond. What was measured below may hold some of what is above it.
const ROWS_PER_US: u64 = 20;

/// Hits that lie apart.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Hits {
    /// What computing them took, in microseconds.
    cost_us: u64,
    /// What reading them takes.
    read_us: u64,
}

impl Hits {
    fn and(self, other: Self) -> Self {
        Self {
            cost_us: self.cost_us.saturating_add(other.cost_us),
            read_us: self.read_us.saturating_add(other.read_us),
        }
    }

    fn saved_us(self) -> u64 {
        self.cost_us.saturating_sub(self.read_us)
    }
}

impl Rewrite<'_> {
    /// What whole hits below a node would save, in microseconds.
    pub(super) fn saved_below(&self, node: &PrefixNode) -> u64 {
        self.hits_below(node, |_| true).saved_us()
    }

    /// Whether reading smaller entries below a node, and computing what is left, is clearly faster than reading its own.
    pub(super) fn is_beaten(&self, node: &PrefixNode, found: &Found) -> bool {
        let reading = read_us(found);
        reading > LITTLE_US && is_beaten(found, reading, self.hits_below(node, is_measured))
    }

    /// `wanted` says which prefixes count.
    fn hits_below(&self, node: &PrefixNode, wanted: fn(&Prefix) -> bool) -> Hits {
        let hits = |child: &PrefixNode| {
            let found = candidate(child, false).filter(|prefix| wanted(prefix)).and_then(|prefix| self.usable(prefix));
            match found.and_then(|found| self.as_cut(child, found)) {
                Some(found) => Hits { cost_us: found.cost_us, read_us: read_us(&found) },
                None => self.hits_below(child, wanted),
            }
        };
        node.children.iter().map(hits).fold(Hits::default(), Hits::and)
    }
}

/// Groups are there when all of them are computed: little of what is above them is in their time. What streams takes as long as those
/// who read it.
fn is_measured(prefix: &Prefix) -> bool {
    prefix.kind == PrefixKind::Aggregate
}

fn is_beaten(found: &Found, read_us: u64, below: Hits) -> bool {
    // Whatever took longer below than all of it was measured at a bad time, or beside something else.
    let Some(left_us) = found.cost_us.checked_sub(below.cost_us) else { return false };
    let left_us = left_us.max(found.rows / ROWS_PER_US);
    // The rows that are read have to go through what is above them.
    let instead = left_us.saturating_add(below.read_us.saturating_mul(2));
    below.cost_us > 0 && instead.saturating_mul(CLEARLY) < read_us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_read_unless_that_is_clearly_slower() {
        let small = Hits { cost_us: 5_000_000, read_us: 200 };
        let is_beaten =
            |cost_us, read_us, below| is_beaten(&Found { rows: 1_000_000, bytes: 0, cost_us }, read_us, below);
        assert!(is_beaten(5_300_000, 2_000_000, small), "joining takes 0.3 s, reading the joined rows 2 s");
        assert!(!is_beaten(6_500_000, 2_000_000, small), "joining takes 1.5 s");
        assert!(!is_beaten(5_300_000, 400_000, small), "not by much");
        assert!(!is_beaten(5_300_000, 2_000_000, Hits::default()), "there is nothing below");
        let busy = Hits { cost_us: 5_400_000, read_us: 200 };
        assert!(!is_beaten(5_300_000, 2_000_000, busy), "nobody knows what joining takes");
        let large = Hits { cost_us: 5_000_000, read_us: 1_900_000 };
        assert!(!is_beaten(5_000_000, 2_000_000, large), "those below are as large");
        let many = Found { rows: 20_000_000, bytes: 0, cost_us: 5_000_000 };
        assert!(!super::is_beaten(&many, 2_000_000, small), "so many rows are not joined in no time");
    }
}
