//! Statements about derived data: where it comes from, whether it is right, getting rid of it, and that it stays.
//!
//! ```text
//!   EXPLAIN PROVENANCE query | ENTRY 'fingerprint' | name | ALL
//!   PURGE DERIVED FROM table | 'table, file, folder, glob or URL'
//!   VERIFY query | ENTRY 'fingerprint' | name | ALL [SAMPLE n PERCENT]
//!   [UN]PIN query | ENTRY 'fingerprint' | MATERIALIZED VIEW name
//! ```
//!
//! Their words are names like any other everywhere else.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement as DFStatement};
use sqlparser::ast::ObjectName;
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::parse::Text;
use super::position::offset_of_token;
use super::statement::{Percent, PinTarget, PurgeSource, Statement, Subject};
use crate::Result;

/// One of them, if the text begins like it.
pub(super) fn derived(text: &Text<'_>) -> Result<Option<Statement>> {
    if text.is_word(0, "explain") && text.is_word(1, "provenance") {
        let explained = text.read(|parser| match subject(parser, text.dialect(), 2)? {
            // A sample of all is for those who compute it.
            Subject::All(Percent(share)) if share < 100.0 => {
                Ok(parser.parser.expected("the end of the statement after ALL", parser.parser.peek_token())?)
            }
            subject => Ok(subject),
        });
        return explained.map(Statement::ExplainProvenance).map(Some);
    }
    if text.is_word(0, "purge") && text.is_word(1, "derived") {
        return text.read(purge).map(Statement::Purge).map(Some);
    }
    if text.is_word(0, "verify") {
        return text.read(|parser| subject(parser, text.dialect(), 1)).map(Statement::Verify).map(Some);
    }
    if text.is_word(0, "pin") {
        return pin_target(text).map(Statement::Pin).map(Some);
    }
    if text.is_word(0, "unpin") {
        return pin_target(text).map(Statement::Unpin).map(Some);
    }
    Ok(None)
}

/// What follows `PIN` or `UNPIN`.
fn pin_target(text: &Text<'_>) -> Result<PinTarget> {
    let mut target = text.read(|parser| {
        parser.parser.next_token();
        if let Some(fingerprint) = entry(&mut parser.parser)? {
            return Ok(PinTarget::Entry(fingerprint));
        }
        if parser.parser.parse_keywords(&[Keyword::MATERIALIZED, Keyword::VIEW]) {
            return Ok(PinTarget::View(parser.parser.parse_object_name(false)?));
        }
        // A name alone could mean a view, which a pin follows, or the rows that it has today.
        if lone_name(&parser.parser).is_some() || parser.parser.peek_token_ref().token == Token::EOF {
            let found = parser.parser.peek_token();
            return Ok(parser.parser.expected("a query, ENTRY 'fingerprint' or MATERIALIZED VIEW", found)?);
        }
        Ok(PinTarget::Query { statement: Box::new(parser.parse_statement()?), text: String::new() })
    })?;
    if let PinTarget::Query { statement, text: written } = &mut target {
        *written = text_from(text, 1).unwrap_or_else(|| statement.to_string());
    }
    Ok(target)
}

/// The text from its n-th token on, without a semicolon.
fn text_from(text: &Text<'_>, n: usize) -> Option<String> {
    let start = offset_of_token(text.sql, text.words().nth(n)?)?;
    let range = super::split_statements(&text.sql[start..]).into_iter().next()?;
    Some(text.sql[start..][range].to_owned())
}

/// `ENTRY 'fingerprint'`
fn entry(parser: &mut Parser<'_>) -> Result<Option<String>, ParserError> {
    if !is_word(parser, 0, "entry") || !matches!(peek(parser, 1), Token::SingleQuotedString(_)) {
        return Ok(None);
    }
    parser.next_token();
    parser.parse_literal_string().map(Some)
}

fn purge(parser: &mut DFParser<'_>) -> Result<PurgeSource, DataFusionError> {
    let parser = &mut parser.parser;
    parser.next_token();
    parser.next_token();
    expect_word(parser, "from")?;
    match parser.peek_token_ref().token.clone() {
        Token::SingleQuotedString(text) => {
            parser.next_token();
            Ok(PurgeSource::Text(text))
        }
        _ => Ok(PurgeSource::Table(parser.parse_object_name(false)?)),
    }
}

/// What comes after so many words.
fn subject(parser: &mut DFParser<'_>, dialect: &dyn Dialect, n_words: usize) -> Result<Subject, DataFusionError> {
    for _ in 0..n_words {
        parser.parser.next_token();
    }
    if let Some(fingerprint) = entry(&mut parser.parser)? {
        return Ok(Subject::Entry(fingerprint));
    }
    if is_word(&parser.parser, 0, "all") {
        parser.parser.next_token();
        return Ok(Subject::All(percent(&mut parser.parser)?));
    }
    if let Some(name) = lone_name(&parser.parser) {
        while !matches!(parser.parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
            parser.parser.next_token();
        }
        return Ok(Subject::Statement(Box::new(all_rows(&name, dialect)?)));
    }
    Ok(Subject::Statement(Box::new(parser.parse_statement()?)))
}

/// `[SAMPLE n PERCENT]`
fn percent(parser: &mut Parser<'_>) -> Result<Percent, ParserError> {
    if !is_word(parser, 0, "sample") {
        return Ok(Percent(100.0));
    }
    parser.next_token();
    let token = parser.next_token();
    let share = match &token.token {
        Token::Number(digits, _) => digits.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 100.0),
        _ => None,
    };
    let Some(share) = share else { return parser.expected("a number above 0 and up to 100", token) };
    expect_word(parser, "percent")?;
    Ok(Percent(share))
}

/// A name and nothing else: `t`, `"T"`, `s.t`.
fn lone_name(parser: &Parser<'_>) -> Option<ObjectName> {
    let mut parts = vec![];
    for at in 0.. {
        match (at % 2, peek(parser, at)) {
            (0, Token::Word(word)) => parts.push(word.into_ident(sqlparser::tokenizer::Span::empty())),
            (1, Token::Period) => {}
            (1, Token::EOF | Token::SemiColon) => return Some(ObjectName::from(parts)),
            _ => return None,
        }
    }
    None
}

/// `SELECT * FROM name`
fn all_rows(name: &ObjectName, dialect: &dyn Dialect) -> Result<DFStatement, DataFusionError> {
    let text = format!("SELECT * FROM {name}");
    DFParserBuilder::new(text.as_str()).with_dialect(dialect).build()?.parse_statement()
}

pub(super) fn is_word(parser: &Parser<'_>, at: usize, expected: &str) -> bool {
    matches!(peek(parser, at), Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn peek(parser: &Parser<'_>, at: usize) -> Token {
    parser.peek_nth_token(at).token
}

pub(super) fn expect_word(parser: &mut Parser<'_>, word: &'static str) -> Result<(), ParserError> {
    match is_word(parser, 0, word) {
        true => {
            parser.next_token();
            Ok(())
        }
        false => {
            let found = parser.peek_token();
            parser.expected(&word.to_uppercase(), found)
        }
    }
}

#[cfg(test)]
mod tests;
