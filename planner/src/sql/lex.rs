//! [`Pieces`]: cuts text into blanks, semicolons and everything else, without understanding it.
//!
//! Only what can hide a semicolon matters: quotes, dollar quotes and comments. One pass, no allocation, any bytes.

use std::ops::Range;

/// What a piece of text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Piece {
    /// White space or a comment.
    Blank,
    /// The end of a statement.
    Semicolon,
    /// A word, a quoted thing, an operator.
    Text,
    /// A comment that does not end.
    OpenBlank,
    /// A quoted thing that does not end.
    OpenText,
}

/// Pieces of a text with their byte ranges, which lie side by side.
pub(super) struct Pieces<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { bytes: text.as_bytes(), at: 0 }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn skip_while(&mut self, test: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&test) {
            self.at += 1;
        }
    }

    /// After the opening quote. A doubled quote stands for itself, and so it does without being looked at: it ends
    /// one quoted thing and opens the next.
    fn quoted(&mut self, quote: u8, backslash: bool) -> Piece {
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == quote {
                if self.peek(0) != Some(quote) {
                    return Piece::Text;
                }
                self.at += 1;
            } else if byte == b'\\' && backslash && self.peek(0).is_some() {
                self.at += 1;
            }
        }
        Piece::OpenText
    }

    /// After `/*`. Comments nest, as in PostgreSQL.
    fn comment(&mut self) -> Piece {
        let mut depth = 1_usize;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match (byte, self.peek(0)) {
                (b'/', Some(b'*')) => {
                    self.at += 1;
                    depth += 1;
                }
                (b'*', Some(b'/')) => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Piece::Blank;
                    }
                }
                _ => {}
            }
        }
        Piece::OpenBlank
    }

    /// After a dollar sign: `$$..$$`, `$tag$..$tag$`, or else a placeholder such as `$1` or `$name`.
    fn dollar(&mut self) -> Piece {
        let start = self.at - 1;
        if self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.skip_while(is_word);
            return Piece::Text;
        }
        self.skip_while(|byte| is_word(byte) && byte != b'$');
        if self.peek(0) != Some(b'$') {
            return Piece::Text;
        }
        self.at += 1;
        let tag = &self.bytes[start..self.at];
        while let Some(byte) = self.peek(0) {
            if byte == b'$' && self.bytes[self.at..].starts_with(tag) {
                self.at += tag.len();
                return Piece::Text;
            }
            self.at += 1;
        }
        Piece::OpenText
    }

    fn word(&mut self) -> Piece {
        let start = self.at;
        self.skip_while(is_word);
        // E'it\'s' is one literal; any other prefix (N, B, X, U&) does not change where the literal ends.
        if matches!(&self.bytes[start..self.at], b"e" | b"E") && self.peek(0) == Some(b'\'') {
            self.at += 1;
            return self.quoted(b'\'', true);
        }
        Piece::Text
    }
}

impl Iterator for Pieces<'_> {
    type Item = (Piece, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.at;
        let first = self.peek(0)?;
        let second = self.peek(1);
        let piece = match first {
            byte if is_word(byte) && byte != b'$' => self.word(),
            byte if byte.is_ascii_whitespace() || byte == b'\x0b' => {
                self.skip_while(|byte| byte.is_ascii_whitespace() || byte == b'\x0b');
                Piece::Blank
            }
            b'-' if second == Some(b'-') => {
                self.skip_while(|byte| byte != b'\n');
                Piece::Blank
            }
            b'/' if second == Some(b'*') => {
                self.at += 2;
                self.comment()
            }
            b'\'' | b'"' | b'`' => {
                self.at += 1;
                self.quoted(first, false)
            }
            b'$' => {
                self.at += 1;
                self.dollar()
            }
            b';' => {
                self.at += 1;
                Piece::Semicolon
            }
            _ => {
                self.at += 1;
                Piece::Text
            }
        };
        Some((piece, start..self.at))
    }
}

/// Bytes of words. All bytes of characters beyond ASCII count, so that no piece cuts a character.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_lie_side_by_side() {
        let text = "SELECT 'a''b', E'\\';', \"x;\", $t$;$t$, $1 /* ; /* ; */ */ -- ;\n;é;`;`";
        let pieces: Vec<_> = Pieces::new(text).collect();
        let mut at = 0;
        for (_, range) in &pieces {
            assert_eq!(range.start, at);
            at = range.end;
        }
        assert_eq!(at, text.len());
        assert_eq!(pieces.iter().filter(|(piece, _)| *piece == Piece::Semicolon).count(), 2);
    }
}
