//! The cluster: real processes, the same rows as one process, also when some of them are lost.

mod aimed;
mod losses;
mod rows;
mod tpch;
