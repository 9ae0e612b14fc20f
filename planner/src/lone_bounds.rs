//! [`LoneBounds`]: rows are left out for a least or greatest value only where nothing else is asked of them.
//!
//! DataFusion 55 tells whoever reads rows for `min(a)` or `max(b)` without groups which of them could still change it.
//! For several aggregates it wants the rows that could change any, but forgets those of which it knows no bound:
//!
//! ```text
//!   min(i + i), max(i)                wants i > 10    what is no plain column has no bound
//!   max(a) FILTER (WHERE c), max(b)   wants b > 7     where no row with c was seen yet
//!   min(i), max(i)                    wants i > 10    where a batch was all NULL, which stays the least bound
//! ```
//!
//! One aggregate alone wants all rows as long as its bound is not known.
//!
//! Fires when   DataFusion's rule would. Where there are such aggregates, no aggregate of the plan tells what it wants.
//! Keeps true   the plan's schema and rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;

/// What DataFusion's rules that push filters down are called, with more words behind it.
const PUSHES: &str = "FilterPushdown";

/// A rule that pushes filters down, kept from those that leave out too much.
#[derive(Debug)]
pub struct LoneBounds(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl LoneBounds {
    /// The same rules, with those guarded that push filters down.
    pub fn guard(rules: &mut [Arc<dyn PhysicalOptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name().starts_with(PUSHES)) {
            *rule = Arc::new(Self(Arc::clone(rule)));
        }
    }
}

impl PhysicalOptimizerRule for LoneBounds {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        if !config.optimizer.enable_aggregate_dynamic_filter_pushdown || !wants_for_several(&plan) {
            return self.0.optimize(plan, config);
        }
        let mut config = config.clone();
        config.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        self.0.optimize(plan, &config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether one filter would be made of the bounds of several aggregates.
fn wants_for_several(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let is_such = |aggregate: &AggregateExec| {
        aggregate.aggr_expr().len() > 1 && !aggregate.dynamic_expressions_produced().is_empty()
    };
    plan.downcast_ref::<AggregateExec>().is_some_and(is_such) || plan.children().into_iter().any(wants_for_several)
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// Another name would leave the rules unguarded.
    #[test]
    fn the_rules_are_found() {
        let rules = PhysicalOptimizer::new().rules;
        assert_eq!(rules.iter().filter(|rule| rule.name().starts_with(PUSHES)).count(), 2);
    }
}
