//! Values for the placeholders of a statement: `$1`, `?`, `$name`.
//!
//! ```text
//!   INSERT INTO t VALUES ($1, $2)   and 1,000 rows of values   -->   one INSERT of 1,000 rows
//!   INSERT INTO t SELECT .. $1      and 3 rows of values       -->   one INSERT of three queries
//!   SELECT .. WHERE a = $1          and one row of values      -->   the query with literals
//! ```
//!
//! Keeps true   a value is never changed to fit: it becomes the type that the statement expects only if it can be changed back.
//!              Otherwise it stays what it is, and DataFusion compares or refuses it as it would a literal.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::MemTable;
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, ParamValues, ScalarValue};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::DmlStatement;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection, Values, WriteOp};

use crate::{EngineError, ErrorKind, Result};

/// What values are called where many rows of them are inserted at once.
const TABLE: &str = "parameters";

/// Queries that one `INSERT` is made of at the most: each is a branch of its plan.
const QUERIES_MAX: usize = 100;

/// A placeholder, with its type if that is known.
type Placeholders = Vec<(String, Option<DataType>)>;

/// The placeholders of a plan as columns, in the order in which values are given: by number, or else by name. A type that the
/// statement does not tell is given as text; values of any type are taken.
pub(crate) fn schema(plan: &LogicalPlan) -> Result<SchemaRef> {
    let fields: Vec<Field> = placeholders(plan)?
        .into_iter()
        .map(|(name, data_type)| Field::new(name, data_type.unwrap_or(DataType::Utf8), true))
        .collect();
    Ok(Arc::new(Schema::new(fields)))
}

/// The plan with one row of values in place of its placeholders.
pub(crate) fn bind(plan: LogicalPlan, values: &RecordBatch, row: usize) -> Result<LogicalPlan> {
    let placeholders = placeholders(&plan)?;
    let columns = columns(&placeholders, values)?;
    let mut list = vec![];
    for ((_, expected), column) in placeholders.iter().zip(columns) {
        let value = ScalarValue::try_from_array(column.as_ref(), row)?;
        list.push(ScalarAndMetadata::from(fitted(value, expected.as_ref())));
    }
    let is_named = placeholders.first().is_some_and(|(name, _)| number(name).is_none());
    let values = match is_named {
        false => ParamValues::List(list),
        true => {
            let names = placeholders.iter().map(|(name, _)| name.trim_start_matches('$').to_string());
            ParamValues::Map(names.zip(list).collect())
        }
    };
    Ok(plan.with_param_values(values)?)
}

/// `INSERT` with all rows of values at once, in one transaction; `None` for any other plan.
pub(crate) fn bind_all(plan: &LogicalPlan, values: &RecordBatch) -> Result<Option<LogicalPlan>> {
    let LogicalPlan::Dml(dml) = plan else { return Ok(None) };
    let WriteOp::Insert(_) = &dml.op else { return Ok(None) };
    let LogicalPlan::Projection(projection) = dml.input.as_ref() else { return bind_each(plan, values).map(Some) };
    let LogicalPlan::Values(Values { schema, values: rows }) = projection.input.as_ref() else {
        return bind_each(plan, values).map(Some);
    };
    let placeholders = placeholders(plan)?;
    // In the order of the placeholders, so that they can be found by it.
    let columns = columns(&placeholders, values)?.into_iter().zip(&placeholders);
    let columns: Vec<ArrayRef> = columns.map(|(column, (_, expected))| all_fitted(column, expected.as_ref())).collect();
    let fields: Vec<Field> = columns
        .iter()
        .enumerate()
        .map(|(position, column)| Field::new(format!("p{position}"), column.data_type().clone(), true))
        .collect();
    let given = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    let position: HashMap<&str, usize> =
        placeholders.iter().enumerate().map(|(position, (name, _))| (name.as_str(), position)).collect();
    let mut union: Option<LogicalPlanBuilder> = None;
    for row in rows {
        let table = MemTable::try_new(given.schema(), vec![vec![given.clone()]])?;
        let scan = LogicalPlanBuilder::scan(TABLE, provider_as_source(Arc::new(table)), None)?;
        let mut exprs = vec![];
        for (expr, field) in row.iter().zip(schema.fields()) {
            let expr = expr.clone().transform_up(|expr| match &expr {
                Expr::Placeholder(Placeholder { id, .. }) => Ok(match position.get(id.as_str()) {
                    Some(position) => Transformed::yes(Expr::Column(Column::new(Some(TABLE), format!("p{position}")))),
                    None => Transformed::no(expr),
                }),
                _ => Ok(Transformed::no(expr)),
            });
            exprs.push(expr.data()?.alias(field.name()));
        }
        let rows = scan.project(exprs)?;
        union = Some(match union {
            None => rows,
            Some(before) => before.union(rows.build()?)?,
        });
    }
    let Some(input) = union else { return Ok(None) };
    let input = Projection::try_new(projection.expr.clone(), Arc::new(input.build()?))?;
    let input = Arc::new(LogicalPlan::Projection(input));
    let dml = DmlStatement::new(dml.table_name.clone(), Arc::clone(&dml.target), dml.op.clone(), input);
    Ok(Some(LogicalPlan::Dml(dml)))
}

