//! [`Workload`]: jobs as they arrive, with what each prefix of them takes and leaves. Nothing here knows a cache.
//!
//! ```text
//!   Workload    one home's jobs in the order in which they arrive
//!     Stream      extents by their bytes: what a part of an input weighs
//!     Job         when, what it takes without a cache
//!       Prefix      from the root down: program, extents, cost of all of it, bytes of its result
//! ```
//!
//! A job is a chain: each prefix holds those after it. Costs and bytes are those over all extents of the prefix;
//! [`Prefix::over`] says what they come to over some of them.

/// Jobs of one home.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Workload {
    pub(crate) name: String,
    pub(crate) streams: Vec<Stream>,
    /// By arrival.
    pub(crate) jobs: Vec<Job>,
}

/// A primary stream, as far as it ever grows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Stream {
    /// Bytes of all extents up to and including each.
    ends: Vec<u64>,
}

/// A program that runs.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Job {
    /// When; microseconds since the first moment.
    pub(crate) at_us: u64,
    /// What it takes without a cache.
    pub(crate) cost_us: u64,
    /// From the root down.
    pub(crate) prefixes: Vec<Prefix>,
}

/// A prefix of a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Prefix {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// What computing it takes, with all below it.
    pub(crate) cost_us: u64,
    /// What its result takes.
    pub(crate) bytes: u64,
}

/// FP_PD: a program on extents. Ordered, so that equals are told apart the same way each time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) program: u32,
    pub(crate) stream: u32,
    pub(crate) first: u32,
    /// The one after the last.
    pub(crate) end: u32,
}

/// What sort of result it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Rows that grow with the input; results over disjoint extents go beside each other.
    Rows,
    /// States of groups: kept at first sight, and merged. There are fewer new ones in each further extent.
    Groups,
    /// The same below a window over the input, which is kept in pieces that leave the window one by one.
    WindowGroups,
    /// What does not decompose: exact hits only.
    Whole,
}

impl Kind {
    pub(crate) fn decomposes(self) -> bool {
        self != Self::Whole
    }

    pub(crate) fn is_groups(self) -> bool {
        matches!(self, Self::Groups | Self::WindowGroups)
    }
}

impl Stream {
    pub(crate) fn of(extents: impl IntoIterator<Item = u64>) -> Self {
        let mut sum = 0;
        let add = |bytes| {
            sum += bytes;
            sum
        };
        Self { ends: extents.into_iter().map(add).collect() }
    }

    /// Bytes of some of its extents; those that it never has take none.
    pub(crate) fn bytes(&self, first: u32, end: u32) -> u64 {
        let up_to = |extent: u32| match extent.min(self.ends.len() as u32) {
            0 => 0,
            n => self.ends[n as usize - 1],
        };
        up_to(end).saturating_sub(up_to(first))
    }
}

impl Key {
    /// The same program over other extents.
    pub(crate) fn over(self, first: u32, end: u32) -> Self {
        Self { first, end, ..self }
    }
}

impl Prefix {
    /// The same over some of its extents: rows and work in proportion to their bytes, groups to the root of it.
    pub(crate) fn over(&self, stream: &Stream, first: u32, end: u32) -> Self {
        let Key { first: from, end: to, .. } = self.key;
        let share = stream.bytes(first, end) as f64 / stream.bytes(from, to).max(1) as f64;
        let of_bytes = if self.kind.is_groups() { share.sqrt() } else { share };
        Self {
            key: self.key.over(first, end),
            kind: self.kind,
            cost_us: (self.cost_us as f64 * share) as u64,
            bytes: (self.bytes as f64 * of_bytes) as u64,
        }
    }

    /// What reading its result takes, as the planner reckons.
    pub(crate) fn read_us(&self) -> u64 {
        /// Opening it.
        const OPEN_US: u64 = 150;
        const BYTES_PER_US: u64 = 400;
        OPEN_US + self.bytes / BYTES_PER_US
    }

    /// What reading it saves; 0 if computing it is as fast.
    pub(crate) fn saves_us(&self) -> u64 {
        self.cost_us.saturating_sub(self.read_us())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_input() {
        let stream = Stream::of([10, 30, 60]);
        assert_eq!((stream.bytes(0, 3), stream.bytes(1, 2), stream.bytes(2, 9)), (100, 30, 60));
        let key = Key { program: 1, stream: 0, first: 0, end: 3 };
        let rows = Prefix { key, kind: Kind::Rows, cost_us: 1_000_000, bytes: 4_000 };
        let some = rows.over(&stream, 0, 1);
        assert_eq!((some.cost_us, some.bytes, some.key.end), (100_000, 400, 1));
        let groups = Prefix { kind: Kind::Groups, ..rows }.over(&stream, 0, 1);
        assert_eq!((groups.cost_us, groups.bytes), (100_000, 1_264));
        assert_eq!(rows.saves_us(), 1_000_000 - 160);
        assert_eq!(Prefix { cost_us: 100, ..rows }.saves_us(), 0);
    }
}
