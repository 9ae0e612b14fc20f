//! Plan nodes that say what is to be computed and print well in EXPLAIN; they do not run. The executor lowers them.

mod extent_scan;

pub use extent_scan::{ExtentScanExec, Reading};
