//! Plan nodes that say what is to be computed and print well in EXPLAIN; they do not run. The executor lowers them.

mod add_entry;
mod cache_read;
mod derived_table;
mod extent_scan;
mod merge_groups;
mod named;
mod units;

pub use add_entry::{AddEntryExec, PrefixKey, Worth};
pub use cache_read::CacheReadExec;
pub use derived_table::DerivedTableExec;
pub use extent_scan::{ExtentScanExec, Reading};
pub use merge_groups::MergeGroupsExec;
pub use named::NamedExec;
pub use units::{short, size, time};
