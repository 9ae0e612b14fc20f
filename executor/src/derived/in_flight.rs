//! [`InFlight`]: parts that this process wrote and that are no entry's yet. The collector leaves them alone.
//!
//! Keeps true   a part is here before its first byte is written, and until its entry is published or it is deleted. Who first
//!              looks here and then asks which files entries have never takes a part for garbage that becomes an entry.

use std::collections::HashSet;

use nectarine_catalog::EntryPart;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(super) struct InFlight {
    locations: Mutex<HashSet<String>>,
}

impl InFlight {
    pub(super) fn begin(&self, location: &str) {
        self.locations.lock().insert(location.to_owned());
    }

    pub(super) fn end<'a>(&self, parts: impl IntoIterator<Item = &'a EntryPart>) {
        let mut locations = self.locations.lock();
        for part in parts {
            locations.remove(&part.location);
        }
    }

    pub(super) fn forget(&self, location: &str) {
        self.locations.lock().remove(location);
    }

    pub(super) fn has(&self, location: &str) -> bool {
        self.locations.lock().contains(location)
    }
}
