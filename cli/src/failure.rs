//! [`Failure`]: why an input of the user came to nothing, and how that is shown.
//!
//! ```text
//!   error: column 'cuont' not found
//!   LINE 2: where cuont > 3
//!                 ^
//!   hint: did you mean 'count'?
//! ```
//!
//! The excerpt is one line of the statement, cut to a window around the caret when it is long.

use std::io;

use arrow::error::ArrowError;
use nectarine_engine::{EngineError, ErrorKind, Notice};
use unicode_width::UnicodeWidthChar;

use crate::terminal::{Paint, Terminal};

/// Widest excerpt of a statement, without what says which line it is.
const EXCERPT_COLUMNS_MAX: usize = 100;

/// Narrower than this it would show nothing, in whatever window.
const EXCERPT_COLUMNS_MIN: usize = 12;

/// What stands for text that is left out.
const ELLIPSIS: &str = "...";

/// Result of this crate.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine refused or could not finish a statement, whose text is kept for the excerpt.
    Statement { error: EngineError, sql: String },
    /// The shell itself could not do what it was asked.
    Shell { message: String, hint: Option<String> },
    /// The user pressed Ctrl-C.
    Cancelled,
    /// Nobody reads the output any more.
    Closed,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Shell { message: message.into(), hint: None }
    }

    pub(crate) fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Self::Shell { message, .. } => Self::Shell { message, hint: Some(text.into()) },
            other => other,
        }
    }

    /// Shell trouble with a file or program: what was attempted, and why it failed.
    pub(crate) fn io(attempt: impl AsRef<str>, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::Closed
        } else {
            Self::new(format!("{}: {}", attempt.as_ref(), plain(error)))
        }
    }

    pub(crate) fn statement(error: EngineError, sql: &str) -> Self {
        if error.kind() == ErrorKind::Cancelled {
            Self::Cancelled
        } else {
            Self::Statement { error, sql: sql.to_owned() }
        }
    }

    /// Tells the user. `place` says which script and line, where there is one.
    pub(crate) fn report(&self, terminal: &Terminal, place: Option<&str>) {
        let error = |message: &str| terminal.say(&format!("{} {message}", terminal.paint(Paint::Error, "error:")));
        match self {
            Self::Closed => return,
            Self::Cancelled => error("statement cancelled"),
            Self::Shell { message, hint } => {
                error(message);
                labelled(terminal, "hint:", hint.as_deref());
            }
            Self::Statement { error: failed, sql } => {
                error(failed.message());
                if let Some(position) = failed.position() {
                    // A line that wraps would leave the caret under something else.
                    let window = terminal.stderr.then(|| terminal.size()).flatten();
                    let (excerpt, caret) = point(sql, position, window.map_or(usize::MAX, |(columns, _)| columns));
                    terminal.say(&excerpt);
                    terminal.say(&format!("{}{}", " ".repeat(caret), terminal.paint(Paint::Error, "^")));
                }
                labelled(terminal, "detail:", failed.detail());
                labelled(terminal, "hint:", failed.hint());
            }
        }
        labelled(terminal, "in:", place);
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io("cannot write the result", &error)
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, error) => error.into(),
            other => Self::new(format!("cannot print the result: {other}")),
        }
    }
}

/// Tells the user something that is no error.
pub(crate) fn report_notice(terminal: &Terminal, notice: &Notice) {
    terminal.say(&format!("{} {}", terminal.paint(Paint::Notice, "notice:"), notice.message));
    labelled(terminal, "hint:", notice.hint.as_deref());
}

/// An operating system's error in lower case and without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

fn labelled(terminal: &Terminal, label: &str, text: Option<&str>) {
    if let Some(text) = text {
        terminal.say(&format!("{} {text}", terminal.paint(Paint::Hint, label)));
    }
}

