//! Derived tables: programs on the extents of one moment.
//!
//! ```text
//!   freeze   what a query means now: extents, settings, the clock, texts of views and functions
//!   thaw     the same query again, planned with all of that
//!   order    rows of a LIMIT that do not depend on luck
//!   extents  whether the extents are still there, and which are not
//!   pin      a copy of the rows that nothing depends on
//! ```
//!
//! The rows are an entry of the view cache like others: they may be dropped to make room, or deleted by hand, and come back
//! the same, because nothing that could change them is left open, and what depends on luck is refused.

mod extents;
mod freeze;
mod order;
mod pin;
mod thaw;

pub(crate) use self::extents::{FrozenScan, gone, still_there};
pub(crate) use self::freeze::freeze;
pub(crate) use self::pin::pin;
pub(crate) use self::thaw::{check_luck, lists, thaw};
