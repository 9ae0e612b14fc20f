//! [`Undeleted`]: parts that nobody needs and that could not be deleted, until somebody has written that down.
//!
//! Their room stays set aside so long: they are still there.

use nectarine_catalog::EntryPart;
use parking_lot::Mutex;

use super::DerivedError;
use super::room::Reserved;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Undeleted {
    batches: Mutex<Vec<Batch>>,
}

/// What shares one room.
#[derive(Debug)]
struct Batch {
    left: Vec<(EntryPart, DerivedError)>,
    /// Given back when it is dropped.
    _room: Option<Reserved>,
}

impl Undeleted {
    pub(super) fn add(&self, left: Vec<(EntryPart, DerivedError)>, room: Option<Reserved>) {
        self.batches.lock().push(Batch { left, _room: room });
    }

    pub(super) fn all(&self) -> Vec<(EntryPart, DerivedError)> {
        self.batches.lock().iter().flat_map(|batch| batch.left.iter().cloned()).collect()
    }

    pub(super) fn forget(&self, parts: &[EntryPart]) {
        let is_known =
            |(part, _): &(EntryPart, DerivedError)| parts.iter().any(|other| other.location == part.location);
        let gone: Vec<Batch> = {
            let mut batches = self.batches.lock();
            batches.extract_if(.., |batch| batch.left.iter().all(is_known)).collect()
        };
        // Without the lock: their room is given back.
        drop(gone);
    }
}
