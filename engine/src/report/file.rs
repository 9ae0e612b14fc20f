//! A report as a file: a header of comments, then its statements. For keeping reports in git.
//!
//! ```text
//!   -- report: daily_kpis            the file's name without one
//!   -- schedule: 0 6 * * *
//!   -- time zone: Europe/Berlin
//!   -- output: /srv/reports/kpis-{date}.html
//!   -- expect: row_count > 0
//!   SELECT ..
//! ```
//!
//! Keys are the clauses of `CREATE REPORT`, in any order; what they may be is said there.

use nectarine_planner::sql::split_statements;

use crate::{EngineError, ErrorKind, Result};

/// Keys whose values are texts, words or lists.
const TEXTS: [&str; 7] = ["schedule", "time zone", "title", "backoff", "timeout", "hook", "output"];
const WORDS: [&str; 6] = ["retries", "catch up", "concurrency", "depends on", "expect", "chart"];

/// The statement that a file stands for; `name` is what the file is called, without its ending.
pub fn report_from_file(name: &str, text: &str) -> Result<String> {
    let mut name = name.to_string();
    let mut clauses: Vec<(String, String)> = vec![];
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        let line = rest.lines().next().unwrap_or_default();
        let Some(comment) = line.trim().strip_prefix("--") else {
            match line.trim().is_empty() && !rest.is_empty() && clauses.is_empty() {
                // Blank lines before the header.
                true => {}
                false => break,
            }
            rest = after(rest, line);
            continue;
        };
        rest = after(rest, line);
        let Some((key, value)) = comment.split_once(':') else { continue };
        let key = key.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase();
        let value = value.trim().to_string();
        match key.as_str() {
            "report" => name = value,
            key if TEXTS.contains(&key) || WORDS.contains(&key) => {
                match clauses.iter_mut().find(|(known, _)| known == key) {
                    Some((_, conditions)) if key == "expect" => conditions.push_str(&format!(", {value}")),
                    Some(_) => return Err(bad(&format!("\"{key}\" is said twice"))),
                    None => clauses.push((key.to_string(), value)),
                }
            }
            key => {
                return Err(bad(&format!("\"{key}\" is no part of a report")).with_hint(format!(
                    "there are report, {} and {}",
                    TEXTS.join(", "),
                    WORDS.join(", ")
                )));
            }
        }
    }
    let body = rest.trim();
    if split_statements(body).is_empty() {
        return Err(bad("there is no query"));
    }
    let mut statement = format!("CREATE OR REPLACE REPORT \"{}\"", name.replace('"', "\"\""));
    for (key, value) in clauses {
        let table = value.split_once(char::is_whitespace).filter(|(word, _)| word.eq_ignore_ascii_case("table"));
        let value = match (key.as_str(), table) {
            ("output", Some((_, table))) => format!("TABLE {}", table.trim()),
            (key, _) if TEXTS.contains(&key) => format!("'{}'", value.replace('\'', "''")),
            _ => value,
        };
        statement.push_str(&format!("\n{} {value}", key.to_ascii_uppercase()));
    }
    statement.push_str(&format!("\nAS $report$\n{body}\n$report$"));
    Ok(statement)
}

/// What comes after the first line.
fn after<'a>(text: &'a str, line: &str) -> &'a str {
    text[line.len()..].trim_start_matches('\r').strip_prefix('\n').unwrap_or("")
}

fn bad(detail: &str) -> EngineError {
    EngineError::new(ErrorKind::Sql, "the file is no report").with_detail(detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_become_clauses() {
        let text = "\n-- A comment without a colon\n-- schedule: 0 6 * * *\n--  Time   Zone: Europe/Berlin\r\n-- output: it's-{date}.md\n\
                    -- expect: row_count > 0\n-- expect: row_count < 9\n-- retries: 2\n\n-- about: the query\nSELECT 1 -- x: y\n";
        let expected = "CREATE OR REPLACE REPORT \"kpis\"\nSCHEDULE '0 6 * * *'\nTIME ZONE 'Europe/Berlin'\nOUTPUT 'it''s-{date}.md'\n\
                        EXPECT row_count > 0, row_count < 9\nRETRIES 2\nAS $report$\n-- about: the query\nSELECT 1 -- x: y\n$report$";
        assert_eq!(report_from_file("kpis", text).expect("a report"), expected);
        let table = report_from_file("x", "-- report: \"q\n-- output: TABLE s.t\nSELECT 1").expect("a report");
        assert!(table.contains("REPORT \"\"\"q\"") && table.contains("OUTPUT TABLE s.t"), "{table}");
    }

    #[test]
    fn mistakes_are_told() {
        for (text, expected) in [
            ("-- shedule: x\nSELECT 1", "\"shedule\" is no part"),
            ("-- schedule: x\n-- schedule: y\nSELECT 1", "said twice"),
            ("-- schedule: x\n", "no query"),
            ("", "no query"),
        ] {
            let error = report_from_file("x", text).expect_err(text);
            assert!(error.detail().is_some_and(|detail| detail.contains(expected)), "{text}: {error:?}");
        }
    }
}
