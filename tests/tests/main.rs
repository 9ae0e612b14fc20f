//! One binary for all integration tests: linking DataFusion once is enough.

mod bad_input;
mod conformance;
mod docs;
mod explained;
mod fail_points;
mod faults;
mod invariance;
mod processes;
mod reuse;
mod s3;
mod s3_cache;
mod segments;
mod sql;
mod streams;
mod tidy;
mod windows;
