//! [`WholeFilters`]: filters show all their columns while projections are moved.
//!
//! ```text
//!   SELECT b.k, a.id + a.x FROM t a RIGHT JOIN t b ON .. WHERE a.k IS NULL
//!
//!   before                                               after
//!   ProjectionExec: [k@0, id@1 + x@2]                    ProjectionExec: [k@0, id@1 + x@2]
//!     FilterExec: k@0 IS NULL, projection=[k@3, id, x]     ProjectionExec: [k@3, id@1, x@2]
//!       HashJoinExec: [k, id, x, k]                          FilterExec: k@0 IS NULL
//!                                                              HashJoinExec: [k, id, x, k]
//! ```
//!
//! DataFusion moves a projection below a filter as if it read what the filter reads, and not what it shows: the `k` of `b` became the
//! `k` of `a` where names are the same at the same places, and an internal error or one of types where they are not. Filters come to
//! show a part of their columns when projections are moved for the first time; they are moved twice.
//!
//! Keeps true   the plan's schema and rows. What filters show is taken into them again by the rule that it stands before.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

/// The rule that moves projections.
const MOVES: &str = "ProjectionPushdown";

/// See the module.
#[derive(Debug)]
pub struct WholeFilters;

impl WholeFilters {
    /// Puts it before each rule of DataFusion that needs it.
    pub fn guard(rules: &mut Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>) {
        let guarded = std::mem::take(rules).into_iter().flat_map(|rule| {
            let guard: Option<Arc<dyn PhysicalOptimizerRule + Send + Sync>> = match rule.name() == MOVES {
                true => Some(Arc::new(Self)),
                false => None,
            };
            guard.into_iter().chain([rule])
        });
        *rules = guarded.collect();
    }
}

impl PhysicalOptimizerRule for WholeFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match whole(&node)? {
            Some(projection) => Ok(Transformed::yes(projection)),
            None => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "whole_filters"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The columns that a filter shows, above the same filter with all of them; `None` for anything else.
fn whole(node: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = node.downcast_ref::<FilterExec>() else { return Ok(None) };
    let Some(shown) = filter.projection().as_deref() else { return Ok(None) };
    let all = Arc::new(FilterExecBuilder::from(filter).apply_projection(None)?.build()?);
    let schema = filter.input().schema();
    let column = |index: &usize| {
        let name = schema.field(*index).name();
        ProjectionExpr { expr: Arc::new(Column::new(name, *index)), alias: name.clone() }
    };
    Ok(Some(Arc::new(ProjectionExec::try_new(shown.iter().map(column).collect::<Vec<_>>(), all)?)))
}

#[cfg(test)]
mod tests {
    use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;

    use super::*;

    #[test]
    fn the_rules_are_found() {
        let mut rules = PhysicalOptimizer::new().rules;
        let before = rules.len();
        WholeFilters::guard(&mut rules);
        assert_eq!(rules.len(), before + 2);
        let names: Vec<&str> = rules.iter().map(|rule| rule.name()).collect();
        assert!(names.windows(2).filter(|pair| pair[1] == MOVES).all(|pair| pair[0] == "whole_filters"), "{names:?}");
    }
}
