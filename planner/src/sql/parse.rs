//! [`parse`]: one statement from text.
//!
//! The text becomes tokens once. Our own statements are told by their first words and read with sqlparser's helpers;
//! everything else is DataFusion's, so that all of its syntax keeps working.

use datafusion::common::DataFusionError;
use datafusion::config::{ConfigOptions, Dialect};
use datafusion::sql::parser::{DFParser, DFParserBuilder, ResetStatement, Statement as DFStatement};
use sqlparser::ast;
use sqlparser::dialect::{Dialect as ParserDialect, GenericDialect, dialect_from_str};
use sqlparser::keywords::Keyword;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use super::position::{offset_of_location, offset_of_token};
use super::statement::Statement;
use super::{
    access, alter, bracketed_values, copy, depth, derived, expansion, job, keyword, named, placeholder, report,
    rewrite, settings, view,
};
use crate::{PlannerError, Result};

/// How to read a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseOptions {
    /// Whose SQL it is: DataFusion's setting `datafusion.sql_parser.dialect`.
    pub dialect: Dialect,
    /// How deep parentheses, subqueries and prefix operators may nest. Each level costs the parser some kilobytes of
    /// stack.
    pub recursion_limit: usize,
    /// How long a chain of operators or unions may be, and a fifth of that for joins. Each link costs every later
    /// step some stack.
    pub chain_limit: usize,
}

impl Default for ParseOptions {
    fn default() -> Self {
        Self { dialect: Dialect::default(), recursion_limit: 50, chain_limit: 1000 }
    }
}

impl ParseOptions {
    /// Whose SQL it is, as the parser has it.
    pub(super) fn dialect(&self) -> Box<dyn ParserDialect> {
        dialect_from_str(self.dialect).unwrap_or_else(|| Box::new(GenericDialect {}))
    }
}

impl From<&ConfigOptions> for ParseOptions {
    fn from(config: &ConfigOptions) -> Self {
        let parser = &config.sql_parser;
        // DataFusion plans subqueries by recursion: on 2 MB of stack, 40 in each other pass and 49 do not. Each takes
        // two levels.
        const RECURSION_LIMIT_MAX: usize = 80;
        Self {
            dialect: parser.dialect,
            recursion_limit: parser.recursion_limit.get().min(RECURSION_LIMIT_MAX),
            ..Self::default()
        }
    }
}

/// Reads exactly one statement, with or without its semicolon. `None` if there is nothing but blanks and comments.
pub fn parse(sql: &str, options: &ParseOptions) -> Result<Option<Statement>> {
    let dialect = options.dialect();
    let mut tokens = tokenize(sql, dialect.as_ref())?;
    placeholder::number(sql, &mut tokens)?;
    bracketed_values::unwrap(&mut tokens);
    if tokens.iter().all(|token| matches!(token.token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)) {
        return Ok(None);
    }
    depth::check(sql, &tokens, options.chain_limit)?;
    no_nested_explain(sql, &tokens)?;
    let text = Text::new(sql, &tokens, dialect.as_ref(), options);
    let mut statement = match text.own()? {
        Some(statement) => statement,
        None => {
            let statement = text.read(|parser| parser.parse_statement())?;
            expansion::check(&statement)?;
            classify(&text, statement)?
        }
    };
    rewrite::rewrite(&mut statement);
    Ok(Some(statement))
}

/// A statement's text and what it takes to read it.
pub(super) struct Text<'a> {
    pub(super) sql: &'a str,
    pub(super) tokens: &'a [TokenWithSpan],
    dialect: &'a dyn ParserDialect,
    recursion_limit: usize,
}

impl<'a> Text<'a> {
    pub(super) fn new(
        sql: &'a str,
        tokens: &'a [TokenWithSpan],
        dialect: &'a dyn ParserDialect,
        options: &ParseOptions,
    ) -> Self {
        Self { sql, tokens, dialect, recursion_limit: options.recursion_limit }
    }
}

