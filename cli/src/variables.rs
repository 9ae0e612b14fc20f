//! [`Variables`]: what `\set` keeps, and `:name` in later input.
//!
//! `:name` puts the value in as it is, `:'name'` as a text literal, `:"name"` as a quoted name. Inside quotes and comments,
//! after another colon (a cast), and for names that are not set nothing changes.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::lexer::{Kind, Lexer, is_word_part, is_word_start};

/// Names and their values.
#[derive(Debug, Default)]
pub(crate) struct Variables {
    values: BTreeMap<String, String>,
}

impl Variables {
    /// Sets a variable; false when the name is none.
    pub(crate) fn set(&mut self, name: &str, value: String) -> bool {
        let valid = name.bytes().next().is_some_and(is_word_start) && name.bytes().all(is_word_part);
        if valid {
            self.values.insert(name.to_owned(), value);
        }
        valid
    }

    pub(crate) fn unset(&mut self, name: &str) -> bool {
        self.values.remove(name).is_some()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The text with its variables replaced.
    pub(crate) fn interpolate(&self, text: &str) -> String {
        if self.values.is_empty() || !text.contains(':') {
            return text.to_owned();
        }
        let mut result = String::with_capacity(text.len());
        let mut previous_colon = false;
        let mut lexer = Lexer::new(text);
        while let Some(token) = lexer.next() {
            let piece = &text[token.range.clone()];
            if token.kind == Kind::Mark
                && piece == ":"
                && !previous_colon
                && let Some((value, length)) = self.reference(&text[token.range.end..])
            {
                result.push_str(&value);
                lexer = Lexer::resume(text, token.range.end + length, lexer.state().clone());
                continue;
            }
            previous_colon = piece == ":";
            result.push_str(piece);
        }
        result
    }

    /// Why a statement with a variable that is not set came to nothing.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Statement { error, sql } if error.hint().is_none() => {
                let error = match self.missing(&sql) {
                    Some(name) => {
                        error.with_hint(format!("there is no variable '{name}': \\set {name} VALUE makes one"))
                    }
                    None => error,
                };
                Failure::Statement { error, sql }
            }
            other => other,
        }
    }

    /// The first reference to a variable that is not set.
    fn missing<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut previous_end = None;
        for token in Lexer::new(text).filter(|token| token.kind == Kind::Mark && &text[token.range.clone()] == ":") {
            let follows_colon = previous_end.replace(token.range.end) == Some(token.range.start);
            let rest = &text[token.range.end..];
            let name = rest.strip_prefix(['\'', '"']).unwrap_or(rest);
            let name = &name[..name.bytes().position(|byte| !is_word_part(byte)).unwrap_or(name.len())];
            if !follows_colon && name.bytes().next().is_some_and(is_word_start) && !self.values.contains_key(name) {
                return Some(name);
            }
        }
        None
    }

    /// Value and length of the reference that follows a colon.
    fn reference(&self, text: &str) -> Option<(String, usize)> {
        let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
        let start = usize::from(quote.is_some());
        let name = &text[start..];
        let length = name.bytes().position(|byte| !is_word_part(byte)).unwrap_or(name.len());
        let value = self.values.get(&name[..length])?;
        match quote {
            None => Some((value.clone(), length)),
            Some(quote) if name[length..].starts_with(quote) => Some((quoted(value, quote), length + 2)),
            Some(_) => None,
        }
    }
}

/// A value between quotes, those inside doubled.
pub(crate) fn quoted(value: &str, quote: char) -> String {
    let mut result = String::with_capacity(value.len() + 2);
    result.push(quote);
    for character in value.chars() {
        if character == quote {
            result.push(quote);
        }
        result.push(character);
    }
    result.push(quote);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_replaced_outside_quotes_only() {
        let mut variables = Variables::default();
        assert!(variables.set("t", "my table".to_owned()));
        assert!(variables.set("who", "O'Hara".to_owned()));
        assert!(variables.set("n", "3".to_owned()));
        assert!(!variables.set("1x", String::new()));
        let check = |text: &str, expected: &str| assert_eq!(variables.interpolate(text), expected);
        check(
            "select * from :\"t\" where a = :'who' limit :n",
            "select * from \"my table\" where a = 'O''Hara' limit 3",
        );
        check("select ':n', \":n\", $$:n$$ -- :n", "select ':n', \":n\", $$:n$$ -- :n");
        check("select a::int, b :: n, :unknown, :'n", "select a::int, b :: n, :unknown, :'n");
        check("x[1:2] é:n:n", "x[1:2] é33");
    }

    #[test]
    fn what_is_not_set_is_found() {
        let mut variables = Variables::default();
        assert!(variables.set("n", "3".to_owned()));
        let check = |text: &str, expected| assert_eq!(variables.missing(text), expected, "{text}");
        check("select :n, :nothing", Some("nothing"));
        check("select :'no'", Some("no"));
        check("select :\"no\"", Some("no"));
        check("select a::int, x[1:2], ':no', :n -- :no", None);
    }
}
