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
//! ```

use serde::{Deserialize, Serialize};
use tonic::metadata::{AsciiMetadataValue, MetadataMap};
use tonic::{Code, Status};

use crate::{Notice, Receipt};

/// The trailer that names a statement.
pub(super) const QUERY_ID: &str = "nectarine-query-id";

pub(super) const REUSE: &str = "nectarine-reuse";
pub(super) const SAVED_US: &str = "nectarine-saved-us";
pub(super) const EXTENTS_TOTAL: &str = "nectarine-extents-total";
pub(super) const EXTENTS_REUSED: &str = "nectarine-extents-reused";
pub(super) const ENTRIES: &str = "nectarine-entries";
pub(super) const KEPT: &str = "nectarine-kept";

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
    Status::with_metadata(Code::Ok, "", metadata)
}
