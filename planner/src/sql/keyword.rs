//! Which keyword a misspelt word was meant to be.

use sqlparser::tokenizer::{Token, TokenWithSpan};

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
