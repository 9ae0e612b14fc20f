//! [`TableDef`]: what is known of a named relation, whatever feeds it.

use std::collections::BTreeMap;
use std::fmt;

use arrow::datatypes::SchemaRef;
use serde::{Deserialize, Serialize};

use crate::{DerivedTable, MaterializedView, Mentions, TableId};

/// Schema and name, both as they are compared: exactly.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct TableName {
    /// The schema it lives in.
    pub schema: String,
    /// Its name there.
    pub name: String,
}

impl TableName {
    /// Puts the two together.
    pub fn new(schema: impl Into<String>, name: impl Into<String>) -> Self {
        Self { schema: schema.into(), name: name.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}

/// A named relation.
#[derive(Clone, PartialEq, Debug)]
pub struct TableDef {
    /// Stays through renames.
    pub id: TableId,
    /// Where users find it.
    pub name: TableName,
    /// Columns, partition columns last. For a view: as of its creation, for listings only.
    pub schema: SchemaRef,
    /// What feeds it.
    pub kind: TableKind,
    /// Columns' defaults for INSERT.
    pub defaults: Vec<ColumnDefault>,
    /// Declared keys, as lists of column ordinals; the planner believes them.
    pub primary_keys: Vec<Vec<usize>>,
    /// Declared unique keys; the planner believes them too.
    pub unique_keys: Vec<Vec<usize>>,
    /// The statement that made it, for `SHOW CREATE TABLE`.
    pub definition: Option<String>,
    /// Microseconds since 1970.
    pub created_at: i64,
    /// The user who made it; of none, it belongs to whoever has the home.
    pub owner: Option<String>,
}

/// The default of one column, as SQL text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ColumnDefault {
    /// Column name.
    pub column: String,
    /// An expression without columns.
    pub sql: String,
}

/// What feeds a table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TableKind {
    /// Extents that Nectarine wrote and owns, below the home's `tables/`.
    Managed {
        /// Parquet, or Arrow where a column type has no Parquet form.
        format: FileFormatKind,
    },
    /// Files that others write.
    External(ExternalSource),
    /// A query, planned afresh at each use.
    View {
        /// The query's text.
        query: String,
        /// The schema that its unqualified names belong to.
        default_schema: String,
        /// What its text names; not known of views of older versions.
        #[serde(default)]
        mentions: Option<Mentions>,
    },
    /// A program kept by name: a query whose result is kept.
    MaterializedView(MaterializedView),
    /// A program on the extents of one moment.
    Derived(Box<DerivedTable>),
}

impl TableKind {
    /// What people call it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Managed { .. } | Self::External(_) => "table",
            Self::View { .. } => "view",
            Self::MaterializedView(_) => "materialized view",
            Self::Derived(_) => "derived table",
        }
    }

    /// The text and the schema of names of what is planned afresh at each use.
    pub fn as_view(&self) -> Option<(&str, &str)> {
        match self {
            Self::View { query, default_schema, .. } => Some((query, default_schema)),
            Self::MaterializedView(view) => Some((&view.query, &view.default_schema)),
            Self::Managed { .. } | Self::External(_) | Self::Derived(_) => None,
        }
    }

    /// The format of its files, if it has files of its own, written by Nectarine.
    pub fn own_files(&self) -> Option<FileFormatKind> {
        match self {
            Self::Managed { format } => Some(*format),
            Self::Derived(derived) => derived.pinned,
            Self::External(_) | Self::View { .. } | Self::MaterializedView(_) => None,
        }
    }
}

/// Files that others write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ExternalSource {
    /// Absolute path, glob or URL.
    pub location: String,
    /// Further locations, read after the first in this order.
    #[serde(default)]
    pub more_locations: Vec<String>,
    /// How to read them.
    pub format: FileFormatKind,
    /// Hive partition columns in path order.
    pub partition_columns: Vec<String>,
    /// Reader options as the user gave them, keys in lower case (`format.has_header`, `compression`, `fingerprint`, ..).
    pub options: BTreeMap<String, String>,
    /// Whether extents are fingerprinted by content always, not only when just modified.
    pub content_fingerprint: bool,
    /// Declared sort order, as SQL text per list (`WITH ORDER (a, b DESC)`).
    #[serde(default)]
    pub order: Vec<String>,
}

/// File formats that extents come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileFormatKind {
    /// Apache Parquet.
    Parquet,
    /// Delimited text.
    Csv,
    /// One JSON object per line.
    Json,
    /// Arrow IPC file.
    Arrow,
    /// Apache Avro.
    Avro,
}

impl FileFormatKind {
    /// The format that `STORED AS` or a file's ending names.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "csv" | "tsv" => Some(Self::Csv),
            "json" | "ndjson" | "jsonl" => Some(Self::Json),
            "arrow" | "ipc" | "feather" => Some(Self::Arrow),
            "avro" => Some(Self::Avro),
            _ => None,
        }
    }

    /// Whether files are lines of text that others may append to.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Csv | Self::Json)
    }
}

impl fmt::Display for FileFormatKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parquet => "PARQUET",
            Self::Csv => "CSV",
            Self::Json => "JSON",
            Self::Arrow => "ARROW",
            Self::Avro => "AVRO",
        })
    }
}

/// A function written in SQL.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Function {
    /// Name, as it is compared.
    pub name: String,
    /// The whole `CREATE FUNCTION` statement.
    pub definition: String,
    /// Microseconds since 1970.
    pub created_at: i64,
}
