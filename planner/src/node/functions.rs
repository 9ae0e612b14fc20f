//! Functions of ours that rules put into plans; nobody calls them by their names.
//!
//! ```text
//!   kept_cast   a cast, as it is: nobody takes it off
//!   span_ns     an interval as one number
//!   round       DataFusion's, whose type does not change while it is planned
//! ```
//!
//! They are immutable, and known to fingerprints and to executors.

mod kept_cast;
mod rounded;
mod span_ns;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

pub(crate) use kept_cast::kept_cast;
pub(crate) use rounded::round_of_columns;
pub use rounded::rounded;
pub(crate) use span_ns::span_ns;

/// All of them, each with a name that tells it from the others.
pub fn own_functions() -> [(&'static str, Arc<ScalarUDF>); 4] {
    [("kept_cast", kept_cast()), ("span_ns", span_ns()), ("round", rounded()), ("round_of_columns", round_of_columns())]
}
