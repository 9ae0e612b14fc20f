//! [`Home`]: the folder where everything durable lives.
//!
//! ```text
//!   metadata.db    what exists (SQLite)
//!   tables/        extents of managed tables, one folder a table
//!   derived/       derived datasets
//!   jobs/          rows that jobs left, a file each
//!   tmp/<process>/ spills and unfinished extents of one running process, its `lock` is held while it lives
//!   server.key     seals the logins of servers; nobody else may read it
//!   id             names this home in a store that it shares with others; made when it is first needed
//!   lock           held for the moment in which a process enters, or looks for those that died
//!   nectarine.toml settings, if the user wrote any
//! ```
//!
//! Several processes may have one home open. What a dead one left in `tmp/` goes when the next one opens: its lock is
//! free then.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nectarine_catalog::{TableId, fail_point};

use crate::{EngineError, ErrorKind, Result};

/// The file whose lock says that a folder is in use.
pub(crate) const LOCK: &str = "lock";
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
        check(root)?;
        let root = std::path::absolute(root).map_err(|error| fault("open", root, error))?;
        for folder in ["tables", "tmp"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder).map_err(|error| fault("create", &folder, error))?;
        }
        // A disk that is away takes what was kept with it, not the tables.
        let derived = root.join("derived");
        if let Err(error) = fs::create_dir_all(&derived) {
            tracing::warn!(folder = %derived.display(), %error, "nothing can be kept: the folder cannot be made");
        }
        // Without it, one that looks for the dead could take a lock that was just made for one that its owner let go.
        let path = root.join(LOCK);
        let entrance = File::options().create(true).truncate(false).write(true).open(&path);
        let entrance = entrance.map_err(|error| fault("create", &path, error))?;
        entrance.lock().map_err(|error| fault("lock", &path, error))?;
        let process = root.join("tmp").join(uuid::Uuid::now_v7().as_simple().to_string());
        fs::create_dir_all(&process).map_err(|error| fault("create", &process, error))?;
        let path = process.join(LOCK);
        let lock = File::create_new(&path).map_err(|error| fault("create", &path, error))?;
        lock.try_lock().map_err(|error| fault("lock", &path, lock_error(error)))?;
        let home = Self { root, process, _lock: lock, ephemeral };
        let dead = home.left_behind();
        drop(entrance);
        // Trouble here is no reason not to open.
        for folder in dead {
            tracing::debug!(folder = %folder.display(), "removing what a dead process left");
            let _ = remove(&folder);
        }
        Ok(home)
    }

    /// Names this process among all that ever had the home open.
    pub(crate) fn process(&self) -> String {
        self.process.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether the process of that name still has the home open.
    pub(crate) fn is_alive(&self, process: &str) -> bool {
        let lock = self.root.join("tmp").join(process).join(LOCK);
        lock.exists() && !is_free(&lock)
    }

    /// Those that have the home open, for who outlives a borrow.
    pub(crate) fn processes(&self) -> Processes {
        Processes { root: self.root.clone(), own: self.process() }
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

    /// A name that no other home has.
    pub(crate) fn id(&self) -> Result<String> {
        let path = self.root.join("id");
        // The whole name or none: another process may look at the same time.
        let new = self.process.join("id");
        fs::write(&new, uuid::Uuid::new_v4().as_simple().to_string()).map_err(|error| fault("create", &new, error))?;
        match fs::hard_link(&new, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fault("create", &path, error)),
            _ => drop(fs::remove_file(&new)),
        }
        let id = fs::read_to_string(&path).map_err(|error| fault("read", &path, error))?;
        match uuid::Uuid::try_parse(id.trim()) {
            Ok(id) => Ok(id.as_simple().to_string()),
            Err(error) => Err(fault("read", &path, io::Error::new(io::ErrorKind::InvalidData, error))),
        }
    }

    /// A secret that all processes on this home share and nobody else knows.
    pub(crate) fn key(&self) -> Result<[u8; 32]> {
        let path = self.root.join("server.key");
        // The whole key or none: another process may look at the same time.
        let new = self.process.join("server.key");
        let luck = [uuid::Uuid::new_v4(), uuid::Uuid::new_v4(), uuid::Uuid::new_v4()];
        let key = blake3::hash(&luck.iter().flat_map(|part| *part.as_bytes()).collect::<Vec<u8>>());
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let _ = fs::remove_file(&new);
        let mut file = options.open(&new).map_err(|error| fault("create", &new, error))?;
        io::Write::write_all(&mut file, key.to_hex().as_bytes()).map_err(|error| fault("create", &new, error))?;
        match fs::hard_link(&new, &path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(fault("create", &path, error)),
            _ => drop(fs::remove_file(&new)),
        }
        let text = fs::read_to_string(&path).map_err(|error| fault("read", &path, error))?;
        let damaged = |error| fault("read", &path, io::Error::new(io::ErrorKind::InvalidData, error));
        blake3::Hash::from_hex(text.trim()).map(|hash| *hash.as_bytes()).map_err(damaged)
    }

    pub(crate) fn tables(&self) -> PathBuf {
        self.root.join("tables")
    }

    pub(crate) fn table(&self, id: TableId) -> PathBuf {
        self.tables().join(id.to_string())
    }

    /// Rows that jobs left.
    pub(crate) fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// Unfinished extents of this process.
    pub(crate) fn staging(&self) -> PathBuf {
        self.process.join("staging")
    }

    /// Spills of this process.
    pub(crate) fn spill(&self) -> PathBuf {
        self.process.join("spill")
    }

    /// Removes what this process has in `tmp/`. Also done when the last user of the home goes; a task that outlives its
    /// runtime would keep that from happening.
    pub(crate) fn clear(&self) {
        let folder = if self.ephemeral { &self.root } else { &self.process };
        let removed = if self.ephemeral { fs::remove_dir_all(folder) } else { remove(folder) };
        if let Err(error) = removed
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(folder = %folder.display(), %error, "cannot remove temporary files");
        }
    }

    /// The folders of dead processes.
    fn left_behind(&self) -> Vec<PathBuf> {
        left_behind(&self.root, &self.process)
    }
}

