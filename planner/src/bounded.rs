//! [`BoundedPlans`]: a statement whose plan would not fit into memory is refused before it is made.
//!
//! A CTE or a view is planned wherever it is named, so that a few lines, each naming the one before it twice, stand for
//! millions of steps. What was read from text shares them; the first rule that looks at each of them would not.

use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::AnalyzerRule;

/// Planning takes well below a millisecond a step.
const STEPS_MAX: usize = 20_000;

/// See the module. Comes before all other rules.
#[derive(Debug)]
pub struct BoundedPlans;

impl BoundedPlans {
    /// Puts it before `rules`.
    pub fn guard(rules: &mut Vec<Arc<dyn AnalyzerRule + Send + Sync>>) {
        rules.insert(0, Arc::new(Self));
    }

    /// Fails if a plan is too large, with all that it stands on.
    pub fn check(plan: &LogicalPlan) -> Result<()> {
        let mut n_steps = 0;
        count(plan, &mut n_steps)?;
        match n_steps > STEPS_MAX {
            true => plan_err!(
                "statement is too complex: more than {STEPS_MAX} steps, with CTEs and views wherever they are named"
            ),
            false => Ok(()),
        }
    }
}

impl AnalyzerRule for BoundedPlans {
    fn name(&self) -> &str {
        "bounded_plans"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        Self::check(&plan)?;
        Ok(plan)
    }
}

/// Counts the steps of a plan, and stops soon after there are too many.
fn count(plan: &LogicalPlan, n_steps: &mut usize) -> Result<TreeNodeRecursion> {
    plan.apply_with_subqueries(|node| {
        *n_steps += 1;
        if let LogicalPlan::TableScan(scan) = node
            && let Some(view) = scan.source.get_logical_plan()
        {
            count(&view, n_steps)?;
        }
        Ok(if *n_steps > STEPS_MAX { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })
}
