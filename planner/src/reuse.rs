//! Reading what was computed before: which prefixes of a plan to read, which to keep, and why.
//!
//! ```text
//!   oracle      what the rule asks the view cache, synchronously
//!   context     one statement's mode, policy and findings; travels in the configuration
//!   candidate   which prefixes are worth a question
//!   admission   which prefixes are worth keeping
//!   consistent  never one half of a query from the cache and the other computed anew, where that could show
//!   cover       entries with other columns but the same rows
//!   cut         groups that a limit above them cuts short
//!   derived     programs that are kept by name, inside of a plan
//!   growing     prefixes that only grow, below what does not
//!   repeated    what one statement needs several times
//!   beaten      large entries, where smaller ones below them do better
//!   report      what was found, for EXPLAIN REUSE
//!   lookup      what was asked for, for system tables
//!   recheck     entries that check mode computes anew by themselves
//!   segments    hits on some of a program's extents, completed
//!   windows     the same where statistics decide a filter for whole extents
//!   merging     small entries of a window that are merged while they are read
//!   rule        the physical rule that puts it together
//! ```

mod admission;
mod beaten;
mod candidate;
mod consistent;
mod context;
mod cover;
mod cut;
mod derived;
mod growing;
mod lookup;
mod merging;
mod oracle;
mod recheck;
mod repeated;
mod report;
mod rule;
mod segments;
mod windows;

#[cfg(test)]
mod tests;

pub use self::admission::AdmissionPolicy;
pub use self::context::{
    ExtentCounts, Findings, Hit, Kept, MadeOf, NamedPrefix, Repeated, ReuseContext, ReuseExtension, ReuseMode,
};
pub use self::cover::{Relative, may_cover};
pub use self::derived::luck;
pub use self::lookup::Lookup;
pub use self::oracle::{CacheOracle, EmptyOracle, Found, Inquiry, Segment};
pub use self::recheck::{Recheck, Unchecked};
pub use self::report::{PrefixReport, Verdict};
pub(crate) use self::rule::read_us;
pub use self::rule::{ReusePrefixes, is_worth_it};
pub use crate::segment::SegmentLine;
