//! [`ExtentTracker`]: the extents of an external table right now, opening only files that were never seen.
//!
//! ```text
//!   list the location ── known and unchanged ──────────────────────────> the extent as it is known
//!                     ── new, changed or racy ── look at it (16 at once) ── describe it if its fingerprint is new
//!                     ── gone ─────────────────> forgotten
//! ```
//!
//! Guarantees   the extents are those of one listing that began after [`snapshot`](ExtentTracker::snapshot) was called,
//!              in its order. What was learnt is saved; not being able to save loses speed, never an answer. Statements
//!              on one table at the same time discover new files once.
//! Cost         a table whose files are all known: one listing and one comparison per file.
//! See          identity.rs for when a file counts as unchanged; text.rs for files that grow.

mod discover;
mod forget;
mod known;
mod told;
mod verify;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::datatypes::{Schema, SchemaRef};
use async_trait::async_trait;
use datafusion_common::Statistics;
use futures::{StreamExt, TryStreamExt, stream};
use parking_lot::Mutex;

use self::discover::Discovery;
use self::known::{Change, KnownEntry, KnownTable};
pub use self::told::{Looked, SameFiles, Told, Wanted};
use crate::listing::{ListedFile, list_again};
use crate::store::MetadataStore;
use crate::{
    CatalogError, Clock, Extent, ExternalSource, Fingerprint, FingerprintBuilder, Location, ObjectStores, Result,
};

/// Files that are looked at at the same time.
const CONCURRENT_LOOKS: usize = 16;

/// Tables that are kept in memory while nobody asks for them.
const MAX_IDLE_TABLES: usize = 256;

/// Reads what a file tells of itself: its footer, not its rows.
#[async_trait]
pub trait ExtentReader: Send + Sync {
    /// Describes a file that was just listed. Remote files should be read with [`ListedFile::get_options`], so that
    /// another version of the file is never described under this one's name. Text files that are cut into ranges are
    /// described when their beginning is new; only an error counts then.
    async fn describe(&self, source: &ExternalSource, file: &ListedFile) -> Result<Description>;
}

/// What a file tells of itself.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Number of rows, if it says.
    pub rows: Option<u64>,
    /// One entry per column of the table's schema; missing entries at the end are unknown.
    pub stats: Statistics,
}

/// Knows the extents of external tables.
pub struct ExtentTracker {
    store: Arc<dyn MetadataStore>,
    stores: ObjectStores,
    clock: Arc<dyn Clock>,
    tables: Mutex<BTreeMap<String, Arc<Slot>>>,
    /// Orders calls and listings: a listing may serve whoever came before it began.
    tickets: AtomicU64,
    /// Looks at files by the fingerprints that they gave, for those fingerprints that cannot be computed from an
    /// identity.
    by_content: Mutex<BTreeMap<Fingerprint, Arc<KnownEntry>>>,
}

struct Slot {
    table: tokio::sync::Mutex<KnownTable>,
    last_used: AtomicU64,
}

