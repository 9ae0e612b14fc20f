//! Identifiers, one type each, so that a table's can never be taken for a query's.
//!
//! ```compile_fail
//! use nectarine_catalog::{QueryId, TableId};
//! let table: TableId = QueryId::new();
//! ```

use std::fmt;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(uuid::Uuid);

        impl $name {
            /// A new identifier; later ones sort after earlier ones.
            #[expect(clippy::new_without_default, reason = "a new identifier is never a default")]
            pub fn new() -> Self {
                Self(uuid::Uuid::now_v7())
            }

            /// Reads one back from its text; `None` if it is not one.
            pub fn parse(text: &str) -> Option<Self> {
                uuid::Uuid::parse_str(text).ok().map(Self)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an identifier"))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_simple().fmt(f)
            }
        }
    };
}

identifier! {
    /// A table or view for as long as it exists, through renames; a replaced table gets a new one.
    TableId
}
identifier! {
    /// One statement, as found in `system.queries`.
    QueryId
}
identifier! {
    /// A job that was left to the servers of a home, for as long as it is kept.
    JobId
}
identifier! {
    /// A report for as long as it exists, through renames and changes.
    ReportId
}
