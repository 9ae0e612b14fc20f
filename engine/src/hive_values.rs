//! Values of partition columns that a COPY writes into the names of folders, `p=9/`.
//!
//! DataFusion writes a NULL as if it were 0, false, 1970-01-01 or an empty text. Here it becomes what Hive calls it, which readers take
//! for NULL again; a text that is that word is refused.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::DataType;
use datafusion::common::{Column, Result, exec_err};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::external_insert::NULL;

/// DataFusion's option: the columns are also written into the files.
const KEEP: &str = "execution.keep_partition_by_columns";

/// Makes text of the partition columns of a COPY, with a word for NULL.
pub(crate) fn name_nulls(copy: &mut CopyTo, config: &ConfigOptions) -> Result<()> {
    if copy.partition_by.is_empty() {
        return Ok(());
    }
    let kept = match copy.options.get(KEEP) {
        Some(value) => value.eq_ignore_ascii_case("true"),
        None => config.execution.keep_partition_by_columns,
    };
    let columns = copy.input.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        match copy.partition_by.contains(field.name()) {
            true => ScalarUDF::from(HiveValue::new(field.name(), kept)).call(vec![column]).alias(field.name()),
            false => column,
        }
    });
    let columns: Vec<Expr> = columns.collect();
    copy.input = Arc::new(LogicalPlanBuilder::from(Arc::clone(&copy.input)).project(columns)?.build()?);
    Ok(())
}

/// The text that stands for a value in the name of a folder.
#[derive(Debug, PartialEq, Eq, Hash)]
struct HiveValue {
    column: String,
    /// The value stays what it is, because it is written into the file too; then it may not be NULL.
    kept: bool,
    signature: Signature,
}

impl HiveValue {
    fn new(column: &str, kept: bool) -> Self {
        Self { column: column.to_owned(), kept, signature: Signature::any(1, Volatility::Immutable) }
    }

    fn text(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let text = cast_with_options(values, &DataType::Utf8, &strict)?;
        let text = text.as_string::<i32>();
        if text.iter().flatten().any(|value| value == NULL) {
            return exec_err!(
                "\"{NULL}\" cannot be a value of partition column \"{}\": it stands for NULL",
                self.column
            );
        }
        if !self.kept {
            return Ok(Arc::new(text.iter().map(|value| Some(value.unwrap_or(NULL))).collect::<StringArray>()));
        }
        if text.null_count() > 0 {
            return exec_err!("partition column \"{}\" has NULLs, which {KEEP} does not allow", self.column);
        }
        Ok(Arc::clone(values))
    }
}

impl ScalarUDFImpl for HiveValue {
    fn name(&self) -> &str {
        "hive_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.kept, arguments) {
            (true, [data_type]) => Ok(data_type.clone()),
            _ => Ok(DataType::Utf8),
        }
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let values = ColumnarValue::values_to_arrays(&arguments.args)?;
        let [values] = &values[..] else { return exec_err!("hive_value takes one value") };
        let text = self.text(values)?;
        // One value for all rows stays one.
        match &arguments.args[..] {
            [ColumnarValue::Scalar(_)] => {
                Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&text, 0)?))
            }
            _ => Ok(ColumnarValue::Array(text)),
        }
    }
}