/// The excerpt with the line that holds the byte offset, in a window of so many columns, and the columns before the caret.
fn point(sql: &str, position: usize, window: usize) -> (String, usize) {
    // A position at the end means that something is missing: behind the last thing that is there.
    let mut position = position.min(sql.trim_end().len());
    while !sql.is_char_boundary(position) {
        position -= 1;
    }
    let start = sql[..position].rfind('\n').map_or(0, |newline| newline + 1);
    let end = sql[position..].find('\n').map_or(sql.len(), |newline| position + newline);
    let label = format!("LINE {}: ", 1 + sql[..start].matches('\n').count());

    // One column for the caret behind the end, and because a full line wraps on some terminals.
    let room = window.saturating_sub(label.len() + 1).clamp(EXCERPT_COLUMNS_MIN, EXCERPT_COLUMNS_MAX);
    let (before, after) = (&sql[start..position], sql[position..end].trim_end());
    let (before_width, after_width) = (width(before), width(after));
    // What is short leaves its room to the other side.
    let room_before = (room * 2 / 3).max(room.saturating_sub(after_width));
    let (lead, shown_before) = match before_width <= room_before {
        true => ("", before),
        false => (ELLIPSIS, window_before(before, room_before - ELLIPSIS.len())),
    };
    let columns = lead.len() + width(shown_before);
    let (shown_after, tail) = match after_width <= room - columns {
        true => (after, ""),
        false => (window_after(after, (room - columns).saturating_sub(ELLIPSIS.len())), ELLIPSIS),
    };
    let caret = label.len() + columns;
    (format!("{label}{lead}{}{}{tail}", visible(shown_before), visible(shown_after)), caret)
}

/// The columns of a text; control characters are shown as blanks.
fn width(text: &str) -> usize {
    text.chars().map(|character| character.width().unwrap_or(1)).sum()
}

/// The end of the text, in so many columns.
fn window_before(text: &str, columns_max: usize) -> &str {
    let mut columns = 0;
    for (at, character) in text.char_indices().rev() {
        columns += character.width().unwrap_or(1);
        if columns > columns_max {
            return &text[at + character.len_utf8()..];
        }
    }
    text
}

/// The beginning of the text, in so many columns.
fn window_after(text: &str, columns_max: usize) -> &str {
    let mut columns = 0;
    for (at, character) in text.char_indices() {
        columns += character.width().unwrap_or(1);
        if columns > columns_max {
            return &text[..at];
        }
    }
    text
}

/// One column for a tab and for every other control character, so that the caret stands right.
fn visible(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sql: &str, at: &str) -> String {
        let (excerpt, caret) = point(sql, sql.find(at).unwrap(), 200);
        format!("{excerpt}\n{}^", " ".repeat(caret))
    }

    #[test]
    fn the_caret_stands_under_the_spot() {
        assert_eq!(shown("select x from t", "x"), "LINE 1: select x from t\n               ^");
        assert_eq!(shown("select 1,\n\tx\nfrom t", "x"), "LINE 2:  x\n         ^");
        // Two wide characters take four columns.
        assert_eq!(shown("select '日本', x", "x"), "LINE 1: select '日本', x\n                       ^");
        assert_eq!(shown("select '🙂', x", "x"), "LINE 1: select '🙂', x\n                     ^");
    }

    #[test]
    fn a_missing_end_is_pointed_at_behind_the_last_word() {
        let (excerpt, caret) = point("select (1 +\n  ", 14, 200);
        assert_eq!((excerpt.as_str(), caret), ("LINE 1: select (1 +", 19));
        let (excerpt, caret) = point("", 7, 200);
        assert_eq!((excerpt.as_str(), caret), ("LINE 1: ", 8));
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let sql = format!("select {}x{}", "a, ".repeat(1_000_000), ", b".repeat(1_000_000));
        for (window, widest) in [(1_000, 108), (80, 79), (30, 29), (3, 20)] {
            let (excerpt, caret) = point(&sql, sql.find('x').unwrap(), window);
            assert!(excerpt.len() <= widest && excerpt.len() + 2 > widest, "{window}: {excerpt}");
            assert_eq!(&excerpt[caret..=caret], "x", "{window}: {excerpt}");
            assert!(excerpt.starts_with("LINE 1: ...") && excerpt.ends_with("..."), "{window}: {excerpt}");
        }
    }

    #[test]
    fn a_window_shows_as_much_as_it_can() {
        let check = |sql: &str, at: &str, window: usize, expected: &str| {
            let (excerpt, caret) = point(sql, sql.find(at).unwrap(), window);
            assert_eq!(excerpt, expected);
            assert!(excerpt.len() < window && excerpt[caret..].starts_with(&at[..1]), "{caret}");
        };
        check("select a, b, c, d, x", "x", 29, "LINE 1: select a, b, c, d, x");
        check("select a, b, c, d, x", "x", 28, "LINE 1: ...ct a, b, c, d, x");
        check("x, a, b, c, d, e, f, g, h, i", "x", 28, "LINE 1: x, a, b, c, d, e...");
    }

    #[test]
    fn offsets_inside_a_character_do_not_matter() {
        assert_eq!(point("é", 1, 200), ("LINE 1: é".to_owned(), 8));
    }
}
