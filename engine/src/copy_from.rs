//! `COPY t FROM 'file'`: the rows of files appended to a table, all or none.
//!
//! What STDIN stands for is in a file too by then, which people know as standard input. Columns of CSV files go by position, as in PostgreSQL; those of other formats by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::{Column, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use nectarine_catalog::{CatalogError, FileFormatKind, Location, TableDef, TableId, TableKind};
use nectarine_planner::sql::{CopyFrom, STANDARD_INPUT};

use crate::command::StatementRun;
use crate::ddl::{normal, reference};
use crate::managed::now_micros;
use crate::pipes::no_pipe;
use crate::{EngineError, ErrorKind, Result, external};

/// The option that says whether the first line names the columns.
const HAS_HEADER: &str = "format.has_header";

/// What is copied, and what people call it.
pub(crate) struct Source {
    copy: CopyFrom,
    /// Where what was given to STDIN is.
    standard_input: Option<String>,
}

impl Source {
    /// Whether standard input ended before it began.
    fn has_nothing(&self) -> bool {
        let bytes = self.standard_input.as_ref().and_then(|path| std::fs::metadata(path).ok());
        bytes.is_some_and(|metadata| metadata.len() == 0)
    }

    pub(crate) fn of(run: &StatementRun<'_>, mut copy: CopyFrom) -> Result<Self> {
        if copy.source != STANDARD_INPUT {
            return Ok(Self { copy, standard_input: None });
        }
        let Some(path) = &run.pipes.input else { return Err(no_pipe("STDIN")) };
        let path = path.display().to_string();
        copy.source.clone_from(&path);
        // As in PostgreSQL: what is typed begins with rows.
        if !copy.options.iter().any(|(key, _)| key == HAS_HEADER) {
            copy.options.push((HAS_HEADER.to_string(), "false".to_string()));
        }
        Ok(Self { copy, standard_input: Some(path) })
    }

    /// The error in words of whoever gave the input.
    pub(crate) fn named(&self, error: EngineError) -> EngineError {
        match &self.standard_input {
            Some(path) => error.renamed(path, "standard input"),
            None => error,
        }
    }
}

pub(crate) async fn plan(run: &StatementRun<'_>, source: &Source) -> Result<LogicalPlan> {
    let copy = &source.copy;
    let target_name = reference(&copy.table, run.state.config_options())?;
    let name = run.table_name(&target_name)?;
    let Some(target) = run.catalog.view.tables.get(&name).cloned() else {
        return Err(CatalogError::TableNotFound { name }.into());
    };
    if !matches!(target.kind, TableKind::Managed { .. } | TableKind::External(_)) {
        let message = format!("cannot copy into {} \"{}\"", target.kind.word(), name.name);
        return Err(EngineError::new(ErrorKind::Sql, message));
    }
    let columns = wanted_columns(run, copy, &target)?;
    let (rows, by_name) = match source.has_nothing() {
        // As in PostgreSQL, none are not an error.
        true => (LogicalPlanBuilder::empty(false), vec![]),
        false => {
            let source = files(run, copy, &target, &columns).await?;
            let by_name: Vec<String> = source.schema.fields().iter().map(|field| field.name().clone()).collect();
            let provider = run.catalog.provider_of(&Arc::new(source)).await?;
            let source = provider_as_source(provider);
            (LogicalPlanBuilder::scan(TableReference::bare("copied"), source, None)?, by_name)
        }
    };
    let target_provider = run.catalog.provider_of(&target).await?;
    let mut exprs = vec![];
    for field in target.schema.fields() {
        let is_wanted = columns.iter().any(|column| column.name() == field.name());
        let expr = match is_wanted && by_name.contains(field.name()) {
            true => {
                let column = Expr::Column(Column::new(Some("copied"), field.name()));
                match column.get_type(rows.schema())? == *field.data_type() {
                    true => column,
                    false => cast(column, field.data_type().clone()),
                }
            }
            false => match target_provider.get_column_default(field.name()) {
                Some(default) => cast(default.clone(), field.data_type().clone()),
                None => lit(ScalarValue::try_from(field.data_type())?),
            },
        };
        exprs.push(expr.alias(field.name()));
    }
    let rows = rows.project(exprs)?.build()?;
    Ok(LogicalPlanBuilder::insert_into(rows, target_name, provider_as_source(target_provider), InsertOp::Append)?
        .build()?)
}

fn wanted_columns(run: &StatementRun<'_>, copy: &CopyFrom, target: &TableDef) -> Result<Vec<FieldRef>> {
    if copy.columns.is_empty() {
        return Ok(target.schema.fields().iter().cloned().collect());
    }
    let find = |ident| {
        let name = normal(ident, run.state.config_options());
        let found = target.schema.fields().iter().find(|field| *field.name() == name).cloned();
        found.ok_or_else(|| {
            EngineError::new(ErrorKind::Sql, format!("column \"{name}\" of \"{}\" does not exist", target.name))
        })
    };
    copy.columns.iter().map(find).collect()
}

