//! What can go wrong with what exists.

use std::sync::Arc;

use crate::TableName;

/// Result of this crate.
pub type Result<T, E = CatalogError> = std::result::Result<T, E>;

/// Trouble with tables, files or the metadata store.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CatalogError {
    /// The table or view is not there.
    #[error("table \"{name}\" does not exist")]
    TableNotFound {
        /// As it was looked up.
        name: TableName,
    },
    /// There is one already.
    #[error("{what} \"{name}\" already exists")]
    AlreadyExists {
        /// `table`, `schema`, `function`.
        what: &'static str,
        /// As given.
        name: String,
    },
    /// A schema or function is not there.
    #[error("{what} \"{name}\" does not exist")]
    NotFound {
        /// `schema`, `function`.
        what: &'static str,
        /// As given.
        name: String,
    },
    /// DROP SCHEMA without CASCADE.
    #[error("schema \"{name}\" is not empty: it holds {n_tables} table{}", if *n_tables == 1 { "" } else { "s" })]
    SchemaNotEmpty {
        /// The schema.
        name: String,
        /// How many tables and views are in it.
        n_tables: usize,
    },
    /// Something can not go, or be called otherwise, because others need it.
    #[error("cannot {attempted} {what} \"{}\": {} depend{} on it", name.name, listed(dependants), if dependants.len() == 1 { "s" } else { "" })]
    HasDependants {
        /// `drop`, `rename`, `replace`.
        attempted: &'static str,
        /// `table`, `view`, `function`, ..
        what: &'static str,
        /// Which.
        name: TableName,
        /// Who needs it: what they are, and their names.
        dependants: Vec<(&'static str, TableName)>,
    },
    /// DROP USER of one who owns something.
    #[error("cannot drop \"{name}\": it owns {} {}", owned.len(), if owned.len() == 1 { "object" } else { "objects" })]
    OwnsThings {
        /// The user or role.
        name: String,
        /// What it owns: what each is, and its name.
        owned: Vec<String>,
    },
    /// GRANT of a role to one that it is in.
    #[error("cannot grant \"{role}\" to \"{member}\": it would be in itself")]
    RoleInItself {
        /// Whose rights.
        role: String,
        /// Who would have got them.
        member: String,
    },
    /// A table was changed by others while a statement made a new one from its rows.
    #[error("table \"{}\" was changed while it was being replaced by rows of its own", name.name)]
    Overtaken {
        /// Which.
        name: TableName,
    },
    /// CREATE OR REPLACE met another table than the one that it was to replace.
    #[error("cannot replace \"{}\": {what} while the statement ran", name.name)]
    NotAsSeen {
        /// Its name.
        name: TableName,
        /// What happened to it.
        what: &'static str,
    },
    /// The metadata was written by a newer Nectarine.
    #[error(
        "cannot open \"{location}\": its format version {found} is newer than {supported}, the newest this version of nectarine knows"
    )]
    NewerFormat {
        /// Which home.
        location: String,
        /// What it has.
        found: i64,
        /// What we know.
        supported: i64,
    },
    /// The metadata store failed.
    #[error("cannot {attempted} in the metadata store")]
    Store {
        /// What was being done.
        attempted: &'static str,
        /// The driver's word.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// What the metadata store holds makes no sense.
    #[error("metadata of {what} is damaged: {detail}")]
    Damaged {
        /// Which record.
        what: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A file or folder could not be looked at.
    #[error("cannot {attempted} \"{location}\"")]
    Location {
        /// What was being done: `list`, `read`, ..
        attempted: &'static str,
        /// Path or URL.
        location: String,
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// A location that names nothing.
    #[error("no files match \"{location}\"{hint}")]
    NoFiles {
        /// Path, glob or URL.
        location: String,
        /// Empty, or what to do about it.
        hint: String,
    },
    /// A location that cannot be understood.
    #[error("invalid location \"{location}\": {detail}")]
    InvalidLocation {
        /// As given.
        location: String,
        /// What is wrong with it.
        detail: String,
    },
    /// A URL of a web host with a query string.
    #[error("invalid location \"{location}\": a query string is no part of a file's name, and signatures in it expire")]
    QueryString {
        /// Without what may be a signature, which is as good as a password.
        location: String,
    },
    /// The bytes behind an extent are no longer those that the statement pinned.
    #[error("file \"{location}\" changed while it was being read")]
    Changed {
        /// Path or URL.
        location: String,
    },
    /// A file behind a path is not the one that another process saw there.
    #[error("\"{location}\" {detail}")]
    OtherFile {
        /// Path or URL.
        location: String,
        /// `is not there`, `has 7 bytes, not 9`, ..
        detail: String,
    },
}

/// `materialized view "v", derived table "d"`.
fn listed(dependants: &[(&'static str, TableName)]) -> String {
    let each: Vec<String> = dependants.iter().map(|(what, name)| format!("{what} \"{}\"", name.name)).collect();
    each.join(", ")
}
