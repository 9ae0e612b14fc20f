//! What a report's statements know of the time they run for.
//!
//! ```text
//!   :run_date   the day of the scheduled time, by the report's zone     DATE
//!   :run_time   the scheduled time, in UTC                              TIMESTAMP
//!   :last_run   the scheduled time of the last run that finished        TIMESTAMP; 1970-01-01 before the first
//! ```
//!
//! They become literals in the text before it is planned: what was computed for the extents inside of a window is found again,
//! whatever its edges are (see docs/reuse.md).

use chrono::{DateTime, Utc};
use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::schedule::{local, parse_zone};
use crate::Result;
use nectarine_planner::sql::offset_of;

/// Their values for one run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Parameters {
    /// Name and literal.
    values: [(&'static str, String); 3],
}

impl Parameters {
    /// For a scheduled time, after a run that finished, if there is one.
    pub(super) fn new(at: i64, last: Option<i64>, zone: &str) -> Result<Self> {
        let day = local(at, parse_zone(zone)?).map(|time| time.format("%Y-%m-%d").to_string()).unwrap_or_default();
        Ok(Self {
            values: [
                ("run_date", format!("DATE '{day}'")),
                ("run_time", timestamp(at)),
                ("last_run", timestamp(last.unwrap_or(0))),
            ],
        })
    }

    /// Those that a text uses, as people read them.
    pub(super) fn told(&self, text: &str) -> Vec<(&'static str, String)> {
        let used = uses(text);
        let shown = |literal: &str| literal.split('\'').nth(1).unwrap_or(literal).to_string();
        let values = self.values.iter().filter(|(name, _)| used.iter().any(|(found, _)| found == name));
        values.map(|(name, literal)| (*name, shown(literal))).collect()
    }

    /// The text with literals in their places.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len() + 32);
        let mut copied = 0;
        for (name, range) in uses(text) {
            let Some((_, literal)) = self.values.iter().find(|(known, _)| *known == name) else { continue };
            filled.push_str(&text[copied..range.start]);
            filled.push_str(literal);
            copied = range.end;
        }
        filled.push_str(&text[copied..]);
        filled
    }
}

fn timestamp(micros: i64) -> String {
    let time = DateTime::<Utc>::from_timestamp_micros(micros).unwrap_or_default();
    format!("TIMESTAMP '{}'", time.format("%Y-%m-%d %H:%M:%S%.f"))
}

/// A colon with a word right behind it, outside of quotes and comments. Texts that cannot be cut into words have none: the parser
/// tells what is wrong with them.
fn uses(text: &str) -> Vec<(String, std::ops::Range<usize>)> {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize_with_location() else { return vec![] };
    let place = |token: &TokenWithSpan| offset_of(text, token.span.start.line, token.span.start.column);
    let pairs = tokens.windows(2).filter_map(|pair| match (&pair[0].token, &pair[1].token) {
        (Token::Colon, Token::Word(word)) if word.quote_style.is_none() => {
            let (start, name) = (place(&pair[0])?, place(&pair[1])?);
            Some((word.value.to_ascii_lowercase(), start..name + word.value.len()))
        }
        _ => None,
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_take_their_places() {
        // 2026-11-17 23:30 in UTC.
        let parameters = Parameters::new(1_794_958_200_000_000, None, "Europe/Berlin").expect("parameters");
        for (text, expected) in [
            ("SELECT :run_date", "SELECT DATE '2026-11-18'"),
            (
                "a > :LAST_RUN AND b <= :run_time",
                "a > TIMESTAMP '1970-01-01 00:00:00' AND b <= TIMESTAMP '2026-11-17 23:30:00'",
            ),
            ("':run_date' -- :run_date\n, \":run_date\"", "':run_date' -- :run_date\n, \":run_date\""),
            ("x::date, :run_date::text", "x::date, DATE '2026-11-18'::text"),
            ("é = :run_date", "é = DATE '2026-11-18'"),
            (":other", ":other"),
            ("'open :run_date", "'open :run_date"),
        ] {
            assert_eq!(parameters.fill(text), expected, "{text}");
        }
        let told = parameters.told("SELECT :run_date, :run_date");
        assert_eq!(told, [("run_date", "2026-11-18".to_string())]);
        let later = Parameters::new(2, Some(1_500_000), "UTC").expect("parameters");
        assert_eq!(later.fill(":last_run"), "TIMESTAMP '1970-01-01 00:00:01.500'");
    }
}
