//! [`Unpublished`]: parts that were written and are no entry's yet, with the room that is set aside for them.
//!
//! ```text
//!   dropped                 the parts are deleted, then the room is given back
//!   offered, then dropped   they stay: the store may have made them an entry's, and nobody heard
//!   published               an entry's, and so is the room
//!   delete, leave           it is known that they are nobody's; it is not known whose they are
//! ```
//!
//! Keeps true   whoever computes may be cancelled at any moment, and leaves neither parts that nobody sweeps nor room that
//!              nobody uses. What an entry may name is never deleted.

use std::fmt;

use nectarine_catalog::EntryPart;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::DerivedStore;
use super::room::Reserved;

/// See the module.
pub struct Unpublished {
    store: DerivedStore,
    parts: Vec<EntryPart>,
    room: Option<Reserved>,
    is_offered: bool,
}

impl Unpublished {
    pub(super) fn new(store: DerivedStore, parts: Vec<EntryPart>, room: Option<Reserved>) -> Self {
        Self { store, parts, room, is_offered: false }
    }

    /// From now on an entry may name the parts, whatever becomes of who asked for that.
    pub fn offer(&mut self) {
        self.is_offered = true;
    }

    /// They are an entry's now, which counts by itself.
    pub fn published(mut self) {
        self.store.settle(&self.parts);
        if let Some(room) = self.room.take() {
            room.became_entry();
        }
        self.parts.clear();
    }

    /// No entry names them: deletes them, and only then gives their room back. Goes on if who waits for it does not.
    pub async fn delete(mut self) {
        self.is_offered = false;
        if let Some(deleting) = self.delete_later() {
            let _ = deleting.await;
        }
    }

    /// Nobody can tell whether an entry names them. The collector will, later.
    pub fn leave(mut self) {
        self.store.settle(&self.parts);
        self.parts.clear();
    }

    fn delete_later(&mut self) -> Option<JoinHandle<()>> {
        delete_later(&self.store, std::mem::take(&mut self.parts), self.room.take())
    }
}

impl Drop for Unpublished {
    fn drop(&mut self) {
        // Parts that were offered stay in flight: the store may be about to make them an entry's.
        if !self.is_offered {
            self.delete_later();
        }
    }
}

impl fmt::Debug for Unpublished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unpublished").field("parts", &self.parts).field("is_offered", &self.is_offered).finish()
    }
}

/// Deletes what no entry will name, and only then gives its room back. If this can not be done now, the collector finds it.
pub(super) fn delete_later(
    store: &DerivedStore,
    parts: Vec<EntryPart>,
    room: Option<Reserved>,
) -> Option<JoinHandle<()>> {
    if parts.is_empty() {
        return None;
    }
    match Handle::try_current() {
        Ok(runtime) => {
            let store = store.clone();
            Some(runtime.spawn(async move { _ = store.dispose(parts, room).await }))
        }
        Err(_) => {
            store.settle(&parts);
            None
        }
    }
}
