//! [`redact`]: a statement's text without the secrets in it, for everyone who keeps or shows it.
//!
//! ```text
//!   OPTIONS ('aws.secret_access_key' 'hushhush')   is shown as   OPTIONS ('aws.secret_access_key' '***')
//!   OPTIONS (aws.secret_access_key hush.4711)                    OPTIONS (aws.secret_access_key ***)
//!   CREATE USER bob PASSWORD $$hushhush$$                        CREATE USER bob PASSWORD $$***$$
//! ```
//!
//! Texts are cut as SQL cuts them, so that a quote in a comment hides nothing; a statement that is no SQL is read as far
//! as it goes. What follows the name of an option, or PASSWORD, is its value, whatever it is made of: somebody forgets
//! the quotes.

use std::ops::Range;

/// Words in the name of an option whose value nobody may see.
const SECRET: [&str; 8] =
    ["secret", "token", "password", "access_key", "account_key", "sas_key", "customer_key", "credential"];

/// What stands for a secret.
const STARS: &str = "***";

/// So many letters of a secret are known again in a message that cuts it off; shorter ones are looked for as words.
const BEGINNING: usize = 8;

/// Puts stars in place of the values of secret options, and of passwords.
pub(crate) fn redact(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut from = 0;
    for secret in secrets(sql) {
        shown.push_str(&sql[from..secret.range.start]);
        shown.push_str(STARS);
        from = secret.range.end;
    }
    shown.push_str(&sql[from..]);
    shown
}

/// The same for a message about a statement: it may quote what the statement says, or a part of it.
pub(crate) fn redact_message(sql: &str, mut message: String) -> String {
    for secret in secrets(sql) {
        for range in std::iter::once(&secret.range).chain(&secret.parts) {
            let text = &sql[range.clone()];
            // Messages have what quotes and backslashes stand for.
            let plain = text.replace("''", "'").replace("\"\"", "\"");
            let unescaped = plain.replace("\\'", "'").replace("\\\\", "\\");
            for spelling in [text, &plain, &unescaped] {
                message = strike(&message, spelling);
            }
        }
    }
    message
}

fn strike(message: &str, secret: &str) -> String {
    let head = &secret[..secret.floor_char_boundary(BEGINNING)];
    if head.is_empty() {
        return message.to_owned();
    }
    let mut shown = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(at) = rest.find(head) {
        let (before, found) = rest.split_at(at);
        let same = found.chars().zip(secret.chars()).take_while(|(one, other)| one == other);
        let (found, after) = found.split_at(same.map(|(one, _)| one.len_utf8()).sum());
        let is_in_word = secret.len() <= BEGINNING && (before.ends_with(is_of_word) || after.starts_with(is_of_word));
        shown.push_str(before);
        shown.push_str(if is_in_word { found } else { STARS });
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Something that nobody may see.
#[derive(Debug)]
struct Secret {
    /// Without its quotes, if it is nothing but a text.
    range: Range<usize>,
    /// What it is made of, if it is more.
    parts: Vec<Range<usize>>,
}

/// Where the secrets of a text are, from first to last.
fn secrets(sql: &str) -> Vec<Secret> {
    if !may_hold_secrets(sql) {
        return vec![];
    }
    let tokens: Vec<Token> = Tokens { sql, at: 0 }.filter(|token| token.kind != Kind::Blank).collect();
    let mut finder = Finder { sql, found: vec![] };
    for statement in tokens.split(|token| token.kind == Kind::Sign && &sql[token.whole.clone()] == ";") {
        finder.statement(statement);
    }
    finder.found
}

/// Few do, and others may be very long.
fn may_hold_secrets(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let holds_one_of = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    is_secret(&lower) || (holds_one_of(&["create", "alter"]) && holds_one_of(&["user", "role"]))
}

fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase().replace('-', "_");
    SECRET.iter().any(|word| lower.contains(word))
}

struct Finder<'a> {
    sql: &'a str,
    found: Vec<Secret>,
}

