//! [`unwrap`]: `INSERT INTO t (VALUES (1), (2))` is `INSERT INTO t VALUES (1), (2)`, also behind a list of columns.
//!
//! After a table's name the parser takes a bracket for a list of columns.

use itertools::Itertools;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::parse::keyword_of;

/// Takes brackets around the whole source of an `INSERT` away, if what they hold begins with `VALUES`. Also of one that is explained or
/// prepared.
pub(super) fn unwrap(tokens: &mut Vec<TokenWithSpan>) {
    for at in brackets(tokens).into_iter().flatten().rev() {
        tokens.remove(at);
    }
}

/// Where those brackets are, from first to last: one pair around the other, with nothing between them.
fn brackets(tokens: &[TokenWithSpan]) -> Option<Vec<usize>> {
    let mut words =
        tokens.iter().enumerate().filter(|(_, token)| !matches!(token.token, Token::Whitespace(_))).peekable();
    let is = |token: &TokenWithSpan, keyword| keyword_of(&token.token) == keyword;
    let is_insert = match words.next().map(|(_, token)| keyword_of(&token.token))? {
        Keyword::INSERT => true,
        Keyword::EXPLAIN | Keyword::PREPARE => words.any(|(_, token)| is(token, Keyword::INSERT)),
        _ => false,
    };
    if !is_insert || !words.next().is_some_and(|(_, token)| is(token, Keyword::INTO)) {
        return None;
    }
    let (mut open, _) = words.find(|(_, token)| !matches!(token.token, Token::Word(_) | Token::Period))?;
    if tokens[open].token == Token::LParen && !begins_values(words.clone()) {
        // A list of columns.
        words.find(|(_, token)| token.token == Token::RParen)?;
        (open, _) = words.next()?;
    }
    if tokens[open].token != Token::LParen || !begins_values(words.clone()) {
        return None;
    }
    let mut around = vec![open];
    let is_open = |(_, token): &(usize, &TokenWithSpan)| token.token == Token::LParen;
    around.extend(words.by_ref().peeking_take_while(is_open).map(|(at, _)| at));
    let mut depth = 1_usize;
    let (close, _) = words.find(|(_, token)| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    })?;
    let n_pairs = around.len();
    around.push(close);
    around.extend(words.by_ref().take(n_pairs - 1).filter(|(_, token)| token.token == Token::RParen).map(|(at, _)| at));
    let is_whole = around.len() == 2 * n_pairs;
    (is_whole && words.all(|(_, token)| matches!(token.token, Token::SemiColon | Token::EOF))).then_some(around)
}

/// Whether rows come next, perhaps in brackets. A column may be called so too.
fn begins_values<'a>(words: impl Iterator<Item = (usize, &'a TokenWithSpan)>) -> bool {
    let mut words = words.skip_while(|(_, token)| token.token == Token::LParen);
    words.next().is_some_and(|(_, token)| keyword_of(&token.token) == Keyword::VALUES)
        && words.next().is_some_and(|(_, token)| token.token == Token::LParen)
}

#[cfg(test)]
mod tests {
    use sqlparser::dialect::GenericDialect;

    use super::super::parse::tokenize;
    use super::*;

    #[test]
    fn brackets_around_values() {
        for (sql, expected) in [
            ("INSERT INTO t (VALUES (1, 's'), (2, 't'));", "INSERT INTO t VALUES (1, 's'), (2, 't');"),
            ("insert into a.\"B\" ( values (f(1)) )", "insert into a.\"B\"  values (f(1)) "),
            ("INSERT INTO t (values) VALUES (1)", "INSERT INTO t (values) VALUES (1)"),
            ("INSERT INTO t (a) (VALUES (1))", "INSERT INTO t (a) VALUES (1)"),
            (
                "INSERT INTO t (a, \"B\") (VALUES (f(1), 2), (3, 4));",
                "INSERT INTO t (a, \"B\") VALUES (f(1), 2), (3, 4);",
            ),
            ("INSERT INTO t (values) (VALUES (1))", "INSERT INTO t (values) VALUES (1)"),
            ("INSERT INTO t ((VALUES (1, 2), (3, 4)));", "INSERT INTO t VALUES (1, 2), (3, 4);"),
            ("INSERT INTO t (a) ( ( (VALUES (f(1))) ) )", "INSERT INTO t (a)   VALUES (f(1))  "),
            ("INSERT INTO t ((VALUES (1)) LIMIT 1)", "INSERT INTO t ((VALUES (1)) LIMIT 1)"),
            (
                "INSERT INTO t ((VALUES (1)) UNION ALL (VALUES (2)))",
                "INSERT INTO t ((VALUES (1)) UNION ALL (VALUES (2)))",
            ),
            ("INSERT INTO t (a) (SELECT 1)", "INSERT INTO t (a) (SELECT 1)"),
            ("INSERT INTO t (a) (VALUES (1)) LIMIT 1", "INSERT INTO t (a) (VALUES (1)) LIMIT 1"),
            ("INSERT INTO t (a", "INSERT INTO t (a"),
            ("INSERT INTO t (VALUES (1)) LIMIT 1", "INSERT INTO t (VALUES (1)) LIMIT 1"),
            ("INSERT INTO t (VALUES (1)", "INSERT INTO t (VALUES (1)"),
            ("SELECT * FROM (VALUES (1))", "SELECT * FROM (VALUES (1))"),
            ("EXPLAIN ANALYZE INSERT INTO t (VALUES (1))", "EXPLAIN ANALYZE INSERT INTO t VALUES (1)"),
            ("PREPARE p (INT) AS INSERT INTO t (VALUES ($1));", "PREPARE p (INT) AS INSERT INTO t VALUES ($1);"),
            ("EXPLAIN SELECT * FROM (VALUES (1))", "EXPLAIN SELECT * FROM (VALUES (1))"),
        ] {
            let mut tokens = tokenize(sql, &GenericDialect {}).expect("tokens");
            unwrap(&mut tokens);
            let text: String = tokens.iter().map(|token| token.token.to_string()).collect();
            assert_eq!(text.replace("EOF", ""), expected);
        }
    }
}
