//! `COPY table [(columns)] | (query) TO 'place' | STDOUT ..`, as DataFusion's own statement.
//!
//! `COPY t (a, b) TO ..` is `COPY (SELECT a, b FROM t) TO ..`, made of the tokens that were written, so that errors point at
//! them.

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{CopyToSource, CopyToStatement, DFParser, Statement as DFStatement};
use sqlparser::ast::{Query, Value};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::{Direction, ONE_FILE, Options, STANDARD_OUTPUT, place};
use crate::sql::parse::Text;

/// Reads the statement.
pub(in crate::sql) fn copy_to(text: &Text<'_>, parser: &mut DFParser<'_>) -> Result<DFStatement, DataFusionError> {
    let parser = &mut parser.parser;
    parser.expect_keyword(Keyword::COPY)?;
    let source = match parser.consume_token(&Token::LParen) {
        true => {
            let query = parser.parse_query()?;
            parser.expect_token(&Token::RParen)?;
            CopyToSource::Query(query)
        }
        false => {
            let table = parser.parse_object_name(true)?;
            match parser.peek_token_ref().token {
                Token::LParen => CopyToSource::Query(columns_of(text, parser)?),
                _ => CopyToSource::Relation(table),
            }
        }
    };
    let mut options = Options::new(Direction::To);
    let (mut target, mut partitioned_by) = (None, None);
    loop {
        if parser.parse_keyword(Keyword::TO) {
            let expected = "the file to copy to as a quoted string, or STDOUT";
            once(&mut target, place(parser, ("stdout", STANDARD_OUTPUT), expected)?, "TO")?;
        } else if parser.parse_keyword(Keyword::PARTITIONED) {
            parser.expect_keyword(Keyword::BY)?;
            parser.expect_token(&Token::LParen)?;
            let columns = parser.parse_comma_separated(Parser::parse_identifier)?;
            parser.expect_token(&Token::RParen)?;
            // As DataFusion reads them.
            once(&mut partitioned_by, columns.iter().map(ToString::to_string).collect(), "PARTITIONED BY")?;
        } else if !options.clause(parser)? {
            break;
        }
    }
    let Some(target) = target else {
        return Ok(parser.expected_ref("TO and the file to copy to", parser.peek_token_ref())?);
    };
    if options.is_postgres {
        options.pairs.push((ONE_FILE.to_owned(), "true".to_owned()));
    }
    let pairs = options.pairs.into_iter().map(|(name, value)| (name, Value::SingleQuotedString(value)));
    Ok(DFStatement::CopyTo(CopyToStatement {
        source,
        target,
        partitioned_by: partitioned_by.unwrap_or_default(),
        stored_as: options.format,
        options: pairs.collect(),
    }))
}

fn once<T>(slot: &mut Option<T>, value: T, clause: &str) -> Result<(), ParserError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(ParserError::ParserError(format!("{clause} is specified more than once"))),
    }
}

/// The query for some columns of a table; the parser stands before their list.
fn columns_of(text: &Text<'_>, parser: &mut Parser<'_>) -> Result<Box<Query>, ParserError> {
    let words: Vec<&TokenWithSpan> = text.words().collect();
    let open = words.iter().position(|token| token.token == Token::LParen).unwrap_or(words.len());
    let close = words.iter().position(|token| token.token == Token::RParen).unwrap_or(words.len());
    // Only names: what looks like an expression is told where it stands.
    parser.expect_token(&Token::LParen)?;
    parser.parse_comma_separated(Parser::parse_identifier)?;
    parser.expect_token(&Token::RParen)?;
    let keyword = |word| TokenWithSpan::new(Token::make_keyword(word), Span::empty());
    let (table, columns) = (&words[1..open], &words[open + 1..close]);
    let mut tokens = vec![keyword("SELECT")];
    tokens.extend(columns.iter().map(|token| (*token).clone()));
    tokens.push(keyword("FROM"));
    tokens.extend(table.iter().map(|token| (*token).clone()));
    Parser::new(text.dialect()).with_tokens_with_locations(tokens).parse_query()
}