impl Finder<'_> {
    fn text(&self, token: &Token) -> &str {
        &self.sql[token.inner.clone()]
    }

    fn is_sign(&self, token: Option<&Token>, sign: &str) -> bool {
        token.is_some_and(|token| token.kind == Kind::Sign && self.text(token) == sign)
    }

    fn is_word(&self, token: &Token, words: &[&str]) -> bool {
        token.kind == Kind::Word && words.iter().any(|word| self.text(token).eq_ignore_ascii_case(word))
    }

    fn statement(&mut self, tokens: &[Token]) {
        if let Some(account) = self.about_user(tokens) {
            return self.user(account);
        }
        let lists_from = self.copied(tokens).unwrap_or(tokens.len());
        let mut at = 0;
        // Whether a value follows that nobody may see.
        let mut is_awaited = false;
        while let Some(token) = tokens.get(at) {
            if let Some(list) = self.list(tokens, at, at > lists_from) {
                at = self.options(tokens, list);
                is_awaited = false;
                continue;
            }
            // Outside of options, only what is quoted is a value for sure.
            match token.kind {
                Kind::Text | Kind::Dollar if is_awaited => {
                    self.hide(&tokens[at..=at]);
                    is_awaited = false;
                }
                // Statements in a statement: those of a job, a report, a function.
                Kind::Dollar => self.statements(token.inner.clone()),
                Kind::Text => is_awaited = is_secret(self.text(token)),
                Kind::Word | Kind::Name => {
                    let end = self.name_end(tokens, at);
                    let is_dotted = end > at + 1;
                    let is_value_next = tokens.get(end).is_some_and(Token::is_text);
                    if is_dotted && is_value_next && self.names_secret(&tokens[at..end]) {
                        self.hide(&tokens[end..=end]);
                        at = end;
                    }
                    is_awaited = self.text(token).eq_ignore_ascii_case("password");
                }
                // A value follows its name with nothing but blanks or an equals sign in between.
                Kind::Sign if self.text(token) == "=" => {}
                Kind::Sign | Kind::Blank => is_awaited = false,
            }
            at += 1;
        }
    }

    /// What is between dollar quotes may be statements of their own.
    fn statements(&mut self, range: Range<usize>) {
        let shifted = |inner: Range<usize>| range.start + inner.start..range.start + inner.end;
        self.found.extend(secrets(&self.sql[range.clone()]).into_iter().map(|secret| Secret {
            range: shifted(secret.range),
            parts: secret.parts.into_iter().map(shifted).collect(),
        }));
    }

    /// What follows the words of a statement about a user, even if it is misspelt.
    fn about_user<'t>(&self, tokens: &'t [Token]) -> Option<&'t [Token]> {
        let begins = |tokens: &[Token], words: &[&[&str]]| {
            tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, words)| self.is_word(token, words))
        };
        let (verb, noun): (&[&str], &[&str]) = (&["create", "alter"], &["user", "role"]);
        let ways: [&[&[&str]]; 2] = [&[verb, noun], &[verb, &["or"], &["replace"], noun]];
        (0..tokens.len()).find_map(|at| {
            let way = ways.iter().find(|way| begins(&tokens[at..], way))?;
            Some(&tokens[at + way.len()..])
        })
    }

    /// `[IF NOT EXISTS] name [WITH] [PASSWORD 'text'] [ADMIN | NOADMIN]`: all that is not one of these words.
    fn user(&mut self, tokens: &[Token]) {
        const ATTRIBUTES: [&str; 2] = ["admin", "noadmin"];
        let n_words =
            |tokens: &[Token], words: &[&str]| tokens.iter().take_while(|token| self.is_word(token, words)).count();
        let tokens = &tokens[n_words(tokens, &["if", "not", "exists"])..];
        let Some((_name, tokens)) = tokens.split_first() else { return };
        let password = tokens.iter().position(|token| self.is_word(token, &["password"]));
        let mut value = match password {
            Some(at) => &tokens[at + 1..],
            None => &tokens[n_words(tokens, &["with", "admin", "noadmin"])..],
        };
        while let [before @ .., last] = value
            && !before.is_empty()
            && self.is_word(last, &ATTRIBUTES)
        {
            value = before;
        }
        // The word is misspelt, or that of another engine.
        if let [first, rest @ ..] = value
            && password.is_none()
            && !rest.is_empty()
            && first.kind == Kind::Word
        {
            value = rest;
        }
        self.hide(value);
    }

    /// Where a COPY says what it reads or writes: lists behind it need no word before them.
    fn copied(&self, tokens: &[Token]) -> Option<usize> {
        const BEFORE: [&str; 12] = [
            "explain",
            "analyze",
            "verbose",
            "reuse",
            "stages",
            "provenance",
            "verify",
            "submit",
            "job",
            "name",
            "timeout",
            "as",
        ];
        let first = tokens.iter().position(|token| !token.is_text() && !self.is_word(token, &BEFORE))?;
        if !self.is_word(&tokens[first], &["copy"]) {
            return None;
        }
        let mut depth = 0_usize;
        tokens.iter().position(|token| {
            depth += usize::from(self.is_sign(Some(token), "("));
            depth = depth.saturating_sub(usize::from(self.is_sign(Some(token), ")")));
            depth == 0 && self.is_word(token, &["from", "to", "into"])
        })
    }

    /// Where the options of a list begin whose beginning is here.
    fn list(&self, tokens: &[Token], at: usize, is_copied: bool) -> Option<usize> {
        if self.is_sign(tokens.get(at), "(") {
            return is_copied.then_some(at + 1);
        }
        if !self.is_word(&tokens[at], &["options", "with"]) {
            return None;
        }
        let next = tokens.get(at + 1)?;
        let is_name = next.kind == Kind::Word || next.kind == Kind::Name;
        match self.is_sign(Some(next), "(") {
            true => Some(at + 2),
            // Somebody forgot the bracket.
            false => {
                let is_option = next.is_text() || (is_name && self.is_sign(tokens.get(at + 2), "."));
                is_option.then_some(at + 1)
            }
        }
    }

    /// `name [=] value, .. )`; gives what follows the list.
    fn options(&mut self, tokens: &[Token], mut at: usize) -> usize {
        loop {
            while self.is_sign(tokens.get(at), ",") {
                at += 1;
            }
            if at >= tokens.len() || self.is_sign(tokens.get(at), ")") {
                return at + 1;
            }
            let name = at;
            at = self.name_end(tokens, at);
            let is_hidden = self.names_secret(&tokens[name..at]);
            at += usize::from(self.is_sign(tokens.get(at), "="));
            let start = at;
            let mut depth = 0_usize;
            while let Some(token) = tokens.get(at) {
                let sign = if token.kind == Kind::Sign { self.text(token) } else { "" };
                match sign {
                    "," | ")" if depth == 0 => break,
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                at += 1;
            }
            let value = &tokens[start..at];
            // Somebody forgot a comma.
            let next = value.iter().position(|token| self.names_secret(std::slice::from_ref(token)));
            match (is_hidden, next) {
                (true, _) => self.hide(value),
                (false, Some(next)) => self.hide(&value[next + 1..]),
                (false, None) => {}
            }
        }
    }

    /// The end of a name of several parts with dots between them.
    fn name_end(&self, tokens: &[Token], at: usize) -> usize {
        let mut end = at + 1;
        while self.is_sign(tokens.get(end), ".") {
            end += 2;
        }
        end.min(tokens.len())
    }

    fn names_secret(&self, name: &[Token]) -> bool {
        name.iter().any(|token| token.kind != Kind::Sign && is_secret(self.text(token)))
    }

    fn hide(&mut self, value: &[Token]) {
        self.found.extend(match value {
            [] => None,
            [one] => Some(Secret { range: one.inner.clone(), parts: vec![] }),
            [first, .., last] => {
                let parts = value.iter().filter(|token| token.kind != Kind::Sign);
                let parts = parts.map(|token| token.inner.clone()).collect();
                Some(Secret { range: first.whole.start..last.whole.end, parts })
            }
        });
    }
}

