//! [`Mend`]: where the plans of DataFusion 55 give wrong rows, and the rule of ours that prevents it.
//!
//! Each can be put by itself into the rules of stock DataFusion: whoever compares with that can tell its known faults from ours.

use std::sync::Arc;

use datafusion::physical_optimizer::PhysicalOptimizerRule;
use nectarine_executor::ForgetPadded;
use nectarine_planner::{KnownAggregates, UnambiguousFilters, WholeWindows};

/// A fault of physical plans that is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// Filters that are pushed to the wrong one of two columns with one name.
    UnambiguousFilters,
    /// Groups that are left out below a window function, for the sake of a limit above it.
    WholeWindows,
    /// Columns that are taken for constant where outer joins or grouping sets pad them with NULLs.
    ForgetPadded,
    /// Aggregates that are answered from what is known of another one, or of other rows.
    KnownAggregates,
}

impl Mend {
    /// All, in the order in which they are put in.
    pub const ALL: [Self; 4] =
        [Self::UnambiguousFilters, Self::WholeWindows, Self::ForgetPadded, Self::KnownAggregates];

    /// Puts it into DataFusion's rules.
    pub fn put_into(self, rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
        match self {
            Self::UnambiguousFilters => UnambiguousFilters::guard(rules),
            Self::WholeWindows => WholeWindows::guard(rules),
            Self::KnownAggregates => KnownAggregates::replace(rules),
            // Rules decide by what a plan says of its rows.
            Self::ForgetPadded => rules.insert(0, Arc::new(ForgetPadded)),
        }
    }
}
