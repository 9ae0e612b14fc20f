//! [`redact`]: a statement's text without the secrets in it, for everyone who keeps or shows it.
//!
//! ```text
//!   OPTIONS ('aws.secret_access_key' 'hushhush')   is shown as   OPTIONS ('aws.secret_access_key' '***')
//!   OPTIONS (aws.secret_access_key 'hushhush')                   OPTIONS (aws.secret_access_key '***')
//!   CREATE USER bob PASSWORD $$hushhush$$                        CREATE USER bob PASSWORD ***
//! ```
//!
//! Texts are cut as SQL cuts them, so that a quote in a comment hides nothing; a statement that is no SQL is read as far as it goes.

use std::ops::Range;

/// Words in the name of an option whose value nobody may see.
const SECRET: [&str; 6] = ["secret", "token", "password", "access_key", "account_key", "credential"];

/// What stands for a secret.
const STARS: &str = "***";

/// Puts stars in place of the values of secret options, and of passwords.
pub(crate) fn redact(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut from = 0;
    for secret in secrets(sql) {
        shown.push_str(&sql[from..secret.start]);
        shown.push_str(STARS);
        from = secret.end;
    }
    shown.push_str(&sql[from..]);
    shown
}

/// The same for a message about a statement: it may quote what the statement says.
pub(crate) fn redact_message(sql: &str, message: String) -> String {
    let texts = secrets(sql).into_iter().map(|secret| &sql[secret]).filter(|text| !text.is_empty());
    texts.fold(message, |message, text| message.replace(text, STARS))
}

/// Where the secrets of a statement are, without their quotes.
fn secrets(sql: &str) -> Vec<Range<usize>> {
    let mut secrets = vec![];
    let tokens = Tokens { sql, at: 0 }.filter(|(token, _)| *token != Token::Blank);
    let is_about_user = is_about_user(sql);
    // How many brackets are open in the options of a statement.
    let (mut depth, mut is_after_options) = (0_usize, false);
    let mut is_after_dot = false;
    // Whether a value follows that nobody may see.
    let mut is_awaited = false;
    for (token, range) in tokens {
        let text = &sql[range.clone()];
        let was_options = std::mem::replace(&mut is_after_options, false);
        let was_dot = std::mem::replace(&mut is_after_dot, false);
        match token {
            Token::Text if is_awaited || is_about_user => {
                secrets.push(range);
                is_awaited = false;
            }
            // A value follows its name with nothing but blanks or an equals sign in between.
            Token::Text => is_awaited = is_secret(text),
            Token::Word | Token::Name => {
                let is_password = text.eq_ignore_ascii_case("password");
                match is_awaited && is_about_user {
                    // Somebody forgot the quotes.
                    true => {
                        secrets.push(range);
                        is_awaited = false;
                    }
                    // Any part of a name.
                    false => is_awaited = is_password || (depth > 0 && (is_secret(text) || (is_awaited && was_dot))),
                }
                is_after_options = text.eq_ignore_ascii_case("options");
            }
            Token::Sign => match text {
                "=" => {}
                "." => is_after_dot = true,
                "(" => {
                    depth += usize::from(was_options || depth > 0);
                    is_awaited = false;
                }
                ")" => {
                    depth = depth.saturating_sub(1);
                    is_awaited = false;
                }
                _ => is_awaited = false,
            },
            Token::Blank => {}
        }
    }
    secrets
}

fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    SECRET.iter().any(|word| lower.contains(word))
}

/// Whether all texts of a statement are secret, even if it is misspelt.
fn is_about_user(sql: &str) -> bool {
    let mut words = Tokens { sql, at: 0 }.filter(|(token, _)| *token != Token::Blank).map(|(_, range)| &sql[range]);
    let mut next = |wanted: [&str; 2]| {
        words.next().is_some_and(|word| wanted.iter().any(|wanted| word.eq_ignore_ascii_case(wanted)))
    };
    next(["create", "alter"]) && next(["user", "role"])
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Token {
    /// White space or a comment.
    Blank,
    /// Letters, digits and underscores.
    Word,
    /// What is between double quotes.
    Name,
    /// What is between quotes, or dollar quotes.
    Text,
    /// Anything else, one letter at a time.
    Sign,
}

/// What SQL is made of, as far as quotes and comments go; quoted things without their quotes.
struct Tokens<'a> {
    sql: &'a str,
    at: usize,
}

