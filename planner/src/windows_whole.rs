//! [`WholeWindows`]: what a window function reads is not cut for the sake of a LIMIT above it.
//!
//! DataFusion 55 tells groups to keep only the first few of them when a sort with a LIMIT stands above, looking through every node
//! that gives as many rows as it gets. A window function does that too, but each of its rows depends on others:
//!
//! ```text
//!   SortExec: value DESC, fetch=3
//!     BoundedWindowAggExec: rank() OVER (ORDER BY value)      ranks among all groups
//!       AggregateExec: gby=[value], lim=[3]                   of which three would be left: not so here
//! ```
//!
//! Fires when   DataFusion's rule would, in plans without window functions.
//! Keeps true   the plan's schema and rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};

/// What DataFusion's rule is called, apart from capitals.
const CUTS_GROUPS: &str = "LimitAggregation";

/// The rule that cuts groups, kept from plans with window functions.
#[derive(Debug)]
pub struct WholeWindows(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl WholeWindows {
    /// The same rules, with that guarded which cuts groups.
    pub fn guard(rules: &mut [Arc<dyn PhysicalOptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name() == CUTS_GROUPS) {
            *rule = Arc::new(Self(Arc::clone(rule)));
        }
    }
}

impl PhysicalOptimizerRule for WholeWindows {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        match has_window(&plan) {
            true => Ok(plan),
            false => self.0.optimize(plan, config),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

fn has_window(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<BoundedWindowAggExec>() || plan.is::<WindowAggExec>() || plan.children().into_iter().any(has_window)
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// Another name would leave the rule unguarded.
    #[test]
    fn the_rule_is_found() {
        assert!(PhysicalOptimizer::new().rules.iter().any(|rule| rule.name() == CUTS_GROUPS));
    }
}
