//! What is said of a statement beside its rows.
//!
//! ```text
//!   FlightInfo.app_metadata   JSON: query_id, tag, count, notices
//!   trailers of DoGet         nectarine-query-id     finds the statement in system.queries
//!                             nectarine-reuse        none, partial or exact
//!                             nectarine-saved-us     what computing took that was not done again, in microseconds
//!                             nectarine-extents-total, nectarine-extents-reused
//!                             nectarine-entries      fingerprints of the entries that it used, the first of them
//!                             nectarine-kept         results that this answer leaves behind
//!                             nectarine-notices-bin  JSON: notices that were not known when the statement began
//!   header of GetFlightInfo   nectarine-watch        a name by which the action nectarine.Progress tells how far the statement is
//! ```

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tonic::metadata::{AsciiMetadataValue, BinaryMetadataValue, MetadataMap};
use tonic::{Code, Status};

use crate::progress::ProgressSnapshot;
use crate::{Notice, Receipt};

/// The trailer that names a statement.
pub(super) const QUERY_ID: &str = "nectarine-query-id";

pub(super) const REUSE: &str = "nectarine-reuse";
pub(super) const SAVED_US: &str = "nectarine-saved-us";
pub(super) const EXTENTS_TOTAL: &str = "nectarine-extents-total";
pub(super) const EXTENTS_REUSED: &str = "nectarine-extents-reused";
pub(super) const ENTRIES: &str = "nectarine-entries";
pub(super) const KEPT: &str = "nectarine-kept";
/// What is binary ends like this.
pub(super) const NOTICES: &str = "nectarine-notices-bin";

/// The header that gives a statement a name, and how long that may be.
pub(super) const WATCH: &str = "nectarine-watch";
pub(super) const WATCH_BYTES_MAX: usize = 64;

/// How far a statement is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ToldProgress {
    pub(super) phase: String,
    pub(super) rows_scanned: u64,
    pub(super) bytes_scanned: u64,
    pub(super) bytes_total: u64,
    pub(super) files_done: u64,
    pub(super) files_total: u64,
    pub(super) fraction: Option<f64>,
    pub(super) bytes_spilled: u64,
    pub(super) stages_done: u64,
    pub(super) stages_total: u64,
    pub(super) tasks_done: u64,
    pub(super) tasks_total: u64,
}

impl From<ProgressSnapshot> for ToldProgress {
    fn from(now: ProgressSnapshot) -> Self {
        Self {
            phase: now.phase.to_string(),
            rows_scanned: now.rows_scanned,
            bytes_scanned: now.bytes_scanned,
            bytes_total: now.bytes_total,
            files_done: now.files_done,
            files_total: now.files_total,
            fraction: now.fraction,
            bytes_spilled: now.bytes_spilled,
            stages_done: now.stages_done,
            stages_total: now.stages_total,
            tasks_done: now.tasks_done,
            tasks_total: now.tasks_total,
        }
    }
}

impl ToldProgress {
    /// As it is shown here.
    pub(super) fn snapshot(&self) -> ProgressSnapshot {
        ProgressSnapshot {
            phase: match self.phase.as_str() {
                "running" => "running",
                "done" => "done",
                _ => "planning",
            },
            elapsed: Duration::ZERO,
            rows_scanned: self.rows_scanned,
            bytes_scanned: self.bytes_scanned,
            bytes_total: self.bytes_total,
            files_done: self.files_done,
            files_total: self.files_total,
            fraction: self.fraction,
            bytes_spilled: self.bytes_spilled,
            stages_done: self.stages_done,
            stages_total: self.stages_total,
            tasks_done: self.tasks_done,
            tasks_total: self.tasks_total,
        }
    }
}

/// Entries that are named: trailers have to fit into one frame.
const ENTRIES_MAX: usize = 32;

/// What is known when a statement has been started.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Told {
    pub(super) query_id: String,
    /// Of a command: `CREATE TABLE`, `INSERT`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tag: Option<String>,
    /// Rows that were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notices: Vec<ToldNotice>,
}

/// Something the user should know that is no error.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ToldNotice {
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl From<&Notice> for ToldNotice {
    fn from(notice: &Notice) -> Self {
        Self { message: notice.message.clone(), hint: notice.hint.clone() }
    }
}

/// The end of an answer: everything went well, and this is its receipt. (A status without an error is what trailers of a
/// stream are made of.)
pub(super) fn receipt(query_id: &str, receipt: &Receipt) -> Status {
    let mut metadata = MetadataMap::new();
    let mut add = |name: &'static str, value: &str| {
        if let Ok(value) = AsciiMetadataValue::try_from(value) {
            metadata.insert(name, value);
        }
    };
    add(QUERY_ID, query_id);
    add(REUSE, receipt.reused.word());
    add(SAVED_US, &receipt.saved.as_micros().to_string());
    if let Some(extents) = receipt.extents {
        add(EXTENTS_TOTAL, &extents.total.to_string());
        add(EXTENTS_REUSED, &extents.reused.to_string());
    }
    if !receipt.entries.is_empty() {
        let entries: Vec<String> = receipt.entries.iter().take(ENTRIES_MAX).map(ToString::to_string).collect();
        add(ENTRIES, &entries.join(","));
    }
    add(KEPT, &receipt.kept.to_string());
    if !receipt.notices.is_empty() {
        let notices: Vec<ToldNotice> = receipt.notices.iter().map(ToldNotice::from).collect();
        if let Ok(json) = serde_json::to_vec(&notices) {
            metadata.insert_bin(NOTICES, BinaryMetadataValue::from_bytes(&json));
        }
    }
    Status::with_metadata(Code::Ok, "", metadata)
}
