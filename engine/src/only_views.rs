//! [`OnlyViews`]: `information_schema.views` lists views.
//!
//! DataFusion lists every table there, those that are no views without a definition.

use datafusion::catalog::information_schema::INFORMATION_SCHEMA;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::AnalyzerRule;
use nectarine_planner::any_node;

/// The rule; see above.
#[derive(Debug, Default)]
pub(crate) struct OnlyViews;

impl AnalyzerRule for OnlyViews {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !any_node(&plan, is_views) {
            return Ok(plan);
        }
        plan.transform_up_with_subqueries(|node| {
            if !is_views(&node) {
                return Ok(Transformed::no(node));
            }
            // Not there if the scan was cut to other columns, and then it was analyzed before.
            let Some(definition) = node.schema().columns().into_iter().find(|column| column.name == "definition")
            else {
                return Ok(Transformed::no(node));
            };
            let views = LogicalPlanBuilder::from(node).filter(Expr::Column(definition).is_not_null())?.build()?;
            Ok(Transformed::yes(views))
        })
        .data()
    }

    fn name(&self) -> &str {
        "only_views"
    }
}

fn is_views(node: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = node else { return false };
    scan.table_name.schema() == Some(INFORMATION_SCHEMA) && scan.table_name.table() == "views"
}
