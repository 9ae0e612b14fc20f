//! `COPY table [(columns)] FROM 'source' ..`, in the spellings of DataFusion, PostgreSQL and DuckDB.
//!
//! ```text
//!   COPY t FROM 'f.csv'
//!   COPY t (a, b) FROM 'f' STORED AS CSV OPTIONS ('format.has_header' 'true')
//!   COPY t FROM 'f' (FORMAT csv, HEADER, DELIMITER ';')      WITH before the parenthesis as you like
//!   COPY t FROM 'f' WITH CSV HEADER DELIMITER ';'
//! ```

use datafusion::common::DataFusionError;
use datafusion::sql::parser::DFParser;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::parse::{Text, keyword_of};
use super::statement::CopyFrom;

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

/// Reads the statement.
pub(super) fn copy_from(parser: &mut DFParser<'_>) -> Result<CopyFrom, DataFusionError> {
    let parser = &mut parser.parser;
    parser.expect_keyword(Keyword::COPY)?;
    let table = parser.parse_object_name(false)?;
    let columns = parser.parse_parenthesized_column_list(IsOptional::Optional, false)?;
    parser.expect_keyword(Keyword::FROM)?;
    let source = match &parser.peek_token_ref().token {
        Token::SingleQuotedString(_)
        | Token::EscapedStringLiteral(_)
        | Token::DollarQuotedString(_)
        | Token::DoubleQuotedString(_) => parser.parse_literal_string()?,
        _ => return Ok(parser.expected_ref("the file to copy from as a quoted string", parser.peek_token_ref())?),
    };
    let mut options = Options::default();
    loop {
        if parser.parse_keyword(Keyword::STORED) {
            parser.expect_keyword(Keyword::AS)?;
            options.format(word(parser, "a file format")?)?;
        } else if parser.parse_keyword(Keyword::OPTIONS) {
            options.list(parser)?;
        } else if parser.parse_keyword(Keyword::WITH) {
            if parser.peek_token_ref().token == Token::LParen {
                options.list(parser)?;
            }
        } else if parser.peek_token_ref().token == Token::LParen {
            options.list(parser)?;
        } else if matches!(parser.peek_token_ref().token, Token::Word(_)) {
            options.bare(parser)?;
        } else {
            break;
        }
    }
    Ok(CopyFrom { table, columns, source, format: options.format, options: options.pairs })
}

#[derive(Default)]
struct Options {
    format: Option<String>,
    pairs: Vec<(String, String)>,
}

impl Options {
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

    /// Translates what PostgreSQL calls differently.
    fn push(&mut self, name: &str, value: String) -> Result<(), ParserError> {
        let name = name.to_ascii_lowercase();
        let (name, value) = match name.as_str() {
            "format" => return self.format(value),
            "header" => ("format.has_header".to_owned(), value),
            "delim" | "sep" => ("format.delimiter".to_owned(), value),
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
        if self.pairs.iter().any(|(known, _)| *known == name) {
            return Err(ParserError::ParserError(format!("option {name} is specified more than once")));
        }
        self.pairs.push((name, value));
        Ok(())
    }
}

fn escape_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_punctuation() {
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
