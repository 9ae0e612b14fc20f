//! [`Background`]: work that no statement waits for. Closing the home does, for a while.
//!
//! Bounded   when too much is under way already, more of it is dropped: all of it is about the cache, which can do without.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

/// Tasks at the same time; each may hold some parts in memory.
const TASKS_MAX: usize = 16;
/// How long closing the home waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// Tasks of one home; clones share them.
#[derive(Clone)]
pub(crate) struct Background {
    n_running: watch::Sender<usize>,
}

impl Default for Background {
    fn default() -> Self {
        Self { n_running: watch::Sender::new(0) }
    }
}

/// Counts a task, however it ends.
struct Running(Background);

impl Background {
    /// Runs `work`, or drops it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let has_room = self.n_running.send_if_modified(|n| {
            let has_room = *n < TASKS_MAX;
            *n += usize::from(has_room);
            has_room
        });
        if !has_room {
            tracing::debug!("the cache falls behind; something is not kept");
            return;
        }
        let running = Running(self.clone());
        runtime.spawn(async move {
            work.await;
            drop(running);
        });
    }

    /// Waits until nothing runs, not for ever.
    pub(crate) async fn finish(&self) {
        let mut n_running = self.n_running.subscribe();
        let finished = tokio::time::timeout(PATIENCE, n_running.wait_for(|n| *n == 0)).await;
        if finished.is_err() {
            tracing::warn!("the derived store does not answer; something is not kept");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.n_running.send_modify(|n| *n -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn closing_waits_and_too_much_is_dropped() {
        let background = Background::default();
        background.finish().await;
        let n_done = Arc::new(AtomicUsize::new(0));
        for _ in 0..TASKS_MAX * 2 {
            let n_done = Arc::clone(&n_done);
            background.spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                n_done.fetch_add(1, Ordering::SeqCst);
            });
        }
        background.finish().await;
        assert_eq!(n_done.load(Ordering::SeqCst), TASKS_MAX);
        // There is room again, also after one that died.
        background.spawn(async { panic!("it dies") });
        background.finish().await;
    }
}
