//! What to compute: SQL text to statements, tables to providers, extents to the leaves of plans.
//!
//! ```text
//!   sql        text to statements: splitting, our own syntax, clauses that are refused
//!   provider   a stream as DataFusion sees it
//!   prune      which extents a filter can not touch
//!   ambiguous  filters stay where names do not tell columns apart
//!   windows_whole  what a window function reads is not cut for a LIMIT above it
//!   whole_filters  filters show all their columns while projections are moved
//!   whole_merges   partitions that a limit cuts are merged by their whole order
//!   known_aggregates  counts and bounds that are known without reading
//!   lone_bounds  an aggregate that leaves out rows is the only one
//!   honest_keys  what is said to tell rows apart, and does not
//!   bounded    plans that would not fit into memory
//!   counted_sets  EXCEPT ALL and INTERSECT ALL mind how often a row is there
//!   distinct_on  each key of an order once
//!   decimals   numbers beside DECIMAL columns mean what is written
//!   kept_casts  what a cast cuts off counts where its value is compared
//!   exact_moments  times of one unit or zone beside constants of another
//!   honest_filters  a filter leaves one value of a column only if it says so
//!   intervals  they are compared by how long they are
//!   steady_rounding  the type of `round(m, n)` is decided once
//!   not_in     NOT IN without NULLs is a plain anti join
//!   subquery_values  IN and EXISTS are values, wherever they stand
//!   computed_keys  subqueries whose groups have something computed in common with the outer row
//!   rows_of_nothing  conditions without columns stay above groups that are a row of no rows
//!   truth_tests  IS TRUE among columns, as it is computed
//!   union_nulls  a union may hold the NULLs that its inputs may hold
//!   look       whether a plan has something that a rule wants to change
//!   rewritten  expressions of a node, changed under their names
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
mod computed_keys;
mod counted_sets;
mod decimals;
mod distinct_on;
mod error;
mod exact_moments;
pub mod function;
mod honest_filters;
mod honest_keys;
mod intervals;
mod kept_casts;
mod known_aggregates;
mod lone_bounds;
mod look;
pub mod node;
mod not_in;
mod nullable_values;
mod provider;
mod prune;
pub mod reuse;
mod rewritten;
mod rows_of_nothing;
mod segment;
pub mod sql;
mod steady_rounding;
mod subquery_values;
mod truth_tests;
mod union_nulls;
mod whole_filters;
mod whole_merges;
mod windows_whole;

pub use ambiguous::UnambiguousFilters;
pub use bounded::BoundedPlans;
pub use computed_keys::ComputedKeys;
pub use counted_sets::CountedSets;
pub use decimals::ExactDecimals;
pub use distinct_on::DistinctOnKeys;
pub use error::{PlannerError, Result};
pub use exact_moments::ExactMoments;
pub use honest_filters::HonestFilters;
pub use honest_keys::HonestKeys;
pub use intervals::ComparedIntervals;
pub use kept_casts::KeptCasts;
pub use known_aggregates::KnownAggregates;
pub use lone_bounds::LoneBounds;
pub use look::any_node;
pub use not_in::PlainAntiJoins;
pub use nullable_values::{NullableValues, nullable_values};
pub use provider::{StreamTable, Streams, reading_of};
pub use rows_of_nothing::RowsOfNothing;
pub use steady_rounding::SteadyRounding;
pub use subquery_values::SubqueryValues;
pub use truth_tests::TruthTests;
pub use union_nulls::UnionNulls;
pub use whole_filters::WholeFilters;
pub use whole_merges::WholeMerges;
pub use windows_whole::WholeWindows;
