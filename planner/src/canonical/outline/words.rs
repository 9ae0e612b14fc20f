//! [`Words`]: something in words for people, and in words that tell everything apart.

use nectarine_catalog::Fingerprint;

/// Longest text that is kept of one thing, in characters.
const CHARS_MAX: usize = 120;

/// A text in two forms. Both are bounded: a column that stands for an expression of columns that stand for expressions
/// would double with every level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Words {
    /// As people write it.
    pub(super) short: String,
    /// With types and options. Two things that differ have different exact words.
    pub(super) exact: String,
}

impl Words {
    pub(super) fn new(short: String, exact: &str) -> Self {
        let exact = match cut(exact) {
            // Whatever was cut away still counts.
            Some(start) => format!("{start}.. {}", Fingerprint::of_bytes(exact.as_bytes())),
            None => exact.to_string(),
        };
        let short = match cut(&short) {
            Some(start) => format!("{start}.."),
            None => short,
        };
        Self { short, exact }
    }

    /// The same in both forms.
    pub(super) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        let exact = text.clone();
        Self::new(text, &exact)
    }
}

/// The beginning of a text that is too long.
fn cut(text: &str) -> Option<&str> {
    text.char_indices().nth(CHARS_MAX).map(|(end, _)| &text[..end])
}
