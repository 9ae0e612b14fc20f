//! [`Memory`]: what large folders held when they were last read, so that reading them again costs little more than the system's own
//! work.
//!
//! Guarantees   only names are remembered. How a file looks is asked for each time, and a folder that holds one name more, or one
//!              less, or the same in another order, is looked at as if it had never been seen.
//! Cost         a name and a hundred bytes for each.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::folder::{Contents, Names};

/// Smaller folders are as quickly read afresh.
const MIN_NAMES: usize = 64;

/// What the folders of one location held, as one way of choosing among names saw it.
#[derive(Default, Debug)]
pub(crate) struct Memory {
    before: HashMap<PathBuf, Remembered>,
    now: HashMap<PathBuf, Remembered>,
}

/// A folder as it was last read.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) contents: Contents,
    /// Those that were chosen, in order.
    pub(super) names: Names,
    /// Full locations of the files among them; folders have none.
    pub(super) locations: Vec<Option<Arc<str>>>,
    /// Files that were passed over.
    pub(super) n_others: usize,
}

impl Memory {
    /// For the next listing: folders that were not come across in this one are forgotten.
    pub(crate) fn of_this_listing(self) -> Self {
        Self { before: self.now, now: HashMap::new() }
    }

    pub(super) fn take(&mut self, folder: &Path) -> Option<Remembered> {
        self.before.remove(folder)
    }

    pub(super) fn keep(&mut self, folder: &Path, mut remembered: Remembered) {
        if remembered.names.len() >= MIN_NAMES {
            remembered.contents.shrink();
            self.now.insert(folder.to_path_buf(), remembered);
        }
    }
    #[cfg(test)]
    pub(super) fn remembers(&self, folder: &Path) -> bool {
        self.before.contains_key(folder)
    }
}
