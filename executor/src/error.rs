//! What can go wrong while reading and writing extents.

use std::sync::Arc;

/// Result of this crate.
pub type Result<T, E = ExecutorError> = std::result::Result<T, E>;

/// Trouble with the bytes of extents.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutorError {
    /// A file could not be written.
    #[error("cannot {attempted} \"{location}\"")]
    Write {
        /// `create`, `write`, `sync`, `rename`.
        attempted: &'static str,
        /// Path.
        location: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A NULL for a column that takes none.
    #[error("NULL in column \"{column}\" of \"{table}\", which is NOT NULL")]
    Null {
        /// The column.
        column: String,
        /// The table.
        table: String,
    },
    /// A file's columns do not fit the table. Whoever tells it says which file.
    #[error("it does not fit table \"{table}\": {detail}")]
    SchemaMismatch {
        /// The table.
        table: String,
        /// Which columns differ, and how.
        detail: String,
    },
}

impl From<ExecutorError> for datafusion::error::DataFusionError {
    fn from(error: ExecutorError) -> Self {
        Self::External(Box::new(error))
    }
}
