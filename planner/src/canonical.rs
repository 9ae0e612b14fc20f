//! The normal form of plans: what makes two subtrees the same program, and two programs over the same data the same result.
//!
//! ```text
//!   encoder    tagged, length-prefixed bytes
//!   types      data types and fields
//!   literal    constants by type and exact bits
//!   expr       scalar expressions
//!   function   which functions are known to be what their name says
//!   aggregate  aggregates and windows
//!   join       joins, whatever algorithm was chosen
//!   node       plan nodes
//!   scan       leaves: how bytes become rows, and which extents
//!   salt       what is not in the plan but decides about rows: versions, settings
//!   prefix     one subtree with its two fingerprints
//!   lineage    which rows a subtree has and what each column is, whatever other columns stand beside it
//!   decoder    what the encoder wrote, field by field
//!   outline    a program in words, and what differs between two
//! ```
//!
//! Same meaning   columns are ordinals; names, aliases, batch sizes, partition counts and join algorithms are left out;
//!                conjuncts, IN lists and equality operands are sorted; comparisons point one way.
//! Fails closed   what is not on a whitelist makes its subtree, and all above it, uncacheable. Every expression that a node
//!                admits to have must have been encoded, or the node is not understood.
//! Traps          never the key: protobuf bytes, `Hash`, Display text. Each drops something that changes rows.

mod aggregate;
mod by_floats;
mod decoder;
mod encoder;
mod expr;
mod function;
mod join;
mod lineage;
mod literal;
mod node;
mod outline;
mod prefix;
mod salt;
mod scan;
mod types;
mod uncacheable;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;

pub(crate) use self::aggregate::is_of_sets;
pub use self::function::BuiltIns;
pub use self::lineage::Lineage;
pub(crate) use self::lineage::lucky;
pub use self::outline::{Difference, Outline};
pub use self::prefix::{Exactness, Input, Prefix, PrefixKind, PrefixNode, prefixes};
pub use self::salt::{Salt, changes_rows};
pub use self::uncacheable::Uncacheable;

/// Raised whenever the encoding of anything changes, or an older version may have kept a wrong answer: old entries never match
/// new programs.
pub const ENCODING: u32 = 9;
