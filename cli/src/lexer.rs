//! [`Lexer`]: cuts SQL into words, quotes, comments and marks, so that nobody else here guesses at quotes.
//!
//! Light on purpose: it never fails, it accepts text that no parser would, and it can stop at the end of a line inside a
//! quote and go on in the next ([`State`]). Splitting, variables, highlighting and completion all stand on it.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A keyword or a plain name.
    Word,
    /// `12`, `1.5e3`.
    Number,
    /// `'text'`, `$$text$$`, or the beginning of one that is not closed yet.
    Text,
    /// `"name"` or `` `name` ``, or the beginning of one.
    Quoted,
    /// `-- ..` to the end of the line, `/* .. */`, or the beginning of one.
    Comment,
    /// White space.
    Space,
    /// One other character.
    Mark,
}

/// A piece of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
}

/// Where the text stands between two lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) enum State {
    #[default]
    Plain,
    /// In `'..'`; in `E'..'` a backslash protects the next character.
    Text { escapes: bool },
    /// In `".."` or `` `..` ``.
    Quoted { quote: u8 },
    /// In `$tag$ .. $tag$`; the delimiter with both of its dollars.
    Dollar { delimiter: String },
    /// In `/* .. */`, which nests.
    Comment { depth: usize },
}

/// Tokens of a text, one after the other; together they cover all of it.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    state: State,
}

impl<'t> Lexer<'t> {
    /// Begins outside of quotes.
    pub(crate) fn new(text: &'t str) -> Self {
        Self::resume(text, 0, State::Plain)
    }

    /// Goes on at a byte offset, in the state where the text before it ended.
    pub(crate) fn resume(text: &'t str, at: usize, state: State) -> Self {
        Self { text, at, state }
    }

    /// The state after the tokens given so far.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Where the next token begins.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Ends the token `length` bytes further on.
    fn token(&mut self, start: usize, end: usize, kind: Kind) -> Token {
        self.at = end;
        Token { kind, range: start..end }
    }

    /// Goes on to the end of what `state` says we are in; false when the text ends first.
    fn close(&mut self, mut at: usize) -> usize {
        let bytes = self.text.as_bytes();
        match &mut self.state {
            State::Plain => {}
            State::Text { escapes } => {
                while at < bytes.len() {
                    match bytes[at] {
                        b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
                        b'\'' => {
                            self.state = State::Plain;
                            return at + 1;
                        }
                        b'\\' if *escapes => at += 2,
                        _ => at += 1,
                    }
                }
            }
            State::Quoted { quote } => {
                while at < bytes.len() {
                    if bytes[at] == *quote {
                        if bytes.get(at + 1) == Some(quote) {
                            at += 2;
                            continue;
                        }
                        self.state = State::Plain;
                        return at + 1;
                    }
                    at += 1;
                }
            }
            State::Dollar { delimiter } => {
                if let Some(found) = self.text[at..].find(delimiter.as_str()) {
                    let end = at + found + delimiter.len();
                    self.state = State::Plain;
                    return end;
                }
                at = bytes.len();
            }
            State::Comment { depth } => {
                while at < bytes.len() {
                    match &bytes[at..] {
                        [b'*', b'/', ..] => {
                            at += 2;
                            *depth -= 1;
                            if *depth == 0 {
                                self.state = State::Plain;
                                return at;
                            }
                        }
                        [b'/', b'*', ..] => {
                            at += 2;
                            *depth += 1;
                        }
                        _ => at += 1,
                    }
                }
            }
        }
        // A protected character may be the first of several bytes, and may be missing.
        let mut at = at.min(bytes.len());
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        at
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let start = self.at;
        let rest = self.rest();
        let first = *rest.first()?;
        let kind = match &self.state {
            State::Plain => None,
            State::Text { .. } | State::Dollar { .. } => Some(Kind::Text),
            State::Quoted { .. } => Some(Kind::Quoted),
            State::Comment { .. } => Some(Kind::Comment),
        };
        if let Some(kind) = kind {
            let end = self.close(start);
            return Some(self.token(start, end, kind));
        }
        let run = |from: usize, accept: &dyn Fn(u8) -> bool| {
            start + from + rest[from..].iter().position(|byte| !accept(*byte)).unwrap_or(rest.len() - from)
        };
        let token = match rest {
            [b'-', b'-', ..] => {
                let end = run(2, &|byte| byte != b'\n');
                self.token(start, end, Kind::Comment)
            }
            [b'/', b'*', ..] => {
                self.state = State::Comment { depth: 1 };
                let end = self.close(start + 2);
                self.token(start, end, Kind::Comment)
            }
            [b'\'', ..] => {
                self.state = State::Text { escapes: false };
                let end = self.close(start + 1);
                self.token(start, end, Kind::Text)
            }
            [b'e' | b'E', b'\'', ..] => {
                self.state = State::Text { escapes: true };
                let end = self.close(start + 2);
                self.token(start, end, Kind::Text)
            }
            [quote @ (b'"' | b'`'), ..] => {
                self.state = State::Quoted { quote: *quote };
                let end = self.close(start + 1);
                self.token(start, end, Kind::Quoted)
            }
            [b'$', ..] => match dollar_delimiter(rest) {
                Some(length) => {
                    self.state = State::Dollar { delimiter: self.text[start..start + length].to_owned() };
                    let end = self.close(start + length);
                    self.token(start, end, Kind::Text)
                }
                None => {
                    let end = run(1, &is_word_part);
                    self.token(start, end, Kind::Word)
                }
            },
            _ if first.is_ascii_whitespace() => {
                let end = run(1, &|byte| byte.is_ascii_whitespace());
                self.token(start, end, Kind::Space)
            }
            _ if first.is_ascii_digit() => {
                let end = start + number_length(rest);
                self.token(start, end, Kind::Number)
            }
            _ if is_word_start(first) => {
                let end = run(1, &is_word_part);
                self.token(start, end, Kind::Word)
            }
            _ => self.token(start, start + 1, Kind::Mark),
        };
        Some(token)
    }
}

