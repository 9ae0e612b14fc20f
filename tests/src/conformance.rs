//! DataFusion's own published test scripts, run through Nectarine's engine.
//!
//! ```text
//!   corpus     the .slt files of the package datafusion-sqllogictest, copied to a scratch folder
//!   reference  stock DataFusion runs each file here first: a record that it cannot pass (its data is not published) is
//!              left out, all others count
//!   ours       the same records through an engine of their own, one home per file
//!   invariant  their queries in several states of the cache, over one home for all files
//! ```
//!
//! What is compared: rows of queries, and whether statements fail. Not the wording of errors, which is ours, nor the
//! plans that EXPLAIN prints. Records whose answer differs on purpose are listed in `tests/conformance/exceptions.txt`,
//! each with its reason.

mod corpus;
mod exceptions;
mod invariant;
mod ours;
mod run;

pub use corpus::Corpus;
pub use exceptions::Exceptions;
pub use invariant::{Invariance, run_invariant};
pub use run::{Report, run};
