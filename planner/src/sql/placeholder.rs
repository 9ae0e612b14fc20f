//! [`number`]: `?` is the next parameter, as JDBC and most drivers write it.
//!
//! DataFusion knows parameters by number or name only: `a = ? AND b = ?` is read as `a = $1 AND b = $2`. A text that has both
//! kinds is refused: which value belongs to `?` would be anyone's guess. So is a number that is too high, because DataFusion
//! makes a list of all parameters up to it.

use std::ops::ControlFlow;

use sqlparser::ast::{CastKind, DataType, Expr, Statement, Value, VisitMut, VisitorMut};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::position::offset_of_token;
use crate::{PlannerError, Result};

/// The highest number of a parameter.
const NUMBER_MAX: usize = 65_535;

/// Gives every `?` its number.
pub(super) fn number(sql: &str, tokens: &mut [TokenWithSpan]) -> Result<()> {
    let mut n_marks = 0;
    let mut numbered: Option<Option<usize>> = None;
    for token in tokens.iter_mut() {
        let Token::Placeholder(text) = &mut token.token else { continue };
        match text.as_str() {
            "?" => {
                n_marks += 1;
                *text = format!("${n_marks}");
                if n_marks > NUMBER_MAX {
                    return Err(too_many(offset_of_token(sql, token)));
                }
            }
            text if is_too_high(text) => return Err(too_many(offset_of_token(sql, token))),
            _ => numbered = Some(offset_of_token(sql, token)),
        }
        if n_marks > 0
            && let Some(position) = numbered
        {
            let message = "expected parameters as ? or as $1, found both".to_owned();
            return Err(PlannerError::Syntax { message, position, hint: None });
        }
    }
    Ok(())
}

/// Puts the arguments of an `EXECUTE` into the places of `$1`, `$2` and so on; `declared` are the types that its `PREPARE` gives.
pub fn fill_placeholders(statement: &mut Statement, arguments: &[Expr], declared: &[DataType]) {
    let _: ControlFlow<()> = statement.visit(&mut Fill { arguments, declared });
}

struct Fill<'a> {
    arguments: &'a [Expr],
    declared: &'a [DataType],
}

impl VisitorMut for Fill<'_> {
    type Break = ();

    // Afterwards: what was put in is not looked at.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
            && let Some(number) = name.strip_prefix('$').and_then(|number| number.parse::<usize>().ok())
            && let Some(position) = number.checked_sub(1)
            && let Some(argument) = self.arguments.get(position)
        {
            *expr = filling(argument, self.declared.get(position));
        }
        ControlFlow::Continue(())
    }
}

/// An argument as it can stand anywhere: `-$1` with -5 is no comment, and `$1 * 2` with 1 + 1 is 4.
fn filling(argument: &Expr, declared: Option<&DataType>) -> Expr {
    match (argument, declared) {
        (argument, Some(data_type)) => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(argument.clone()),
            data_type: data_type.clone(),
            array: false,
            format: None,
        },
        // The sign of a number is not part of its value.
        (Expr::Value(_) | Expr::Nested(_), None) => argument.clone(),
        (argument, None) => Expr::Nested(Box::new(argument.clone())),
    }
}

/// Whether it is a number beyond the highest, however many digits it has.
fn is_too_high(text: &str) -> bool {
    let digits = text.trim_start_matches(['$', '?']);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number && digits.parse::<usize>().map_or(true, |number| number > NUMBER_MAX)
}

fn too_many(position: Option<usize>) -> PlannerError {
    let message = format!("expected at most {NUMBER_MAX} parameters");
    PlannerError::Syntax { message, position, hint: None }
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::GenericDialect;
    use sqlparser::parser::Parser;

    use super::*;
    use crate::sql::{ParseOptions, parse};

    fn read(sql: &str) -> String {
        match parse(sql, &ParseOptions::default()) {
            Ok(statement) => format!("{statement:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn marks_are_numbered() {
        let marked = "SELECT a FROM t WHERE a = ? AND b IN (?, ?) AND c = '?' -- ?";
        let numbered = read("SELECT a FROM t WHERE a = $1 AND b IN ($2, $3) AND c = '?' -- ?");
        for number in ["$1", "$2", "$3"] {
            assert!(numbered.contains(number), "{numbered}");
        }
        let marked = read(marked);
        assert!(marked.contains("Placeholder(\"$3\")") && !marked.contains("Placeholder(\"?\")"), "{marked}");
    }

    #[test]
    fn high_numbers_are_refused() {
        for sql in ["INSERT INTO t VALUES ($4000000000)", "SELECT $99999999999999999999999", "SELECT ?4000000000"] {
            assert!(read(sql).contains("at most 65535 parameters"), "{sql}: {}", read(sql));
        }
        assert!(read("SELECT $65535").contains("$65535"));
    }

    #[test]
    fn arguments_take_their_places() {
        let sql = "SELECT $2 + a, '$1', $3 FROM t WHERE b = $1; EXECUTE p($2, 'x')";
        let mut statements = Parser::parse_sql(&GenericDialect {}, sql).expect("SQL");
        let Some(Statement::Execute { parameters, .. }) = statements.pop() else { panic!() };
        fill_placeholders(&mut statements[0], &parameters, &[]);
        assert_eq!(statements[0].to_string(), "SELECT 'x' + a, '$1', $3 FROM t WHERE b = $2");
    }

    #[test]
    fn arguments_stay_what_they_are() {
        for (types, arguments, expected) in [
            ("", "-5, 1 + 1", "SELECT -(-5) AS a, (1 + 1) * 2 AS b"),
            ("", "5, (1 + 1)", "SELECT -5 AS a, (1 + 1) * 2 AS b"),
            ("", "NULL, true", "SELECT -NULL AS a, true * 2 AS b"),
            ("(INT, DOUBLE)", "-5, 1 + 1", "SELECT -CAST(-5 AS INT) AS a, CAST(1 + 1 AS DOUBLE) * 2 AS b"),
        ] {
            let sql = format!("PREPARE p {types} AS SELECT -$1 AS a, $2 * 2 AS b; EXECUTE p({arguments})");
            let mut statements = Parser::parse_sql(&GenericDialect {}, &sql).expect("SQL");
            let Some(Statement::Execute { parameters, .. }) = statements.pop() else { panic!() };
            let Some(Statement::Prepare { mut statement, data_types, .. }) = statements.pop() else { panic!() };
            fill_placeholders(&mut statement, &parameters, &data_types);
            assert_eq!(statement.to_string(), expected);
        }
    }

    #[test]
    fn both_kinds_are_refused() {
        for sql in ["SELECT ? + $1", "SELECT $1 + ?", "SELECT $name, ?"] {
            assert!(read(sql).contains("found both"), "{sql}: {}", read(sql));
        }
    }
}
