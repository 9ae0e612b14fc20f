//! [`AskedVersions`]: the question that every statement asks, put to SQLite once for all who ask it at the same time.
//!
//! Guarantees   an answer was read after its caller had asked: what was committed before that is in it.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::fault::Fault;
use super::lane::Lane;
use crate::store::Versions;

/// A connection for nothing but versions.
pub(super) struct AskedVersions {
    /// Orders callers and reads: a read may serve whoever came before it began.
    tickets: AtomicU64,
    lane: Mutex<Asked>,
}

struct Asked {
    lane: Lane,
    /// When the last read began, and what it told.
    last: Option<(u64, Versions)>,
}

impl AskedVersions {
    pub(super) fn new(lane: Lane) -> Self {
        Self { tickets: AtomicU64::new(1), lane: Mutex::new(Asked { lane, last: None }) }
    }

    pub(super) async fn read(&self) -> Result<Versions, Fault> {
        let arrived = self.tickets.fetch_add(1, Ordering::SeqCst);
        let mut asked = self.lane.lock().await;
        if let Some((began, versions)) = asked.last
            && began > arrived
        {
            return Ok(versions);
        }
        let began = self.tickets.fetch_add(1, Ordering::SeqCst);
        let versions = asked.lane.versions().await?;
        asked.last = Some((began, versions));
        Ok(versions)
    }

    pub(super) async fn close(&self) -> Result<(), sqlx::Error> {
        self.lane.lock().await.lane.close().await
    }
}