impl Tokens<'_> {
    fn rest(&self) -> &str {
        &self.sql[self.at..]
    }

    /// Up to and with `end`, or all that is left: what is before it.
    fn until(&mut self, from: usize, end: &str) -> Range<usize> {
        let found = self.sql[from..].find(end).map(|at| from + at);
        self.at = found.map_or(self.sql.len(), |at| at + end.len());
        from..found.unwrap_or(self.sql.len())
    }

    /// Two quotes in a row are one quote inside of it.
    fn quoted(&mut self, quote: &str) -> Range<usize> {
        let start = self.at + quote.len();
        let mut part = self.until(start, quote);
        while self.rest().starts_with(quote) {
            part = self.until(self.at + quote.len(), quote);
        }
        start..part.end
    }

    /// Comments nest.
    fn comment(&mut self) -> Range<usize> {
        let (start, mut depth) = (self.at, 0_usize);
        while self.at < self.sql.len() {
            match self.rest() {
                rest if rest.starts_with("/*") => (depth, self.at) = (depth + 1, self.at + 2),
                rest if rest.starts_with("*/") => (depth, self.at) = (depth.saturating_sub(1), self.at + 2),
                rest => self.at += rest.chars().next().map_or(1, char::len_utf8),
            }
            if depth == 0 {
                break;
            }
        }
        start..self.at
    }

    fn while_is(&mut self, is: impl Fn(char) -> bool) -> Range<usize> {
        let start = self.at;
        self.at += self.rest().find(|c| !is(c)).unwrap_or(self.rest().len());
        start..self.at
    }

    /// `$$` or `$tag$` at the start of what is left.
    fn dollar_quote(&self) -> Option<String> {
        let tag = self.rest().strip_prefix('$')?;
        let end = tag.find('$')?;
        tag[..end].chars().all(is_of_word).then(|| format!("${}$", &tag[..end]))
    }
}

impl Iterator for Tokens<'_> {
    type Item = (Token, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.rest().chars().next()?;
        let start = self.at;
        Some(match first {
            '\'' => (Token::Text, self.quoted("'")),
            '"' => (Token::Name, self.quoted("\"")),
            '`' => (Token::Name, self.quoted("`")),
            '$' if let Some(quote) = self.dollar_quote() => (Token::Text, self.until(start + quote.len(), &quote)),
            '-' if self.rest().starts_with("--") => (Token::Blank, self.until(start, "\n")),
            '/' if self.rest().starts_with("/*") => (Token::Blank, self.comment()),
            c if c.is_whitespace() => (Token::Blank, self.while_is(char::is_whitespace)),
            c if is_of_word(c) => (Token::Word, self.while_is(is_of_word)),
            c => {
                self.at += c.len_utf8();
                (Token::Sign, start..self.at)
            }
        })
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::{redact, redact_message};

    #[test]
    fn values_of_secret_options_are_hidden() {
        for (sql, shown) in [
            (
                "CREATE EXTERNAL TABLE t OPTIONS ('aws.region' 'x', 'aws.secret_access_key' 'hush''hush', 'aws.token' = 'k')",
                "CREATE EXTERNAL TABLE t OPTIONS ('aws.region' 'x', 'aws.secret_access_key' '***', 'aws.token' = '***')",
            ),
            (
                "CREATE EXTERNAL TABLE t LOCATION 'a' OPTIONS (aws.region 'x', aws.secret_access_key 'hush', has_header 'true')",
                "CREATE EXTERNAL TABLE t LOCATION 'a' OPTIONS (aws.region 'x', aws.secret_access_key '***', has_header 'true')",
            ),
            ("x OPTIONS (\"aws.token\" 'hush', 'a' 'b')", "x OPTIONS (\"aws.token\" '***', 'a' 'b')"),
            ("/* don't */ x OPTIONS ('aws.token' 'hush')", "/* don't */ x OPTIONS ('aws.token' '***')"),
            ("-- it's\nx OPTIONS (token $$hush$$)", "-- it's\nx OPTIONS (token $$***$$)"),
            ("x options (a.token.b 'c', d 'e') 'f'", "x options (a.token.b '***', d 'e') 'f'"),
        ] {
            assert_eq!(redact(sql), shown);
        }
    }

    #[test]
    fn passwords_are_hidden() {
        for (sql, shown) in [
            ("CREATE USER bob PASSWORD 'x''y' ADMIN", "CREATE USER bob PASSWORD '***' ADMIN"),
            ("alter\n user bob pasword 'x'", "alter\n user bob pasword '***'"),
            ("/* new */ CREATE USER bob password'x'", "/* new */ CREATE USER bob password'***'"),
            ("/* don't */ create user bob password 'x'", "/* don't */ create user bob password '***'"),
            ("-- it's\ncreate user bob password 'x'", "-- it's\ncreate user bob password '***'"),
            ("create user bob password $$x$$", "create user bob password $$***$$"),
            ("create user bob password $a$x'$a$ admin", "create user bob password $a$***$a$ admin"),
            ("create user bob password hush", "create user bob password ***"),
            ("create user bob password \"hush\"", "create user bob password \"***\""),
        ] {
            assert_eq!(redact(sql), shown);
        }
        let message = "syntax error: expected a text, found \"hush\"".to_owned();
        assert_eq!(
            redact_message("create user bob password hush", message),
            "syntax error: expected a text, found \"***\""
        );
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for sql in [
            "SELECT 'a secret', 'b' FROM t",
            "SELECT a FROM t WHERE token = 'x' AND password_hash <> 'y'",
            "SELECT 'open",
            "SELECT \"open",
            "SELECT $$open",
            "SELECT $1, '$', a$b$c",
            "/* open /* more */ 'x'",
            "SELECT 'it''s' || 'é' -- é",
            "é 'ü' \"ö\" /* ä */ $é$ x $é$",
        ] {
            assert_eq!(redact(sql), sql);
        }
    }
}
