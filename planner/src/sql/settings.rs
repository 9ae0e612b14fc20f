//! [`set`]: `SET TIME ZONE`, `SET search_path` and `SET .. TO DEFAULT`, as PostgreSQL has them.
//!
//! ```text
//!   SET TIME ZONE 'Europe/Berlin'       SET timezone = 'Europe/Berlin'
//!   SET TIME ZONE -7                    SET timezone = '-07:00'
//!   SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE
//!   SET TIME ZONE LOCAL | DEFAULT       RESET timezone
//!   SET x TO DEFAULT                    RESET x
//!   SET search_path = s                 USE s        also: SET schema = 's'
//!   RESET search_path                   RESET datafusion.catalog.default_schema
//! ```

use datafusion::sql::parser::{ResetStatement, Statement as DFStatement};
use sqlparser::ast::{
    self, DateTimeField, Expr, Ident, Interval, ObjectName, ObjectNamePart, Set, UnaryOperator, Use, Value,
};

const TIME_ZONE: &str = "timezone";
/// DataFusion's setting for the schema of names that have none, and what others call it.
const DEFAULT_SCHEMA: [&str; 3] = ["datafusion", "catalog", "default_schema"];
const SCHEMA: [&str; 2] = ["search_path", "schema"];

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
        other => match schema(&other) {
            Some(schema) => DFStatement::Statement(Box::new(ast::Statement::Use(Use::Schema(schema)))),
            None => assign(other),
        },
    }
}

/// Whether a setting is the schema of names that have none, by a name that other engines have for it.
pub(super) fn names_schema(variable: &ObjectName) -> bool {
    matches!(variable.0.as_slice(), [ObjectNamePart::Identifier(name)] if is_schema(name))
}

/// What `SHOW` shows.
pub(super) fn shown(variable: Vec<Ident>) -> Vec<Ident> {
    let is_alias = matches!(variable.as_slice(), [name] if is_schema(name));
    if is_alias { DEFAULT_SCHEMA.map(Ident::new).to_vec() } else { variable }
}

/// The setting goes back to what the session started with.
pub(super) fn reset(variable: ObjectName) -> DFStatement {
    let variable = match names_schema(&variable) {
        true => ObjectName::from(DEFAULT_SCHEMA.map(Ident::new).to_vec()),
        false => variable,
    };
    DFStatement::Reset(ResetStatement::Variable(variable))
}

fn is_schema(name: &Ident) -> bool {
    SCHEMA.iter().any(|known| name.value.eq_ignore_ascii_case(known))
}

/// The schema that names without one are to be looked for in, if it is that what is set.
fn schema(set: &Set) -> Option<ObjectName> {
    let Set::SingleAssignment { scope: None, hivevar: false, variable, values } = set else { return None };
    match values.as_slice() {
        _ if !names_schema(variable) => None,
        [Expr::Identifier(name)] => Some(ObjectName::from(vec![name.clone()])),
        [Expr::CompoundIdentifier(names)] => Some(ObjectName::from(names.clone())),
        [Expr::Value(value)] => match &value.value {
            Value::SingleQuotedString(name) => Some(ObjectName::from(vec![Ident::with_quote('"', name.as_str())])),
            _ => None,
        },
        _ => None,
    }
}

fn assign(set: Set) -> DFStatement {
    DFStatement::Statement(Box::new(ast::Statement::Set(set)))
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
    use crate::sql::{ParseOptions, Statement, parse, refuse_ignored};

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
            ("SHOW timezone", "SHOW timezone"),
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

    #[test]
    fn the_schema_as_others_call_it() {
        for (sql, expected) in [
            ("SET search_path = s", "USE SCHEMA s"),
            ("SET search_path TO \"S\"", "USE SCHEMA \"S\""),
            ("SET SESSION search_path TO nectarine.s", "USE SCHEMA nectarine.s"),
            ("SET schema = 'two words'", "USE SCHEMA \"two words\""),
            ("SET search_path TO DEFAULT", "RESET datafusion.catalog.default_schema"),
            ("RESET search_path", "RESET datafusion.catalog.default_schema"),
            ("SHOW search_path", "SHOW datafusion catalog default_schema"),
            ("USE s", "USE s"),
        ] {
            assert_eq!(read(sql), expected, "{sql}");
        }
        let sql = "SET search_path = s, public";
        let statement = parse(sql, &ParseOptions::default()).expect("SQL").expect("a statement");
        let error = refuse_ignored(&statement, sql).expect_err(sql);
        assert_eq!(error.to_string(), "search_path of several schemas is not supported");
        assert!(error.position().is_some_and(|position| sql[position..].starts_with("search_path")), "{error:?}");
    }
}
