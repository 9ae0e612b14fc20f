//! Parts that no entry has.

use nectarine_executor::{Found, FoundKind};

use super::Marks;

pub(super) fn garbage(suspects: &[Found], marks: &Marks) -> Vec<Found> {
    let is_garbage = |one: &&Found| one.kind == FoundKind::Part && !marks.locations.contains_key(&one.location);
    suspects.iter().filter(is_garbage).cloned().collect()
}
