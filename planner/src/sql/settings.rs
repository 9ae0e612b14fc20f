//! [`set`]: `SET TIME ZONE` and `SET .. TO DEFAULT`, as PostgreSQL has them.
//!
//! ```text
//!   SET TIME ZONE 'Europe/Berlin'       SET timezone = 'Europe/Berlin'
//!   SET TIME ZONE -7                    SET timezone = '-07:00'
//!   SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE
//!   SET TIME ZONE LOCAL | DEFAULT       RESET timezone
//!   SET x TO DEFAULT                    RESET x
//! ```

use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use sqlparser::ast::{self, DateTimeField, Expr, Ident, Interval, ObjectName, Set, UnaryOperator, Value};

const TIME_ZONE: &str = "timezone";

/// The statement as DataFusion knows it; what is not understood stays as it is, and is refused later.
pub(super) fn set(set: Set) -> DFStatement {
    match set {
        Set::SetTimeZone { local: false, value } if is_word(&value, "local") || is_word(&value, "default") => {
            reset(ObjectName::from(vec![Ident::new(TIME_ZONE)]))
        }
        Set::SetTimeZone { local: false, value } => {
            let values = vec![zone(&value).map_or(value, text)];
            let variable = ObjectName::from(vec![Ident::new(TIME_ZONE)]);
            assign(Set::SingleAssignment { scope: None, hivevar: false, variable, values })
        }
        // Every setting is of the session.
        Set::SingleAssignment { scope: Some(ast::ContextModifier::Session), hivevar, variable, values } => {
            self::set(Set::SingleAssignment { scope: None, hivevar, variable, values })
        }
        Set::SingleAssignment { scope: None, hivevar: false, variable, values } if matches!(values.as_slice(), [value] if is_word(value, "default")) => {
            reset(variable)
        }
        other => assign(other),
    }
}

fn assign(set: Set) -> DFStatement {
    DFStatement::Statement(Box::new(ast::Statement::Set(set)))
}

fn reset(variable: ObjectName) -> DFStatement {
    DFStatement::Reset(ResetStatement::Variable(variable))
}

fn is_word(value: &Expr, word: &str) -> bool {
    matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case(word))
}

fn text(text: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(text).into())
}

/// What a value says of the zone, as text.
fn zone(value: &Expr) -> Option<String> {
    match value {
        // A name without quotes, as it is written.
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::Value(value) => match &value.value {
            Value::Number(hours, _) => offset(hours, false),
            _ => None,
        },
        Expr::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => match expr.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::Number(hours, _) => offset(hours, *op == UnaryOperator::Minus),
                _ => None,
            },
            _ => None,
        },
        // `INTERVAL '5' MINUTE` is no zone that anybody means.
        Expr::Interval(interval) if is_of_hours(interval) => match interval.value.as_ref() {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(text) => hours_and_minutes(text),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

/// Whether an interval is told in hours, or in hours and minutes.
fn is_of_hours(interval: &Interval) -> bool {
    matches!(
        (&interval.leading_field, &interval.last_field),
        (None, None) | (Some(DateTimeField::Hour), None | Some(DateTimeField::Minute))
    )
}

/// Hours east of Greenwich, `5.5` for half past five.
fn offset(hours: &str, is_west: bool) -> Option<String> {
    let minutes = hours.parse::<f64>().ok()? * 60.0;
    let sign = if is_west { '-' } else { '+' };
    // What is more than a day is left to whoever knows zones, to refuse.
    (minutes.fract() == 0.0 && (0.0..24.0 * 60.0).contains(&minutes))
        .then(|| format!("{sign}{:02}:{:02}", minutes as u32 / 60, minutes as u32 % 60))
}

fn hours_and_minutes(text: &str) -> Option<String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = digits.split_once(':').unwrap_or((digits, "0"));
    let (hours, minutes) = (hours.parse::<u8>().ok()?, minutes.parse::<u8>().ok()?);
    (hours < 24 && minutes < 60).then(|| format!("{sign}{hours:02}:{minutes:02}"))
}

#[cfg(test)]
mod tests {
    use crate::sql::{ParseOptions, Statement, parse};

    fn read(sql: &str) -> String {
        match parse(sql, &ParseOptions::default()) {
            Ok(Some(Statement::DataFusion(statement))) => statement.to_string(),
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn zones_as_postgresql_has_them() {
        for (sql, expected) in [
            ("SET TIME ZONE 'Europe/Berlin'", "SET timezone = 'Europe/Berlin'"),
            ("SET SESSION TIME ZONE 'Europe/Berlin'", "SET timezone = 'Europe/Berlin'"),
            ("set time zone UTC", "SET timezone = 'UTC'"),
            ("SET TIME ZONE -7", "SET timezone = '-07:00'"),
            ("SET TIME ZONE 5.5", "SET timezone = '+05:30'"),
            ("SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE", "SET timezone = '-08:00'"),
            ("SET TIME ZONE LOCAL", "RESET timezone"),
            ("SET TIME ZONE DEFAULT", "RESET timezone"),
            ("SET timezone TO DEFAULT", "RESET TIMEZONE"),
            ("SET nectarine.reuse = DEFAULT", "RESET nectarine.reuse"),
            ("SET SESSION nectarine.reuse = 'off'", "SET nectarine.reuse = 'off'"),
            ("SET nectarine.reuse = 'default'", "SET nectarine.reuse = 'default'"),
        ] {
            assert_eq!(read(sql), expected, "{sql}");
        }
        for sql in
            ["SET TIME ZONE INTERVAL '5' MINUTE", "SET TIME ZONE INTERVAL '1' DAY", "SET TIME ZONE INTERVAL '90' HOUR"]
        {
            assert!(read(sql).contains("INTERVAL"), "{sql}: left to be refused");
        }
        assert!(read("SET LOCAL TIME ZONE 'UTC'").contains("LOCAL"), "of a transaction, which is left to be refused");
    }
}
