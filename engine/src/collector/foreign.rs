//! Files that no computation made: derived data comes from computations only. They are never read, and go when they are old.

use nectarine_executor::{Found, FoundKind};

pub(super) fn garbage(suspects: &[Found]) -> Vec<Found> {
    suspects.iter().filter(|one| one.kind == FoundKind::Foreign).cloned().collect()
}
