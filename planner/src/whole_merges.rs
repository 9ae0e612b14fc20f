//! [`WholeMerges`]: partitions that are cut by a limit are merged by all that they are sorted by.
//!
//! ```text
//!   SELECT .. FROM (SELECT .. ORDER BY c LIMIT 10) ORDER BY c, g
//!
//!   DataFusion 55                              after
//!   SortPreservingMergeExec: [c], fetch=10     SortPreservingMergeExec: [c, g], fetch=10
//!     SortExec: TopK(fetch=10), [c, g]           SortExec: TopK(fetch=10), [c, g]
//! ```
//!
//! It moves the order that is wanted above a merge with a limit below it, and leaves the merge as it was: rows of one `c` then come
//! as their partitions do.
//!
//! Keeps true   the plan's rows. Who merges by more of what each input is sorted by gives the same order, and more of it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

/// The rule that leaves such merges behind.
const ENSURES: &str = "EnsureRequirements";

/// See the module.
#[derive(Debug)]
pub struct WholeMerges;

impl WholeMerges {
    /// Puts it behind the rule of DataFusion that needs it.
    pub fn guard(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
        if let Some(position) = rules.iter().rposition(|rule| rule.name() == ENSURES) {
            rules.insert(position + 1, Arc::new(Self));
        }
    }
}

impl PhysicalOptimizerRule for WholeMerges {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match whole(&node) {
            Some(merge) => Ok(Transformed::yes(merge)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "whole_merges"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The node by the whole order of its input, if it is a merge by a part of it.
fn whole(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let merge = node.downcast_ref::<SortPreservingMergeExec>()?;
    let fetch = merge.fetch()?;
    let ordering = merge.input().output_ordering()?;
    let is_part = ordering.len() > merge.expr().len() && ordering.iter().zip(merge.expr().iter()).all(|(a, b)| a == b);
    is_part.then(|| {
        let merge = SortPreservingMergeExec::new(ordering.clone(), Arc::clone(merge.input())).with_fetch(Some(fetch));
        Arc::new(merge) as Arc<dyn ExecutionPlan>
    })
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    #[test]
    fn the_rule_is_found() {
        let mut rules = PhysicalOptimizer::new().rules;
        let before = rules.len();
        WholeMerges::guard(&mut rules);
        assert_eq!(rules.len(), before + 1);
    }
}
