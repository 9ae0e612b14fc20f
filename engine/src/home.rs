//! [`Home`]: the folder where everything durable lives.
//!
//! ```text
//!   metadata.db    what exists (SQLite)
//!   tables/        extents of managed tables, one folder a table
//!   derived/       derived datasets
//!   tmp/<process>/ spills and unfinished extents of one running process, locked while it lives
//!   nectarine.toml settings, if the user wrote any
//! ```
//!
//! Several processes may have one home open. What a dead one left in `tmp/` goes when the next one opens: its lock is
//! free then.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nectarine_catalog::TableId;

use crate::{EngineError, ErrorKind, Result};

const LOCK: &str = "lock";
/// How old a folder without a lock file must be before it counts as left behind: its owner may be about to lock it.
const UNLOCKED_GRACE: Duration = Duration::from_secs(60);

/// An opened home.
#[derive(Debug)]
pub(crate) struct Home {
    root: PathBuf,
    process: PathBuf,
    /// Held as long as the process lives.
    _lock: File,
    /// Removed with the home, for engines without one.
    ephemeral: bool,
}

impl Home {
    /// Opens the folder, making it if it is not there.
    pub(crate) fn open(root: &Path) -> Result<Self> {
        Self::open_kind(root, false)
    }

    /// A home that vanishes with its engine.
    pub(crate) fn ephemeral() -> Result<Self> {
        let root = std::env::temp_dir().join(format!("nectarine-{}", uuid::Uuid::new_v4().as_simple()));
        Self::open_kind(&root, true)
    }

    fn open_kind(root: &Path, ephemeral: bool) -> Result<Self> {
        let root = std::path::absolute(root).map_err(|error| fault("open", root, error))?;
        for folder in ["tables", "derived", "tmp"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(|error| fault("create", &folder, error))?;
        }
        let process = root.join("tmp").join(uuid::Uuid::now_v7().as_simple().to_string());
        fs::create_dir_all(&process).map_err(|error| fault("create", &process, error))?;
        let path = process.join(LOCK);
        let lock = File::create_new(&path).map_err(|error| fault("create", &path, error))?;
        lock.try_lock().map_err(|error| fault("lock", &path, lock_error(error)))?;
        let home = Self { root, process, _lock: lock, ephemeral };
        home.sweep();
        Ok(home)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn metadata(&self) -> PathBuf {
        self.root.join("metadata.db")
    }

    pub(crate) fn derived(&self) -> PathBuf {
        self.root.join("derived")
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.root.join("tables")
    }

    pub(crate) fn table(&self, id: TableId) -> PathBuf {
        self.tables().join(id.to_string())
    }

    /// Unfinished extents of this process.
    pub(crate) fn staging(&self) -> PathBuf {
        self.process.join("staging")
    }

    /// Spills of this process.
    pub(crate) fn spill(&self) -> PathBuf {
        self.process.join("spill")
    }

    /// Removes what dead processes left. Trouble here is no reason not to open.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.root.join("tmp")) else { return };
        for entry in entries.flatten() {
            let folder = entry.path();
            if folder != self.process && is_left_behind(&folder) {
                tracing::debug!(folder = %folder.display(), "removing what a dead process left");
                let _ = fs::remove_dir_all(&folder);
            }
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let folder = if self.ephemeral { &self.root } else { &self.process };
        if let Err(error) = fs::remove_dir_all(folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove temporary files");
        }
    }
}

fn is_left_behind(folder: &Path) -> bool {
    match File::open(folder.join(LOCK)) {
        Ok(lock) => lock.try_lock().is_ok(),
        Err(_) => {
            let age = fs::metadata(folder)
                .and_then(|metadata| metadata.modified())
                .ok()
                .and_then(|modified| SystemTime::now().duration_since(modified).ok());
            age.is_some_and(|age| age > UNLOCKED_GRACE)
        }
    }
}

fn lock_error(error: TryLockError) -> io::Error {
    match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => io::Error::new(io::ErrorKind::WouldBlock, "locked by another process"),
    }
}

fn fault(attempted: &str, path: &Path, error: io::Error) -> EngineError {
    EngineError::new(ErrorKind::Configuration, format!("cannot {attempted} \"{}\"", path.display()))
        .with_detail(error.to_string())
        .with_source(error)
}

/// `NECTARINE_HOME`, else the platform's folder for data.
pub fn default_home() -> PathBuf {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = from("NECTARINE_HOME") {
        return home;
    }
    if cfg!(target_os = "windows")
        && let Some(data) = from("LOCALAPPDATA")
    {
        return data.join("nectarine");
    }
    if let Some(data) = from("XDG_DATA_HOME").filter(|path| path.is_absolute()) {
        return data.join("nectarine");
    }
    let user = from("HOME").unwrap_or_else(|| PathBuf::from("."));
    match cfg!(target_os = "macos") {
        true => user.join("Library/Application Support/nectarine"),
        false => user.join(".local/share/nectarine"),
    }
}
