//! [`NearestAggregate`]: an aggregate is answered from what is known of its own input, not from that of another one below.
//!
//! DataFusion 55 looks for the first half of an aggregate below its second half, and passes over one with a FILTER: if there is another
//! aggregate further down, the value of that is the answer.
//!
//! ```text
//!   AggregateExec: mode=Final, count(c) FILTER (WHERE c > 5)      would be the 3 of
//!     AggregateExec: mode=Partial, count(c) FILTER (WHERE c > 5)  <- passed over
//!       AggregateExec: mode=Final, count(*)
//!         AggregateExec: mode=Partial, count(*)                   <- this one: not so here
//! ```
//!
//! Fires when   DataFusion's rule would, for aggregates whose first half is the nearest aggregate below.
//! Keeps true   the plan's rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;

/// What DataFusion's rule is called.
const ANSWERS: &str = "aggregate_statistics";

/// The rule that answers aggregates, asked about one at a time.
#[derive(Debug)]
pub struct NearestAggregate(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl NearestAggregate {
    /// The same rules, with that guarded which answers aggregates.
    pub fn guard(rules: &mut [Arc<dyn PhysicalOptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name() == ANSWERS) {
            *rule = Arc::new(Self(Arc::clone(rule)));
        }
    }

    /// The plan with its aggregates answered; `None` if none is.
    fn answered(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if may_be_answered(plan) {
            let answer = self.0.optimize(Arc::clone(plan), config)?;
            // It goes on below where it has no answer, and without us.
            if is_answer(&answer) {
                return Ok(Some(answer));
            }
        }
        let mut changed = false;
        let mut children = vec![];
        for child in plan.children() {
            let answered = self.answered(child, config)?;
            changed |= answered.is_some();
            children.push(answered.unwrap_or_else(|| Arc::clone(child)));
        }
        changed.then(|| Arc::clone(plan).with_new_children(children)).transpose()
    }
}

impl PhysicalOptimizerRule for NearestAggregate {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self.answered(&plan, config)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether the node is an aggregate of all rows, and what the rule would look at is this aggregate.
fn may_be_answered(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let Some(aggregate) = plan.downcast_ref::<AggregateExec>() else { return false };
    if !aggregate.group_expr().is_empty() {
        return false;
    }
    let first = match aggregate.mode().input_mode() {
        AggregateInputMode::Raw => Some(plan),
        AggregateInputMode::Partial => nearest(aggregate.input()),
    };
    let first = first.and_then(|first| first.downcast_ref::<AggregateExec>());
    first.is_some_and(|first| {
        first.mode().input_mode() == AggregateInputMode::Raw
            && first.group_expr().is_empty()
            && first.filter_expr().iter().all(Option::is_none)
    })
}

/// The first aggregate on the way down, as long as there is one way.
fn nearest(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if plan.is::<AggregateExec>() {
        return Some(plan);
    }
    match plan.children().as_slice() {
        [child] => nearest(child),
        _ => None,
    }
}

/// Whether the rule put values in the place of an aggregate.
fn is_answer(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.downcast_ref::<ProjectionExec>().is_some_and(|values| values.input().is::<PlaceholderRowExec>())
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// Another name would leave the rule unguarded.
    #[test]
    fn the_rule_is_found() {
        assert!(PhysicalOptimizer::new().rules.iter().any(|rule| rule.name() == ANSWERS));
    }
}
