//! [`Splitter`]: lines in, whole statements and backslash commands out.
//!
//! ```text
//!   select 1; select        ->  Statement "select 1"
//!     ';' \gx               ->  Command "gx", while "select ';'" waits in the buffer
//! ```
//!
//! Text is looked at once, however many lines a statement has, and only when asked for: a command finds in the buffer
//! exactly what was typed before it.

use crate::lexer::{Kind, Lexer, State};

/// What the user asked for next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Item {
    /// SQL without its semicolon.
    Statement(Piece),
    /// What follows a backslash, up to the end of its line.
    Command(Piece),
}

/// Text and where it began.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    pub(crate) text: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// Collects input until a statement is whole.
#[derive(Debug)]
pub(crate) struct Splitter {
    input: String,
    at: usize,
    /// Line of `at`.
    line: usize,
    buffer: String,
    /// Line where the buffer's first visible character stands.
    buffer_line: usize,
    /// Whether the buffer holds more than white space and comments.
    has_code: bool,
    state: State,
}

impl Splitter {
    pub(crate) fn new() -> Self {
        let (input, buffer) = (String::new(), String::new());
        Self { input, at: 0, line: 1, buffer, buffer_line: 1, has_code: false, state: State::Plain }
    }

    /// Adds whole lines, or all there is.
    pub(crate) fn feed(&mut self, text: &str) {
        if self.at == self.input.len() {
            self.input.clear();
            self.at = 0;
        }
        self.input.push_str(text);
    }

    /// The next item, or `None` when more input is needed.
    pub(crate) fn next(&mut self) -> Option<Item> {
        let input = std::mem::take(&mut self.input);
        let item = self.next_in(&input);
        self.input = input;
        item
    }

    /// What is left when the input has ended without a semicolon. A comment without an end is left too: it may hide statements, and
    /// whoever parses it says so.
    pub(crate) fn finish(&mut self) -> Option<Item> {
        self.next().or_else(|| self.is_pending().then(|| Item::Statement(self.take())))
    }

    /// Whether a statement has begun and waits for its end.
    pub(crate) fn is_pending(&self) -> bool {
        self.has_code || self.state != State::Plain
    }

    /// Where the text read so far stands.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Whether the statement that waits, if any, would end in this line.
    pub(crate) fn ends_with(&self, line: &str) -> bool {
        let mut has_code = self.has_code;
        let mut lexer = Lexer::resume(line, 0, self.state.clone());
        for token in lexer.by_ref() {
            match (token.kind, &line[token.range]) {
                (Kind::Mark, ";") => has_code = false,
                (Kind::Mark, "\\") => return true,
                (Kind::Space | Kind::Comment, _) => {}
                _ => has_code = true,
            }
        }
        !has_code && *lexer.state() == State::Plain
    }

    /// Forgets comments that stand alone, so that they do not become part of the next statement.
    pub(crate) fn forget_comments(&mut self) {
        if !self.is_pending() {
            self.take();
        }
    }

    /// What has been typed of the statement so far.
    pub(crate) fn buffer(&self) -> &str {
        &self.buffer
    }

    /// Takes the statement as it stands out of the buffer.
    pub(crate) fn take(&mut self) -> Piece {
        self.has_code = false;
        self.state = State::Plain;
        let text = std::mem::take(&mut self.buffer).trim().to_owned();
        Piece { text, line: self.buffer_line }
    }

    /// Forgets everything, read or not.
    pub(crate) fn clear(&mut self) {
        self.take();
        self.input.clear();
        self.at = 0;
    }

