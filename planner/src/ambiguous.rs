//! [`UnambiguousFilters`]: filters are pushed down only where names tell columns apart.
//!
//! DataFusion 55 finds the column of a filter in the next node by its name. Where two columns share one, as those of a join of
//! tables that both have an `id`, it takes the first of them: the filter of a join or of a top-k then drops rows that belong to
//! the answer (apache/datafusion 25244, 25264, 25296).
//!
//! ```text
//!   HashJoinExec: s.id = b.id                  filter: id@1 IN ..
//!     ScanExec: s
//!     AggregateExec: a.id, b.id                id@1 becomes id@0, which is a.id: not so here
//!       HashJoinExec: a.ty = b.id              its own filter goes to `a` and `b`, whose names are their own
//!         ScanExec: a
//!         ScanExec: b
//! ```
//!
//! A filter on the key of a semi join goes to both of its sides, on the other one to the column of the key's name, which may be
//! any column but the key's partner: a semi join whose names mislead like that is taken for ambiguous too.
//!
//! Fires when   DataFusion's rule would; a part of a plan in which names mislead keeps its filters where they are.
//! Keeps true   the plan's schema and rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::{JoinType, Result};
use datafusion::config::ConfigOptions;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;

/// What DataFusion's rules that go by names are called, with more words behind it.
const BY_NAME: &str = "FilterPushdown";

/// A rule that pushes filters down, kept from what it would get wrong.
#[derive(Debug)]
pub struct UnambiguousFilters(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl UnambiguousFilters {
    /// The same rules, with those guarded that push filters down.
    pub fn guard(rules: &mut [Arc<dyn PhysicalOptimizerRule + Send + Sync>]) {
        for rule in rules.iter_mut().filter(|rule| rule.name().starts_with(BY_NAME)) {
            *rule = Arc::new(Self(Arc::clone(rule)));
        }
    }

    /// Lets the rule run on the largest parts of a plan whose names are unambiguous below their tops.
    fn guarded(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let below: Vec<_> = plan.children().into_iter().cloned().collect();
        if below.iter().all(is_unambiguous) {
            return self.0.optimize(plan, config);
        }
        let new: Vec<_> = below.iter().map(|child| self.guarded(Arc::clone(child), config)).collect::<Result<_>>()?;
        match below.iter().zip(&new).all(|(old, new)| Arc::ptr_eq(old, new)) {
            true => Ok(plan),
            false => plan.replace_children(new, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute)),
        }
    }
}

impl PhysicalOptimizerRule for UnambiguousFilters {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        self.guarded(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// Whether no node has two columns of one name, and no semi join one that is called like a key of the other side.
fn is_unambiguous(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let schema = plan.schema();
    let mut names = HashSet::with_capacity(schema.fields().len());
    schema.fields().iter().all(|field| names.insert(field.name()))
        && plan.downcast_ref::<HashJoinExec>().is_none_or(keys_mean_their_partners)
        && plan.children().into_iter().all(is_unambiguous)
}

/// Whether the name of every key of a semi join means its partner on the other side, or nothing.
fn keys_mean_their_partners(join: &HashJoinExec) -> bool {
    let (is_left, other) = match join.join_type() {
        JoinType::LeftSemi => (true, join.right().schema()),
        JoinType::RightSemi => (false, join.left().schema()),
        _ => return true,
    };
    let pairs: Vec<_> =
        join.on().iter().map(|(left, right)| if is_left { (left, right) } else { (right, left) }).collect();
    let column = |expr: &PhysicalExprRef| expr.downcast_ref::<Column>().cloned();
    pairs.iter().filter_map(|(key, _)| column(key)).all(|key| {
        let Some((found, _)) = other.column_with_name(key.name()) else { return true };
        let is_partner = |(own, partner): &(&PhysicalExprRef, &PhysicalExprRef)| {
            column(own).is_some_and(|own| own.index() == key.index())
                && column(partner).is_some_and(|partner| partner.index() == found)
        };
        pairs.iter().any(is_partner)
    })
}
