//! Leases of processes that died: they keep room for what those left, until that is swept.

use super::{Collector, is_alive};
use crate::Result;

impl Collector {
    /// Holders of leases that are not alive.
    pub(super) async fn dead(&self) -> Result<Vec<String>> {
        let leases = self.metadata.cache_leases().await?;
        let now = self.clock.now_ns() / 1000;
        let is_dead = |lease: &nectarine_catalog::CacheLease| {
            lease.holder != self.processes.own()
                && !is_alive(self.processes.liveness(&lease.holder), lease.expires_at, now)
        };
        Ok(leases.into_iter().filter(is_dead).map(|lease| lease.holder).collect())
    }

    /// Gives back the room of those who were dead before the sweep began.
    pub(super) async fn bury(&self, dead: &[String]) -> Result<usize> {
        for holder in dead {
            self.metadata.drop_cache_lease(holder).await?;
        }
        Ok(dead.len())
    }
}
