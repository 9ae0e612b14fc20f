//! [`exact_values`]: numbers of an `INSERT .. VALUES` that go into DECIMAL columns, as decimals of all their digits. So are those of
//! `CREATE TABLE t (columns) AS VALUES`, and the arguments of an `EXECUTE`.
//!
//! DataFusion reads `12345678901234567890.12` as a float, of which 17 digits are left when it comes to the column.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as DFStatement;
use sqlparser::ast::{
    self, CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Statement, UnaryOperator, Value, VisitorMut,
};

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 38;

/// So many digits are surely an integer of 64 bits, and are read as one.
const INTEGER_DIGITS_MAX: usize = 18;

/// The INSERT of a statement, also of one that is explained or prepared.
pub fn insert_of(statement: &mut DFStatement) -> Option<&mut ast::Insert> {
    match statement {
        DFStatement::Statement(statement) => inner_insert(statement),
        DFStatement::Explain(explain) => insert_of(&mut explain.statement),
        _ => None,
    }
}

fn inner_insert(statement: &mut Statement) -> Option<&mut ast::Insert> {
    match statement {
        Statement::Insert(insert) => Some(insert),
        Statement::Prepare { statement, .. } | Statement::Explain { statement, .. } => inner_insert(statement),
        _ => None,
    }
}

/// Rewrites the numbers; `is_decimal` tells of the columns in the order of the values.
pub fn exact_values(insert: &mut ast::Insert, is_decimal: impl Fn(usize) -> bool) {
    if let Some(source) = &mut insert.source {
        exact_rows(source, is_decimal);
    }
}

/// The same for the arguments of an `EXECUTE`; `is_decimal` tells of its parameters.
pub fn exact_arguments(statement: &mut DFStatement, is_decimal: impl Fn(usize) -> bool) {
    if let DFStatement::Statement(statement) = statement
        && let Statement::Execute { parameters, .. } = statement.as_mut()
    {
        exact_row(parameters, is_decimal);
    }
}

/// The same for the rows of `CREATE TABLE t (columns) AS VALUES`, which says by itself what its columns are.
pub(super) struct DecimalColumns;

impl VisitorMut for DecimalColumns {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &mut Statement) -> ControlFlow<()> {
        if let Statement::CreateTable(create) = statement
            && let Some(source) = &mut create.query
        {
            let columns = &create.columns;
            let is_decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal(_) | DataType::Numeric(_));
            exact_rows(source, |position| columns.get(position).is_some_and(|column| is_decimal(&column.data_type)));
        }
        ControlFlow::Continue(())
    }
}

fn exact_rows(source: &mut Query, is_decimal: impl Fn(usize) -> bool) {
    match source.body.as_mut() {
        SetExpr::Query(query) => exact_rows(query, is_decimal),
        SetExpr::Values(values) => {
            for row in &mut values.rows {
                exact_row(&mut row.content, &is_decimal);
            }
        }
        _ => {}
    }
}

fn exact_row(row: &mut [Expr], is_decimal: impl Fn(usize) -> bool) {
    for (position, expr) in row.iter_mut().enumerate() {
        if is_decimal(position)
            && let Some(exact) = exact(expr)
        {
            *expr = exact;
        }
    }
}

fn exact(expr: &Expr) -> Option<Expr> {
    signed(expr).map(|text| decimal(&text))
}

/// A number with what is around it.
fn signed(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(expr) | Expr::UnaryOp { op: UnaryOperator::Plus, expr } => signed(expr),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => signed(expr).map(|text| match text.strip_prefix('-') {
            Some(positive) => positive.to_owned(),
            None => format!("-{text}"),
        }),
        expr => number(expr),
    }
}

/// A number that is read as a float, and has no exponent.
fn number(expr: &Expr) -> Option<String> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, false) = &value.value else { return None };
    let has_point = text.contains('.');
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let without_zeros = text.trim_start_matches('0');
    let n_digits = without_zeros.bytes().filter(u8::is_ascii_digit).count();
    if !is_plain || n_digits > DIGITS_MAX || !(has_point || n_digits > INTEGER_DIGITS_MAX) {
        return None;
    }
    // One zero stays before the point.
    let has_zeros = without_zeros.len() < text.len();
    let has_whole = without_zeros.starts_with(|first: char| first.is_ascii_digit());
    Some(if has_zeros && !has_whole { format!("0{without_zeros}") } else { without_zeros.to_owned() })
}

