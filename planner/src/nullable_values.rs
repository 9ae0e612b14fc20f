//! [`NullableValues`]: rows of `INSERT .. VALUES` may hold a NULL for a column that takes none, until somebody looks who knows its name.
//!
//! DataFusion 55 gives them the table's types, NOT NULL included, and names of their own: `column1` is what an error would be about.
//!
//! Keeps true   what is inserted: whoever writes the rows looks for NULLs.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DFSchema, Result};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{LogicalPlan, Projection, Values, WriteOp};
use datafusion::optimizer::AnalyzerRule;

/// See the module.
#[derive(Debug)]
pub struct NullableValues;

impl AnalyzerRule for NullableValues {
    fn name(&self) -> &str {
        "nullable_values"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        of_inserts(plan)
    }
}

fn of_inserts(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Dml(mut dml) if matches!(dml.op, WriteOp::Insert(_)) => {
            dml.input = Arc::new(nullable_values(Arc::unwrap_or_clone(dml.input))?);
            Ok(LogicalPlan::Dml(dml))
        }
        // An INSERT that is explained as it runs. What is only explained gets here without its EXPLAIN.
        LogicalPlan::Analyze(mut analyze) => {
            analyze.input = Arc::new(of_inserts(Arc::unwrap_or_clone(analyze.input))?);
            Ok(LogicalPlan::Analyze(analyze))
        }
        other => Ok(other),
    }
}

/// The same for the rows of a `CREATE TABLE t (columns) AS VALUES`.
///
/// DataFusion puts nothing but projections around rows that are the whole source; others have types of their own (`sql::inner_values`).
pub fn nullable_values(plan: LogicalPlan) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let input = nullable_values(Arc::unwrap_or_clone(projection.input))?;
            Projection::try_new(projection.expr, Arc::new(input)).map(LogicalPlan::Projection)
        }
        LogicalPlan::Values(Values { schema, values }) => {
            let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
            let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
            Ok(LogicalPlan::Values(Values { schema: Arc::new(DFSchema::try_from(schema)?), values }))
        }
        other => Ok(other),
    }
}
