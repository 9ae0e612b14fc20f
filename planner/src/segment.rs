//! Reuse over appended data: results over some of today's extents, and what it takes to complete them.
//!
//! ```text
//!   decompose   per operator: does a result over D + d follow from those over D and over d?
//!   fresh       copies of plan nodes that share no state with the original
//!   term        a plan over other extents
//!   schedule    which of many overlapping entries to read
//!   choice      entries, missing extents, cost: the plan of a segment hit
//! ```
//!
//! Nothing here runs or rewrites anything: [`crate::reuse`] asks, and puts the answer into the plan.

mod choice;
mod decompose;
mod fresh;
mod schedule;
mod term;

pub(crate) use self::choice::{Candidates, SegmentPlan, can_grow, choose, enough, extents_of};
pub(crate) use self::decompose::merges;
pub(crate) use self::term::term;
