//! [`with_children`]: filters whose selectivity DataFusion 55 cannot estimate are told no bounds, so that they can be planned at all.
//!
//! `ts::date > DATE '2022-01-15'` makes whole days of the times of its column, and those may be more time than the column has: a
//! "selectivity" above one, which is an internal error where the filter is made.
//!
//! Keeps true   schema, rows, partitions, and which files are read.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;

use super::{Forgets, PlainRows};

/// The node over others of the same rows, of which more may be known.
pub(crate) fn with_children(
    node: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let anew = || ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    let made = Arc::clone(&node).replace_children(children.clone(), anew());
    if made.is_ok() || !node.is::<FilterExec>() {
        return made;
    }
    let honest = children.into_iter().map(|child| PlainRows::over(child, Forgets::Bounds));
    node.replace_children(honest.collect::<Result<_>>()?, anew())
}
