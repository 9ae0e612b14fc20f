//! [`HonestKeys`]: which columns tell the rows of a subquery apart is not believed where DataFusion 55 gets it wrong.
//!
//! ```text
//!   Aggregate: l.p, m.b          DataFusion: p is a key, because it was one below the join; so
//!     Join: l.p = m.a              ORDER BY p, b         is   ORDER BY p
//!       Aggregate: p               SELECT DISTINCT p, b  is   one row for each p
//!       Scan: m                    GROUP BY p            is   GROUP BY p, b, as if b could not differ
//!   Unnest: p, x                 the same: p comes once for each element of x
//!   Projection: k.a + 1          taken for a column that is called so
//! ```
//!
//! As a planner   of what stands in FROM: keys that a subquery, a CTE or a view claims end where its name begins, before anything
//!                is grouped, ordered or framed by them. Keys of tables stay.
//! As a rule      before each rule that uses keys: all keys of a plan are forgotten if some are wrong. Rules find them again.
//! Costs          a GROUP BY or DISTINCT over what is grouped by the same already is computed twice in such plans.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Dependency, FunctionalDependence, FunctionalDependencies, Result};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::sql::sqlparser::ast::TableFactor;

use crate::kept_casts::kept;

/// DataFusion's rules that leave something out because of a key.
const BELIEVERS: [&str; 4] =
    ["replace_distinct_aggregate", "eliminate_join", "eliminate_duplicated_expr", "optimize_projections"];

thread_local! {
    /// Whether the next relation that is asked for is one that was asked for here.
    static ASKED_HERE: Cell<bool> = const { Cell::new(false) };
}

/// See the module.
#[derive(Debug, Default)]
pub struct HonestKeys;

impl HonestKeys {
    /// The same rules, each that uses keys after this one.
    pub fn guard(rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
        let mut guarded: Vec<Arc<dyn OptimizerRule + Send + Sync>> = Vec::with_capacity(rules.len() + BELIEVERS.len());
        for rule in rules {
            if BELIEVERS.contains(&rule.name()) {
                guarded.push(Arc::new(Self));
            }
            guarded.push(rule);
        }
        guarded
    }
}

impl RelationPlanner for HonestKeys {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let may_claim = matches!(relation, TableFactor::Derived { .. } | TableFactor::Table { .. });
        if !may_claim || ASKED_HERE.replace(false) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        ASKED_HERE.set(true);
        let plan = context.plan(relation);
        ASKED_HERE.set(false);
        let plan = plan?;
        let plan = match is_table(&plan) {
            true => plan,
            false => claiming_nothing(plan)?,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}

impl OptimizerRule for HonestKeys {
    fn name(&self) -> &str {
        "honest_keys"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match is_misled(&plan)? {
            true => plan.transform_up_with_subqueries(forget),
            false => Ok(Transformed::no(plan)),
        }
    }
}

/// After all other analyzers: what is checked then uses keys as well.
impl AnalyzerRule for HonestKeys {
    fn name(&self) -> &str {
        "honest_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        match is_misled(&plan)? {
            true => plan.transform_up_with_subqueries(forget).data(),
            false => Ok(plan),
        }
    }
}

/// Whether a relation is a table by its own name or another.
fn is_table(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_table(&alias.input),
        _ => false,
    }
}