#[derive(Debug)]
struct Token {
    kind: Kind,
    /// Without quotes.
    inner: Range<usize>,
    whole: Range<usize>,
}

impl Token {
    fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Dollar)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// White space or a comment.
    Blank,
    /// Letters, digits and underscores.
    Word,
    /// What is between double quotes.
    Name,
    /// What is between quotes.
    Text,
    /// What is between dollar quotes.
    Dollar,
    /// Anything else, one letter at a time.
    Sign,
}

/// What SQL is made of, as far as quotes and comments go.
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

    /// After a backslash comes a letter like any other, here where an E is before the quotes.
    fn escaped(&mut self) -> Range<usize> {
        let start = self.at + 1;
        self.at = start;
        while let Some(c) = self.rest().chars().next() {
            self.at += c.len_utf8();
            match c {
                '\\' => self.at += self.rest().chars().next().map_or(0, char::len_utf8),
                '\'' if self.rest().starts_with('\'') => self.at += 1,
                '\'' => return start..self.at - 1,
                _ => {}
            }
        }
        start..self.at
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
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let first = self.rest().chars().next()?;
        let start = self.at;
        let (kind, inner) = match first {
            '\'' => (Kind::Text, self.quoted("'")),
            '"' => (Kind::Name, self.quoted("\"")),
            '`' => (Kind::Name, self.quoted("`")),
            '$' if let Some(quote) = self.dollar_quote() => (Kind::Dollar, self.until(start + quote.len(), &quote)),
            '-' if self.rest().starts_with("--") => (Kind::Blank, self.until(start, "\n")),
            '/' if self.rest().starts_with("/*") => (Kind::Blank, self.comment()),
            c if c.is_whitespace() => (Kind::Blank, self.while_is(char::is_whitespace)),
            c if is_of_word(c) => {
                let word = self.while_is(|c| is_of_word(c) || c == '$');
                match &self.sql[word.clone()] {
                    "e" | "E" if self.rest().starts_with('\'') => (Kind::Text, self.escaped()),
                    _ => (Kind::Word, word),
                }
            }
            c => {
                self.at += c.len_utf8();
                (Kind::Sign, start..self.at)
            }
        };
        Some(Token { kind, inner, whole: start..self.at })
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

    /// Quotes may be forgotten, or be others.
    #[test]
    fn values_of_all_kinds_are_hidden() {
        for (sql, shown) in [
            ("x OPTIONS (aws.secret_access_key hushhush, a b)", "x OPTIONS (aws.secret_access_key ***, a b)"),
            ("x OPTIONS (aws.secret_access_key \"hushhush\")", "x OPTIONS (aws.secret_access_key \"***\")"),
            ("x OPTIONS ('aws.secret_access_key' E'hu\\'sh', a b)", "x OPTIONS ('aws.secret_access_key' E'***', a b)"),
            ("x OPTIONS ('aws.secret_access_key' 4711)", "x OPTIONS ('aws.secret_access_key' ***)"),
            ("x OPTIONS (\"aws\".secret.\"key\" = 47.11e5, a b)", "x OPTIONS (\"aws\".secret.\"key\" = ***, a b)"),
            ("x OPTIONS (token hush-f(h, 'u')/+sh , a b)", "x OPTIONS (token *** , a b)"),
            ("x OPTIONS (token 'hu' 'sh', a b)", "x OPTIONS (token ***, a b)"),
            (
                "x OPTIONS ('azure.account-key' hush, 'azure.sas_key' 'hush')",
                "x OPTIONS ('azure.account-key' ***, 'azure.sas_key' '***')",
            ),
            (
                "COPY q FROM 's3://b' WITH (aws.token 'hush', FORMAT csv)",
                "COPY q FROM 's3://b' WITH (aws.token '***', FORMAT csv)",
            ),
            ("COPY q (token, b) FROM 's3://b' (aws.token hush)", "COPY q (token, b) FROM 's3://b' (aws.token ***)"),
            (
                "EXPLAIN COPY (SELECT (token) FROM t) TO 's3://b' STORED AS CSV (token hush) PARTITIONED BY (token)",
                "EXPLAIN COPY (SELECT (token) FROM t) TO 's3://b' STORED AS CSV (token ***) PARTITIONED BY (token)",
            ),
            (
                "EXPLAIN COPY (SELECT 1) TO 'x' OPTIONS (token E'hush')",
                "EXPLAIN COPY (SELECT 1) TO 'x' OPTIONS (token E'***')",
            ),
            // What is no SQL.
            ("COPY q TO 'x' OPTIONS (aws.token hush", "COPY q TO 'x' OPTIONS (aws.token ***"),
            ("COPY q TO 'x' OPTIONS aws.token hush, a b", "COPY q TO 'x' OPTIONS aws.token ***, a b"),
            ("COPY q TO 'x' OPTIONS 'aws.token' hush", "COPY q TO 'x' OPTIONS 'aws.token' ***"),
            ("COPY q TO 'x' OPTION (aws.token 'hush', a 'b')", "COPY q TO 'x' OPTION (aws.token '***', a 'b')"),
            ("x OPTIONS (a b aws.token hush, c d)", "x OPTIONS (a b aws.token ***, c d)"),
            ("x OPTIONS ('a' 'b' 'aws.token' 'hush')", "x OPTIONS ('a' 'b' 'aws.token' '***')"),
            (
                "x OPTIONS ('a' E'\\'', b c$d$e, 'aws.token' 'hush')",
                "x OPTIONS ('a' E'\\'', b c$d$e, 'aws.token' '***')",
            ),
            // Statements in a statement.
            (
                "SUBMIT JOB AS $$ SELECT ';'; x OPTIONS (aws.token hush); CREATE USER bob PASSWORD hush $$",
                "SUBMIT JOB AS $$ SELECT ';'; x OPTIONS (aws.token ***); CREATE USER bob PASSWORD *** $$",
            ),
            ("SUBMIT JOB AS COPY q TO 'x' (token hush)", "SUBMIT JOB AS COPY q TO 'x' (token ***)"),
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
            ("CREATE USER bob PASSWORD hush-hush", "CREATE USER bob PASSWORD ***"),
            ("CREATE USER bob WITH PASSWORD hush, hush ADMIN;", "CREATE USER bob WITH PASSWORD *** ADMIN;"),
            ("CREATE USER bob PASSWORD hush ADMIN hush", "CREATE USER bob PASSWORD ***"),
            (
                "CREATE USER IF NOT EXISTS 'bob' PASSWORD E'hu\\'sh' NOADMIN",
                "CREATE USER IF NOT EXISTS 'bob' PASSWORD E'***' NOADMIN",
            ),
            ("ALTER USER bob SET PASSWORD TO hushhush", "ALTER USER bob SET PASSWORD ***"),
            ("ALTER ROLE bob PASSWORD = 4711", "ALTER ROLE bob PASSWORD ***"),
            ("CREATE OR REPLACE USER bob IDENTIFIED BY hush", "CREATE OR REPLACE USER bob IDENTIFIED ***"),
            ("CREATE USER bob hush ADMIN", "CREATE USER bob *** ADMIN"),
            ("EXPLAIN CREATE USER bob PASSWORD 'hush", "EXPLAIN CREATE USER bob PASSWORD '***"),
        ] {
            assert_eq!(redact(sql), shown);
        }
    }

    #[test]
    fn messages_quote_no_secrets() {
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        let cut = &key[..39];
        for (sql, message, shown) in [
            (
                "create user bob password hush".to_owned(),
                "expected a text, found \"hush\"".to_owned(),
                "expected a text, found \"***\"",
            ),
            (
                "create user bob password hush-hash".to_owned(),
                "expected a text, found \"hush\" or \"hash\" or hush-hash".to_owned(),
                "expected a text, found \"***\" or \"***\" or ***",
            ),
            ("create user bob password 'x'".to_owned(), "unexpected x".to_owned(), "unexpected ***"),
            (
                format!("x OPTIONS (token '{key}')"),
                format!("expected (, found \"'{cut}..\""),
                "expected (, found \"'***..\"",
            ),
            ("x OPTIONS (token 'hu''sh')".to_owned(), "found 'hu'sh'".to_owned(), "found '***'"),
            ("x OPTIONS (token E'hu\\'sh')".to_owned(), "found 'hu'sh'".to_owned(), "found '***'"),
            ("SELECT 1".to_owned(), "hush".to_owned(), "hush"),
        ] {
            assert_eq!(redact_message(&sql, message), shown, "{sql}");
        }
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for sql in [
            "SELECT 'a secret', 'b' FROM t",
            "SELECT copy, t.token FROM t AS u WHERE (token = 'x') AND (token) IN ('a', 'b')",
            "WITH x AS (SELECT token FROM t) SELECT options, token, f(token, 'x') FROM x",
            "CREATE TABLE t (token TEXT, b INT) WITH ORDER (token)",
            "COPY t (token, b) FROM 'x' WITH CSV HEADER DELIMITER ';'",
            "COPY (SELECT * FROM t WHERE (token = 'x')) TO 'x' (FORMAT csv, DELIMITER ';')",
            "CREATE USER bob",
            "CREATE USER IF NOT EXISTS bob WITH ADMIN",
            "ALTER USER bob NOADMIN;",
            "DROP USER bob",
            "CREATE TOKEN ci FOR USER svc VALID UNTIL '2030-01-01'",
            "GRANT SELECT ON token TO bob",
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
