//! [`number`]: `?` is the next parameter, as JDBC and most drivers write it.
//!
//! DataFusion knows parameters by number or name only: `a = ? AND b = ?` is read as `a = $1 AND b = $2`. A text that has both
//! kinds is refused: which value belongs to `?` would be anyone's guess. So is a number that is too high, because DataFusion
//! makes a list of all parameters up to it.

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
    fn both_kinds_are_refused() {
        for sql in ["SELECT ? + $1", "SELECT $1 + ?", "SELECT $name, ?"] {
            assert!(read(sql).contains("found both"), "{sql}: {}", read(sql));
        }
    }
}
