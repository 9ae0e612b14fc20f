//! [`KnownAggregates`]: aggregates of all rows that are known without reading any: the number of rows, the least and the largest value.
//!
//! It takes the place of DataFusion's rule of that kind, which in version 55 is wrong in three ways:
//!
//! ```text
//!   count(c) FILTER (WHERE c > 5) over count(*)         it passes over the first half with the FILTER, and answers with count(*)
//!   sum(x) over a join, or over nothing, of SELECT 5 AS x  sums of constants are told as if no row came twice or were missing
//!   count(DISTINCT a), count(DISTINCT b) WHERE a = 2    one value, says the filter, even if there is no row
//! ```
//!
//! Fires when   an aggregate without groups consists of count, min and max, without DISTINCT and FILTER, and all are known exactly.
//! Keeps true   the plan's rows.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::lit;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode, AggregateOutputMode};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::udaf::{AggregateFunctionExpr, StatisticsArgs as Known};

/// What DataFusion's rule is called.
const ANSWERS: &str = "aggregate_statistics";

/// Aggregates that are told truly: of these exact numbers of rows and exact bounds are asked for.
const TOLD: [&str; 3] = ["count", "min", "max"];

/// The rule; see above.
#[derive(Debug, Default)]
pub struct KnownAggregates;

impl KnownAggregates {
    /// The same rules, with this one in the place of DataFusion's.
    pub fn replace(rules: &mut [Arc<dyn PhysicalOptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name() == ANSWERS) {
            *rule = Arc::new(Self);
        }
    }
}

impl PhysicalOptimizerRule for KnownAggregates {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(answered(&plan)?.unwrap_or(plan))
    }

    fn name(&self) -> &str {
        ANSWERS
    }

    /// What is known is never NULL where the aggregate might be.
    fn schema_check(&self) -> bool {
        false
    }
}

/// The plan with its aggregates answered; `None` if none is.
fn answered(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(first) = first_half(plan)
        && let Some(values) = values(first)?
    {
        let row = Arc::new(PlaceholderRowExec::new(plan.schema()));
        return Ok(Some(Arc::new(ProjectionExec::try_new(values, row)?)));
    }
    let mut changed = false;
    let mut children = vec![];
    for child in plan.children() {
        let answer = answered(child)?;
        changed |= answer.is_some();
        children.push(answer.unwrap_or_else(|| Arc::clone(child)));
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    changed.then(|| Arc::clone(plan).replace_children(children, options)).transpose()
}

/// The aggregate that reads rows, if `plan` is what it comes to and there is one group.
fn first_half(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    let aggregate = plan.downcast_ref::<AggregateExec>().filter(|aggregate| aggregate.group_expr().is_empty())?;
    let first = match aggregate.mode().input_mode() {
        AggregateInputMode::Raw => aggregate,
        AggregateInputMode::Partial => nearest(aggregate.input())?,
    };
    let is_first = first.mode().input_mode() == AggregateInputMode::Raw
        && first.group_expr().is_empty()
        && first.aggr_expr().len() == aggregate.aggr_expr().len();
    // The first half by itself is no answer: what reads it wants states.
    let ends = aggregate.mode().output_mode() == AggregateOutputMode::Final;
    (is_first && ends).then_some(first)
}

/// The next aggregate on the way down, past nodes that only bring partitions together.
fn nearest(plan: &Arc<dyn ExecutionPlan>) -> Option<&AggregateExec> {
    match (plan.downcast_ref::<AggregateExec>(), plan.children().as_slice()) {
        (Some(aggregate), _) => Some(aggregate),
        (None, [child]) => nearest(child),
        (None, _) => None,
    }
}

fn values(first: &AggregateExec) -> Result<Option<Vec<ProjectionExpr>>> {
    let told = |aggregate: &Arc<AggregateFunctionExpr>| {
        TOLD.contains(&aggregate.fun().name()) && !aggregate.is_distinct() && aggregate.order_bys().is_empty()
    };
    if !first.aggr_expr().iter().all(told) || first.filter_expr().iter().any(Option::is_some) {
        return Ok(None);
    }
    let statistics = StatisticsContext::new().compute(first.input().as_ref(), &StatisticsArgs::new())?;
    let value = |aggregate: &Arc<AggregateFunctionExpr>| {
        let (exprs, field) = (aggregate.expressions(), aggregate.field());
        let known = Known {
            statistics: &statistics,
            return_type: field.data_type(),
            is_distinct: false,
            exprs: exprs.as_slice(),
        };
        let value = aggregate.fun().value_from_stats(&known)?;
        Some(ProjectionExpr { expr: lit(value), alias: aggregate.name().to_owned() })
    };
    Ok(first.aggr_expr().iter().map(value).collect())
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    /// Another name would leave DataFusion's rule in its place.
    #[test]
    fn the_rule_is_found() {
        assert!(PhysicalOptimizer::new().rules.iter().any(|rule| rule.name() == ANSWERS));
    }
}
