//! The invariance harness: whatever was computed before, in whatever state the cache is, an answer stays the same.
//!
//! ```text
//!   random     numbers from a seed that is printed and can be given again
//!   answer     rows that can be compared: as multisets, floats within their last bits, and in the order asked for
//!   ties       statements whose limits may cut among equal rows, and what they are without
//!   mode       the ways in which one statement is run
//!   damage     what can happen to the files of a cache
//!   stock      stock DataFusion, and which of its rules is at fault where it differs
//!   harness    runs a statement in all modes over one cache that is never reset
//!   changes    how tables change between statements
//!   tables     the tables that generated statements read, here and in stock DataFusion, and how they grow
//!   views      what stands on them: views on views, materialized views, derived tables
//!   sketch     a statement with marked literals, aliases and conjuncts, so that near-copies of it can be made
//!   generator  typed random queries
//!   verified   what VERIFY says about the entries that are left in the end
//! ```
//!
//! What is right is decided by runs without the cache. A statement whose runs without the cache differ among themselves
//! (a LIMIT without an order, ties in a window) has no right answer: only its number of rows is compared.

mod answer;
mod changes;
mod damage;
mod generator;
mod harness;
mod mode;
mod random;
mod sketch;
mod stock;
mod tables;
mod ties;
mod verified;
mod views;

pub use answer::{Rows, order_of};
pub use generator::{Generator, Growing};
pub use harness::Harness;
pub use mode::Mode;
pub use random::Random;
pub use stock::stock_context;
pub use tables::Tables;
pub use verified::{Verified, verify_all};

/// The seed of this run: `NECTARINE_SEED`, or another one each time.
pub fn seed() -> u64 {
    let given = std::env::var("NECTARINE_SEED").ok().and_then(|seed| seed.parse().ok());
    given.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        now.as_millis() as u64
    })
}

/// How many generated statements to run: `NECTARINE_INVARIANCE`, or `default`.
pub fn statements(default: usize) -> usize {
    std::env::var("NECTARINE_INVARIANCE").ok().and_then(|count| count.parse().ok()).unwrap_or(default)
}

/// Two threads with room for both engines and deep plans.
pub fn roomy_runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).thread_stack_size(16 << 20).enable_all().build().expect("a runtime")
}

/// Runs so many statements (see [`statements`]), each `per_home` of them on a home and with a seed of their own.
pub fn in_homes(default: usize, per_home: usize, run: fn(u64, usize)) {
    let (mut seed, mut left) = (seed(), statements(default));
    while left > 0 {
        let now = left.min(per_home);
        run(seed, now);
        left -= now;
        seed = seed.wrapping_add(1);
    }
}
