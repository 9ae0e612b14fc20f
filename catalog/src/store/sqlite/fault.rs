//! [`Fault`]: what went wrong inside the store, before it is told what was attempted and where.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::CatalogError;
use crate::store::Closed;

/// SQLite's primary result codes that decide what we do; the low byte of every extended code.
mod code {
    pub(super) const BUSY: i32 = 5;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const NOT_A_DATABASE: i32 = 26;
    /// An extended code: there is no room for the index of the write-ahead log.
    pub(super) const IO_SHARED_MEMORY_SIZE: i32 = 4874;
}

/// Trouble inside the store.
#[derive(Debug)]
pub(super) enum Fault {
    /// The answer the trait promises.
    Catalog(CatalogError),
    /// The driver's word.
    Driver(sqlx::Error),
    /// A call after `close`.
    Closed,
}

impl Fault {
    /// What makes no sense in a record that was read.
    pub(super) fn damaged(what: impl Into<String>, detail: impl ToString) -> Self {
        Self::Catalog(CatalogError::Damaged { what: what.into(), detail: detail.to_string() })
    }

    /// The error of a call.
    pub(super) fn during(self, attempted: &'static str, path: &Path) -> CatalogError {
        self.into_catalog(path, |source| CatalogError::Store { attempted, source })
    }

    /// The error of opening a file.
    pub(super) fn while_opening(self, path: &Path) -> CatalogError {
        let location = path.display().to_string();
        self.into_catalog(path, |source| CatalogError::Location { attempted: "open", location, source })
    }

    fn into_catalog(
        self,
        path: &Path,
        otherwise: impl FnOnce(Arc<dyn std::error::Error + Send + Sync>) -> CatalogError,
    ) -> CatalogError {
        match self {
            Self::Catalog(error) => error,
            Self::Closed => otherwise(Arc::new(Closed)),
            Self::Driver(error) if is_full(&error) => {
                otherwise(Arc::new(io::Error::new(io::ErrorKind::StorageFull, "the disk is full")))
            }
            Self::Driver(error) => match damage(&error) {
                Some(detail) => CatalogError::Damaged { what: format!("\"{}\"", path.display()), detail },
                None => otherwise(Arc::new(error)),
            },
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<CatalogError> for Fault {
    fn from(error: CatalogError) -> Self {
        Self::Catalog(error)
    }
}

/// Whether another connection was in the way and the same call may succeed later.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(code::BUSY)
}

/// Whether the trouble is with what the file holds.
pub(super) fn is_damage(error: &sqlx::Error) -> bool {
    damage(error).is_some()
}

/// Whether there was no room left. SQLite tells it in more than one way.
fn is_full(error: &sqlx::Error) -> bool {
    primary_code(error) == Some(code::FULL) || extended_code(error) == Some(code::IO_SHARED_MEMORY_SIZE)
}

/// What is wrong with the file itself, if that is the trouble.
fn damage(error: &sqlx::Error) -> Option<String> {
    match error {
        sqlx::Error::ColumnDecode { .. } => Some(error.to_string()),
        sqlx::Error::Database(database) => match primary_code(error)? {
            code::CORRUPT | code::NOT_A_DATABASE => Some(database.message().to_owned()),
            _ => None,
        },
        _ => None,
    }
}

fn primary_code(error: &sqlx::Error) -> Option<i32> {
    extended_code(error).map(|code| code & 0xff)
}

fn extended_code(error: &sqlx::Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}
