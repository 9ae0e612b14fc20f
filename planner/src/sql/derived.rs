//! Statements about derived data: where it comes from, whether it is right, and getting rid of it.
//!
//! ```text
//!   EXPLAIN PROVENANCE query | ENTRY 'fingerprint' | name | ALL
//!   PURGE DERIVED FROM table | 'table, file, folder, glob or URL'
//!   VERIFY query | ENTRY 'fingerprint' | name | ALL [SAMPLE n PERCENT]
//! ```
//!
//! Their words are names like any other everywhere else.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement as DFStatement};
use sqlparser::ast::ObjectName;
use sqlparser::dialect::Dialect;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::parse::Text;
use super::statement::{Percent, PurgeSource, Statement, Subject};
use crate::Result;

/// One of them, if the text begins like it.
pub(super) fn derived(text: &Text<'_>) -> Result<Option<Statement>> {
    if text.is_word(0, "explain") && text.is_word(1, "provenance") {
        return text.read(|parser| subject(parser, text.dialect(), 2)).map(Statement::ExplainProvenance).map(Some);
    }
    if text.is_word(0, "purge") && text.is_word(1, "derived") {
        return text.read(purge).map(Statement::Purge).map(Some);
    }
    if text.is_word(0, "verify") {
        return text.read(|parser| subject(parser, text.dialect(), 1)).map(Statement::Verify).map(Some);
    }
    Ok(None)
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
    if is_word(&parser.parser, 0, "entry") && matches!(peek(&parser.parser, 1), Token::SingleQuotedString(_)) {
        parser.parser.next_token();
        let fingerprint = parser.parser.parse_literal_string()?;
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

fn is_word(parser: &Parser<'_>, at: usize, expected: &str) -> bool {
    matches!(peek(parser, at), Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected))
}

fn peek(parser: &Parser<'_>, at: usize) -> Token {
    parser.peek_nth_token(at).token
}

fn expect_word(parser: &mut Parser<'_>, word: &'static str) -> Result<(), ParserError> {
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
