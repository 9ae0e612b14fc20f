//! Errors as gRPC tells them: a code that says what to do next, one text, and the parts of it for those who want them.
//!
//! The text is the message, then detail and hint on lines of their own, because most clients show nothing else. The same as
//! JSON is in the trailer `nectarine-error-bin`.

use serde::{Deserialize, Serialize};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use crate::{EngineError, ErrorKind};

/// The trailer that has the parts of an error.
pub(super) const ERROR: &str = "nectarine-error-bin";

/// Longer texts are cut: a trailer has to fit into one frame.
const TEXT_BYTES_MAX: usize = 4096;

/// An error, apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Parts {
    pub(super) kind: String,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
    /// Byte offset in the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) position: Option<usize>,
}

/// Kinds of errors, their codes, and what they are called in [`Parts`].
const KINDS: [(ErrorKind, Code, &str); 10] = [
    (ErrorKind::Sql, Code::InvalidArgument, "sql"),
    (ErrorKind::Unsupported, Code::Unimplemented, "unsupported"),
    (ErrorKind::Data, Code::FailedPrecondition, "data"),
    (ErrorKind::Execution, Code::InvalidArgument, "execution"),
    (ErrorKind::Resources, Code::ResourceExhausted, "resources"),
    (ErrorKind::Denied, Code::PermissionDenied, "denied"),
    (ErrorKind::Cancelled, Code::Cancelled, "cancelled"),
    (ErrorKind::Configuration, Code::FailedPrecondition, "configuration"),
    (ErrorKind::Io, Code::Unavailable, "io"),
    (ErrorKind::Internal, Code::Internal, "internal"),
];

impl Parts {
    /// The error that they are of.
    pub(super) fn into_error(self) -> EngineError {
        let kind = KINDS.iter().find(|(_, _, word)| *word == self.kind).map_or(ErrorKind::Io, |(kind, _, _)| *kind);
        let mut error = EngineError::new(kind, self.message);
        if let Some(detail) = self.detail {
            error = error.with_detail(detail);
        }
        if let Some(hint) = self.hint {
            error = error.with_hint(hint);
        }
        match self.position {
            Some(position) => error.with_position(position),
            None => error,
        }
    }
}

/// The status of a call that failed with this error.
pub(super) fn status(error: &EngineError) -> Status {
    let known = KINDS.iter().find(|(kind, _, _)| *kind == error.kind());
    let (code, kind) = known.map_or((Code::Internal, "internal"), |(_, code, word)| (*code, *word));
    let parts = Parts {
        kind: kind.to_string(),
        message: cut(error.message()),
        detail: error.detail().map(cut),
        hint: error.hint().map(cut),
        position: error.position(),
    };
    let mut text = parts.message.clone();
    for (name, more) in [("detail", &parts.detail), ("hint", &parts.hint)] {
        if let Some(more) = more {
            text.push_str(&format!("\n{name}: {more}"));
        }
    }
    let mut metadata = MetadataMap::new();
    if let Ok(json) = serde_json::to_vec(&parts) {
        metadata.insert_bin(ERROR, MetadataValue::from_bytes(&json));
    }
    Status::with_metadata(code, text, metadata)
}

fn cut(text: &str) -> String {
    match text.len() > TEXT_BYTES_MAX {
        false => text.to_string(),
        true => {
            let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
            format!("{}..", &text[..end])
        }
    }
}

/// Of a statement or a result that is not there, or is another user's: the two look the same.
pub(super) fn unknown_handle(what: &str) -> Status {
    Status::not_found(format!("this {what} is not known: it was closed, has expired, or was never there"))
}

/// Bytes that are no message of the protocol.
pub(super) fn malformed(what: &str, error: impl std::fmt::Display) -> Status {
    Status::invalid_argument(format!("cannot read {what}: {error}"))
}

/// A broken promise of ours.
pub(super) fn internal(error: impl std::fmt::Display) -> Status {
    Status::internal(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_travel_beside_the_text() {
        let error =
            EngineError::new(ErrorKind::Sql, "table \"é\" does not exist").with_hint("make one").with_position(7);
        let status = status(&error);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), "table \"é\" does not exist\nhint: make one");
        let json = status.metadata().get_bin(ERROR).unwrap().to_bytes().unwrap();
        let parts: Parts = serde_json::from_slice(&json).unwrap();
        assert_eq!((parts.position, parts.hint.as_deref()), (Some(7), Some("make one")));
        let long = status_of_length(100_000);
        assert!(long.message().len() < 2 * TEXT_BYTES_MAX);
    }

    fn status_of_length(bytes: usize) -> Status {
        status(&EngineError::new(ErrorKind::Data, "é".repeat(bytes)))
    }
}
