//! [`PlanMetrics`]: what a plan's operators counted, summed up.

use std::collections::HashSet;
use std::time::Duration;

use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::{MetricValue, MetricsSet};

/// Sums over a plan, at any moment of its run.
#[derive(Debug, Default, Clone)]
pub(crate) struct PlanMetrics {
    /// Time that operators computed, over all threads.
    pub(crate) compute: Duration,
    /// Bytes read by scans, where they count them.
    pub(crate) bytes_scanned: u64,
    /// Rows that left scans.
    pub(crate) rows_scanned: u64,
    /// Files that scans are done with.
    pub(crate) files_done: u64,
    /// Bytes written to spill files.
    pub(crate) bytes_spilled: u64,
}

impl PlanMetrics {
    /// Looks at all operators of a plan once.
    pub(crate) fn of(plan: &dyn ExecutionPlan) -> Self {
        let mut sum = Self::default();
        sum.add(plan, &mut HashSet::new());
        sum
    }

    fn add(&mut self, plan: &dyn ExecutionPlan, seen: &mut HashSet<usize>) {
        if let Some(metrics) = plan.metrics() {
            self.compute += Duration::from_nanos(metrics.elapsed_compute().unwrap_or(0) as u64);
            self.bytes_spilled += metrics.spilled_bytes().unwrap_or(0) as u64;
            if plan.is::<DataSourceExec>() {
                self.rows_scanned += metrics.output_rows().unwrap_or(0) as u64;
                self.bytes_scanned += named(&metrics, "bytes_scanned");
                self.files_done += named(&metrics, "files_processed");
            }
        }
        for child in plan.children() {
            // A node may stand in two places of a plan; its numbers count once.
            if seen.insert(std::sync::Arc::as_ptr(child).cast::<()>() as usize) {
                self.add(child.as_ref(), seen);
            }
        }
    }
}

fn named(metrics: &MetricsSet, name: &str) -> u64 {
    let count = |value: &MetricValue| match value {
        MetricValue::Count { count, .. } => count.value(),
        _ => 0,
    };
    metrics.iter().filter(|metric| metric.value().name() == name).map(|metric| count(metric.value()) as u64).sum()
}
