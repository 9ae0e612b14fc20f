//! `COPY`, in the spellings of DataFusion, PostgreSQL and DuckDB.
//!
//! ```text
//!   COPY t FROM 'f.csv'                                      COPY (SELECT ..) TO 'f.csv'
//!   COPY t (a, b) FROM 'f' STORED AS CSV OPTIONS ('format.has_header' 'true')
//!   COPY t FROM 'f' (FORMAT csv, HEADER, DELIMITER ';')      WITH before the parenthesis as you like
//!   COPY t FROM 'f' WITH CSV HEADER DELIMITER ';'
//!   COPY t FROM STDIN                                        COPY t TO STDOUT
//! ```

mod from;
mod to;

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::parse::{Text, keyword_of};

pub(super) use from::copy_from;
pub(super) use to::copy_to;

/// The place that `STDIN` stands for.
pub const STANDARD_INPUT: &str = "stdin://";
/// The place that `STDOUT` stands for.
pub const STANDARD_OUTPUT: &str = "stdout://";
/// An option that was not written: the place is one file, whatever its name ends in. PostgreSQL knows nothing else.
pub const ONE_FILE: &str = "copy.one_file";

/// Whether the first of `FROM` and `TO` outside of parentheses is `FROM`.
pub(super) fn is_copy_from(text: &Text<'_>) -> bool {
    let mut depth = 0_usize;
    for token in text.words().skip(1) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            token if depth == 0 => match keyword_of(token) {
                Keyword::FROM => return true,
                Keyword::TO | Keyword::INTO => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// Which way rows go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    From,
    To,
}

struct Options {
    direction: Direction,
    format: Option<String>,
    pairs: Vec<(String, String)>,
    /// Whether one was written as PostgreSQL has them.
    is_postgres: bool,
}

impl Options {
    fn new(direction: Direction) -> Self {
        Self { direction, format: None, pairs: vec![], is_postgres: false }
    }

    /// One clause of options, if there is one.
    fn clause(&mut self, parser: &mut Parser<'_>) -> Result<bool, ParserError> {
        if parser.parse_keyword(Keyword::STORED) {
            parser.expect_keyword(Keyword::AS)?;
            self.format(word(parser, "a file format")?)?;
            return Ok(true);
        }
        if parser.parse_keyword(Keyword::OPTIONS) {
            self.list(parser)?;
            return Ok(true);
        }
        let with = parser.parse_keyword(Keyword::WITH);
        let is_list = parser.peek_token_ref().token == Token::LParen;
        match parser.peek_token_ref().token {
            _ if is_list => self.list(parser)?,
            Token::Word(_) => self.bare(parser)?,
            _ if with => {}
            _ => return Ok(false),
        }
        self.is_postgres = true;
        Ok(true)
    }

    fn format(&mut self, format: String) -> Result<(), ParserError> {
        if self.format.replace(format.to_ascii_uppercase()).is_some() {
            return Err(ParserError::ParserError("the file format is specified more than once".to_owned()));
        }
        Ok(())
    }

    /// `(name [=] [value], ..)`. A name without a value is switched on.
    fn list(&mut self, parser: &mut Parser<'_>) -> Result<(), ParserError> {
        parser.expect_token(&Token::LParen)?;
        while !parser.consume_token(&Token::RParen) {
            let name = option_name(parser)?;
            let _optional = parser.consume_token(&Token::Eq);
            if self.direction == Direction::To && name.eq_ignore_ascii_case("force_quote") {
                self.force_quote(parser)?;
                let _more = parser.consume_token(&Token::Comma);
                continue;
            }
            let value = match parser.peek_token_ref().token {
                Token::Comma | Token::RParen => "true".to_owned(),
                _ => option_value(parser)?,
            };
            self.push(&name, value)?;
            if !parser.consume_token(&Token::Comma) {
                parser.expect_token(&Token::RParen)?;
                break;
            }
        }
        Ok(())
    }

    /// PostgreSQL before version 9, and psql's `\copy` to this day: `CSV HEADER DELIMITER AS ';' NULL ''`.
    fn bare(&mut self, parser: &mut Parser<'_>) -> Result<(), ParserError> {
        let name = word(parser, "an option of COPY")?.to_ascii_lowercase();
        match name.as_str() {
            "csv" | "parquet" | "json" | "ndjson" | "arrow" | "avro" => self.format(name),
            "header" => self.push(&name, "true".to_owned()),
            "force" if self.direction == Direction::To => {
                word(parser, "QUOTE").map(drop)?;
                self.force_quote(parser)
            }
            "format" | "delimiter" | "null" | "quote" | "escape" | "encoding" | "compression" => {
                let _optional = parser.parse_keyword(Keyword::AS);
                let value = option_value(parser)?;
                self.push(&name, value)
            }
            _ => {
                parser.prev_token();
                parser.expected_ref("an option of COPY", parser.peek_token_ref())
            }
        }
    }

    fn force_quote(&mut self, parser: &mut Parser<'_>) -> Result<(), ParserError> {
        match parser.consume_token(&Token::Mul) {
            true => self.push("quote_style", "Always".to_owned()),
            false => parser.expected_ref("* after FORCE_QUOTE", parser.peek_token_ref()),
        }
    }

    /// Translates what PostgreSQL calls differently.
    fn push(&mut self, name: &str, value: String) -> Result<(), ParserError> {
        let name = name.to_ascii_lowercase();
        let (name, value) = match name.as_str() {
            "format" => return self.format(value),
            "header" => ("format.has_header".to_owned(), switch(value)),
            "delim" | "sep" => ("format.delimiter".to_owned(), value),
            "null" if self.direction == Direction::To => ("format.null_value".to_owned(), value),
            // DataFusion takes a pattern, PostgreSQL the text itself.
            "null" => ("format.null_regex".to_owned(), format!("^{}$", escape_pattern(&value))),
            // Text is UTF-8 and nothing else.
            "encoding" if matches!(value.to_ascii_lowercase().as_str(), "utf8" | "utf-8" | "unicode") => return Ok(()),
            "encoding" => {
                return Err(ParserError::ParserError(format!("encoding {value} is not supported, only UTF8")));
            }
            _ if name.contains('.') => (name, value),
            _ => (format!("format.{name}"), value),
        };
        let before = self.pairs.iter().find(|(known, _)| *known == name);
        // DataFusion's users may say the same twice.
        if self.direction == Direction::To && before.is_some_and(|(_, before)| *before == value) {
            return Ok(());
        }
        if before.is_some() {
            return Err(ParserError::ParserError(format!("option {name} is specified more than once")));
        }
        self.pairs.push((name, value));
        Ok(())
    }
}

/// PostgreSQL has more words for yes and no.
fn switch(value: String) -> String {
    match value.to_ascii_lowercase().as_str() {
        "on" | "1" | "yes" => "true".to_owned(),
        "off" | "0" | "no" => "false".to_owned(),
        _ => value,
    }
}

/// A file as a quoted text, or one of the words `STDIN` and `STDOUT` for what is not a file.
fn place(parser: &mut Parser<'_>, standard: (&str, &str), expected: &str) -> Result<String, ParserError> {
    let (name, stands_for) = standard;
    match &parser.peek_token_ref().token {
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::DoubleQuotedString(_) => parser.parse_literal_string(),
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name) => {
            parser.next_token();
            Ok(stands_for.to_owned())
        }
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("program") => {
            let message = "COPY with a PROGRAM is not offered: use STDIN or STDOUT with a pipe of the shell";
            Err(ParserError::ParserError(message.to_owned()))
        }
        _ => parser.expected_ref(expected, parser.peek_token_ref()),
    }
}

fn escape_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        // Not all that is no letter: `\<` is the beginning of a word.
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern
}

fn word(parser: &mut Parser<'_>, expected: &str) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::Word(word) => Ok(word.value),
        _ => parser.expected(expected, token),
    }
}

fn option_name(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let token = parser.next_token();
    match token.token {
        Token::Word(first) => {
            let mut name = first.value;
            while parser.consume_token(&Token::Period) {
                name = format!("{name}.{}", word(parser, "the rest of the option's name")?);
            }
            Ok(name)
        }
        Token::SingleQuotedString(name) | Token::DoubleQuotedString(name) => Ok(name),
        _ => parser.expected("the name of an option", token),
    }
}

fn option_value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let minus = if parser.consume_token(&Token::Minus) { "-" } else { "" };
    let token = parser.next_token();
    match token.token {
        Token::Number(number, _) => Ok(format!("{minus}{number}")),
        _ if !minus.is_empty() => parser.expected("a number", token),
        Token::Word(word) => Ok(word.value),
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) | Token::EscapedStringLiteral(text) => {
            Ok(text)
        }
        Token::DollarQuotedString(text) => Ok(text.value),
        _ => parser.expected("the value of an option", token),
    }
}
