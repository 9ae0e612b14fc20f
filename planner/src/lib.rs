//! What to compute: SQL text to statements, tables to providers, extents to the leaves of plans.
//!
//! ```text
//!   sql        text to statements: splitting, our own syntax, clauses that are refused
//!   provider   a stream as DataFusion sees it
//!   prune      which extents a filter can not touch
//!   ambiguous  filters stay where names do not tell columns apart
//!   windows_whole  what a window function reads is not cut for a LIMIT above it
//!   whole_merges   partitions that a limit cuts are merged by their whole order
//!   known_aggregates  counts and bounds that are known without reading
//!   honest_keys  what is said to tell rows apart, and does not
//!   bounded    plans that would not fit into memory
//!   counted_sets  EXCEPT ALL and INTERSECT ALL mind how often a row is there
//!   distinct_on  each key of an order once
//!   decimals   numbers beside DECIMAL columns mean what is written
//!   not_in     NOT IN without NULLs is a plain anti join
//!   subquery_values  IN and EXISTS are values, wherever they stand
//!   rows_of_nothing  conditions without columns stay above groups that are a row of no rows
//!   look       whether a plan has something that a rule wants to change
//!   nullable_values  NULLs of INSERT are told with the name of their column
//!   function   functions written in SQL, inlined
//!   canonical  the normal form of plans and their fingerprints
//!   reuse      the rule that reads what was computed before
//!   segment    results over some of today's extents, and what completes them
//!   node       plan nodes that say what, not how; executor lowers them
//! ```
//!
//! Pure: opens no file and awaits nothing but the snapshot that its caller pins.

mod ambiguous;
mod bounded;
pub mod canonical;
mod counted_sets;
mod decimals;
mod distinct_on;
mod error;
pub mod function;
mod honest_keys;
mod known_aggregates;
mod look;
pub mod node;
mod not_in;
mod nullable_values;
mod provider;
mod prune;
pub mod reuse;
mod rows_of_nothing;
mod segment;
pub mod sql;
mod subquery_values;
mod whole_merges;
mod windows_whole;

pub use ambiguous::UnambiguousFilters;
pub use bounded::BoundedPlans;
pub use counted_sets::CountedSets;
pub use decimals::ExactDecimals;
pub use distinct_on::DistinctOnKeys;
pub use error::{PlannerError, Result};
pub use honest_keys::HonestKeys;
pub use known_aggregates::KnownAggregates;
pub use look::any_node;
pub use not_in::PlainAntiJoins;
pub use nullable_values::{NullableValues, nullable_values};
pub use provider::{StreamTable, Streams, reading_of};
pub use rows_of_nothing::RowsOfNothing;
pub use subquery_values::SubqueryValues;
pub use whole_merges::WholeMerges;
pub use windows_whole::WholeWindows;
