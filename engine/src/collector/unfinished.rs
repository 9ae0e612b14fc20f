//! Parts that were not written to their end. No entry ever names one; who wrote it is dead, or it would not be a suspect.

use nectarine_executor::{Found, FoundKind};

pub(super) fn garbage(suspects: &[Found]) -> Vec<Found> {
    suspects.iter().filter(|one| one.kind == FoundKind::Unfinished).cloned().collect()
}
