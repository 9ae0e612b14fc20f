//! Plan nodes that say what is to be computed and print well in EXPLAIN; they do not run. The executor lowers them. And
//! functions of ours, which do run.

mod add_entry;
mod cache_read;
mod derived_table;
mod extent_scan;
mod functions;
mod merge_groups;
mod named;
mod units;

pub use add_entry::{AddEntryExec, PrefixKey, Worth};
pub use cache_read::CacheReadExec;
pub use derived_table::DerivedTableExec;
pub use extent_scan::{ExtentScanExec, Reading};
pub(crate) use functions::{kept_cast, round_of_columns, span_ns};
pub use functions::{own_functions, rounded};
pub use merge_groups::MergeGroupsExec;
pub use named::NamedExec;
pub use units::{short, size, time};
