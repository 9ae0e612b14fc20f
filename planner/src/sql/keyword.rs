//! Which keyword a misspelt word was meant to be, or which one is missing.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::parse::keyword_of;

/// Words that begin statements and clauses.
const KEYWORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "OFFSET",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "JOIN",
    "INNER",
    "LEFT",
    "RIGHT",
    "OUTER",
    "CROSS",
    "NATURAL",
    "USING",
    "VALUES",
    "INSERT",
    "INTO",
    "CREATE",
    "REPLACE",
    "EXTERNAL",
    "TABLE",
    "VIEW",
    "MATERIALIZED",
    "DERIVED",
    "REFRESH",
    "CASCADE",
    "RESTRICT",
    "SCHEMA",
    "FUNCTION",
    "DROP",
    "ALTER",
    "RENAME",
    "COPY",
    "STORED",
    "LOCATION",
    "PARTITIONED",
    "OPTIONS",
    "EXPLAIN",
    "ANALYZE",
    "VERBOSE",
    "SHOW",
    "DESCRIBE",
    "PREPARE",
    "EXECUTE",
    "DEALLOCATE",
    "RESET",
    "WITH",
    "RECURSIVE",
    "DISTINCT",
    "QUALIFY",
    "WINDOW",
    "PARTITION",
    "BETWEEN",
    "RETURNS",
    "RETURN",
    "EXISTS",
];

/// Looks at the word where the parser gave up and at the one before, which it may have taken for an alias
/// (`SELECT * FORM t`).
pub(super) fn suggest(tokens: &[TokenWithSpan], found: usize) -> Option<String> {
    let before =
        tokens[..found.min(tokens.len())].iter().rev().find(|token| !matches!(token.token, Token::Whitespace(_)));
    [tokens.get(found), before].into_iter().flatten().find_map(|token| match &token.token {
        Token::Word(word) if word.quote_style.is_none() => {
            let keyword = nearest(&word.value)?;
            Some(format!("did you mean {keyword} instead of \"{}\"?", word.value))
        }
        _ => None,
    })
}

/// What to write instead of `CREATE TABLE c (LIKE a)`.
pub(super) const TABLE_LIKE: &str =
    "write CREATE TABLE c AS SELECT * FROM a WHERE false: the columns of a, without DEFAULT and NOT NULL";

/// The same where the parser takes `LIKE` for a column, and gives up at `INCLUDING ALL` behind its type.
pub(super) fn is_table_like(tokens: &[TokenWithSpan], found: usize) -> Option<String> {
    let clause = keyword_of(&tokens.get(found)?.token);
    let has_like = || tokens[..found].iter().any(|token| keyword_of(&token.token) == Keyword::LIKE);
    (matches!(clause, Keyword::INCLUDING | Keyword::EXCLUDING) && has_like()).then(|| TABLE_LIKE.to_owned())
}

/// What to do about `FROM t WHERE ..`: a query that begins with FROM has no other clauses before its SELECT.
pub(super) fn lacks_select(tokens: &[TokenWithSpan], found: usize) -> Option<String> {
    let clause = keyword_of(&tokens.get(found)?.token);
    if !matches!(clause, Keyword::WHERE | Keyword::GROUP | Keyword::HAVING | Keyword::QUALIFY | Keyword::WINDOW) {
        return None;
    }
    let is_word = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let mut before = tokens[..found].iter().rev().filter(is_word);
    let mut depth = 0_usize;
    loop {
        let token = before.next()?;
        match token.token {
            Token::RParen => depth += 1,
            // The bracket that the clause stands in.
            Token::LParen => depth = depth.checked_sub(1)?,
            _ if depth == 0 && keyword_of(&token.token) == Keyword::FROM => break,
            _ => {}
        }
    }
    const BEFORE_QUERY: [Keyword; 6] =
        [Keyword::AS, Keyword::UNION, Keyword::ALL, Keyword::EXCEPT, Keyword::INTERSECT, Keyword::EXPLAIN];
    let begins_query = before
        .next()
        .is_none_or(|token| token.token == Token::LParen || BEFORE_QUERY.contains(&keyword_of(&token.token)));
    begins_query.then(|| "write SELECT * before that FROM, or SELECT .. behind its tables".to_owned())
}

fn nearest(word: &str) -> Option<&'static str> {
    // Comparing takes time in the product of both lengths.
    const LETTERS_MAX: usize = 32;
    if word.len() > LETTERS_MAX {
        return None;
    }
    let word = word.to_ascii_uppercase();
    if word.len() < 4 || KEYWORDS.contains(&word.as_str()) {
        return None;
    }
    let allowed = if word.len() < 7 { 1 } else { 2 };
    KEYWORDS
        .iter()
        .map(|keyword| (strsim::damerau_levenshtein(&word, keyword), *keyword))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, keyword)| keyword)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_keyword_that_was_meant() {
        for (word, expected) in [
            ("selct", Some("SELECT")),
            ("FORM", Some("FROM")),
            ("wehre", Some("WHERE")),
            ("descirbe", Some("DESCRIBE")),
            ("select", None),
            ("t", None),
            ("orders_table", None),
        ] {
            assert_eq!(nearest(word), expected, "{word}");
        }
    }
}