/// `INSERT .. SELECT` with the rows of one query for each row of values. All of them read the same snapshot.
fn bind_each(plan: &LogicalPlan, values: &RecordBatch) -> Result<LogicalPlan> {
    if values.num_rows() > QUERIES_MAX {
        let message =
            format!("INSERT .. SELECT takes {QUERIES_MAX} rows of parameters at a time, not {}", values.num_rows());
        return Err(EngineError::new(ErrorKind::Unsupported, message)
            .with_detail("they are inserted in one transaction, or not at all")
            .with_hint("use INSERT .. VALUES, or put the parameters into a table and join with it"));
    }
    let mut all: Option<(DmlStatement, LogicalPlanBuilder)> = None;
    for row in 0..values.num_rows() {
        let LogicalPlan::Dml(dml) = bind(plan.clone(), values, row)? else {
            return Err(EngineError::new(ErrorKind::Internal, "an INSERT with values is no INSERT"));
        };
        let rows = dml.input.as_ref().clone();
        all = Some(match all {
            None => (dml, LogicalPlanBuilder::from(rows)),
            Some((first, before)) => (first, before.union(rows)?),
        });
    }
    let Some((dml, rows)) = all else {
        return Err(EngineError::new(ErrorKind::Internal, "no row of values was given"));
    };
    let input = Arc::new(rows.build()?);
    Ok(LogicalPlan::Dml(DmlStatement::new(dml.table_name, dml.target, dml.op, input)))
}

/// The placeholders of a plan: `$1` to the highest number, or all names in alphabetical order.
fn placeholders(plan: &LogicalPlan) -> Result<Placeholders> {
    let mut found: Vec<(String, Option<DataType>)> = plan.get_parameter_types()?.into_iter().collect();
    if found.iter().any(|(name, _)| number(name).is_none()) {
        if found.iter().any(|(name, _)| number(name).is_some()) {
            return Err(EngineError::new(ErrorKind::Sql, "parameters have either numbers or names, not both"));
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        return Ok(found);
    }
    let highest = found.iter().filter_map(|(name, _)| number(name)).max().unwrap_or(0);
    let mut types: HashMap<usize, Option<DataType>> =
        found.into_iter().filter_map(|(name, data_type)| Some((number(&name)?, data_type))).collect();
    Ok((1..=highest).map(|number| (format!("${number}"), types.remove(&number).flatten())).collect())
}

fn number(name: &str) -> Option<usize> {
    name.strip_prefix('$')?.parse().ok().filter(|number| *number > 0)
}

/// The columns of values in the order of the placeholders. Numbers go by position; names by name, or by position if no column
/// has such a name.
fn columns(placeholders: &Placeholders, values: &RecordBatch) -> Result<Vec<ArrayRef>> {
    if placeholders.len() != values.num_columns() {
        let message =
            format!("the statement has {} parameters, {} were given", placeholders.len(), values.num_columns());
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    let is_named = placeholders.first().is_some_and(|(name, _)| number(name).is_none());
    if !is_named {
        return Ok(values.columns().to_vec());
    }
    let by_name = placeholders.iter().map(|(name, _)| {
        let bare = name.trim_start_matches('$');
        values.column_by_name(bare).or_else(|| values.column_by_name(name)).cloned()
    });
    let by_name: Option<Vec<_>> = by_name.collect();
    Ok(by_name.unwrap_or_else(|| values.columns().to_vec()))
}

/// The value in the expected type, if it is still the same value there.
fn fitted(value: ScalarValue, expected: Option<&DataType>) -> ScalarValue {
    let Some(expected) = expected else { return value };
    let original = value.data_type();
    if original == *expected {
        return value;
    }
    match value.cast_to(expected) {
        Ok(changed) if value.is_null() || changed.cast_to(&original).is_ok_and(|back| back == value) => changed,
        _ => value,
    }
}

/// The same for a column.
fn all_fitted(values: ArrayRef, expected: Option<&DataType>) -> ArrayRef {
    let Some(expected) = expected.filter(|expected| values.data_type() != *expected) else { return values };
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let changed = cast_with_options(&values, expected, &options);
    match changed {
        Ok(changed) => match cast_with_options(&changed, values.data_type(), &options) {
            Ok(back) if back.as_ref() == values.as_ref() => changed,
            _ => values,
        },
        Err(_) => values,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_what_they_are() {
        let fits = |value, expected: DataType| fitted(value, Some(&expected));
        assert_eq!(fits(ScalarValue::from(5_i64), DataType::Int32), ScalarValue::from(5_i32));
        assert_eq!(fits(ScalarValue::from(5_000_000_000_i64), DataType::Int32), ScalarValue::from(5_000_000_000_i64));
        assert_eq!(fits(ScalarValue::from(1.5_f64), DataType::Int64), ScalarValue::from(1.5_f64));
        assert_eq!(fits(ScalarValue::from("x"), DataType::Int64), ScalarValue::from("x"));
        assert_eq!(fits(ScalarValue::Int64(None), DataType::Utf8), ScalarValue::Utf8(None));
    }

    #[test]
    fn placeholders_are_sorted_by_number() {
        assert_eq!(number("$10"), Some(10));
        assert_eq!(number("$0"), None);
        assert_eq!(number("$a"), None);
    }
}
