//! [`Cells`]: values as people read them. Numbers of a column have the same number of digits behind the point.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::Result;

/// Digits behind the point at the most; the whole number is one gesture away.
const DIGITS_MAX: usize = 4;

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Cell {
    /// As it is shown.
    pub(super) text: String,
    /// All of it, where that is more.
    pub(super) whole: Option<String>,
    pub(super) is_null: bool,
}

/// Values of the first rows of a result.
pub(super) struct Cells {
    /// Names of the columns.
    pub(super) names: Vec<String>,
    /// Whether a column holds numbers.
    pub(super) is_number: Vec<bool>,
    pub(super) rows: Vec<Vec<Cell>>,
}

impl Cells {
    /// Of at most so many rows.
    pub(super) fn new(schema: &SchemaRef, batches: &[RecordBatch], n_rows_max: usize) -> Result<Self> {
        let names = schema.fields().iter().map(|field| field.name().clone()).collect();
        let is_number: Vec<bool> = schema.fields().iter().map(|field| field.data_type().is_numeric()).collect();
        let mut shown = vec![];
        let mut left = n_rows_max;
        for batch in batches {
            shown.push(batch.slice(0, batch.num_rows().min(left)));
            left -= batch.num_rows().min(left);
        }
        let n_rows = shown.iter().map(RecordBatch::num_rows).sum();
        let mut rows = vec![Vec::with_capacity(schema.fields().len()); n_rows];
        for (at, field) in schema.fields().iter().enumerate() {
            let columns: Vec<&ArrayRef> = shown.iter().map(|batch| batch.column(at)).collect();
            let cells = match field.data_type().is_floating() {
                true => floats(&columns)?,
                false => plain(&columns, is_number[at])?,
            };
            rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        }
        Ok(Self { names, is_number, rows })
    }
}

fn null() -> Cell {
    Cell { text: "–".to_string(), whole: None, is_null: true }
}

fn plain(columns: &[&ArrayRef], is_number: bool) -> Result<Vec<Cell>> {
    let options = FormatOptions::default();
    let mut cells = vec![];
    for column in columns {
        let formatter = ArrayFormatter::try_new(column.as_ref(), &options)?;
        for row in 0..column.len() {
            if column.is_null(row) {
                cells.push(null());
                continue;
            }
            let text = formatter.value(row).try_to_string()?;
            let text = match (is_number, column.data_type()) {
                (true, _) => grouped(&text),
                (_, DataType::Timestamp(_, _)) => text.replacen('T', " ", 1).replace(" 00:00:00", ""),
                _ => text,
            };
            cells.push(Cell { text, whole: None, is_null: false });
        }
    }
    Ok(cells)
}

fn floats(columns: &[&ArrayRef]) -> Result<Vec<Cell>> {
    let mut values: Vec<Option<f64>> = vec![];
    for column in columns {
        let column = cast(column, &DataType::Float64)?;
        values.extend(column.as_primitive::<Float64Type>().iter());
    }
    let finite = values.iter().flatten().filter(|value| value.is_finite());
    let digits = finite.map(|value| digits_of(*value)).max().unwrap_or(0).min(DIGITS_MAX);
    let cell = |value: Option<f64>| match value {
        None => null(),
        Some(value) => {
            let (text, whole) = (grouped(&format!("{value:.digits$}")), value.to_string());
            let is_whole = text.replace(',', "").replace('−', "-").parse() == Ok(value);
            let whole = (!is_whole).then_some(whole);
            Cell { text, whole, is_null: false }
        }
    };
    Ok(values.into_iter().map(cell).collect())
}

/// Digits behind the point that a number is written with.
fn digits_of(value: f64) -> usize {
    value.to_string().split_once('.').map_or(0, |(_, behind)| behind.len())
}

/// `1234567.5` as `1,234,567.5`.
pub(super) fn grouped(number: &str) -> String {
    let (sign, rest) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, behind) = rest.split_once('.').map_or((rest, None), |(whole, behind)| (whole, Some(behind)));
    if !whole.bytes().all(|byte| byte.is_ascii_digit()) {
        return number.to_string();
    }
    let mut text = String::from(if sign.is_empty() { "" } else { "−" });
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(behind) = behind {
        text.push('.');
        text.push_str(behind);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Float64Array, Int64Array, StringArray};
    use arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (number, expected) in [
            ("0", "0"),
            ("999", "999"),
            ("1000", "1,000"),
            ("-1234567.5", "−1,234,567.5"),
            ("NaN", "NaN"),
            ("inf", "inf"),
        ] {
            assert_eq!(grouped(number), expected);
        }
    }

    #[test]
    fn columns_have_one_number_of_digits() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Float64, true),
            Field::new("c", DataType::Utf8, true),
        ]));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![Some(12_345), None, Some(1)])),
            Arc::new(Float64Array::from(vec![1.5, 1_000.123_456, 2.0])),
            Arc::new(StringArray::from(vec![Some("x"), Some("1000"), None])),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("a batch");
        let cells = Cells::new(&schema, &[batch.clone(), batch], 4).expect("cells");
        let texts: Vec<Vec<&str>> =
            cells.rows.iter().map(|row| row.iter().map(|cell| cell.text.as_str()).collect()).collect();
        assert_eq!(
            texts,
            [
                vec!["12,345", "1.5000", "x"],
                vec!["–", "1,000.1235", "1000"],
                vec!["1", "2.0000", "–"],
                vec!["12,345", "1.5000", "x"]
            ]
        );
        assert_eq!(cells.rows[1][1].whole.as_deref(), Some("1000.123456"));
        assert_eq!(cells.is_number, [true, true, false]);
    }
}
