//! [`exact_values`]: numbers of an `INSERT .. VALUES` that go into DECIMAL columns, as decimals of all their digits.
//!
//! DataFusion reads `12345678901234567890.12` as a float, of which 17 digits are left when it comes to the column.

use sqlparser::ast::{self, CastKind, DataType, ExactNumberInfo, Expr, SetExpr, UnaryOperator, Value};

/// Digits of the widest decimal.
const DIGITS_MAX: usize = 38;

/// Rewrites the numbers; `is_decimal` tells of the columns in the order of the values.
pub fn exact_values(insert: &mut ast::Insert, is_decimal: impl Fn(usize) -> bool) {
    let Some(SetExpr::Values(values)) = insert.source.as_mut().map(|query| query.body.as_mut()) else { return };
    for row in &mut values.rows {
        for (position, expr) in row.content.iter_mut().enumerate() {
            if is_decimal(position)
                && let Some(exact) = exact(expr)
            {
                *expr = exact;
            }
        }
    }
}

fn exact(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => number(expr).map(|text| decimal(&format!("-{text}"))),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => number(expr).map(|text| decimal(&text)),
        expr => number(expr).map(|text| decimal(&text)),
    }
}

/// A number with a point and without an exponent.
fn number(expr: &Expr) -> Option<String> {
    let Expr::Value(value) = expr else { return None };
    let Value::Number(text, false) = &value.value else { return None };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (is_plain && text.contains('.') && text.len() <= DIGITS_MAX).then(|| text.to_string())
}

fn decimal(text: &str) -> Expr {
    let digits = text.trim_start_matches('-');
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let precision = (whole.len() + part.len()).max(1) as u64;
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
    use datafusion::sql::parser::Statement as DFStatement;

    use super::*;
    use crate::sql::{ParseOptions, Statement, parse};

    #[test]
    fn numbers_keep_their_digits() {
        let sql = "INSERT INTO t VALUES (1, 0.07, -12345678901234567890.12, 1.5e3, 2.5), (2.5, 7, x, '1', NULL)";
        let Ok(Some(Statement::DataFusion(statement))) = parse(sql, &ParseOptions::default()) else { panic!() };
        let DFStatement::Statement(mut statement) = *statement else { panic!() };
        let ast::Statement::Insert(insert) = statement.as_mut() else { panic!() };
        exact_values(insert, |position| position < 4);
        assert_eq!(
            statement.to_string(),
            "INSERT INTO t VALUES (1, CAST('0.07' AS DECIMAL(3,2)), CAST('-12345678901234567890.12' AS DECIMAL(22,2)), 1.5e3, 2.5), \
             (CAST('2.5' AS DECIMAL(2,1)), 7, x, '1', NULL)"
        );
    }
}
