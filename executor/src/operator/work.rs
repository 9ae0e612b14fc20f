//! [`Work`]: what computing a plan took, cumulated over the plan.

use std::sync::Arc;
use std::time::Duration;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::MetricsSet;

use super::CacheReadOperator;

/// Time that a plan's operators spent, by their own metrics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Spent now.
    pub computed: Duration,
    /// What the entries read here had once taken: spent again if they are gone.
    pub reused: Duration,
}

/// The work of a plan that has run.
pub fn work_of(plan: &Arc<dyn ExecutionPlan>) -> Work {
    let mut work = Work::default();
    // The closure does not fail.
    let _ = plan.apply(|node| {
        if let Some(metrics) = node.metrics() {
            work.computed += Duration::from_nanos(nanos(&metrics) as u64);
        }
        if let Some(read) = node.downcast_ref::<CacheReadOperator>() {
            work.reused += Duration::from_micros(read.entry().cost_us);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    work
}

/// File scans account for decoding under a name of their own.
fn nanos(metrics: &MetricsSet) -> usize {
    let compute = metrics.elapsed_compute().unwrap_or(0);
    let scanning = metrics.sum_by_name("time_elapsed_processing").map_or(0, |value| value.as_usize());
    compute.max(scanning)
}
