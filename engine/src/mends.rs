//! [`Mend`]: where the plans of DataFusion 55 give wrong rows, and the rule of ours that prevents it.
//!
//! Each can be put by itself into the rules of stock DataFusion: whoever compares with that can tell its known faults from ours.

use std::sync::Arc;

use datafusion::optimizer::OptimizerRule;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use nectarine_executor::{ForgetKeys, ForgetPadded};
use nectarine_planner::{
    KnownAggregates, RowsOfNothing, SubqueryValues, UnambiguousFilters, WholeMerges, WholeWindows,
};

/// Rules for logical plans.
pub type LogicalRules = Vec<Arc<dyn OptimizerRule + Send + Sync>>;

/// Rules for physical plans.
pub type PhysicalRules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// A fault of plans that is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mend {
    /// Filters that are pushed to the wrong one of two columns with one name.
    UnambiguousFilters,
    /// Groups that are left out below a window function, for the sake of a limit above it.
    WholeWindows,
    /// Columns that are taken for constant where outer joins or grouping sets pad them with NULLs.
    ForgetPadded,
    /// Columns that are taken to tell rows apart, since another column of groups did in their place.
    ForgetKeys,
    /// Aggregates that are answered from what is known of another one, or of other rows.
    KnownAggregates,
    /// Sorted partitions that are cut by a limit and merged by a part of their order.
    WholeMerges,
    /// `IN (SELECT ..)` inside of larger conditions, where NULL is taken for false.
    SubqueryValues,
    /// Conditions without columns that are moved below groups of which there is one even of no rows.
    RowsOfNothing,
}

impl Mend {
    /// All, in the order in which they are put in.
    pub const ALL: [Self; 8] = [
        Self::UnambiguousFilters,
        Self::WholeWindows,
        Self::ForgetPadded,
        Self::ForgetKeys,
        Self::KnownAggregates,
        Self::WholeMerges,
        Self::SubqueryValues,
        Self::RowsOfNothing,
    ];

    /// Puts it into DataFusion's rules.
    pub fn put_into(self, logical: &mut LogicalRules, rules: &mut PhysicalRules) {
        match self {
            Self::SubqueryValues => SubqueryValues::put_into(logical),
            Self::RowsOfNothing => RowsOfNothing::guard(logical),
            Self::UnambiguousFilters => UnambiguousFilters::guard(rules),
            Self::WholeWindows => WholeWindows::guard(rules),
            Self::KnownAggregates => KnownAggregates::replace(rules),
            Self::WholeMerges => WholeMerges::guard(rules),
            // Rules decide by what a plan says of its rows.
            Self::ForgetPadded => rules.insert(0, Arc::new(ForgetPadded)),
            // The order of a statement's rows is asked for next, and would count as one more.
            Self::ForgetKeys => {
                let first = rules.iter().position(|rule| rule.name() == "OutputRequirements").unwrap_or(0);
                rules.insert(first, Arc::new(ForgetKeys));
            }
        }
    }
}
