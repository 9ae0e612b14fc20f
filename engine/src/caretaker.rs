//! [`Caretaker`]: what is done for derived data in the background of an open home.
//!
//! ```text
//!   when there is too much, or room was wanted    evict
//!   every few seconds                             write down uses, renew the lease, look at the disk
//!   when a process died, and now and then         collect
//! ```
//!
//! Two tasks, because eviction must not wait for a sweep: both may drop the same entry, and neither minds. They end with the
//! home. A statement waits for none of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::collector::{Collector, Pace};
use crate::eviction::{Evictor, Ledger};

/// Time between looks.
const TICK: Duration = Duration::from_secs(15);
/// Time between sweeps.
const SWEEP: Duration = Duration::from_secs(600);
/// And before the first one, for homes that are open longer than a moment.
const FIRST_SWEEP: Duration = Duration::from_secs(120);
/// Pause between evictions: what the last one could not free is not free a moment later.
const PAUSE: Duration = Duration::from_millis(200);
/// How long closing a home may take to make room.
const CLOSING: Duration = Duration::from_secs(3);

/// See the module.
pub(crate) struct Caretaker {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) evictor: Arc<Evictor>,
    pub(crate) collector: Collector,
    /// Held by whoever evicts.
    at_work: tokio::sync::Mutex<()>,
    closing: CancellationToken,
}

impl Caretaker {
    pub(crate) fn new(ledger: Arc<Ledger>, evictor: Arc<Evictor>, collector: Collector) -> Arc<Self> {
        let (at_work, closing) = (tokio::sync::Mutex::default(), CancellationToken::new());
        Arc::new(Self { ledger, evictor, collector, at_work, closing })
    }

    /// Starts the tasks. They hold nothing while they wait, so that the home can go.
    pub(crate) fn start(self: &Arc<Self>) {
        let (caretaker, wanted, closing) =
            (Arc::downgrade(self), Arc::clone(&self.ledger.wanted), self.closing.clone());
        tokio::spawn(async move {
            let mut pause = Duration::ZERO;
            loop {
                let is_wanted = tokio::select! {
                    () = closing.cancelled() => return,
                    () = wanted.notified() => true,
                    () = tokio::time::sleep(pause) => false,
                };
                let Some(caretaker) = caretaker.upgrade() else { return };
                caretaker.look_after(is_wanted).await;
                drop(caretaker);
                pause = TICK;
                tokio::time::sleep(PAUSE).await;
            }
        });
        let (caretaker, closing) = (Arc::downgrade(self), self.closing.clone());
        tokio::spawn(async move {
            let mut next_sweep = Instant::now() + FIRST_SWEEP;
            loop {
                let Some(caretaker) = caretaker.upgrade() else { return };
                if Instant::now() >= next_sweep || caretaker.collector.is_due().await {
                    caretaker.sweep().await;
                    next_sweep = Instant::now() + SWEEP;
                }
                drop(caretaker);
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(TICK) => {}
                }
            }
        });
    }

    /// The last of it: makes room for who comes next, and gives up what is set aside.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let last = async {
            let _at_work = self.at_work.lock().await;
            // Who is open for a moment only has no other time for it: a store that is nearly full would stay as it is for ever.
            if let Err(error) = self.evictor.make_room(self.ledger.was_refused()).await {
                tracing::debug!(%error, "cannot make room in the derived store");
            }
        };
        if tokio::time::timeout(CLOSING, last).await.is_err() {
            tracing::debug!("there is too much derived data; another process will see to it");
        }
        self.ledger.tidy().await;
    }

    async fn look_after(&self, is_wanted: bool) {
        let _at_work = self.at_work.lock().await;
        if self.closing.is_cancelled() {
            return;
        }
        if !is_wanted {
            if let Err(error) = self.evictor.cache.flush().await {
                tracing::debug!(%error, "cannot write down the uses of cache entries");
            }
            self.ledger.tidy().await;
        }
        if let Err(error) = self.evictor.make_room(is_wanted).await {
            tracing::warn!(%error, "cannot make room in the derived store");
        }
    }

    async fn sweep(&self) {
        let swept = tokio::select! {
            () = self.closing.cancelled() => return,
            swept = self.collector.collect(Pace::Gentle) => swept,
        };
        if let Err(error) = swept {
            tracing::warn!(%error, "cannot sweep the derived store");
        }
    }
}
