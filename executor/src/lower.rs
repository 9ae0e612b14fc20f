//! [`LowerExtentScans`]: marker nodes become what runs.
//!
//! ```text
//!   before                               after
//!   FilterExec: page = 'home'            FilterExec: page = 'home'
//!     ExtentScanExec: extents=3            DataSourceExec: file_groups={..}
//!     CacheReadExec: entry=1a2b..          CacheReadOperator, if the statement may read that entry
//!     AddEntryExec: entry=3c4d..           AddEntryOperator, or its input alone where nothing is recorded
//!     MergeGroupsExec                      AggregateExec: mode=PartialReduce over GatherGroupsExec
//! ```
//!
//! Runs first of all physical rules, so that every later one (statistics, pushdowns, repartitioning) sees stock nodes.
//! Without a [`StatementLowering`] in the options nothing is recorded and reads of entries stay marks, which can be
//! explained but not executed.

mod context;

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use nectarine_planner::node::{AddEntryExec, CacheReadExec, ExtentScanExec, MergeGroupsExec};

pub use self::context::{Lowering, StatementLowering};
use crate::operator::{AddEntryOperator, CacheReadOperator, merge_groups};
use crate::padded::with_children;
use crate::scan::{Readers, file_scan};

/// The rule; it needs the runtime's object stores and its cache of Parquet footers.
pub struct LowerExtentScans {
    readers: Readers,
}

impl LowerExtentScans {
    /// For plans that run in `runtime`.
    pub fn new(runtime: Arc<RuntimeEnv>) -> Self {
        Self { readers: Readers::new(runtime) }
    }
}

impl LowerExtentScans {
    fn lower(
        &self,
        node: Arc<dyn ExecutionPlan>,
        lowering: Option<&Lowering>,
        config: &ConfigOptions,
    ) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
        if let Some(scan) = node.downcast_ref::<ExtentScanExec>() {
            let config = scan.config().map_or(config, AsRef::as_ref);
            return Ok(Transformed::yes(file_scan(scan, &self.readers, config)?));
        }
        if let Some(mark) = node.downcast_ref::<AddEntryExec>() {
            return Ok(Transformed::yes(lower_add_entry(mark, lowering)));
        }
        if let Some(mark) = node.downcast_ref::<MergeGroupsExec>() {
            return Ok(Transformed::yes(merge_groups(mark)?));
        }
        let read = node.downcast_ref::<CacheReadExec>();
        match read.and_then(|read| lower_cache_read(read, lowering?, config)) {
            Some(read) => Ok(Transformed::yes(read)),
            None => Ok(Transformed::no(node)),
        }
    }
}

impl fmt::Debug for LowerExtentScans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LowerExtentScans")
    }
}

impl PhysicalOptimizerRule for LowerExtentScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let lowering = config.extensions.get::<StatementLowering>().map(|statement| statement.0.as_ref());
        let lower = |node: Arc<dyn ExecutionPlan>| self.lower(node, lowering, config);
        match Arc::clone(&plan).transform_up(lower).data() {
            Ok(plan) => Ok(plan),
            // From here on filters estimate how many rows they let through, and some can not.
            Err(error) => {
                lowering.into_iter().for_each(Lowering::forget_recordings);
                carefully(plan, &lower).map_err(|_| error)
            }
        }
    }

    fn name(&self) -> &str {
        "lower_extent_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The same as `transform_up`, node by node.
fn carefully(
    plan: Arc<dyn ExecutionPlan>,
    lower: &impl Fn(Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let children: Vec<_> = plan.children().into_iter().cloned().collect();
    if children.is_empty() {
        return lower(plan).data();
    }
    let lowered = children.into_iter().map(|child| carefully(child, lower)).collect::<Result<_>>()?;
    lower(with_children(plan, lowered)?).data()
}

fn lower_add_entry(mark: &AddEntryExec, lowering: Option<&Lowering>) -> Arc<dyn ExecutionPlan> {
    let input = Arc::clone(mark.input());
    if has_hidden_order(&input) {
        return input;
    }
    match lowering.and_then(|lowering| lowering.record(mark.prefix())) {
        Some(recording) => Arc::new(AddEntryOperator::new(input, recording)),
        None => input,
    }
}

fn lower_cache_read(
    read: &CacheReadExec,
    lowering: &Lowering,
    config: &ConfigOptions,
) -> Option<Arc<dyn ExecutionPlan>> {
    let entry = lowering.entry(&read.key())?;
    Some(Arc::new(CacheReadOperator::new(
        Arc::clone(entry),
        lowering.store().clone(),
        read.schema(),
        read.properties().output_ordering().cloned(),
        config.execution.target_partitions,
    )))
}

/// Whether rows are sorted by something that is no longer among their columns (`SELECT b FROM t ORDER BY a`). That order
/// can not be required, so a sort that this statement does not need would be dropped and the entry hold rows in no order.
fn has_hidden_order(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if plan.output_ordering().is_some() {
        return false;
    }
    let mut node = plan;
    loop {
        if node.is::<SortExec>() || node.is::<SortPreservingMergeExec>() {
            return true;
        }
        match (node.children().as_slice(), node.maintains_input_order().as_slice()) {
            ([child], [true]) => node = *child,
            _ => return false,
        }
    }
}
