//! [`Uncacheable`]: why a subtree has no fingerprint. Shown by EXPLAIN REUSE.

use std::fmt;

/// Why a subtree can not be recognised later.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Uncacheable {
    /// A plan node that is not known.
    Node(String),
    /// An expression that is not known.
    Expression(String),
    /// A function whose result is not decided by its arguments.
    Volatile(String),
    /// A function that is not one of the built-in ones.
    Function(String),
    /// A function whose value depends on names or metadata of columns.
    Names(String),
    /// A known node in a shape that is not known.
    Shape(&'static str),
}

impl fmt::Display for Uncacheable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(name) => write!(f, "{name} is not known to give the same rows again"),
            Self::Expression(name) => write!(f, "the expression {name} is not known to give the same value again"),
            Self::Volatile(name) => write!(f, "{name}() gives another value each time"),
            Self::Function(name) => write!(f, "{name}() is not a built-in function"),
            Self::Names(name) => write!(f, "{name}() depends on names of columns, which are not part of a program"),
            Self::Shape(what) => write!(f, "{what}"),
        }
    }
}
