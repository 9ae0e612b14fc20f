//! What a statement asked for, as the query log keeps it.

use nectarine_catalog::store::LookupRecord;
use nectarine_planner::reuse::{Findings, Hit, Lookup};

use crate::managed::now_micros;

/// What a statement that was planned asked for.
pub(crate) fn lookups(findings: &Findings) -> Vec<LookupRecord> {
    let asked_at = now_micros();
    let record = |lookup: Lookup| LookupRecord {
        prefix: lookup.key,
        program: lookup.program,
        is_hit: lookup.is_hit,
        reason: lookup.reason.map(str::to_string),
        detail: lookup.detail,
        node: lookup.node,
        asked_at,
    };
    findings.lookups().into_iter().map(record).collect()
}

/// A statement that was not planned: the same text was asked before, and its whole answer is there.
pub(crate) fn answered(hit: &Hit) -> LookupRecord {
    LookupRecord {
        prefix: Some(hit.key),
        program: Some(hit.program),
        is_hit: true,
        reason: None,
        detail: None,
        node: "the whole answer".to_string(),
        asked_at: now_micros(),
    }
}