impl Text<'_> {
    /// Statements that DataFusion's parser does not know.
    fn own(&self) -> Result<Option<Statement>> {
        if access::is_access(self) {
            return access::access(self).map(Statement::Access).map(Some);
        }
        if let Some(statement) = report::report(self)? {
            return Ok(Some(statement));
        }
        if let Some(statement) = job::job(self)? {
            return Ok(Some(statement));
        }
        match self.keyword(0) {
            Keyword::COPY if copy::is_copy_from(self) => self.read(copy::copy_from).map(Statement::CopyFrom).map(Some),
            Keyword::COPY => {
                let copy = self.read(|parser| copy::copy_to(self, parser))?;
                Ok(Some(Statement::DataFusion(Box::new(copy))))
            }
            Keyword::ALTER => alter::alter(self),
            Keyword::CREATE => named::create(self),
            Keyword::SHOW => named::show_create(self),
            Keyword::REFRESH => named::refresh(self).map(Some),
            Keyword::DROP if named::is_drop_derived(self) => named::drop_derived(self).map(Some),
            Keyword::EXPLAIN if self.is_explain_reuse() => Ok(Some(Statement::ExplainReuse(self.explained()?))),
            Keyword::EXPLAIN if self.is_explain_stages() => Ok(Some(Statement::ExplainStages(self.explained()?))),
            _ => derived::derived(self),
        }
    }

    /// `EXPLAIN REUSE` and then a statement; `reuse` by itself is a name like any other.
    fn is_explain_reuse(&self) -> bool {
        self.is_word(1, "reuse")
    }

    /// The same for `EXPLAIN STAGES`.
    fn is_explain_stages(&self) -> bool {
        self.is_word(1, "stages")
    }

    /// The same with only so many of its tokens.
    pub(super) fn first(&self, n_tokens: usize) -> Text<'_> {
        Text { sql: self.sql, tokens: &self.tokens[..n_tokens.min(self.tokens.len())], ..*self }
    }

    /// Whose SQL it is.
    pub(super) fn dialect(&self) -> &dyn ParserDialect {
        self.dialect
    }

    /// Whether the n-th token is this word, without quotes.
    pub(super) fn is_word(&self, n: usize, expected: &str) -> bool {
        let is_it = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected));
        self.words().nth(n).is_some_and(is_it)
    }

    /// What follows `EXPLAIN` and another word.
    fn explained(&self) -> Result<Box<DFStatement>> {
        let statement = self.read(|parser| {
            parser.parser.next_token();
            parser.parser.next_token();
            parser.parse_statement()
        })?;
        Ok(Box::new(statement))
    }

    /// Reads all of the text with `read`; anything left over is an error.
    pub(super) fn read<T>(&self, read: impl FnOnce(&mut DFParser<'_>) -> Result<T, DataFusionError>) -> Result<T> {
        let parser = DFParserBuilder::new(self.tokens.to_vec())
            .with_dialect(self.dialect)
            .with_recursion_limit(self.recursion_limit.max(1))
            .build();
        let mut parser = parser.map_err(|error| self.error(&error))?;
        let statement = read(&mut parser).map_err(|error| self.error(&error))?;
        while parser.parser.consume_token(&Token::SemiColon) {}
        let rest = parser.parser.peek_token_ref();
        // Where it tries one reading after the other, the parser takes its own limit for a wrong one.
        if rest.token != Token::EOF && self.is_deep() {
            return Err(self.too_deep());
        }
        if rest.token != Token::EOF {
            let message = format!("expected the end of the statement, found {}", quoted(&rest.to_string()));
            return Err(self.syntax(message, Some(rest.span.start)));
        }
        Ok(statement)
    }

    /// Tokens without white space and comments.
    pub(super) fn words(&self) -> impl Iterator<Item = &TokenWithSpan> {
        self.tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)))
    }

    /// The keyword that the n-th token is.
    pub(super) fn keyword(&self, n: usize) -> Keyword {
        self.words().nth(n).map_or(Keyword::NoKeyword, |token| keyword_of(&token.token))
    }

    fn syntax(&self, message: String, location: Option<Location>) -> PlannerError {
        let found = location.and_then(|location| self.tokens.iter().position(|token| token.span.start == location));
        let hint = found.and_then(|found| {
            keyword::lacks_select(self.tokens, found)
                .or_else(|| keyword::is_table_like(self.tokens, found))
                .or_else(|| keyword::suggest(self.tokens, found))
        });
        let position = match location {
            Some(location) => offset_of_location(self.sql, location),
            // Without a place it is the end of the text that was not expected.
            None => message.ends_with(END).then_some(self.sql.trim_end().len()),
        };
        PlannerError::Syntax { message, position, hint }
    }

    /// Whether what is wrong may be how deep it nests.
    fn is_deep(&self) -> bool {
        nesting(self.tokens) + 5 >= self.recursion_limit
    }

    fn too_deep(&self) -> PlannerError {
        PlannerError::TooDeep {
            what: "levels of nesting",
            limit: self.recursion_limit,
            position: None,
            hint: Some("name inner queries in a WITH clause".to_owned()),
        }
    }

    fn error(&self, error: &DataFusionError) -> PlannerError {
        match error.find_root() {
            DataFusionError::SQL(error, _) => match error.as_ref() {
                ParserError::RecursionLimitExceeded => self.too_deep(),
                ParserError::ParserError(_) if self.is_deep() => self.too_deep(),
                ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                    let (message, location) = cut_location(message);
                    self.syntax(reword(message), location)
                }
            },
            other => self.syntax(reword(&other.message()), None),
        }
    }
}

