//! Lists of extents that no entry has. Dropping an entry takes its lists along; one whose record was damaged leaves them.

use std::time::Instant;

use super::{Collector, Pace};
use crate::Result;

/// Lists that are looked at together; writers wait for no more than this.
const LISTS: usize = 1000;

impl Collector {
    pub(super) async fn sweep_lists(&self, pace: Pace) -> Result<usize> {
        let (mut after, mut n_deleted) = (None, 0);
        loop {
            let started = Instant::now();
            let (last, unused) = self.metadata.unused_cache_inputs(after.as_ref(), LISTS).await?;
            if !unused.is_empty() {
                n_deleted += self.metadata.drop_cache_inputs(&unused).await?;
            }
            match last {
                Some(last) => after = Some(last),
                None => return Ok(n_deleted),
            }
            pace.rest(started).await;
        }
    }
}