fn decimal(text: &str) -> Expr {
    let digits = text.trim_start_matches('-');
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    // The zero before the point is no digit of the widest ones.
    let precision = (whole.len() + part.len()).clamp(1, DIGITS_MAX) as u64;
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(text.to_owned()).into())),
        data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, part.len() as i64)),
        array: false,
        format: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{self, ParseOptions, parse};

    fn read(sql: &str) -> DFStatement {
        match parse(sql, &ParseOptions::default()) {
            Ok(Some(sql::Statement::DataFusion(statement))) => *statement,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        let mut statement =
            read("INSERT INTO t VALUES (1, 0.07, -12345678901234567890.12, 1.5e3, 2.5), (2.5, 7, x, '1', NULL)");
        exact_values(insert_of(&mut statement).expect("it is one"), |position| position < 4);
        assert_eq!(
            statement.to_string(),
            "INSERT INTO t VALUES (1, CAST('0.07' AS DECIMAL(3,2)), CAST('-12345678901234567890.12' AS DECIMAL(22,2)), 1.5e3, 2.5), \
             (CAST('2.5' AS DECIMAL(2,1)), 7, x, '1', NULL)"
        );
    }

    #[test]
    fn up_to_the_digits_of_the_widest() {
        let widest = "1234567890123456789012345678.0123456789";
        for (number, exact) in [
            (widest, format!("CAST('{widest}' AS DECIMAL(38,10))")),
            ("123456789012345678901234567890", "CAST('123456789012345678901234567890' AS DECIMAL(30,0))".to_owned()),
            ("123456789012345678", "123456789012345678".to_owned()),
            (".5", "CAST('.5' AS DECIMAL(1,1))".to_owned()),
            ("000.5", "CAST('0.5' AS DECIMAL(2,1))".to_owned()),
            ("0000000000000000000000007", "0000000000000000000000007".to_owned()),
            (
                "0.00000000000000000000000000000000000001",
                "CAST('0.00000000000000000000000000000000000001' AS DECIMAL(38,38))".to_owned(),
            ),
            (
                "00012345678901234567890123456789012345678",
                "CAST('12345678901234567890123456789012345678' AS DECIMAL(38,0))".to_owned(),
            ),
            ("1234567890123456789012345678.01234567891", "1234567890123456789012345678.01234567891".to_owned()),
        ] {
            let mut statement = read(&format!("INSERT INTO t VALUES ({number})"));
            exact_values(insert_of(&mut statement).expect("it is one"), |_| true);
            assert_eq!(statement.to_string(), format!("INSERT INTO t VALUES ({exact})"));
        }
    }

    #[test]
    fn signs_and_brackets() {
        let positive = "CAST('0.5' AS DECIMAL(2,1))";
        let negative = "CAST('-0.5' AS DECIMAL(2,1))";
        for (number, exact) in [
            ("(0.5)", positive),
            ("((-0.5))", negative),
            ("-(0.5)", negative),
            ("-(+0.5)", negative),
            ("- -0.5", positive),
            ("-(-(-0.5))", negative),
            ("-(x)", "-(x)"),
        ] {
            let mut statement = read(&format!("INSERT INTO t VALUES ({number})"));
            exact_values(insert_of(&mut statement).expect("it is one"), |_| true);
            assert_eq!(statement.to_string(), format!("INSERT INTO t VALUES ({exact})"));
        }
    }

    #[test]
    fn of_all_that_inserts() {
        for sql in ["INSERT INTO t VALUES (0.5)", "PREPARE p AS INSERT INTO t VALUES (0.5)"] {
            for explain in ["", "EXPLAIN ", "EXPLAIN ANALYZE "] {
                let mut statement = read(&format!("{explain}{sql}"));
                exact_values(insert_of(&mut statement).expect("it is one"), |_| true);
                assert!(statement.to_string().contains("CAST('0.5' AS DECIMAL(2,1))"), "{explain}{sql}: {statement}");
            }
        }
        let mut statement = read("PREPARE p AS EXPLAIN ANALYZE INSERT INTO t VALUES (0.5)");
        assert!(insert_of(&mut statement).is_some());
        assert!(insert_of(&mut read("EXPLAIN SELECT 0.5")).is_none());
        let mut statement = read("EXECUTE p(0.5, -0.5, 0.5)");
        exact_arguments(&mut statement, |position| position != 2);
        assert_eq!(statement.to_string(), "EXECUTE p(CAST('0.5' AS DECIMAL(2,1)), CAST('-0.5' AS DECIMAL(2,1)), 0.5)");
    }

    #[test]
    fn of_tables_that_say_their_types() {
        for (sql, meant) in [
            (
                "CREATE TABLE t (a DECIMAL(4, 1), b DOUBLE, c NUMERIC) AS VALUES (0.5, 0.5, 0.5)",
                "CREATE TABLE t (a DECIMAL(4,1), b DOUBLE, c NUMERIC) AS VALUES \
                 (CAST('0.5' AS DECIMAL(2,1)), 0.5, CAST('0.5' AS DECIMAL(2,1)))",
            ),
            ("CREATE TABLE t AS VALUES (0.5)", "CREATE TABLE t AS VALUES (0.5)"),
        ] {
            assert_eq!(read(sql).to_string(), meant);
        }
    }
}
