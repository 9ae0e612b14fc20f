//! `format.null_regex`: text of a CSV file that stands for NULL.
//!
//! DataFusion uses the option only to infer columns; its reader takes empty fields, and nothing else, for NULL.
//!
//! ```text
//!   before                          after
//!   DataSourceExec: a BIGINT        ProjectionExec: CAST(CASE WHEN a ~ '^\\N$' THEN NULL ELSE a END AS BIGINT)
//!                                     DataSourceExec: a TEXT
//! ```
//!
//! Caveats   fields are read as text first, so it is slower. An empty field is an empty text unless the pattern takes it.

use std::sync::Arc;

use arrow::array::StringArray;
use arrow::compute::regexp_is_match_scalar;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, binary, case, is_null, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use nectarine_catalog::FileFormatKind;
use nectarine_planner::node::Reading;

use crate::format::reader_options;

/// The pattern of a table, if its reader does not do the same without being told.
pub(crate) fn null_pattern(reading: &Reading, config: &ConfigOptions) -> Result<Option<String>> {
    if reading.format != FileFormatKind::Csv {
        return Ok(None);
    }
    let options = reader_options(config, reading.format, &reading.options)?;
    Ok(options.csv.null_regex.filter(|pattern| !matches!(pattern.as_str(), "" | "^$")))
}

/// Whether a text stands for NULL.
pub fn is_null_text(pattern: &str, text: &str) -> Result<bool> {
    match regexp_is_match_scalar(&StringArray::from(vec![text]), pattern, None) {
        Ok(matched) => Ok(matched.value(0)),
        Err(error) => plan_err!("format.null_regex \"{pattern}\" is no regular expression: {error}"),
    }
}

/// The columns of a file as they are read: all text.
pub(crate) fn as_text(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<FieldRef>>(), schema.metadata().clone()))
}

/// Gives what was read as text the types of `schema`. Partition columns do not come from the text.
pub(crate) fn parse(
    plan: Arc<dyn ExecutionPlan>,
    schema: &Schema,
    partition_fields: &[FieldRef],
    pattern: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let text = plan.schema();
    let null = || lit(ScalarValue::Utf8(None));
    let empty = if is_null_text(pattern, "")? { null() } else { lit("") };
    let mut exprs = vec![];
    for (position, field) in schema.fields().iter().enumerate() {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), position));
        let is_partition = partition_fields.iter().any(|partition| partition.name() == field.name());
        let expr = if is_partition {
            column
        } else if field.is_nullable() {
            let is_null_text = binary(Arc::clone(&column), Operator::RegexMatch, lit(pattern), &text)?;
            let cases = vec![(is_null(Arc::clone(&column))?, Arc::clone(&empty)), (is_null_text, null())];
            Arc::new(CastExpr::new_with_target_field(case(None, cases, Some(column))?, Arc::clone(field), None))
        } else {
            return plan_err!("format.null_regex cannot be used with column \"{}\", which is NOT NULL", field.name());
        };
        exprs.push(ProjectionExpr { expr, alias: field.name().clone() });
    }
    Ok(Arc::new(ProjectionExec::try_new(exprs, plan)?))
}
