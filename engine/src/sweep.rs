//! Removes files of managed tables that no table refers to: what a killed process or a dropped table left.
//!
//! Keeps true   nothing young is touched: another process may be about to commit it, or may still read it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{TableId, TableKind};

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
            // A derived table without a copy may have files all the same: of a copy that was not finished.
            Some(table) if table.kind.own_files().is_some() || matches!(table.kind, TableKind::Derived(_)) => {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use arrow::datatypes::Schema;
    use nectarine_catalog::store::MemoryStore;
    use nectarine_catalog::{DerivedTable, FileFormatKind, Replace, TableDef, TableName};

    use super::*;

    /// A process that was killed while it copied the rows of a derived table leaves files that nobody reads.
    #[tokio::test]
    async fn copies_that_were_not_finished_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = MemoryStore::new();
        let make = async |name: &str, pinned: Option<FileFormatKind>| {
            let derived = DerivedTable {
                query: String::new(),
                default_schema: "public".to_string(),
                settings: BTreeMap::new(),
                now_ns: 0,
                relations: vec![],
                functions: vec![],
                pinned,
            };
            let table = TableDef {
                id: TableId::new(),
                name: TableName::new("public", name),
                schema: Arc::new(Schema::empty()),
                kind: TableKind::Derived(Box::new(derived)),
                defaults: vec![],
                primary_keys: vec![],
                unique_keys: vec![],
                definition: None,
                created_at: 0,
                owner: None,
            };
            store.create_table(&table, &[], Replace::Never).await.expect("a table");
            let own = folder.path().join(table.id.to_string());
            std::fs::create_dir(&own).expect("a folder");
            let (old, young) = (own.join("old.parquet"), own.join("young.parquet"));
            for path in [&old, &young] {
                std::fs::write(path, "rows").expect("a file");
            }
            let file = std::fs::File::options().write(true).open(&old).expect("a file");
            file.set_modified(SystemTime::now() - 2 * ORPHAN_GRACE).expect("a time");
            (old, young)
        };
        let files = [make("program", None).await, make("copy", Some(FileFormatKind::Parquet)).await];
        sweep(folder.path(), &store).await.expect("swept");
        assert!(files.iter().all(|(old, young)| !old.exists() && young.exists()));
    }
}