/// How deep brackets, CASE and NOT nest, about.
fn nesting(tokens: &[TokenWithSpan]) -> usize {
    let (mut open, mut negations, mut deepest) = (0_usize, 0_usize, 0);
    for token in tokens {
        match (&token.token, keyword_of(&token.token)) {
            (Token::Whitespace(_), _) => continue,
            (Token::LParen, _) | (_, Keyword::CASE) => open += 1,
            (Token::RParen, _) | (_, Keyword::END) => open = open.saturating_sub(1),
            _ => {}
        }
        negations = if keyword_of(&token.token) == Keyword::NOT { negations + 1 } else { 0 };
        deepest = deepest.max(open + negations);
    }
    deepest
}

/// The keyword that a token is; quoted words are none.
pub(super) fn keyword_of(token: &Token) -> Keyword {
    match token {
        Token::Word(word) if word.quote_style.is_none() => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

pub(super) fn tokenize(sql: &str, dialect: &dyn ParserDialect) -> Result<Vec<TokenWithSpan>> {
    Tokenizer::new(dialect, sql).tokenize_with_location().map_err(|error| PlannerError::Syntax {
        message: reword(&error.message),
        position: offset_of_location(sql, error.location),
        hint: None,
    })
}

/// DataFusion reads `EXPLAIN` by recursion without a bound, to say later that nesting it is not supported.
fn no_nested_explain(sql: &str, tokens: &[TokenWithSpan]) -> Result<()> {
    let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_option = |token: &&TokenWithSpan| matches!(keyword_of(&token.token), Keyword::ANALYZE | Keyword::VERBOSE);
    let mut explains =
        words.filter(|token| !is_option(token)).take_while(|token| keyword_of(&token.token) == Keyword::EXPLAIN);
    match explains.nth(1) {
        None => Ok(()),
        Some(second) => Err(PlannerError::Refused {
            clause: "EXPLAIN of EXPLAIN".to_owned(),
            position: offset_of_token(sql, second),
            hint: None,
        }),
    }
}

/// Sorts out what the engine does itself.
fn classify(text: &Text<'_>, statement: DFStatement) -> Result<Statement> {
    let statement = match statement {
        DFStatement::Statement(statement) => statement,
        DFStatement::Reset(ResetStatement::Variable(variable)) => {
            return Ok(Statement::DataFusion(Box::new(settings::reset(variable))));
        }
        other => return Ok(Statement::DataFusion(Box::new(other))),
    };
    Ok(match *statement {
        ast::Statement::CreateView(create) if view::is_plain(&create) && !create.materialized => {
            Statement::CreateView(Box::new(view::create_view(text, create)))
        }
        ast::Statement::CreateFunction(create) => Statement::CreateFunction(Box::new(create)),
        ast::Statement::DropFunction(drop) => Statement::DropFunction(drop),
        drop @ ast::Statement::Drop { .. } => named::drop(drop),
        ast::Statement::Set(set) => Statement::DataFusion(Box::new(settings::set(set))),
        ast::Statement::ShowVariable { variable } => {
            let show = ast::Statement::ShowVariable { variable: settings::shown(variable) };
            Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(show))))
        }
        other => Statement::DataFusion(Box::new(DFStatement::Statement(Box::new(other)))),
    })
}

/// sqlparser gives positions only as text at the end of its message.
fn cut_location(message: &str) -> (&str, Option<Location>) {
    let Some((before, location)) = message.rsplit_once(" at Line: ") else { return (message, None) };
    let location = location.split_once(", Column: ").and_then(|(line, column)| {
        let column = column.trim_end_matches(|c: char| !c.is_ascii_digit());
        Some(Location { line: line.parse().ok()?, column: column.parse().ok()? })
    });
    (before, location)
}

/// In our words: lower case, no full stop, the found thing quoted.
fn reword(message: &str) -> String {
    let message = message.trim_end_matches('.');
    if let Some(rest) = message.strip_prefix("Expected: ")
        && let Some((expected, found)) = rest.split_once(", found: ")
    {
        return format!("expected {expected}, found {}", quoted(found));
    }
    let mut chars = message.chars();
    match (chars.next(), chars.clone().next()) {
        // A word in upper case is a keyword and stays.
        (Some(first), Some(second)) if first.is_uppercase() && !second.is_uppercase() => {
            first.to_lowercase().collect::<String>() + chars.as_str()
        }
        _ => message.to_owned(),
    }
}

const END: &str = "the end of the text";

fn quoted(found: &str) -> String {
    const SHOWN_MAX: usize = 40;
    match found {
        "EOF" => END.to_owned(),
        _ if found.chars().count() > SHOWN_MAX => {
            format!("\"{}..\"", found.chars().take(SHOWN_MAX).collect::<String>())
        }
        _ => format!("\"{found}\""),
    }
}

#[cfg(test)]
mod tests;
