//! Operators of our own; what the marker nodes of the planner become.

mod add_entry;
mod cache_read;
mod gather_groups;
mod held;
mod work;

pub use add_entry::AddEntryOperator;
pub use cache_read::{CacheReadOperator, EntryFault, prepare_cache_reads};
pub(crate) use gather_groups::merge_groups;
pub use work::{Work, work_of};

#[cfg(test)]
mod tests;
