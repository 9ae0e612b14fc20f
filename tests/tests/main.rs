//! One binary for all integration tests: linking DataFusion once is enough.

mod bad_input;
mod cluster;
mod collector;
mod conformance;
mod cut;
mod derived_tables;
mod docs;
mod eviction;
mod explained;
mod fail_points;
mod faults;
mod flight;
mod floats;
mod honest_plans;
mod http;
mod invariance;
mod jobs;
mod materialized_views;
mod other_engine;
mod pins;
mod processes;
mod provenance;
mod purge;
mod reports;
mod reuse;
mod rights;
mod s3;
mod s3_cache;
mod segments;
mod soak;
mod sql;
mod stopping;
mod streams;
mod tidy;
mod verify;
mod windows;

// What people run has this one, and tests that watch memory mean theirs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
