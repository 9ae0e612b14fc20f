//! What a statement asked the view cache for, as it lies in the statement's row: a JSON list, short names.

use serde::{Deserialize, Serialize};

use crate::Fingerprint;
use crate::store::LookupRecord;

/// The form on disk. Fields may be added if they have a default; none may change.
#[derive(Serialize, Deserialize)]
struct Stored {
    #[serde(rename = "key", default, skip_serializing_if = "Option::is_none")]
    prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(rename = "hit", default)]
    is_hit: bool,
    #[serde(rename = "why", default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    node: String,
    #[serde(rename = "at")]
    asked_at: i64,
}

/// `None` for no look-ups, so that rows without any stay as small as they were.
pub(super) fn pack(lookups: &[LookupRecord]) -> Option<String> {
    if lookups.is_empty() {
        return None;
    }
    let stored: Vec<Stored> = lookups.iter().map(Stored::from).collect();
    // Strings, numbers and flags always have a JSON form.
    serde_json::to_string(&stored).ok()
}

/// `None` if the text is not a list of look-ups.
pub(super) fn unpack(text: &str) -> Option<Vec<LookupRecord>> {
    let stored: Vec<Stored> = serde_json::from_str(text).ok()?;
    stored.into_iter().map(Stored::record).collect()
}

impl From<&LookupRecord> for Stored {
    fn from(lookup: &LookupRecord) -> Self {
        Self {
            prefix: lookup.prefix.map(|prefix| prefix.to_string()),
            program: lookup.program.map(|program| program.to_string()),
            is_hit: lookup.is_hit,
            reason: lookup.reason.clone(),
            detail: lookup.detail.clone(),
            node: lookup.node.clone(),
            asked_at: lookup.asked_at,
        }
    }
}

impl Stored {
    fn record(self) -> Option<LookupRecord> {
        let fingerprint = |digits: Option<String>| match digits {
            Some(digits) => Fingerprint::parse(&digits).map(Some),
            None => Some(None),
        };
        Some(LookupRecord {
            prefix: fingerprint(self.prefix)?,
            program: fingerprint(self.program)?,
            is_hit: self.is_hit,
            reason: self.reason,
            detail: self.detail,
            node: self.node,
            asked_at: self.asked_at,
        })
    }
}
