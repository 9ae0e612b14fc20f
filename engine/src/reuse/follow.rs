//! What other processes drop is let go of, also by a process that nobody asks for anything: results that were purged do not
//! stay in its memory.

use std::sync::Weak;
use std::time::Duration;

use crate::engine::Shared;

/// How long rows of a purged result may stay in the memory of another process.
const PAUSE: Duration = Duration::from_secs(2);

/// Looks from time to time, one cheap read, until the home is closed.
pub(crate) fn follow(shared: Weak<Shared>) {
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(PAUSE).await;
            let Some(shared) = shared.upgrade() else { return };
            match shared.reuse.cache.refresh().await {
                Ok(()) => shared.reuse.let_go(),
                // A closed store has nothing more to tell, and one that is away will be asked again.
                Err(error) => tracing::debug!(%error, "cannot follow the view cache"),
            }
        }
    });
}
