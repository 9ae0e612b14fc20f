//! [`Rows`]: an answer that can be compared.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::{SortOptions, concat_batches};
use arrow::datatypes::{DataType, Float64Type, SchemaRef};
use arrow::record_batch::RecordBatch;
use arrow::row::{RowConverter, SortField};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::sql::sqlparser::ast::{Expr, OrderByKind, Statement, Value};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

/// Floats that differ by less, relatively, are the same sum in another order.
const FLOAT_TOLERANCE: f64 = 1e-9;

/// Rows shown of an answer.
const SHOWN_MAX: usize = 40;

/// One value.
#[derive(Clone, Debug, PartialEq)]
enum Cell {
    /// Compared as it is: NULL has no text.
    Exact(Option<String>),
    Float(f64),
}

/// The rows of an answer.
#[derive(Clone, Debug)]
pub struct Rows {
    schema: SchemaRef,
    rows: Vec<Vec<Cell>>,
    batch: RecordBatch,
}

impl Rows {
    /// Of what a statement answered.
    pub fn new(schema: SchemaRef, batches: &[RecordBatch]) -> Result<Self, String> {
        // What was answered decides about types, what was announced about names.
        for batch in batches {
            let announced = schema.fields().iter().map(|field| field.data_type());
            if !announced.eq(batch.schema().fields().iter().map(|field| field.data_type())) {
                return Err(format!("batches of {:?} under a schema of {schema:?}", batch.schema()));
            }
        }
        let first = batches.first().map_or_else(|| Arc::clone(&schema), RecordBatch::schema);
        let batch = concat_batches(&first, batches).map_err(|error| error.to_string())?;
        let options = FormatOptions::default();
        let mut columns: Vec<Vec<Cell>> = vec![];
        for column in batch.columns() {
            columns.push(values(column, &options)?);
        }
        let rows = (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect());
        Ok(Self { schema, rows: rows.collect(), batch: batch.clone() })
    }

    /// Columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// What differs in names and types of columns.
    pub fn shape_differs(&self, other: &Self) -> Option<String> {
        let shape = |rows: &Self| -> Vec<(String, DataType)> {
            rows.schema.fields().iter().map(|field| (field.name().clone(), field.data_type().clone())).collect()
        };
        (shape(self) != shape(other)).then(|| format!("columns {:?}, expected {:?}", shape(self), shape(other)))
    }

    /// Whether the rows are the same, in whatever order.
    pub fn same_rows(&self, other: &Self) -> bool {
        if self.rows.len() != other.rows.len() {
            return false;
        }
        // Floats that differ in their last bits sort differently: rows are matched within those that agree otherwise.
        let mut groups: HashMap<String, Vec<Vec<f64>>> = HashMap::new();
        for row in &self.rows {
            let (exact, floats) = split(row);
            groups.entry(exact).or_default().push(floats);
        }
        for row in &other.rows {
            let (exact, floats) = split(row);
            let Some(group) = groups.get_mut(&exact) else { return false };
            let found = group.iter().position(|candidate| {
                candidate.len() == floats.len() && candidate.iter().zip(&floats).all(|(a, b)| close(*a, *b))
            });
            let Some(found) = found else { return false };
            group.swap_remove(found);
        }
        true
    }

    /// Whether every row is one of the others', none more often than there.
    pub fn is_part_of(&self, other: &Self) -> bool {
        let mut groups: HashMap<String, Vec<Vec<f64>>> = HashMap::new();
        for row in &other.rows {
            let (exact, floats) = split(row);
            groups.entry(exact).or_default().push(floats);
        }
        self.rows.iter().all(|row| {
            let (exact, floats) = split(row);
            let Some(group) = groups.get_mut(&exact) else { return false };
            let is_same = |other: &Vec<f64>| other.iter().zip(&floats).all(|(a, b)| close(*a, *b));
            let Some(found) = group.iter().position(is_same) else { return false };
            group.swap_remove(found);
            true
        })
    }

    /// Whether the rows are the same, in whatever order, if only these columns are looked at.
    pub fn same_rows_in(&self, columns: &[usize], other: &Self) -> bool {
        let some = |rows: &Self| {
            let row = |row: &Vec<Cell>| columns.iter().filter_map(|column| row.get(*column).cloned()).collect();
            Self { rows: rows.rows.iter().map(row).collect(), ..rows.clone() }
        };
        some(self).same_rows(&some(other))
    }

