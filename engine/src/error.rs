//! [`EngineError`]: what a client is told when a statement fails.
//!
//! Small on purpose: a kind that says what to do next, a line of text, and where they help a detail, a hint and the
//! position in the statement's text. Everything else stays behind `source`.

mod convert;
mod locate;
mod suggest;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use datafusion::common::Span;

pub use locate::NameHints;

/// Result of this crate.
pub type Result<T, E = EngineError> = std::result::Result<T, E>;

/// What the caller can do about an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not SQL, or names something that is not there: change the statement.
    Sql,
    /// The statement is understood but not offered.
    Unsupported,
    /// Data could not be read or does not parse: look at the file that the message names.
    Data,
    /// A value made the computation fail (division by zero, overflow, failed cast).
    Execution,
    /// Memory, disk or another bound was reached: ask for less, or raise the bound.
    Resources,
    /// The user may not do that: ask an administrator.
    Denied,
    /// The statement was cancelled.
    Cancelled,
    /// A setting or the home is not usable.
    Configuration,
    /// The disk, network or metadata store failed.
    Io,
    /// A promise was broken: a bug of ours.
    Internal,
}

/// Why a statement failed.
#[derive(Clone)]
pub struct EngineError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    detail: Option<String>,
    hint: Option<String>,
    position: Option<usize>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
    /// Where DataFusion says it is, until the text is at hand.
    span: Option<Span>,
    /// What it is about, to be found in the text.
    about: Option<About>,
}

/// A name that an error is about.
#[derive(Clone, PartialEq, Eq, Debug)]
enum About {
    /// Looked up in vain.
    MissingTable(String),
    /// Looked up in vain.
    MissingFunction(String),
    /// Looked up in vain, or found twice.
    Column(String),
    /// Any other.
    Name(String),
}

impl EngineError {
    /// An error with its one line of text: lower case, no full stop, what was being attempted.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            source: None,
            span: None,
            about: None,
        }))
    }

    /// Adds what lies behind it.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds where in the statement's text it is, as a byte offset.
    #[must_use]
    pub fn with_position(mut self, position: usize) -> Self {
        self.0.position = Some(position);
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// The same, and in which file what it is about stands.
    #[must_use]
    pub(crate) fn within(mut self, path: &Path) -> Self {
        self.0.message.push_str(&format!(" in \"{}\"", path.display()));
        self
    }

    /// The same, and who gave the value that it is about.
    #[must_use]
    pub(crate) fn given_by(mut self, giver: &str) -> Self {
        self.0.message.push_str(&format!(" ({giver})"));
        self
    }

    /// The same with another name for something.
    #[must_use]
    pub(crate) fn renamed(mut self, from: &str, to: &str) -> Self {
        let quoted = format!("\"{from}\"");
        let inner = self.0.as_mut();
        let texts = [Some(&mut inner.message), inner.detail.as_mut(), inner.hint.as_mut()];
        for text in texts.into_iter().flatten() {
            *text = text.replace(&quoted, to).replace(from, to);
        }
        self
    }

    /// The same in words that tell less; what lies behind it is not told then.
    #[must_use]
    pub(crate) fn reworded(mut self, less: impl Fn(&str) -> String) -> Self {
        let inner = self.0.as_mut();
        let mut is_less = false;
        for text in [Some(&mut inner.message), inner.detail.as_mut(), inner.hint.as_mut()].into_iter().flatten() {
            let told = less(text);
            is_less |= told != *text;
            *text = told;
        }
        if is_less {
            inner.source = None;
        }
        self
    }

    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// One line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What lies behind it.
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// Byte offset in the statement's text.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("detail", &self.0.detail)
            .field("hint", &self.0.hint)
            .field("position", &self.0.position)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for EngineError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
