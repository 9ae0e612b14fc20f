//! [`LowerExtentScans`]: extent scans become DataFusion's own file scans.
//!
//! ```text
//!   before                               after
//!   FilterExec: page = 'home'            FilterExec: page = 'home'
//!     ExtentScanExec: extents=3            DataSourceExec: file_groups={..}
//! ```
//!
//! Runs first of all physical rules, so that every later one (statistics, pushdowns, repartitioning) sees stock nodes.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use nectarine_planner::node::ExtentScanExec;

use crate::scan::file_scan;

/// The rule; it needs the runtime's object stores and its cache of Parquet footers.
pub struct LowerExtentScans {
    runtime: Arc<RuntimeEnv>,
}

impl LowerExtentScans {
    /// For plans that run in `runtime`.
    pub fn new(runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime }
    }
}

impl fmt::Debug for LowerExtentScans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LowerExtentScans")
    }
}

impl PhysicalOptimizerRule for LowerExtentScans {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match node.downcast_ref::<ExtentScanExec>() {
            Some(scan) => Ok(Transformed::yes(file_scan(scan, &self.runtime, config)?)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "lower_extent_scans"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
