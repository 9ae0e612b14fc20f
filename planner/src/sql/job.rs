//! Statements about jobs: statements that are left to the servers of a home, and outlive whoever left them.
//!
//! ```text
//!   SUBMIT JOB [NAME 'text'] [TIMEOUT 'duration'] AS statement | AS $$ statements $$
//!   CANCEL JOB 'id'
//!   DROP JOB [IF EXISTS] 'id', ..
//!   SHOW JOBS, SHOW JOB 'id', SHOW RESULT OF JOB 'id'
//! ```
//!
//! Their words are names like any other everywhere else.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::derived::{expect_word, is_word};
use super::parse::Text;
use super::report::{body, is_end, quoted};
use super::statement::Statement;
use crate::Result;

/// One of them. Identifiers are as they were written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JobStatement {
    /// `SUBMIT JOB`.
    Submit {
        /// What people call it.
        name: Option<String>,
        /// How long it may take, as it was written.
        timeout: Option<String>,
        /// Statements, as they were written.
        body: String,
    },
    /// `CANCEL JOB`.
    Cancel(String),
    /// `DROP JOB`.
    Drop {
        /// Which ones.
        ids: Vec<String>,
        /// No error if one is not there.
        if_exists: bool,
    },
    /// `SHOW JOBS`.
    ShowAll,
    /// `SHOW JOB`.
    Show(String),
    /// `SHOW RESULT OF JOB`.
    Result(String),
}

/// One of them, if the text begins like it.
pub(super) fn job(text: &Text<'_>) -> Result<Option<Statement>> {
    let word = |n: usize, word: &str| text.is_word(n, word);
    let ends_at = |n: usize| text.words().nth(n).is_none_or(|token| is_end(&token.token));
    let is_about = ["submit", "cancel", "drop"].iter().any(|verb| word(0, verb)) && word(1, "job");
    // `SHOW x` shows a setting where nothing follows.
    let is_shown = word(0, "show")
        && ((word(1, "jobs") && ends_at(2))
            || (word(1, "job") && !ends_at(2))
            || (word(1, "result") && word(2, "of") && word(3, "job")));
    if !is_about && !is_shown {
        return Ok(None);
    }
    text.read(|parser| statement(text, parser)).map(|statement| Some(Statement::Job(statement)))
}

fn statement(text: &Text<'_>, parser: &mut DFParser<'_>) -> Result<JobStatement, DataFusionError> {
    let parser = &mut parser.parser;
    let verb = parser.next_token().to_string().to_ascii_lowercase();
    if verb == "show" {
        return Ok(match parser.next_token().to_string().to_ascii_lowercase().as_str() {
            "jobs" => JobStatement::ShowAll,
            "job" => JobStatement::Show(quoted(parser)?),
            _ => {
                expect_word(parser, "of")?;
                expect_word(parser, "job")?;
                JobStatement::Result(quoted(parser)?)
            }
        });
    }
    expect_word(parser, "job")?;
    Ok(match verb.as_str() {
        "submit" => submit(text, parser)?,
        "cancel" => JobStatement::Cancel(quoted(parser)?),
        _ => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            JobStatement::Drop { ids: parser.parse_comma_separated(quoted)?, if_exists }
        }
    })
}

/// Clauses in any order, each once, then `AS`.
fn submit(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<JobStatement, DataFusionError> {
    let (mut name, mut timeout) = (None, None);
    loop {
        let (word, clause) = if is_word(parser, 0, "name") {
            ("NAME", &mut name)
        } else if is_word(parser, 0, "timeout") {
            ("TIMEOUT", &mut timeout)
        } else {
            break;
        };
        let token = parser.next_token();
        if clause.is_some() {
            return Ok(parser.expected(&format!("{word} once"), token)?);
        }
        *clause = Some(quoted(parser)?);
    }
    let token = parser.next_token();
    match &token.token {
        Token::Word(word) if word.keyword == Keyword::AS => {
            Ok(JobStatement::Submit { name, timeout, body: body(text, parser)? })
        }
        _ => Ok(parser.expected("NAME, TIMEOUT or AS", token)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{ParseOptions, parse};

    fn read(sql: &str) -> JobStatement {
        match parse(sql, &ParseOptions::default()) {
            Ok(Some(Statement::Job(statement))) => statement,
            other => panic!("{sql}: {other:?}"),
        }
    }

    #[test]
    fn jobs_keep_their_texts() {
        let sql = "submit job TIMEOUT '2 hours' NAME 'it''s' AS $$ SET a.b = 1; SELECT ';' $$;";
        let expected = JobStatement::Submit {
            name: Some("it's".to_owned()),
            timeout: Some("2 hours".to_owned()),
            body: "SET a.b = 1; SELECT ';'".to_owned(),
        };
        assert_eq!(read(sql), expected);
        let one = "SUBMIT JOB AS INSERT INTO t SELECT ';' FROM s ;";
        let body = "INSERT INTO t SELECT ';' FROM s".to_owned();
        assert_eq!(read(one), JobStatement::Submit { name: None, timeout: None, body });
    }

    #[test]
    fn all_others() {
        assert_eq!(read("CANCEL JOB 'a'"), JobStatement::Cancel("a".to_owned()));
        assert_eq!(
            read("DROP JOB IF EXISTS 'a', 'b';"),
            JobStatement::Drop { ids: vec!["a".to_owned(), "b".to_owned()], if_exists: true }
        );
        assert_eq!(read("SHOW JOBS"), JobStatement::ShowAll);
        assert_eq!(read("show job 'a'"), JobStatement::Show("a".to_owned()));
        assert_eq!(read("SHOW RESULT OF JOB 'a'"), JobStatement::Result("a".to_owned()));
    }

    #[test]
    fn mistakes_are_told() {
        for sql in [
            "SUBMIT JOB",
            "SUBMIT JOB AS",
            "SUBMIT JOB NAME x AS SELECT 1",
            "SUBMIT JOB NAME 'a' NAME 'b' AS SELECT 1",
            "SUBMIT JOB SELECT 1",
            "CANCEL JOB",
            "CANCEL JOB a",
            "DROP JOB",
            "SHOW RESULT OF JOB",
        ] {
            assert!(parse(sql, &ParseOptions::default()).is_err(), "{sql}");
        }
    }

    #[test]
    fn words_stay_names() {
        for sql in ["SELECT job, submit, cancel FROM jobs", "DROP TABLE job", "SHOW job", "CREATE TABLE job (job INT)"]
        {
            let parsed = parse(sql, &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert!(!matches!(parsed, Some(Statement::Job(_))), "{sql}");
        }
    }
}
