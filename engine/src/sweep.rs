//! Removes files of managed tables that no table refers to: what a killed process or a dropped table left.
//!
//! Keeps true   nothing young is touched: another process may be about to commit it, or may still read it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nectarine_catalog::TableId;
use nectarine_catalog::store::MetadataStore;

/// How long a dropped table's files stay, for statements that still read them.
pub(crate) const DROPPED_GRACE: Duration = Duration::from_secs(600);
/// Marks a dropped table's folder.
const DROPPED: &str = "dropped";
/// How long an extent that no table refers to stays: a commit may be on its way.
const ORPHAN_GRACE: Duration = Duration::from_secs(24 * 3600);

/// Looks once, in the background.
pub(crate) fn spawn(tables: PathBuf, store: Arc<dyn MetadataStore>) {
    tokio::spawn(async move {
        if let Err(error) = sweep(&tables, store.as_ref()).await {
            tracing::warn!(%error, "cannot look for files that no table refers to");
        }
    });
}

/// Removes the folder of a dropped table when nobody can be reading it any more.
pub(crate) fn remove_later(folder: PathBuf) {
    // Makes the folder young: another process that opens the home must wait from now on, not from the last insert.
    let _ = std::fs::write(folder.join(DROPPED), b"");
    tokio::spawn(async move {
        tokio::time::sleep(DROPPED_GRACE).await;
        let _ = tokio::fs::remove_dir_all(folder).await;
    });
}

async fn sweep(tables: &Path, store: &dyn MetadataStore) -> nectarine_catalog::Result<()> {
    // Folders first, then the tables: one that appears in between is too young to be touched.
    let folders: Vec<PathBuf> = entries(tables);
    let known = store.tables().await?;
    for folder in folders {
        let id = folder.file_name().and_then(|name| name.to_str()).and_then(TableId::parse);
        let Some(id) = id else { continue };
        match known.iter().find(|table| table.id == id) {
            None if older_than(&folder, DROPPED_GRACE) => {
                let _ = std::fs::remove_dir_all(&folder);
            }
            Some(table) if table.kind.own_files().is_some() => {
                let old: Vec<PathBuf> =
                    entries(&folder).into_iter().filter(|path| older_than(path, ORPHAN_GRACE)).collect();
                if old.is_empty() {
                    continue;
                }
                let referenced: HashSet<String> =
                    store.extents(id).await?.iter().filter_map(|extent| file_name(&extent.location)).collect();
                let orphans = old.iter().filter(|path| {
                    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| !referenced.contains(name))
                });
                for orphan in orphans {
                    tracing::info!(path = %orphan.display(), "removing an extent that no table refers to");
                    let _ = std::fs::remove_file(orphan);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn file_name(location: &str) -> Option<String> {
    location.rsplit('/').next().map(str::to_string)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).map(|entries| entries.flatten().map(|entry| entry.path()).collect()).unwrap_or_default()
}

/// Whether the file was last touched longer ago than that.
pub(crate) fn older_than(path: &Path, age: Duration) -> bool {
    let modified = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    modified.and_then(|modified| SystemTime::now().duration_since(modified).ok()).is_some_and(|found| found > age)
}
