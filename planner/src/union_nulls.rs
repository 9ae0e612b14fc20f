//! [`UnionNulls`]: a union may hold the NULLs that its inputs may hold.
//!
//! `SELECT 1 AS b .. UNION ALL SELECT (SELECT count(*) .. WHERE q.g = p.g) ..`: the subquery becomes a join, after which its column may hold
//! NULL. DataFusion 55 does not tell the union around it, and stumbles over that when it makes a plan of it.
//!
//! Runs         last.
//! Keeps true   names and types of columns, and all rows.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{LogicalPlan, Union};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::look::any_node;

/// See the module.
#[derive(Debug, Default)]
pub struct UnionNulls;

impl OptimizerRule for UnionNulls {
    fn name(&self) -> &str {
        "union_nulls"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        None
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !any_node(&plan, |node| matches!(node, LogicalPlan::Union(union) if hides_nulls(union))) {
            return Ok(Transformed::no(plan));
        }
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Union(union) => Ok(Transformed::yes(LogicalPlan::Union(told(union)?))),
            other => other.recompute_schema().map(Transformed::yes),
        })
    }
}

fn hides_nulls(union: &Union) -> bool {
    let fields = union.schema.fields().iter().enumerate();
    let mut not_null = fields.filter(|(_, field)| !field.is_nullable()).map(|(position, _)| position);
    not_null.any(|position| union.inputs.iter().any(|input| input.schema().field(position).is_nullable()))
}

/// The same under its own names.
fn told(union: Union) -> Result<Union> {
    let Union { inputs, schema } = union;
    let told = Union::try_new(inputs)?;
    let is_as_before = told.schema.logically_equivalent_names_and_types(&schema);
    Ok(if is_as_before { told } else { Union { inputs: told.inputs, schema } })
}
