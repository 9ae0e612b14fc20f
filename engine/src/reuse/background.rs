//! [`Background`]: work that no statement waits for. Closing the home does, for a while.
//!
//! Bounded   when too much is under way already, more of it is dropped: all of it is about the cache, which can do without. What
//!           somebody waits for is not, and ends also if they are cancelled: half of it would leave files and room behind.
//! In order  publishing what an answer left behind goes on after the answer has ended; the next statement waits for it, so that
//!           it finds what the one before it made.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

/// Tasks at the same time; each may hold some parts in memory.
const TASKS_MAX: usize = 16;
/// How long closing the home waits.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a statement waits for what earlier ones publish. A few milliseconds are usual.
const SETTLING_MAX: Duration = Duration::from_secs(2);

/// Tasks of one home; clones share them.
#[derive(Clone)]
pub(crate) struct Background {
    n_running: watch::Sender<usize>,
    /// For those that nobody waits for.
    room: Arc<Semaphore>,
    publishing: watch::Sender<Publishing>,
}

/// What is being published, by the order in which it began.
#[derive(Default)]
struct Publishing {
    next: u64,
    under_way: BTreeSet<u64>,
}

impl Default for Background {
    fn default() -> Self {
        Self {
            n_running: watch::Sender::new(0),
            room: Arc::new(Semaphore::new(TASKS_MAX)),
            publishing: watch::Sender::new(Publishing::default()),
        }
    }
}

/// Counts a task, however it ends.
struct Running(Background);

/// Names something that is being published, however that ends.
struct Published {
    background: Background,
    number: u64,
}

impl Background {
    /// Runs `work`, or drops it.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if self.try_spawn(work).is_err() {
            tracing::debug!("the cache falls behind; something is not kept");
        }
    }

    /// Runs `work`, which publishes: statements that start from now on wait for it. Gives it back if too much is under way.
    pub(crate) fn publish<W: Future<Output = ()> + Send + 'static>(
        &self,
        work: W,
    ) -> Result<(), impl Future<Output = ()> + Send + 'static + use<W>> {
        let mut number = 0;
        self.publishing.send_modify(|publishing| {
            number = publishing.next;
            publishing.next += 1;
            publishing.under_way.insert(number);
        });
        let published = Published { background: self.clone(), number };
        self.try_spawn(async move {
            work.await;
            drop(published);
        })
    }

    /// Waits until what began to be published before this is published, not for ever; whether there was anything.
    pub(crate) async fn settled(&self) -> bool {
        let until = {
            let publishing = self.publishing.borrow();
            if publishing.under_way.is_empty() {
                return false;
            }
            publishing.next
        };
        let mut publishing = self.publishing.subscribe();
        let is_settled = |now: &Publishing| now.under_way.first().is_none_or(|oldest| *oldest >= until);
        if tokio::time::timeout(SETTLING_MAX, publishing.wait_for(is_settled)).await.is_err() {
            tracing::debug!("what an earlier statement keeps is not there yet");
        }
        true
    }

    /// Runs `work` and waits for it. It goes on if whoever waits is cancelled; `None` if it panicked. There is room for it: no
    /// more of it is under way than there are, or were, statements.
    pub(crate) async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let running = self.begin();
        let task = tokio::spawn(async move {
            let outcome = work.await;
            drop(running);
            outcome
        });
        task.await.ok()
    }

    /// Runs `work`, or gives it back.
    fn try_spawn<W: Future<Output = ()> + Send + 'static>(&self, work: W) -> Result<(), W> {
        let Ok(runtime) = Handle::try_current() else { return Err(work) };
        let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else { return Err(work) };
        let running = self.begin();
        runtime.spawn(async move {
            work.await;
            drop((running, room));
        });
        Ok(())
    }

    fn begin(&self) -> Running {
        self.n_running.send_modify(|n| *n += 1);
        Running(self.clone())
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

impl Drop for Published {
    fn drop(&mut self) {
        self.background.publishing.send_modify(|publishing| _ = publishing.under_way.remove(&self.number));
    }
}

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn what_is_waited_for_ends_also_without_who_waits() {
        let background = Background::default();
        (0..TASKS_MAX).for_each(|_| background.spawn(tokio::time::sleep(Duration::from_millis(50))));
        let is_done = Arc::new(AtomicUsize::new(0));
        let work = {
            let is_done = Arc::clone(&is_done);
            async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                is_done.fetch_add(1, Ordering::SeqCst)
            }
        };
        let waiting = background.to_its_end(work);
        assert!(tokio::time::timeout(Duration::from_millis(1), waiting).await.is_err(), "it is cancelled");
        background.finish().await;
        assert_eq!(is_done.load(Ordering::SeqCst), 1);
        assert_eq!(background.to_its_end(async { 7 }).await, Some(7));
        assert_eq!(background.to_its_end(async { panic!("it dies") }).await, None::<()>);
    }

    #[tokio::test]
    async fn who_comes_later_waits_for_what_is_published() {
        let background = Background::default();
        let n_done = Arc::new(AtomicUsize::new(0));
        let work = |n_done: &Arc<AtomicUsize>| {
            let n_done = Arc::clone(n_done);
            async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                n_done.fetch_add(1, Ordering::SeqCst);
            }
        };
        assert!(background.publish(work(&n_done)).is_ok());
        background.settled().await;
        assert_eq!(n_done.load(Ordering::SeqCst), 1);
        // What began later is not waited for.
        assert!(background.publish(work(&n_done)).is_ok());
        let mut waiting = std::pin::pin!(background.settled());
        assert!(futures::poll!(&mut waiting).is_pending());
        assert!(background.publish(std::future::pending()).is_ok());
        waiting.await;
        assert_eq!(n_done.load(Ordering::SeqCst), 2);
    }

    #[tokio::test]
    async fn what_finds_no_room_is_given_back_and_still_waited_for() {
        let background = Background::default();
        (0..TASKS_MAX).for_each(|_| background.spawn(std::future::pending()));
        let Err(work) = background.publish(async {}) else { panic!("there is no room") };
        let waiting = background.settled();
        tokio::join!(work, waiting);
        assert!(background.publish(async {}).is_err());
        background.settled().await;
    }
}
