//! [`ForgetUneven`]: what is one value in each half of a union is not one value above it.
//!
//! ```text
//!   SELECT 0 AS k, s FROM a UNION ALL SELECT 1, s FROM b ORDER BY k, s LIMIT 2
//!
//!   DataFusion 55                          after
//!   SortPreservingMergeExec: [k, s]        SortPreservingMergeExec: [k, s]
//!     SortExec: TopK(fetch=2), [s]           SortExec: TopK(fetch=2), [k, s]
//!       UnionExec                              PlainRowsExec
//!         ProjectionExec: 0 as k, s              UnionExec
//!         ProjectionExec: 1 as k, s                ..
//! ```
//!
//! Each partition has one `k`, so DataFusion does not sort by it. But a top-k tells all partitions what the best rows of
//! any come to, and by `s` alone rows of `b` rule out those of `a`.
//!
//! Fires when   something in the plan has a limit: only a top-k compares rows of several partitions before they meet.
//! Runs after   filters were pushed down, which may leave one value in a half. Runs before it is settled what sorts go by.
//! Keeps true   schema, rows, partitions. What is one and the same value in all halves stays known.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::{AcrossPartitions, ConstExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use super::{Forgets, PlainRows};

/// The rule that decides by which columns rows are sorted.
const SORTS: &str = "EnsureRequirements";

/// See the module.
#[derive(Debug)]
pub struct ForgetUneven;

impl ForgetUneven {
    /// Puts it before the rule of DataFusion that needs it.
    pub fn guard(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
        if let Some(position) = rules.iter().position(|rule| rule.name() == SORTS) {
            rules.insert(position, Arc::new(Self));
        }
    }
}

impl PhysicalOptimizerRule for ForgetUneven {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        // A limit may yet be pushed to a sort that is not there so far, as that of a window function.
        if !plan.exists(|node| Ok(node.fetch().is_some()))? {
            return Ok(plan);
        }
        plan.transform_up(|node| {
            let differs = || node.equivalence_properties().constants().iter().any(is_uneven);
            match node.is::<UnionExec>() && differs() {
                true => Ok(Transformed::yes(PlainRows::over(node, Forgets::Uneven)?)),
                false => Ok(Transformed::no(node)),
            }
        })
        .data()
    }

    fn name(&self) -> &str {
        "forget_uneven"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Whether partitions may differ in what is one value in each. What is not known may be another value elsewhere.
pub(super) fn is_uneven(constant: &ConstExpr) -> bool {
    !matches!(constant.across_partitions, AcrossPartitions::Uniform(Some(_)))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// Another name would leave the plans as they are.
    #[test]
    fn the_rule_is_found() {
        let mut rules = PhysicalOptimizer::new().rules;
        let before = rules.len();
        ForgetUneven::guard(&mut rules);
        assert_eq!(rules.len(), before + 1);
    }
}
