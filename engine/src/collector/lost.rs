//! Entries whose parts are gone. Without this they would count until somebody wants them.
//!
//! Only in folders of this machine: there a listing is whole. What a bucket lost is found when it is read.

use std::collections::{BTreeSet, HashSet};

use nectarine_executor::Section;

use super::{Collector, Marks};
use crate::Result;
use crate::eviction::Why;

impl Collector {
    pub(super) async fn sweep_lost(&self, section: &Section, marks: &Marks) -> Result<usize> {
        let there: HashSet<&str> = section.found.iter().map(|one| one.location.as_str()).collect();
        let mut lost = BTreeSet::new();
        for (location, keys) in &marks.locations {
            // The listing is older than the marks: what was published in between is there now.
            if !there.contains(location.as_str()) && self.derived.is_there(location).await == Some(false) {
                lost.extend(keys.iter().copied());
            }
        }
        // And what was evicted in between has no record now.
        let lost: Vec<_> = lost.into_iter().collect();
        match lost.is_empty() {
            true => Ok(0),
            false => Ok(self.evictor.drop_entries(&lost, Some(Why::Lost)).await?.entries),
        }
    }
}