    /// The first row that is out of order. Keys are columns, whether they descend, and whether NULLs come first.
    pub fn out_of_order(&self, keys: &[(usize, bool, bool)]) -> Option<String> {
        if keys.is_empty() || keys.iter().any(|(column, ..)| *column >= self.batch.num_columns()) {
            return None;
        }
        let columns: Vec<ArrayRef> = keys.iter().map(|(column, ..)| Arc::clone(self.batch.column(*column))).collect();
        let fields = columns.iter().zip(keys).map(|(column, (_, descending, nulls_first))| {
            let options = SortOptions { descending: *descending, nulls_first: *nulls_first };
            SortField::new_with_options(column.data_type().clone(), options)
        });
        let converter = RowConverter::new(fields.collect()).ok()?;
        let rows = converter.convert_columns(&columns).ok()?;
        let wrong = (1..rows.num_rows()).find(|row| rows.row(row - 1).cmp(&rows.row(*row)) == Ordering::Greater)?;
        Some(format!("row {} comes after row {} in the order of {keys:?}", wrong - 1, wrong))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut lines: Vec<String> = self.rows.iter().map(|row| line(row)).collect();
        lines.sort();
        let n_rows = lines.len();
        lines.truncate(SHOWN_MAX);
        let mut text = format!("{n_rows} rows, sorted\n");
        lines.iter().for_each(|line| _ = writeln!(text, "    {line}"));
        text
    }

    /// Rows of the one that the other lacks, as text.
    pub fn surplus(&self, other: &Self) -> Vec<String> {
        let mut left: HashMap<String, usize> = HashMap::new();
        other.rows.iter().for_each(|row| *left.entry(line(row)).or_default() += 1);
        let mut surplus = vec![];
        for row in &self.rows {
            let text = line(row);
            match left.get_mut(&text) {
                Some(n) if *n > 0 => *n -= 1,
                _ => surplus.push(text),
            }
        }
        surplus.truncate(SHOWN_MAX / 4);
        surplus
    }
}

fn values(column: &ArrayRef, options: &FormatOptions<'_>) -> Result<Vec<Cell>, String> {
    if column.data_type().is_floating() {
        let floats = arrow::compute::cast(column, &DataType::Float64).map_err(|error| error.to_string())?;
        let floats = floats.as_primitive::<Float64Type>();
        let value = |value: Option<f64>| value.map_or(Cell::Exact(None), Cell::Float);
        return Ok(floats.iter().map(value).collect());
    }
    let formatter = ArrayFormatter::try_new(column.as_ref(), options).map_err(|error| error.to_string())?;
    let value = |row: usize| Cell::Exact((!column.is_null(row)).then(|| formatter.value(row).to_string()));
    Ok((0..column.len()).map(value).collect())
}

fn split(row: &[Cell]) -> (String, Vec<f64>) {
    let mut exact = String::new();
    let mut floats = vec![];
    for value in row {
        match value {
            Cell::Exact(Some(text)) => _ = write!(exact, "{}:{text}|", text.len()),
            Cell::Exact(None) => exact.push_str("N|"),
            Cell::Float(float) => {
                exact.push_str("F|");
                floats.push(*float);
            }
        }
    }
    (exact, floats)
}

fn close(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= FLOAT_TOLERANCE * a.abs().max(b.abs())
}

fn line(row: &[Cell]) -> String {
    let value = |value: &Cell| match value {
        Cell::Exact(Some(text)) => text.clone(),
        Cell::Exact(None) => "NULL".to_owned(),
        Cell::Float(float) => format!("{float:?}"),
    };
    row.iter().map(value).collect::<Vec<_>>().join("|")
}

/// The leading keys of a statement's own ORDER BY that are columns of its answer: position, descending, NULLs first.
pub fn order_of(sql: &str, schema: &SchemaRef) -> Vec<(usize, bool, bool)> {
    let Ok(statements) = Parser::parse_sql(&GenericDialect {}, sql) else { return vec![] };
    let [Statement::Query(query)] = statements.as_slice() else { return vec![] };
    let Some(order_by) = &query.order_by else { return vec![] };
    let OrderByKind::Expressions(keys) = &order_by.kind else { return vec![] };
    let mut order = vec![];
    for key in keys {
        let column = match &key.expr {
            Expr::Identifier(name) => {
                let name = if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() };
                let mut found = schema.fields().iter().enumerate().filter(|(_, field)| *field.name() == name);
                match (found.next(), found.next()) {
                    (Some((column, _)), None) => column,
                    _ => break,
                }
            }
            Expr::Value(value) => match &value.value {
                Value::Number(number, _) => match number.parse::<usize>() {
                    Ok(number) if number >= 1 => number - 1,
                    _ => break,
                },
                _ => break,
            },
            _ => break,
        };
        let descending = key.options.asc == Some(false);
        order.push((column, descending, key.options.nulls_first.unwrap_or(descending)));
    }
    order
}
