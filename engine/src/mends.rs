//! [`Mend`]: where the plans of DataFusion 55 give wrong rows, and the rule of ours that prevents it.
//!
//! Each can be put by itself into the rules of stock DataFusion: whoever compares with that can tell its known faults from ours.

use std::sync::Arc;

use datafusion::optimizer::{AnalyzerRule, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use nectarine_executor::{ForgetKeys, ForgetPadded, ForgetUneven};
use nectarine_planner::{
    ComparedIntervals, ComputedKeys, ExactMoments, HonestFilters, KeptCasts, KnownAggregates, LoneBounds,
    RowsOfNothing, SteadyRounding, SubqueryValues, UnambiguousFilters, WholeFilters, WholeMerges, WholeWindows,
};

/// The rules by which a statement is planned.
#[derive(Debug, Default)]
pub struct Rules {
    /// What a statement means: types, and what stands for what.
    pub analyzer: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
    /// Logical plans.
    pub optimizer: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
    /// Physical plans.
    pub physical: Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>,
}

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
    /// Columns that are one value in each half of a union, and are left out of what a limited sort goes by.
    ForgetUneven,
    /// Aggregates that are answered from what is known of another one, or of other rows.
    KnownAggregates,
    /// Rows that are left out for the sake of one aggregate, and needed by another.
    LoneBounds,
    /// Projections that are moved below a filter as if they read what it reads, and not what it shows.
    WholeFilters,
    /// Sorted partitions that are cut by a limit and merged by a part of their order.
    WholeMerges,
    /// `IN (SELECT ..)` inside of larger conditions, where NULL is taken for false.
    SubqueryValues,
    /// Conditions without columns that are moved below groups of which there is one even of no rows.
    RowsOfNothing,
    /// Constants of another unit or zone, from which is cut what a column does not have.
    ExactMoments,
    /// Groups of a subquery that has something in common with the outer row that is computed.
    ComputedKeys,
    /// Columns that are taken for constant since something computed from them is.
    HonestFilters,
    /// `round` of decimals, of a type that is another one while a statement is planned.
    SteadyRounding,
    /// Intervals that are compared by their parts.
    ComparedIntervals,
    /// Casts that cut, and are forgotten where they are compared with a constant.
    KeptCasts,
}

impl Mend {
    /// All, in the order in which they are put in.
    pub const ALL: [Self; 17] = [
        Self::UnambiguousFilters,
        Self::WholeWindows,
        Self::ForgetPadded,
        Self::ForgetKeys,
        Self::ForgetUneven,
        Self::KnownAggregates,
        Self::LoneBounds,
        Self::WholeFilters,
        Self::WholeMerges,
        Self::SubqueryValues,
        Self::RowsOfNothing,
        Self::ExactMoments,
        Self::ComputedKeys,
        Self::HonestFilters,
        Self::SteadyRounding,
        Self::ComparedIntervals,
        Self::KeptCasts,
    ];

    /// Puts it into DataFusion's rules.
    pub fn put_into(self, rules: &mut Rules) {
        let Rules { analyzer, optimizer, physical } = rules;
        match self {
            Self::SteadyRounding => SteadyRounding::put_into(analyzer),
            Self::ComparedIntervals => analyzer.push(Arc::new(ComparedIntervals)),
            Self::KeptCasts => analyzer.push(Arc::new(KeptCasts)),
            Self::SubqueryValues => SubqueryValues::put_into(optimizer),
            Self::RowsOfNothing => RowsOfNothing::guard(optimizer),
            Self::ExactMoments => ExactMoments::put_into(optimizer),
            Self::ComputedKeys => ComputedKeys::put_into(optimizer),
            Self::UnambiguousFilters => UnambiguousFilters::guard(physical),
            Self::WholeWindows => WholeWindows::guard(physical),
            Self::KnownAggregates => KnownAggregates::replace(physical),
            Self::LoneBounds => LoneBounds::guard(physical),
            Self::ForgetUneven => ForgetUneven::guard(physical),
            Self::WholeFilters => WholeFilters::guard(physical),
            Self::WholeMerges => WholeMerges::guard(physical),
            Self::HonestFilters => HonestFilters::put_into(physical),
            // Rules decide by what a plan says of its rows.
            Self::ForgetPadded => physical.insert(0, Arc::new(ForgetPadded)),
            // The order of a statement's rows is asked for next, and would count as one more.
            Self::ForgetKeys => {
                let first = physical.iter().position(|rule| rule.name() == "OutputRequirements").unwrap_or(0);
                physical.insert(first, Arc::new(ForgetKeys));
            }
        }
    }
}
