//! Statements about reports: queries that run by the clock.
//!
//! ```text
//!   [EXPLAIN] CREATE [OR REPLACE] REPORT [IF NOT EXISTS] name clause .. AS query | AS $$ statements $$
//!   ALTER REPORT [IF EXISTS] name SET clause .. [AS ..] | RENAME TO name | OWNER TO user
//!   DROP REPORT [IF EXISTS] name, ..
//!   PAUSE | RESUME REPORT name
//!   RUN REPORT name [FOR 'time']
//!   SHOW REPORTS, SHOW CREATE REPORT name
//!
//!   clause   SCHEDULE 'cron' [TIME ZONE 'zone']        OUTPUT 'name with {date}' | TABLE name
//!            RETRIES n [BACKOFF 'duration']            TIMEOUT 'duration'
//!            CATCH UP NONE | LAST | ALL                CONCURRENCY QUEUE | SKIP | ALLOW
//!            DEPENDS ON name, .. | NOTHING             EXPECT condition, .. | NOTHING
//!            TITLE 'text'   CHART BAR | LINE | NONE | AUTO   HOOK 'command'
//! ```
//!
//! Their words are names like any other everywhere else. What values mean (is that a cron pattern?) is the engine's to say.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::ast::{Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::derived::{expect_word, is_word};
use super::parse::Text;
use super::position::offset_of_location;
use super::statement::Statement;
use crate::Result;

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportStatement {
    /// `CREATE REPORT`.
    Create {
        /// Its name.
        name: Ident,
        /// Replaces one of the same name.
        or_replace: bool,
        /// Keeps one of the same name.
        if_not_exists: bool,
        /// Only says what would change.
        dry_run: bool,
        /// What it does.
        clauses: Box<ReportClauses>,
    },
    /// `ALTER REPORT .. SET`.
    Alter {
        /// Its name.
        name: Ident,
        /// No error if there is none.
        if_exists: bool,
        /// What is another from now on.
        clauses: Box<ReportClauses>,
    },
    /// `ALTER REPORT .. RENAME TO`.
    Rename {
        /// Its name.
        name: Ident,
        /// No error if there is none.
        if_exists: bool,
        /// What it is called from now on.
        new_name: Ident,
    },
    /// `ALTER REPORT .. OWNER TO`.
    SetOwner {
        /// Its name.
        name: Ident,
        /// No error if there is none.
        if_exists: bool,
        /// Whose it is from now on.
        owner: Ident,
    },
    /// `DROP REPORT`.
    Drop {
        /// Which ones.
        names: Vec<Ident>,
        /// No error if one is not there.
        if_exists: bool,
    },
    /// `PAUSE REPORT`, or `RESUME REPORT` unless `paused`.
    Pause {
        /// Its name.
        name: Ident,
        /// Whether its times pass without runs from now on.
        paused: bool,
    },
    /// `RUN REPORT`.
    Run {
        /// Its name.
        name: Ident,
        /// For which time, as it was written; for now without one.
        time: Option<String>,
    },
    /// `SHOW REPORTS`.
    Show,
    /// `SHOW CREATE REPORT`.
    ShowCreate(Ident),
}

/// What is said of a report; `None` where nothing is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportClauses {
    /// A cron pattern.
    pub schedule: Option<String>,
    /// Whose clock it goes by.
    pub time_zone: Option<String>,
    /// Where rows go.
    pub output: Option<ReportTarget>,
    /// How often a failed run is tried again.
    pub retries: Option<u32>,
    /// Time before that, as it was written.
    pub backoff: Option<String>,
    /// How long a run may take, as it was written.
    pub timeout: Option<String>,
    /// `none`, `last`, `all`.
    pub catch_up: Option<String>,
    /// `queue`, `skip`, `allow`.
    pub concurrency: Option<String>,
    /// Other reports.
    pub depends_on: Option<Vec<Ident>>,
    /// Conditions on the output, as they were written.
    pub expect: Option<Vec<String>>,
    /// What a page is called.
    pub title: Option<String>,
    /// `bar`, `line`, `none`, `auto`.
    pub chart: Option<String>,
    /// A command to run afterwards.
    pub hook: Option<String>,
    /// Statements, as they were written.
    pub body: Option<String>,
}

/// Where the rows of a report go.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReportTarget {
    /// A file.
    File(String),
    /// A table.
    Table(ObjectName),
}

