//! Forgetting what files told of themselves, once they are gone or have become others: bounds of columns are values of rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, stream};
use object_store::ObjectStoreExt;

use super::discover::{blocking, failed};
use super::{CONCURRENT_LOOKS, ExtentTracker};
use crate::identity::{FileIdentity, Seen};
use crate::location::local_path;
use crate::store::{GoneFile, KnownFile};
use crate::{Result, object_path};

impl ExtentTracker {
    /// Forgets records whose files are not what they were then, in memory too; how many. What can not be looked at counts as
    /// gone: it is learnt again by whoever reads it next.
    pub async fn forget_gone(&self, known: &[(String, KnownFile)]) -> Result<usize> {
        let files: BTreeSet<Arc<str>> = known.iter().map(|(_, file)| Arc::clone(&file.extent.location)).collect();
        let mut looks: Vec<BoxFuture<'_, (Arc<str>, Option<FileIdentity>)>> = vec![];
        for location in files {
            looks.push(Box::pin(async move {
                let now = self.identity_now(&location).await;
                (location, now)
            }));
        }
        let now: BTreeMap<Arc<str>, Option<FileIdentity>> =
            stream::iter(looks).buffer_unordered(CONCURRENT_LOOKS).collect().await;

        let mut gone: BTreeMap<&str, Vec<GoneFile>> = BTreeMap::new();
        for (key, file) in known {
            let now = now.get(&file.extent.location).and_then(Option::as_ref);
            if !now.is_some_and(|now| is_as_it_was(file, now)) {
                gone.entry(key).or_default().push(GoneFile {
                    location: file.extent.location.to_string(),
                    byte_start: file.extent.range.map_or(0, |range| range.start),
                });
            }
        }
        for (key, gone) in &gone {
            self.store.save_known_files(key, &[], gone).await?;
            self.forget_table(key);
        }
        Ok(gone.values().map(Vec::len).sum())
    }

    async fn identity_now(&self, location: &Arc<str>) -> Option<FileIdentity> {
        if let Some(path) = local_path(location) {
            let look = move || std::fs::metadata(&path).map_err(|error| failed("look at", &path, error));
            let metadata = blocking(look).await.ok()?;
            return Some(FileIdentity::of_local(Arc::clone(location), &metadata));
        }
        let (url, path) = object_path(location).ok()?;
        let meta = self.stores.get(&url).ok()?.head(&path).await.ok()?;
        Some(FileIdentity::of_object(Arc::clone(location), &meta))
    }

    /// Whoever asks for the table next loads what is left. Who has it in hands keeps it until then.
    fn forget_table(&self, key: &str) {
        let slot = self.tables.lock().remove(key);
        if let Some(slot) = slot
            && let Ok(table) = slot.table.try_lock()
        {
            self.remember(&table.entries, &[]);
        }
    }
}

fn is_as_it_was(file: &KnownFile, now: &FileIdentity) -> bool {
    // Ranges of text files grow, and tell nothing of their rows.
    let tells_nothing = file.extent.range.is_some() && file.extent.stats.is_empty();
    let seen = Seen::decode(&file.extent.location, &file.identity);
    tells_nothing || (!file.racy && seen.is_some_and(|seen| seen.identity.is_unchanged(now)))
}
