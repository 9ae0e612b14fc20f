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
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::{Paint, Terminal};

/// Widest excerpt of a statement.
const EXCERPT_COLUMNS_MAX: usize = 100;

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
                    let (excerpt, caret) = point(sql, position);
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

/// The excerpt with the line that holds the byte offset, and the columns before the caret.
fn point(sql: &str, position: usize) -> (String, usize) {
    // A position at the end means that something is missing: behind the last thing that is there.
    let mut position = position.min(sql.trim_end().len());
    while !sql.is_char_boundary(position) {
        position -= 1;
    }
    let start = sql[..position].rfind('\n').map_or(0, |newline| newline + 1);
    let end = sql[position..].find('\n').map_or(sql.len(), |newline| position + newline);
    let label = format!("LINE {}: ", 1 + sql[..start].matches('\n').count());

    let (before, after) = (&sql[start..position], sql[position..end].trim_end());
    let shown_before = window_before(before);
    let lead = if shown_before.len() < before.len() { "..." } else { "" };
    let shown_before = visible(shown_before);
    let columns = lead.len() + shown_before.width();
    let shown_after = window_after(after, EXCERPT_COLUMNS_MAX - columns);
    let tail = if shown_after.len() < after.len() { "..." } else { "" };
    let caret = label.len() + columns;
    (format!("{label}{lead}{shown_before}{}{tail}", visible(shown_after)), caret)
}

/// The end of the text that leaves room for what follows the caret.
fn window_before(text: &str) -> &str {
    let mut columns = 0;
    for (at, character) in text.char_indices().rev() {
        columns += character.width().unwrap_or(1);
        if columns > EXCERPT_COLUMNS_MAX * 2 / 3 {
            return &text[at + character.len_utf8()..];
        }
    }
    text
}

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
        let (excerpt, caret) = point(sql, sql.find(at).unwrap());
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
        let (excerpt, caret) = point("select (1 +\n  ", 14);
        assert_eq!((excerpt.as_str(), caret), ("LINE 1: select (1 +", 19));
        let (excerpt, caret) = point("", 7);
        assert_eq!((excerpt.as_str(), caret), ("LINE 1: ", 8));
    }

    #[test]
    fn long_lines_are_cut_around_the_caret() {
        let sql = format!("select {}x{}", "a, ".repeat(1_000_000), ", b".repeat(1_000_000));
        let (excerpt, caret) = point(&sql, sql.find('x').unwrap());
        assert!(excerpt.len() < 130, "{excerpt}");
        assert_eq!(&excerpt[caret..=caret], "x");
        assert!(excerpt.starts_with("LINE 1: ...") && excerpt.ends_with("..."), "{excerpt}");
    }

    #[test]
    fn offsets_inside_a_character_do_not_matter() {
        assert_eq!(point("é", 1), ("LINE 1: é".to_owned(), 8));
    }
}