/// Whether groups, or elements of lists, stand above keys that hold no longer, or something else is taken for a key.
fn is_misled(plan: &LogicalPlan) -> Result<bool> {
    let mut misled = false;
    plan.apply_with_subqueries(|node| {
        misled |= match node {
            LogicalPlan::Aggregate(aggregate) => {
                let below = aggregate.input.schema().functional_dependencies();
                let holds = |claim: &FunctionalDependence| claim.mode == Dependency::Single;
                let is_part = |claim: &FunctionalDependence| claim.source_indices.len() < aggregate.group_expr.len();
                let mut own = aggregate.schema.functional_dependencies().iter();
                // The first is where it goes wrong, the second what is left of it when what was below has changed.
                !below.iter().all(holds)
                    || (own.any(is_part) && below.is_empty())
                    || is_taken_for_a_column(&aggregate.group_expr, &aggregate.input)
            }
            LogicalPlan::Unnest(unnest) => claims_any(&unnest.schema),
            LogicalPlan::Projection(projection) => is_taken_for_a_column(&projection.expr, &projection.input),
            LogicalPlan::Sort(sort) => is_taken_for_a_column(sort.expr.iter().map(|key| &key.expr), &sort.input),
            _ => false,
        };
        Ok(if misled { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(misled)
}

/// Whether something that is computed is called like a column of `input` that keys are told of: DataFusion finds columns by what
/// they are called, and takes `k.a + 1` for the column of this name that a subquery made of another `k`.
fn is_taken_for_a_column<'e>(exprs: impl IntoIterator<Item = &'e Expr>, input: &LogicalPlan) -> bool {
    if !claims_any(input.schema()) {
        return false;
    }
    let names = input.schema().field_names();
    let has_kept = |expr: &Expr| expr.exists(|part| Ok(kept(part).is_some())).unwrap_or(true);
    exprs.into_iter().any(|expr| match expr {
        Expr::Column(_) => false,
        Expr::Alias(alias) if matches!(*alias.expr, Expr::Column(_)) => false,
        // A cast is called like its column, also where it is kept.
        Expr::Alias(alias) if has_kept(&alias.expr) => names.contains(&expr.schema_name().to_string()),
        Expr::Alias(alias) => names.contains(&alias.expr.to_string()),
        expr => names.contains(&expr.to_string()) || names.contains(&expr.schema_name().to_string()),
    })
}

/// The plan, whose rows nothing is claimed of. Not what lies below it: CTEs are shared by all who name them.
fn claiming_nothing(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !claims_any(plan.schema()) {
        return Ok(plan);
    }
    let below = |input: Arc<LogicalPlan>| claiming_nothing(Arc::unwrap_or_clone(input)).map(Arc::new);
    Ok(match plan {
        // These tell what their input tells.
        LogicalPlan::Filter(mut node) => {
            node.input = below(node.input)?;
            LogicalPlan::Filter(node)
        }
        LogicalPlan::Sort(mut node) => {
            node.input = below(node.input)?;
            LogicalPlan::Sort(node)
        }
        LogicalPlan::Limit(mut node) => {
            node.input = below(node.input)?;
            LogicalPlan::Limit(node)
        }
        LogicalPlan::Repartition(mut node) => {
            node.input = below(node.input)?;
            LogicalPlan::Repartition(node)
        }
        LogicalPlan::Subquery(mut node) => {
            node.subquery = below(node.subquery)?;
            LogicalPlan::Subquery(node)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => LogicalPlan::Distinct(Distinct::All(below(input)?)),
        node => forget(node).data()?,
    })
}

/// The node without the keys that its own schema claims.
fn forget(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if !claims_any(plan.schema()) {
        return Ok(Transformed::no(plan));
    }
    Ok(match plan {
        LogicalPlan::Projection(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Projection(node))
        }
        LogicalPlan::Aggregate(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Aggregate(node))
        }
        LogicalPlan::Join(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Join(node))
        }
        LogicalPlan::SubqueryAlias(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::SubqueryAlias(node))
        }
        LogicalPlan::Window(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Window(node))
        }
        LogicalPlan::Unnest(mut node) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Unnest(node))
        }
        LogicalPlan::Distinct(Distinct::On(mut node)) => {
            node.schema = without_claims(&node.schema)?;
            Transformed::yes(LogicalPlan::Distinct(Distinct::On(node)))
        }
        // What a table claims was declared; all others claim what their input does.
        node => Transformed::no(node),
    })
}

fn claims_any(schema: &DFSchema) -> bool {
    !schema.functional_dependencies().is_empty()
}

fn without_claims(schema: &DFSchemaRef) -> Result<DFSchemaRef> {
    let schema = DFSchema::clone(schema);
    schema.with_functional_dependencies(FunctionalDependencies::empty()).map(Arc::new)
}
