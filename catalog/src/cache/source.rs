//! [`ProgramSource`]: how a program came to be, and all that running it again takes. Kept for ever.
//!
//! A program says what is computed over inputs that are left open; a source names them, and says it in SQL. Programs over
//! other tables have sources of their own; other spellings of the same do not.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ProgramRecord;
use crate::{Fingerprint, FingerprintBuilder};

/// A statement and what it needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProgramSource {
    /// The statement.
    pub sql: String,
    /// The schema that its unqualified names belong to.
    pub default_schema: String,
    /// The build that ran it first.
    pub engine_version: String,
    /// Settings that were not the built-in ones, and may change rows.
    pub settings: Vec<(String, String)>,
    /// The tables it reads: where they are, how they are read.
    pub inputs: Vec<NamedText>,
    /// The views it reads, with their queries.
    pub views: Vec<NamedText>,
    /// The functions it calls, with their bodies.
    pub functions: Vec<NamedText>,
}

/// A name and what it stood for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct NamedText {
    /// The name.
    pub name: String,
    /// A definition: SQL, or JSON for tables.
    pub text: String,
}

impl NamedText {
    pub(crate) fn digest(&self) -> Fingerprint {
        let builder = FingerprintBuilder::new("program text").field("name", self.name.as_bytes());
        builder.field("text", self.text.as_bytes()).finish()
    }
}

/// Names a source: a program over some tables.
pub fn source_name<'a>(program: &Fingerprint, tables: impl IntoIterator<Item = &'a str>) -> Fingerprint {
    let mut tables: Vec<&str> = tables.into_iter().collect();
    tables.sort_unstable();
    tables.dedup();
    let builder = FingerprintBuilder::new("program source").field("program", program.as_bytes());
    tables.into_iter().fold(builder, |builder, table| builder.field("table", table.as_bytes())).finish()
}

/// Runs of a program, to be written down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRun {
    /// Names the source; see [`source_name`].
    pub source: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// The program and its source; `None` if they are known to be written down.
    pub what: Option<Arc<(ProgramRecord, ProgramSource)>>,
    /// How often.
    pub runs: u64,
    /// When it ended first, microseconds since 1970.
    pub first_run_at: i64,
    /// When it ended last.
    pub last_run_at: i64,
}

/// A program that ran, as it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoredProgram {
    /// Names the source.
    pub source: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// How it came to be.
    pub how: ProgramSource,
    /// Microseconds since 1970.
    pub first_run_at: i64,
    /// Microseconds since 1970.
    pub last_run_at: i64,
    /// How often it ended well.
    pub runs: u64,
    /// What it takes in the metadata store, without what it shares with others.
    pub bytes_stored: u64,
}
