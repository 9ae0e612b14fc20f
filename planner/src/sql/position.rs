//! Positions: sqlparser counts lines and characters, everyone else counts bytes.

use sqlparser::tokenizer::{Location, Span, TokenWithSpan};

use super::lex::{Piece, Pieces};

/// Byte offset in `text` of a line and a column, both counted from 1 and the column in characters. `None` where
/// sqlparser had no position (it says 0) or the text has no such line. A column past the end of its line is the end
/// of the line.
pub fn offset_of(text: &str, line: u64, column: u64) -> Option<usize> {
    if line == 0 || column == 0 {
        return None;
    }
    let mut start = 0;
    for _ in 1..line {
        start += text.get(start..)?.find('\n')? + 1;
    }
    let rest = text.get(start..)?;
    let rest = &rest[..rest.find('\n').unwrap_or(rest.len())];
    let skip = usize::try_from(column - 1).ok()?;
    Some(start + rest.char_indices().nth(skip).map_or(rest.len(), |(at, _)| at))
}

/// Byte offset of `name` as a word of its own in `sql`, quoted or not, if it is there exactly once outside of
/// literals and comments.
pub fn find_name(sql: &str, name: &str) -> Option<usize> {
    let mut found = Pieces::new(sql).filter(|(piece, range)| {
        let text = &sql[range.clone()];
        let word = text.strip_prefix(['"', '`']).map_or(text, |rest| rest.trim_end_matches(['"', '`']));
        *piece == Piece::Text && !text.starts_with('\'') && word.eq_ignore_ascii_case(name)
    });
    let (_, range) = found.next()?;
    found.next().is_none().then_some(range.start)
}

/// Byte offset of the beginning of `span`.
pub(super) fn offset_of_span(text: &str, span: Span) -> Option<usize> {
    offset_of_location(text, span.start)
}

/// Byte offset of `location`.
pub(super) fn offset_of_location(text: &str, location: Location) -> Option<usize> {
    offset_of(text, location.line, location.column)
}

/// Byte offset of the beginning of a token.
pub(super) fn offset_of_token(text: &str, token: &TokenWithSpan) -> Option<usize> {
    offset_of_span(text, token.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_names_that_are_there_once() {
        for (sql, name, expected) in [
            ("SELECT a, ab FROM t", "a", Some(7)),
            ("SELECT 'a', \"A\" -- a\nFROM t", "a", Some(12)),
            ("SELECT a + a", "a", None),
            ("SELECT b", "a", None),
        ] {
            assert_eq!(find_name(sql, name), expected, "{sql}");
        }
    }

    #[test]
    fn counts_characters_not_bytes() {
        let text = "ab\nöö x\r\nlast";
        for (line, column, expected) in [
            (1, 1, Some(0)),
            (1, 3, Some(2)),
            (1, 9, Some(2)),
            (2, 1, Some(3)),
            (2, 3, Some(7)),
            (2, 4, Some(8)),
            (3, 1, Some(11)),
            (3, 99, Some(15)),
            (4, 1, None),
            (0, 0, None),
        ] {
            assert_eq!(offset_of(text, line, column), expected, "{line}:{column}");
        }
    }
}