/// What can be told of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Liveness {
    /// Its lock is held.
    Alive,
    /// Its lock is free, or gone.
    Dead,
    /// There are no locks here.
    Unknown,
}

/// The processes that have a home open.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    root: PathBuf,
    own: String,
}

impl Processes {
    /// The name of this one.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    /// Whether the process of that name, which held its lock before, still has the home open. No clock is asked.
    pub(crate) fn liveness(&self, process: &str) -> Liveness {
        let path = self.root.join("tmp").join(process).join(LOCK);
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Liveness::Dead,
            Err(_) => Liveness::Unknown,
            Ok(lock) => match lock.try_lock_shared() {
                Ok(()) => Liveness::Dead,
                Err(TryLockError::WouldBlock) => Liveness::Alive,
                Err(TryLockError::Error(_)) => Liveness::Unknown,
            },
        }
    }

    /// Whether another process may have the home open. Locks are left alone: one may be about to take its own.
    pub(crate) fn has_others(&self) -> bool {
        let Ok(entries) = fs::read_dir(self.root.join("tmp")) else { return false };
        entries.flatten().any(|entry| entry.file_name().to_str() != Some(self.own.as_str()))
    }

    /// Removes what dead processes left in `tmp/`, as opening the home does.
    pub(crate) fn sweep(&self) {
        let entrance = File::options().write(true).open(self.root.join(LOCK));
        let dead = match entrance.as_ref().map(File::try_lock) {
            Ok(Ok(())) => left_behind(&self.root, &self.root.join("tmp").join(&self.own)),
            // Whoever is about to enter does the same.
            _ => return,
        };
        drop(entrance);
        for folder in dead {
            let _ = remove(&folder);
        }
    }
}

fn left_behind(root: &Path, own: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(root.join("tmp")) else { return vec![] };
    let folders = entries.flatten().map(|entry| entry.path());
    folders.filter(|folder| folder != own && is_left_behind(folder)).collect()
}

/// Removes the folder of a process, its lock last: whoever is killed on the way, or finds something that came meanwhile,
/// leaves a folder that the next one recognises as left behind.
fn remove(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        let removed = match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path()),
            false => fs::remove_file(entry.path()),
        };
        fail_point("temporary_removed");
        // Another process may be sweeping the same.
        removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    }
    fs::remove_dir_all(folder)
}

impl Drop for Home {
    fn drop(&mut self) {
        self.clear();
    }
}

fn is_left_behind(folder: &Path) -> bool {
    let lock = folder.join(LOCK);
    if lock.exists() {
        return is_free(&lock);
    }
    let age = fs::metadata(folder)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|modified| SystemTime::now().duration_since(modified).ok());
    age.is_some_and(|age| age > UNLOCKED_GRACE)
}

/// Whether a lock file is there and nobody holds it. Those who ask share it, so that none takes another for the owner.
pub(crate) fn is_free(path: &Path) -> bool {
    File::open(path).is_ok_and(|lock| lock.try_lock_shared().is_ok())
}

fn lock_error(error: TryLockError) -> io::Error {
    match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => io::Error::new(io::ErrorKind::WouldBlock, "locked by another process"),
    }
}

/// Refuses what is there and can be no home.
pub(crate) fn check(root: &Path) -> Result<()> {
    match root.exists() && !root.is_dir() {
        true => Err(EngineError::new(ErrorKind::Configuration, format!("\"{}\" is not a folder", root.display()))
            .with_hint("a home is a folder, which is made if it is not there")),
        false => Ok(()),
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
