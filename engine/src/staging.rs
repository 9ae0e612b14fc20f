//! [`Staging`]: files that are being written, in a hidden folder beside where they will be.
//!
//! ```text
//!   e/.nectarine-<id>/lock     held while the folder is in use
//!   e/.nectarine-<id>/..       what is being written  --synced, renamed-->  e/..
//! ```
//!
//! Keeps true   nothing in it is ever taken for data: no glob and no folder table looks into it. What a killed process leaves
//!              goes when somebody else writes into the same folder.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use uuid::Uuid;

use crate::home::{LOCK, is_free};
use crate::sweep::older_than;

/// How the names of folders with unfinished files begin.
const HIDDEN: &str = ".nectarine-";
/// How long such a folder stays after its process died.
const ABANDONED_GRACE: Duration = Duration::from_secs(600);
/// How long one stays whose process cannot be asked.
const UNLOCKED_GRACE: Duration = Duration::from_secs(24 * 3600);

/// A hidden folder within the one where files will be, so that renaming stays on one file system. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Staging {
    name: String,
    path: PathBuf,
    folder: PathBuf,
    /// Held while the folder is in use. Not every file system has locks.
    lock: Option<File>,
}

impl Staging {
    /// Makes the folder, if need be, and the hidden one.
    pub(crate) fn create(folder: &Path) -> io::Result<Self> {
        let name = format!("{HIDDEN}{}", Uuid::now_v7().as_simple());
        let path = folder.join(&name);
        fs::create_dir_all(&path)?;
        let mut staging = Self { name, path, folder: folder.to_path_buf(), lock: None };
        let lock = File::create_new(staging.path.join(LOCK))?;
        if let Err(error) = lock.try_lock() {
            tracing::debug!(path = %staging.path.display(), %error, "cannot lock a folder of unfinished files");
        }
        staging.lock = Some(lock);
        sweep(folder);
        Ok(staging)
    }

    /// The name of the hidden folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The hidden folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folder where files will be.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes all these files, paths below the hidden folder, part of the other, or none.
    pub(crate) async fn move_all(&self, targets: Vec<String>) -> io::Result<()> {
        let (from, to) = (self.path.clone(), self.folder.clone());
        let moving = tokio::task::spawn_blocking(move || move_all(&from, &to, &targets));
        moving.await.map_err(io::Error::other)?
    }
}

/// Removes what killed processes left in a folder. Trouble here is no reason not to write.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let is_ours = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix(HIDDEN))
            .is_some_and(|id| Uuid::try_parse(id).is_ok());
        let path = entry.path();
        if !is_ours || !path.is_dir() {
            continue;
        }
        let lock = path.join(LOCK);
        let is_left_behind = match lock.exists() {
            true => older_than(&path, ABANDONED_GRACE) && is_free(&lock),
            false => older_than(&path, UNLOCKED_GRACE),
        };
        if is_left_behind {
            tracing::info!(path = %path.display(), "removing what a killed process left");
            let _ = fs::remove_dir_all(&path);
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.lock = None;
        if let Err(error) = fs::remove_dir_all(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "cannot remove unfinished files");
        }
    }
}

/// Bytes first, names second: after a crash there is no name without its bytes.
fn move_all(from: &Path, to: &Path, targets: &[String]) -> io::Result<()> {
    for target in targets {
        let file = File::open(from.join(target))?;
        // What is replaced keeps who may read it.
        if let Ok(before) = fs::metadata(to.join(target)) {
            file.set_permissions(before.permissions())?;
        }
        file.sync_all()?;
    }
    let mut added: Vec<PathBuf> = vec![];
    let mut move_one = |target: &String| {
        let path = to.join(target);
        let folder = path.parent().unwrap_or(to);
        fs::create_dir_all(folder)?;
        let is_new = path.symlink_metadata().is_err();
        fs::rename(from.join(target), &path)?;
        if is_new {
            added.push(path.clone());
        }
        File::open(folder)?.sync_all()
    };
    let result = targets.iter().try_for_each(&mut move_one);
    if result.is_err() {
        for path in added {
            if let Err(error) = fs::remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of a statement that failed");
            }
        }
    }
    result
}
