//! [`rewrite_scans`]: changes something about the file scans of a plan that nothing above them can tell.
//!
//! Keeps true   schema, partitions and order of each scan. So the nodes above keep what they know of their children: computing it
//!              anew for all of them takes as long as another physical rule.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::{DataSource, DataSourceExec};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};

/// The plan with those scans replaced for which `rewrite` has another; `None` if there is none.
pub(crate) fn rewrite_scans(
    plan: &Arc<dyn ExecutionPlan>,
    rewrite: &dyn Fn(&FileScanConfig) -> Result<Option<FileScanConfig>>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    rewrite_sources(plan, &|config| Ok(rewrite(config)?.map(|config| Arc::new(config) as Arc<dyn DataSource>)))
}

/// Something else that reads the same as a scan does.
type Instead = Option<Arc<dyn DataSource>>;

/// The same with something else that reads the same.
pub(crate) fn rewrite_sources(
    plan: &Arc<dyn ExecutionPlan>,
    rewrite: &dyn Fn(&FileScanConfig) -> Result<Instead>,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<DataSourceExec>() {
        let Some(config) = scan.data_source().downcast_ref::<FileScanConfig>() else { return Ok(None) };
        let Some(source) = rewrite(config)? else { return Ok(None) };
        return Ok(Some(Arc::new(scan.clone().with_data_source(source))));
    }
    let old = plan.children();
    let mut children = Vec::with_capacity(old.len());
    let mut is_changed = false;
    for child in old {
        let new = rewrite_sources(child, rewrite)?;
        is_changed |= new.is_some();
        children.push(new.unwrap_or_else(|| Arc::clone(child)));
    }
    match is_changed {
        true => {
            let keep = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            Arc::clone(plan).replace_children(children, keep).map(Some)
        }
        false => Ok(None),
    }
}
