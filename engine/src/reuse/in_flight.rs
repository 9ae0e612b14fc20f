//! [`InFlight`]: the same query at the same time is computed once.
//!
//! ```text
//!   first        leads: computes, publishes, lets the others look again
//!   others       wait; when the leader is done they find its entry; if it failed or was cancelled, one of them leads
//! ```
//!
//! Never slower   a leader whose client has stopped reading makes no progress: those who wait compute for themselves.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nectarine_catalog::Fingerprint;
use parking_lot::Mutex;
use tokio::sync::watch;

/// A leader that was not asked for rows for so long has a client that does not read.
const IDLE: Duration = Duration::from_millis(250);

/// Queries that are being computed, by FP_PD.
#[derive(Clone, Default)]
pub(crate) struct InFlight {
    running: Arc<Mutex<HashMap<Fingerprint, Arc<Run>>>>,
}

struct Run {
    started: Instant,
    /// Milliseconds after `started` when the leader was last at work; `u64::MAX` while it is.
    last_active_ms: AtomicU64,
    progress: watch::Sender<Progress>,
}

/// How far a leader is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Running,
    /// It gave all rows; whether they were worth keeping is another matter.
    Finished,
    /// It failed or was cancelled.
    Gone,
}

/// The one who computes. Those who wait go on when it is dropped.
pub(crate) struct Leader {
    key: Fingerprint,
    run: Arc<Run>,
    all: InFlight,
}

/// What to do about a query.
pub(crate) enum Turn {
    /// Compute it.
    Lead(Leader),
    /// Somebody computed it meanwhile: look again, and compute it if it was not kept.
    LookAgain,
    /// Somebody tried to and failed: take a turn again.
    TakeOver,
    /// Somebody computes it, but too slowly: compute it too, without leading.
    Alone,
}

impl InFlight {
    /// Leads, or waits for who does. Dropping the future is fine.
    pub(crate) async fn take_turn(&self, key: Fingerprint) -> Turn {
        let run = {
            let mut running = self.running.lock();
            match running.get(&key) {
                Some(run) => Arc::clone(run),
                None => {
                    let run = Arc::new(Run {
                        started: Instant::now(),
                        last_active_ms: AtomicU64::new(u64::MAX),
                        progress: watch::Sender::new(Progress::Running),
                    });
                    running.insert(key, Arc::clone(&run));
                    return Turn::Lead(Leader { key, run, all: self.clone() });
                }
            }
        };
        let mut progress = run.progress.subscribe();
        loop {
            match *progress.borrow_and_update() {
                Progress::Running => {}
                Progress::Finished => return Turn::LookAgain,
                Progress::Gone => return Turn::TakeOver,
            }
            if tokio::time::timeout(IDLE, progress.changed()).await.is_err() && run.is_idle() {
                return Turn::Alone;
            }
        }
    }
}

impl Run {
    fn is_idle(&self) -> bool {
        match self.last_active_ms.load(Ordering::Relaxed) {
            u64::MAX => false,
            last => self.started.elapsed() >= Duration::from_millis(last) + IDLE,
        }
    }
}

impl Leader {
    /// The client asked for rows: work goes on.
    pub(crate) fn active(&self) {
        self.run.last_active_ms.store(u64::MAX, Ordering::Relaxed);
    }

    /// Rows were given to the client: what happens next is its decision.
    pub(crate) fn paused(&self) {
        let elapsed = self.run.started.elapsed().as_millis() as u64;
        self.run.last_active_ms.store(elapsed, Ordering::Relaxed);
    }
}

impl Leader {
    /// All rows were given, and kept if that was worth it.
    pub(crate) fn finish(self) {
        self.run.progress.send_replace(Progress::Finished);
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.all.running.lock().remove(&self.key);
        self.run.progress.send_if_modified(|progress| {
            let is_running = *progress == Progress::Running;
            if is_running {
                *progress = Progress::Gone;
            }
            is_running
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Fingerprint {
        Fingerprint::of_bytes(b"query")
    }

    #[tokio::test]
    async fn one_leads_and_the_others_look_again() {
        let all = InFlight::default();
        let Turn::Lead(leader) = all.take_turn(key()).await else { panic!("the first leads") };
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let all = all.clone();
                tokio::spawn(async move { matches!(all.take_turn(key()).await, Turn::LookAgain) })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(20)).await;
        leader.finish();
        for waiter in waiting {
            assert!(waiter.await.unwrap());
        }
        assert!(matches!(all.take_turn(key()).await, Turn::Lead(_)), "the next one leads again");
    }

    #[tokio::test]
    async fn one_takes_over_from_a_leader_that_is_gone() {
        let all = InFlight::default();
        let Turn::Lead(leader) = all.take_turn(key()).await else { panic!("the first leads") };
        let waiting = tokio::spawn({
            let all = all.clone();
            async move { matches!(all.take_turn(key()).await, Turn::TakeOver) }
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(leader);
        assert!(waiting.await.unwrap());
    }

    #[tokio::test]
    async fn nobody_waits_for_a_client_that_does_not_read() {
        let all = InFlight::default();
        let Turn::Lead(leader) = all.take_turn(key()).await else { panic!("the first leads") };
        leader.paused();
        assert!(matches!(all.take_turn(key()).await, Turn::Alone));
        leader.active();
        let waits = tokio::time::timeout(Duration::from_millis(600), all.take_turn(key())).await;
        assert!(waits.is_err(), "it is at work");
    }
}