/// The files as a table for this statement only.
async fn files(run: &StatementRun<'_>, copy: &CopyFrom, target: &TableDef, columns: &[FieldRef]) -> Result<TableDef> {
    let shared = &run.catalog.shared;
    let location = Location::parse(&copy.source, &std::env::current_dir()?)?;
    let mut options: BTreeMap<String, String> = copy.options.iter().cloned().collect();
    let format = match &copy.format {
        Some(word) => Some(FileFormatKind::parse(word).ok_or_else(|| {
            EngineError::new(ErrorKind::Sql, format!("unknown format \"{word}\""))
                .with_hint("choose one of PARQUET, CSV, JSON, ARROW and AVRO")
        })?),
        None => location
            .file_kind()
            .map(|kind| kind.format)
            .or_else(|| options.remove("format.format").and_then(|word| FileFormatKind::parse(&word))),
    };
    // What PostgreSQL reads when nothing is said.
    let format = format.unwrap_or(FileFormatKind::Csv);
    let mut found = external::locate_as(shared, run.state, &copy.source, format, options).await?;
    if format == FileFormatKind::Csv {
        // By position, with the types of the table: what does not parse is an error, not text.
        let n_found = found.schema.fields().len();
        if n_found != columns.len() {
            return Err(EngineError::new(
                ErrorKind::Data,
                format!("\"{}\" has {n_found} columns, \"{}\" takes {}", copy.source, target.name, columns.len()),
            ));
        }
        let fields: Vec<FieldRef> =
            columns.iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
        found.schema = Arc::new(Schema::new(fields));
        if let TableKind::External(source) = &mut found.kind {
            source.options.remove("schema_inferred");
            source.options.insert("by_position".to_string(), "true".to_string());
        }
    } else {
        let unknown =
            found.schema.fields().iter().find(|field| !columns.iter().any(|column| column.name() == field.name()));
        if let Some(unknown) = unknown {
            return Err(EngineError::new(
                ErrorKind::Data,
                format!(
                    "\"{}\" has a column \"{}\" that \"{}\" does not take",
                    copy.source,
                    unknown.name(),
                    target.name
                ),
            )
            .with_hint("INSERT INTO .. SELECT .. FROM 'file' can choose columns"));
        }
        if format == FileFormatKind::Json {
            let told = found.schema.fields().iter().map(|field| {
                let wanted = columns.iter().find(|column| column.name() == field.name());
                wanted.map_or_else(|| Arc::clone(field), |wanted| with_decimals(field, wanted.data_type()))
            });
            found.schema = Arc::new(Schema::new(told.collect::<Vec<FieldRef>>()));
        }
    }
    found.id = TableId::new();
    found.created_at = now_micros();
    Ok(found)
}

/// Numbers for a DECIMAL column are read as they are written: as the floats that they are told as they have 17 digits.
fn with_decimals(found: &FieldRef, wanted: &DataType) -> FieldRef {
    let data_type = match (found.data_type(), wanted) {
        (number, wanted) if wanted.is_decimal() && (number.is_numeric() || number.is_string()) => wanted.clone(),
        (DataType::List(item), DataType::List(wanted)) => DataType::List(with_decimals(item, wanted.data_type())),
        (DataType::Struct(fields), DataType::Struct(wanted)) => {
            let of = |field: &FieldRef| match wanted.iter().find(|wanted| wanted.name() == field.name()) {
                Some(wanted) => with_decimals(field, wanted.data_type()),
                None => Arc::clone(field),
            };
            DataType::Struct(fields.iter().map(of).collect())
        }
        _ => return Arc::clone(found),
    };
    Arc::new(found.as_ref().clone().with_data_type(data_type))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;

    use super::*;

    #[test]
    fn decimals_are_told_wherever_they_are() {
        let field = |name: &str, data_type: DataType| Arc::new(Field::new(name, data_type, true));
        let list = |item: DataType| DataType::List(field("item", item));
        let pair = |n: DataType, t: DataType| DataType::Struct(vec![field("n", n), field("t", t)].into());
        let decimal = || DataType::Decimal128(10, 2);
        for (found, wanted, expected) in [
            (DataType::Float64, decimal(), decimal()),
            (DataType::Int64, decimal(), decimal()),
            (DataType::Utf8, decimal(), decimal()),
            (DataType::Boolean, decimal(), DataType::Boolean),
            (DataType::Float64, DataType::Int64, DataType::Float64),
            (list(DataType::Float64), list(decimal()), list(decimal())),
            (
                pair(DataType::Float64, DataType::Float64),
                pair(decimal(), DataType::Utf8View),
                pair(decimal(), DataType::Float64),
            ),
        ] {
            assert_eq!(
                with_decimals(&field("x", found.clone()), &wanted).data_type(),
                &expected,
                "{found} as {wanted}"
            );
        }
    }
}