/// One of them, if the text begins like it.
pub(super) fn report(text: &Text<'_>) -> Result<Option<Statement>> {
    let second = |word| text.is_word(1, word);
    let is_create = |at: usize| {
        let word = |n: usize, word: &str| text.is_word(at + n, word);
        word(0, "create") && (word(1, "report") || (word(1, "or") && word(2, "replace") && word(3, "report")))
    };
    let is_create = is_create(0) || (text.is_word(0, "explain") && is_create(1));
    // `report` may be what something else is called: it takes a name behind it.
    let is_about =
        ["alter", "drop", "pause", "resume", "run"].iter().any(|verb| text.is_word(0, verb)) && second("report");
    let is_shown = text.is_word(0, "show")
        && ((second("reports") && text.words().nth(2).is_none_or(|token| is_end(&token.token)))
            || (second("create") && text.is_word(2, "report")));
    if !is_create && !is_about && !is_shown {
        return Ok(None);
    }
    text.read(|parser| statement(text, parser)).map(|statement| Some(Statement::Report(statement)))
}

pub(super) fn is_end(token: &Token) -> bool {
    matches!(token, Token::SemiColon | Token::EOF)
}

fn statement(text: &Text<'_>, parser: &mut DFParser<'_>) -> Result<ReportStatement, DataFusionError> {
    let parser = &mut parser.parser;
    let mut verb = parser.next_token().to_string().to_ascii_lowercase();
    let dry_run = verb == "explain";
    if dry_run {
        verb = parser.next_token().to_string().to_ascii_lowercase();
    }
    if verb == "create" {
        let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
        expect_word(parser, "report")?;
        let if_not_exists = parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS]);
        let name = parser.parse_identifier()?;
        let clauses = Box::new(clauses(text, parser)?);
        return Ok(ReportStatement::Create { name, or_replace, if_not_exists, dry_run, clauses });
    }
    if verb == "show" {
        if parser.parse_keyword(Keyword::CREATE) {
            expect_word(parser, "report")?;
            return Ok(ReportStatement::ShowCreate(parser.parse_identifier()?));
        }
        expect_word(parser, "reports")?;
        return Ok(ReportStatement::Show);
    }
    expect_word(parser, "report")?;
    Ok(match verb.as_str() {
        "drop" => {
            let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
            let names = parser.parse_comma_separated(Parser::parse_identifier)?;
            ReportStatement::Drop { names, if_exists }
        }
        "run" => {
            let name = parser.parse_identifier()?;
            let time = if parser.parse_keyword(Keyword::FOR) { Some(quoted(parser)?) } else { None };
            ReportStatement::Run { name, time }
        }
        "alter" => alter(text, parser)?,
        verb => ReportStatement::Pause { name: parser.parse_identifier()?, paused: verb == "pause" },
    })
}

fn alter(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<ReportStatement, DataFusionError> {
    let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
    let name = parser.parse_identifier()?;
    if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        return Ok(ReportStatement::Rename { name, if_exists, new_name: parser.parse_identifier()? });
    }
    if is_word(parser, 0, "owner") {
        parser.next_token();
        parser.expect_keyword(Keyword::TO)?;
        return Ok(ReportStatement::SetOwner { name, if_exists, owner: parser.parse_identifier()? });
    }
    if !parser.parse_keyword(Keyword::SET) {
        let found = parser.peek_token();
        return Ok(parser.expected("SET, RENAME TO or OWNER TO", found)?);
    }
    let clauses = clauses(text, parser)?;
    if clauses == ReportClauses::default() {
        let found = parser.peek_token();
        return Ok(parser.expected("SCHEDULE, OUTPUT, AS or another clause of a report", found)?);
    }
    Ok(ReportStatement::Alter { name, if_exists, clauses: Box::new(clauses) })
}

