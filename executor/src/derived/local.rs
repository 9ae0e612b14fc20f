//! The derived store in a folder of this machine.
//!
//! Parts are staged beside their place as `<name>.arrow#1` and renamed. A process that is killed in between leaves the
//! staged file, which object stores do not list: [`DerivedStore::local`] removes those that are old.

use std::path::Path as Folder;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use object_store::local::LocalFileSystem;
use object_store::path::Path;

use super::{DerivedError, DerivedStore};

/// No part takes this long to write, by whatever process.
const STAGED_AGE: Duration = Duration::from_secs(3600);

impl DerivedStore {
    /// Parts are kept in `folder`, which is made if it is not there.
    pub fn local(folder: &Folder, memory_bytes_max: u64) -> Result<Self, DerivedError> {
        let name = folder.display().to_string();
        std::fs::create_dir_all(folder).map_err(|error| DerivedError::unavailable("open", &name, error))?;
        sweep_staged(folder, STAGED_AGE);
        let objects = LocalFileSystem::new_with_prefix(folder)
            .map_err(|error| DerivedError::unavailable("open", &name, error))?;
        Ok(Self::new(Arc::new(objects), Path::default(), memory_bytes_max))
    }
}

/// Removes staged files older than `age`. What can not be read or removed stays: it is only space.
fn sweep_staged(folder: &Folder, age: Duration) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        if meta.is_dir() {
            sweep_staged(&entry.path(), age);
        } else if entry.file_name().to_string_lossy().contains(".arrow#") {
            let modified = meta.modified().unwrap_or_else(|_| SystemTime::now());
            if modified.elapsed().is_ok_and(|elapsed| elapsed >= age) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{key, numbers};
    use super::*;

    #[tokio::test]
    async fn staged_files_of_the_dead_are_swept_and_parts_stay() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("derived");
        let store = DerivedStore::local(&folder, 0).unwrap();
        let batch = numbers(0..3);
        let part = store.write_part(&key("k"), 0, &batch.schema(), std::slice::from_ref(&batch)).await.unwrap();
        let path = folder.join(&part.location);
        let staged = format!("{}#1", path.display());
        std::fs::write(&staged, b"half").unwrap();
        sweep_staged(&folder, STAGED_AGE);
        assert!(std::fs::exists(&staged).unwrap());
        sweep_staged(&folder, Duration::ZERO);
        assert!(!std::fs::exists(&staged).unwrap());
        assert!(store.read_part(&part, &key("k"), 0, &batch.schema()).await.is_ok());
    }
}