/// Beyond ASCII everything counts as a letter, so tokens never cut a character.
pub(crate) fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

pub(crate) fn is_word_part(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// Length of `$tag$` at the beginning of the bytes; `$1` is none.
fn dollar_delimiter(bytes: &[u8]) -> Option<usize> {
    let tag = bytes[1..].iter().position(|byte| !(is_word_start(*byte) || byte.is_ascii_digit()))?;
    let starts_well = tag == 0 || !bytes[1].is_ascii_digit();
    (starts_well && bytes[1 + tag] == b'$').then_some(tag + 2)
}

fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'_').count();
    let mut length = digits(0);
    if bytes.get(length) == Some(&b'.') {
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = bytes.get(length + 1 + sign).is_some_and(u8::is_ascii_digit);
        if exponent {
            length += 1 + sign + digits(length + 1 + sign);
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(Kind, &str)> {
        Lexer::new(text)
            .filter(|token| token.kind != Kind::Space)
            .map(|token| (token.kind, &text[token.range]))
            .collect()
    }

    #[test]
    fn every_kind_is_told_apart() {
        use Kind::*;
        assert_eq!(
            shown("SELECT a1, 'it''s', \"b\"\"c\", 1.5e-3 -- end\n/* a /* b */ c */ $x$;'$x$ $1"),
            [
                (Word, "SELECT"),
                (Word, "a1"),
                (Mark, ","),
                (Text, "'it''s'"),
                (Mark, ","),
                (Quoted, "\"b\"\"c\""),
                (Mark, ","),
                (Number, "1.5e-3"),
                (Comment, "-- end"),
                (Comment, "/* a /* b */ c */"),
                (Text, "$x$;'$x$"),
                (Word, "$1"),
            ]
        );
    }

    #[test]
    fn backslashes_protect_only_in_escape_strings() {
        assert_eq!(shown(r"'a\' E'a\'b'"), [(Kind::Text, r"'a\'"), (Kind::Text, r"E'a\'b'")]);
    }

    #[test]
    fn an_open_quote_goes_on_in_the_next_line() {
        for (first, second, rest) in
            [("'a;", "b'; c", "; c"), ("/* a", "*/ c", " c"), ("$t$ a", "b $t$c", "c"), ("\"a", "\"c", "c")]
        {
            let mut lexer = Lexer::new(first);
            lexer.by_ref().for_each(drop);
            let mut next = Lexer::resume(second, 0, lexer.state().clone());
            let token = next.next().unwrap();
            assert_eq!(&second[token.range.end..], rest);
            assert_eq!(next.state(), &State::Plain);
        }
    }

    #[test]
    fn any_text_is_covered_without_cutting_characters() {
        for text in ["", "é'ü", "E'\\é", "E'\\", "$é$ x", "1.", "$", "日本", "`a", "a$b$c", "\\d é", "1e", "🙂;🙂"]
        {
            let mut end = 0;
            for token in Lexer::new(text) {
                assert_eq!(token.range.start, end, "{text:?}");
                assert!(text.is_char_boundary(token.range.end), "{text:?}");
                end = token.range.end;
            }
            assert_eq!(end, text.len(), "{text:?}");
        }
    }
}
