//! The cluster: real processes, the same rows as one process, also when some of them are lost.

mod aimed;
#[cfg(target_os = "linux")]
mod files;
mod losses;
mod rows;
mod secrets;
mod tpch;
