//! Reuse over appended data: results over some of today's extents, and what it takes to complete them.
//!
//! ```text
//!   apart       which plans fall apart by the values of a key
//!   decompose   per operator: does a result over D + d follow from those over D and over d?
//!   fresh       copies of plan nodes that share no state with the original
//!   term        a plan over other extents
//!   partners    extents that hold no partner for a join
//!   schedule    which of many overlapping entries to read
//!   choice      entries, missing extents, cost: the plan of a segment hit
//!   doubling    which small parts of a window to merge
//!   window      filters that statistics decide for whole extents
//!   drawing     that plan in words, for EXPLAIN REUSE
//! ```
//!
//! Nothing here runs or rewrites anything: [`crate::reuse`] asks, and puts the answer into the plan.

mod apart;
mod choice;
mod decompose;
mod doubling;
mod drawing;
mod fresh;
mod partners;
mod schedule;
mod term;
mod window;

pub(crate) use self::choice::{Candidates, SegmentPlan, Term, can_follow, can_grow, choose, enough, extents_of};
pub(crate) use self::decompose::{grows_with, merges};
pub(crate) use self::doubling::{Doubled, Part, doubled};
pub use self::drawing::SegmentLine;
pub(crate) use self::drawing::draw;
pub(crate) use self::term::{Lists, term};
pub(crate) use self::window::{Window, windows};
