//! Colours for a line of SQL.

use crate::keywords::is_keyword;
use crate::lexer::{Kind, Lexer, State};
use crate::terminal::Paint;

/// The line with escape sequences and otherwise unchanged; `state` is where the lines before it ended.
pub(crate) fn highlight(line: &str, state: State) -> String {
    let mut painted = String::with_capacity(line.len() * 2);
    let mut lexer = Lexer::resume(line, 0, state);
    while let Some(token) = lexer.next() {
        let text = &line[token.range.clone()];
        let paint = match token.kind {
            Kind::Word if is_keyword(text) => Paint::Keyword,
            Kind::Text => Paint::Text,
            Kind::Number => Paint::Number,
            Kind::Comment => Paint::Comment,
            Kind::Mark if text == "\\" => {
                let rest = &line[token.range.start..];
                let end = rest.find('\n').unwrap_or(rest.len());
                painted.push_str(&Paint::Command.on(&rest[..end]));
                lexer = Lexer::resume(line, token.range.start + end, State::Plain);
                continue;
            }
            Kind::Word | Kind::Quoted | Kind::Space | Kind::Mark => {
                painted.push_str(text);
                continue;
            }
        };
        painted.push_str(&paint.on(text));
    }
    painted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_change_nothing_else() {
        for line in ["select 'a', 1 -- c", "\\d é", "it's \"open", "", "select 1\nfrom t \\gx\nx"] {
            let painted = highlight(line, State::Plain);
            let mut bare = String::new();
            let mut rest = painted.as_str();
            while let Some((before, after)) = rest.split_once("\x1b[") {
                bare.push_str(before);
                rest = after.split_once('m').unwrap().1;
            }
            bare.push_str(rest);
            assert_eq!(bare, line);
        }
        assert_eq!(highlight("select x", State::Plain), "\x1b[1;34mselect\x1b[0m x");
        assert_eq!(highlight("a' b", State::Text { escapes: false }), "\x1b[32ma'\x1b[0m b");
    }
}
