//! What can go wrong between text and plan.

/// Result of this crate.
pub type Result<T, E = PlannerError> = std::result::Result<T, E>;

/// A statement that is not SQL, or not SQL that is offered. Positions are byte offsets in its text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlannerError {
    /// The text is not SQL.
    #[error("syntax error: {message}")]
    Syntax {
        /// What was expected and what was found.
        message: String,
        /// Where it was found.
        position: Option<usize>,
        /// What may have been meant.
        hint: Option<String>,
    },
    /// A clause that is understood but not offered. Ignoring it would change the answer.
    #[error("{clause} is not supported")]
    Refused {
        /// The clause in upper case, as SQL writes it.
        clause: String,
        /// Where it is, or the nearest thing that has a position.
        position: Option<usize>,
        /// What to do instead.
        hint: Option<String>,
    },
    /// A statement that would change rows in place.
    #[error("cannot {attempted} \"{table}\": tables are append-only")]
    AppendOnly {
        /// `update`, `delete from`, ..
        attempted: &'static str,
        /// The table, as written.
        table: String,
        /// Where the table is named.
        position: Option<usize>,
        /// What to do instead.
        hint: String,
    },
    /// Nested or chained so deep that planning it could exhaust the stack.
    #[error("statement is too complex: more than {limit} {what}")]
    TooDeep {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        limit: usize,
        /// Where the bound was passed.
        position: Option<usize>,
        /// What to do instead.
        hint: Option<String>,
    },
}

impl PlannerError {
    /// Byte offset in the text of the statement.
    pub fn position(&self) -> Option<usize> {
        match self {
            Self::Syntax { position, .. }
            | Self::Refused { position, .. }
            | Self::AppendOnly { position, .. }
            | Self::TooDeep { position, .. } => *position,
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax { hint, .. } | Self::Refused { hint, .. } | Self::TooDeep { hint, .. } => hint.as_deref(),
            Self::AppendOnly { hint, .. } => Some(hint),
        }
    }
}