impl ExtentTracker {
    /// Remembers in `store`, reads through `stores`.
    pub fn new(store: Arc<dyn MetadataStore>, stores: ObjectStores, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            stores,
            clock,
            tables: Mutex::default(),
            tickets: AtomicU64::new(1),
            by_content: Mutex::default(),
        }
    }

    /// The extents of a table now, in order. `schema` is the table's, partition columns last.
    pub async fn snapshot(
        &self,
        source: &ExternalSource,
        schema: &SchemaRef,
        reader: &dyn ExtentReader,
    ) -> Result<Arc<[Arc<Extent>]>> {
        let arrived = self.tickets.fetch_add(1, Ordering::SeqCst);
        let key = table_key(source, schema);
        let slot = self.slot(&key, arrived);
        let mut table = slot.table.lock().await;
        if let Some((listed, extents)) = &table.snapshot
            && *listed > arrived
        {
            // Someone listed the table while we waited for it.
            return Ok(Arc::clone(extents));
        }
        if !table.loaded {
            table.load(self.store.known_files(&key).await, source);
            self.remember(&[], &table.entries);
        }
        match self.refresh(&key, &mut table, source, schema, reader).await {
            // It went or changed between listing and looking: a new listing says what there is now.
            Err(CatalogError::Changed { .. }) => self.refresh(&key, &mut table, source, schema, reader).await,
            done => done,
        }
    }

    async fn refresh(
        &self,
        key: &str,
        table: &mut KnownTable,
        source: &ExternalSource,
        schema: &Schema,
        reader: &dyn ExtentReader,
    ) -> Result<Arc<[Arc<Extent>]>> {
        let listed_at = self.tickets.fetch_add(1, Ordering::SeqCst);
        // Before the listing: a file that is modified meanwhile is then surely racy.
        let now_ns = self.clock.now_ns();
        let location = Location::parse(&source.location, Path::new("/"))?;
        let files = list_again(
            &self.stores,
            &location,
            source.format,
            &source.options,
            &source.partition_columns,
            Some(&mut table.listing),
        )
        .await?;
        let listed_ns = self.clock.now_ns();
        if let Some(extents) = table.unchanged(&files, now_ns) {
            table.snapshot = Some((listed_at, Arc::clone(&extents)));
            return Ok(extents);
        }
        let discovery = Discovery { stores: &self.stores, source, schema, reader, now_ns, listed_ns };
        let entries: Vec<Arc<KnownEntry>> = stream::iter(table.compare(files, now_ns))
            .map(|change| {
                let discovery = &discovery;
                async move {
                    match change {
                        Change::None(entry) => Ok(entry),
                        Change::Look(file, known) => discovery.look(file, known).await,
                    }
                }
            })
            .buffered(CONCURRENT_LOOKS)
            .try_collect()
            .await?;
        let (learnt, gone) = table.difference(&entries);
        self.remember(&table.entries, &entries);
        let extents = table.replace(entries, listed_at);
        if !(learnt.is_empty() && gone.is_empty())
            && let Err(error) = self.store.save_known_files(key, &learnt, &gone).await
        {
            tracing::warn!(location = source.location, %error, "cannot save what was learnt of a table's files");
        }
        Ok(extents)
    }

    fn slot(&self, key: &str, ticket: u64) -> Arc<Slot> {
        let mut tables = self.tables.lock();
        if let Some(slot) = tables.get(key) {
            slot.last_used.store(ticket, Ordering::Relaxed);
            return Arc::clone(slot);
        }
        if tables.len() >= MAX_IDLE_TABLES {
            let idle = tables.iter().filter(|(_, slot)| Arc::strong_count(slot) == 1);
            let oldest =
                idle.min_by_key(|(_, slot)| slot.last_used.load(Ordering::Relaxed)).map(|(key, _)| key.clone());
            if let Some(slot) = oldest.and_then(|key| tables.remove(&key))
                && let Ok(table) = slot.table.try_lock()
            {
                self.remember(&table.entries, &[]);
            }
        }
        let slot = Arc::new(Slot { table: tokio::sync::Mutex::default(), last_used: AtomicU64::new(ticket) });
        tables.insert(key.to_owned(), Arc::clone(&slot));
        slot
    }

    /// Keeps looks at hand for [`verify`](Self::verify).
    fn remember(&self, before: &[Arc<KnownEntry>], after: &[Arc<KnownEntry>]) {
        let mut looks = self.by_content.lock();
        for extent in before.iter().filter(|entry| entry.by_content).flat_map(|entry| &entry.extents) {
            looks.remove(&extent.fingerprint);
        }
        for entry in after.iter().filter(|entry| entry.by_content) {
            for extent in &entry.extents {
                looks.insert(extent.fingerprint, Arc::clone(entry));
            }
        }
    }
}

impl fmt::Debug for ExtentTracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtentTracker").field("tables", &self.tables.lock().len()).finish_non_exhaustive()
    }
}

/// Names a location and all that decides how its files are read and what is kept of them. Credentials do not.
pub fn table_key(source: &ExternalSource, schema: &Schema) -> String {
    let secret = |key: &str| {
        ["secret", "token", "password", "access_key", "account_key", "credential"].iter().any(|word| key.contains(word))
    };
    let mut key = FingerprintBuilder::new("known files 1")
        .field("location", source.location.as_bytes())
        .field("format", source.format.to_string().as_bytes())
        .number("content", u64::from(source.content_fingerprint));
    for column in &source.partition_columns {
        key = key.field("partition", column.as_bytes());
    }
    for (name, value) in source.options.iter().filter(|(name, _)| !secret(name)) {
        key = key.field("option", name.as_bytes()).field("value", value.as_bytes());
    }
    for field in schema.fields() {
        key = key.field("column", field.name().as_bytes()).field("type", field.data_type().to_string().as_bytes());
    }
    key.finish().to_string()
}

#[cfg(test)]
mod tests;