/// Clauses in any order, each once, then `AS`.
fn clauses(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<ReportClauses, DataFusionError> {
    let mut clauses = ReportClauses::default();
    loop {
        let token = parser.peek_token();
        let Token::Word(word) = &token.token else { break };
        if word.quote_style.is_some() {
            break;
        }
        let word = word.value.to_ascii_lowercase();
        let is_twice = match word.as_str() {
            "schedule" => clauses.schedule.is_some(),
            "time" => clauses.time_zone.is_some(),
            "output" => clauses.output.is_some(),
            "retries" => clauses.retries.is_some(),
            "backoff" => clauses.backoff.is_some(),
            "timeout" => clauses.timeout.is_some(),
            "catch" => clauses.catch_up.is_some(),
            "concurrency" => clauses.concurrency.is_some(),
            "depends" => clauses.depends_on.is_some(),
            "expect" => clauses.expect.is_some(),
            "title" => clauses.title.is_some(),
            "chart" => clauses.chart.is_some(),
            "hook" => clauses.hook.is_some(),
            "as" => {
                parser.next_token();
                clauses.body = Some(body(text, parser)?);
                break;
            }
            _ => break,
        };
        if is_twice {
            return Ok(parser.expected(&format!("{} once", word.to_ascii_uppercase()), token)?);
        }
        parser.next_token();
        clause(text, parser, &word, &mut clauses)?;
    }
    Ok(clauses)
}

fn clause(
    text: &Text<'_>,
    parser: &mut Parser<'_>,
    word: &str,
    clauses: &mut ReportClauses,
) -> Result<(), ParserError> {
    match word {
        "schedule" => clauses.schedule = Some(quoted(parser)?),
        "time" => {
            expect_word(parser, "zone")?;
            clauses.time_zone = Some(quoted(parser)?);
        }
        "output" => {
            clauses.output = Some(match parser.parse_keyword(Keyword::TABLE) {
                true => ReportTarget::Table(parser.parse_object_name(false)?),
                false => ReportTarget::File(quoted(parser)?),
            });
        }
        "retries" => {
            let token = parser.next_token();
            let number = match &token.token {
                Token::Number(digits, _) => digits.parse().ok(),
                _ => None,
            };
            let Some(number) = number else { return parser.expected("a number of retries", token) };
            clauses.retries = Some(number);
        }
        "backoff" => clauses.backoff = Some(quoted(parser)?),
        "timeout" => clauses.timeout = Some(quoted(parser)?),
        "catch" => {
            expect_word(parser, "up")?;
            clauses.catch_up = Some(one_of(parser, &["none", "last", "all"])?);
        }
        "concurrency" => clauses.concurrency = Some(one_of(parser, &["queue", "skip", "allow"])?),
        "depends" => {
            parser.expect_keyword(Keyword::ON)?;
            clauses.depends_on = Some(match is_nothing(parser) {
                true => vec![],
                false => parser.parse_comma_separated(Parser::parse_identifier)?,
            });
        }
        "expect" => {
            clauses.expect = Some(match is_nothing(parser) {
                true => vec![],
                false => parser.parse_comma_separated(|parser| condition(text, parser))?,
            });
        }
        "title" => clauses.title = Some(quoted(parser)?),
        "chart" => clauses.chart = Some(one_of(parser, &["bar", "line", "none", "auto"])?),
        _ => clauses.hook = Some(quoted(parser)?),
    }
    Ok(())
}

/// A text between quotes; sqlparser would take some words as well.
pub(super) fn quoted(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    match parser.peek_token().token {
        Token::SingleQuotedString(_) | Token::EscapedStringLiteral(_) => parser.parse_literal_string(),
        _ => {
            let found = parser.peek_token();
            parser.expected("a text between quotes", found)
        }
    }
}

/// `NOTHING`, which takes what was there away.
fn is_nothing(parser: &mut Parser<'_>) -> bool {
    let is_nothing = is_word(parser, 0, "nothing");
    if is_nothing {
        parser.next_token();
    }
    is_nothing
}

fn one_of(parser: &mut Parser<'_>, words: &[&str]) -> Result<String, ParserError> {
    match words.iter().find(|word| is_word(parser, 0, word)) {
        Some(word) => {
            parser.next_token();
            Ok((*word).to_owned())
        }
        None => {
            let expected: Vec<String> = words.iter().map(|word| word.to_ascii_uppercase()).collect();
            let found = parser.peek_token();
            parser.expected(&expected.join(", "), found)
        }
    }
}

/// A condition, as it was written.
fn condition(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let start = parser.peek_token().span.start;
    let parsed = parser.parse_expr()?;
    let end = parser.get_current_token().span.end;
    let range = offset_of_location(text.sql, start).zip(offset_of_location(text.sql, end));
    let written = range.and_then(|(start, end)| text.sql.get(start..end));
    Ok(written.map_or_else(|| parsed.to_string(), |written| written.trim().to_owned()))
}

/// `$$ statements $$`, or one query that is all the rest.
pub(super) fn body(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<String, DataFusionError> {
    if let Token::DollarQuotedString(quoted) = parser.peek_token().token {
        parser.next_token();
        return Ok(quoted.value.trim().to_owned());
    }
    let token = parser.peek_token();
    if is_end(&token.token) {
        return Ok(parser.expected("a query, or statements between $$", token)?);
    }
    let start = offset_of_location(text.sql, token.span.start).unwrap_or(text.sql.len());
    // Read by whoever runs it: parameters such as :run_date are none of the parser's.
    while !is_end(&parser.peek_token().token) {
        parser.next_token();
    }
    let rest = &text.sql[start..];
    let range = super::split_statements(rest).into_iter().next();
    Ok(range.map_or_else(|| rest.trim().to_owned(), |range| rest[range].to_owned()))
}

#[cfg(test)]
mod tests;
