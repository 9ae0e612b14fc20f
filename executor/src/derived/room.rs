//! [`Room`]: asked before anything is written to the derived store.
//!
//! What is set aside stays so until what was written is an entry, or is deleted: see [`Reserved`]. Who finds no room does not
//! write, and the statement does not notice.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

/// Who knows how much may be written.
#[async_trait]
pub trait Room: fmt::Debug + Send + Sync {
    /// Sets `bytes` aside; `false` if there is no room. Where it is tight there is none for what nobody asked for yet.
    async fn reserve(&self, bytes: u64, is_wanted: bool) -> bool;
    /// Gives back what was set aside: what was written became an entry, or there is nothing of it any more.
    fn release(&self, bytes: u64, is_entry: bool);
}

/// There is always room.
#[derive(Debug, Default)]
pub(super) struct Unbounded;

#[async_trait]
impl Room for Unbounded {
    async fn reserve(&self, _bytes: u64, _is_wanted: bool) -> bool {
        true
    }

    fn release(&self, _bytes: u64, _is_entry: bool) {}
}

/// Room that is set aside. Given back when this is dropped: to be held until what was written is deleted.
pub struct Reserved {
    room: Arc<dyn Room>,
    bytes: u64,
}

impl Reserved {
    /// Nothing yet.
    pub(super) fn none(room: Arc<dyn Room>) -> Self {
        Self { room, bytes: 0 }
    }

    pub(super) async fn new(room: &Arc<dyn Room>, bytes: u64, is_wanted: bool) -> Option<Self> {
        let is_there = room.reserve(bytes, is_wanted).await;
        is_there.then(|| Self { room: Arc::clone(room), bytes })
    }

    /// Takes over what another one has.
    pub(super) fn absorb(&mut self, mut other: Self) {
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// What was written is an entry now, which counts by itself.
    pub fn became_entry(mut self) {
        self.room.release(std::mem::take(&mut self.bytes), true);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.release(self.bytes, false);
        }
    }
}

impl fmt::Debug for Reserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reserved({})", self.bytes)
    }
}