    fn next_in(&mut self, input: &str) -> Option<Item> {
        let mut lexer = Lexer::resume(input, self.at, std::mem::take(&mut self.state));
        while let Some(token) = lexer.next() {
            let text = &input[token.range.clone()];
            match (token.kind, text) {
                (Kind::Mark, ";") => {
                    self.at = lexer.at();
                    // Comments alone are no statement.
                    let has_code = self.has_code;
                    let piece = self.take();
                    if has_code {
                        return Some(Item::Statement(piece));
                    }
                    continue;
                }
                (Kind::Mark, "\\") => {
                    let start = token.range.end;
                    let end = input[start..].find('\n').map_or(input.len(), |found| start + found);
                    self.at = end;
                    let text = input[start..end].trim().to_owned();
                    return Some(Item::Command(Piece { text, line: self.line }));
                }
                _ => {}
            }
            if self.buffer.is_empty() {
                let visible = text.trim_start();
                if visible.is_empty() {
                    self.line += newlines(text);
                    continue;
                }
                self.line += newlines(&text[..text.len() - visible.len()]);
                self.buffer_line = self.line;
                self.line += newlines(visible);
                self.buffer.push_str(visible);
            } else {
                self.line += newlines(text);
                self.buffer.push_str(text);
            }
            self.has_code |= !matches!(token.kind, Kind::Space | Kind::Comment);
        }
        self.at = lexer.at();
        self.state = lexer.state().clone();
        None
    }
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(lines: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::new();
        let mut shown = Vec::new();
        let mut show = |item| {
            shown.push(match item {
                Item::Statement(piece) => format!("{}: {}", piece.line, piece.text),
                Item::Command(piece) => format!("{}: \\{}", piece.line, piece.text),
            });
        };
        for line in lines {
            splitter.feed(line);
            while let Some(item) = splitter.next() {
                show(item);
            }
        }
        splitter.finish().into_iter().for_each(show);
        shown
    }

    #[test]
    fn statements_end_at_semicolons_outside_quotes() {
        assert_eq!(
            items(&["select 1; select ';' -- ;\n", " , $$;$$, \";\" /* ;\n", "; */ ;;\n", "\n\nselect\n2"]),
            ["1: select 1", "1: select ';' -- ;\n , $$;$$, \";\" /* ;\n; */", "6: select\n2"]
        );
    }

    #[test]
    fn commands_stand_in_their_line() {
        assert_eq!(
            items(&["\\d t\nselect '\\x\n", "';\n", "  \\echo a; b\nselect 1;"]),
            ["1: \\d t", "2: select '\\x\n'", "4: \\echo a; b", "5: select 1"]
        );
    }

    #[test]
    fn a_command_sees_what_was_typed_before_it() {
        let mut splitter = Splitter::new();
        splitter.feed("select 1 \\g\nselect 2;");
        assert!(matches!(splitter.next(), Some(Item::Command(piece)) if piece.text == "g"));
        assert_eq!(splitter.take().text, "select 1");
        assert!(matches!(splitter.next(), Some(Item::Statement(piece)) if piece.text == "select 2"));
        assert!(!splitter.is_pending());
    }

    #[test]
    fn the_end_of_a_statement_is_foreseen() {
        let mut splitter = Splitter::new();
        assert!(
            splitter.ends_with("select 1;")
                && splitter.ends_with("\\d")
                && splitter.ends_with("-- x")
                && splitter.ends_with("")
        );
        assert!(
            !splitter.ends_with("select 1")
                && !splitter.ends_with("select ';")
                && !splitter.ends_with("select 1; select 2")
        );
        splitter.feed("select '\n");
        assert_eq!(splitter.next(), None);
        assert!(splitter.ends_with("';") && !splitter.ends_with(";") && !splitter.ends_with("'"));
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(items(&["-- nothing\n", ";/* here */\n", ";;"]), Vec::<String>::new());
        assert_eq!(items(&["-- nothing"]), Vec::<String>::new());
    }

    #[test]
    fn a_comment_without_an_end_is_not_dropped() {
        for text in ["/* oops; select 2;", "select 1; /* oops; select 2;"] {
            let mut splitter = Splitter::new();
            splitter.feed(text);
            let mut last = None;
            while let Some(item) = splitter.finish() {
                last = Some(item);
            }
            assert!(matches!(last, Some(Item::Statement(piece)) if piece.text == "/* oops; select 2;"), "{text}");
        }
    }
}
