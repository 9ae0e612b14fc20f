//! Reuse: what every statement asks of the view cache, and what it leaves there.
//!
//! ```text
//!   admin      looking after the cache by hand
//!   background work that no statement waits for
//!   check      entries against what is computed anew
//!   oracle     the view cache as the planner's rule asks it
//!   statement  one statement's mode, its tries to plan, what it found
//!   late       marks that read entries become operators, once the entries are known to be whole
//!   place      where new results go
//!   keeping    what a statement records, and publishing it when it has ended
//!   in_flight  the same query at the same time is computed once
//!   fast_path  the same text over the same snapshot is not planned again
//!   relatives  which programs have the same rows in other columns
//!   receipt    what an answer used and saved
//!   lookups    what a statement asked for, for the query log
//!   salt       what settings mean for fingerprints, worked out once
//!   explain    EXPLAIN REUSE
//!   changed    which inputs of a program are others than an entry's
//!   nearest    the entry that a prefix is most like
//! ```
//!
//! A fault of the cache never fails a statement: it is logged, and the rows are computed.

mod admin;
mod background;
mod changed;
mod check;
mod explain;
mod fast_path;
mod in_flight;
mod keeping;
mod late;
mod lookups;
mod nearest;
mod oracle;
mod place;
mod receipt;
mod relatives;
mod salt;
mod statement;

use std::sync::Arc;

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{EntryPart, Fingerprint, ObjectStores, ViewCache};
use nectarine_executor::DerivedStore;
use nectarine_planner::canonical::BuiltIns;

pub use self::admin::CacheAdmin;
pub(crate) use self::background::Background;
pub(crate) use self::explain::explain;
pub(crate) use self::fast_path::{
    FastPath, Read, Remembered, SettingsDigest, extents_digest, is_timeless, statement_key,
};
pub(crate) use self::in_flight::{InFlight, Leader};
pub(crate) use self::keeping::Keeping;
pub(crate) use self::lookups::{answered, lookups};
pub(crate) use self::oracle::Oracle;
pub(crate) use self::receipt::ReceiptSlot;
pub use self::receipt::{Receipt, Reused};
pub(crate) use self::relatives::Relatives;
pub(crate) use self::salt::Salts;
pub(crate) use self::statement::StatementReuse;

use crate::home::Home;
use crate::settings::{NectarineOptions, parse_size};
use crate::{EngineError, ErrorKind, Result, machine};

/// What all statements of a home share.
#[derive(Clone)]
pub(crate) struct Reuse {
    pub(crate) cache: ViewCache,
    pub(crate) store: DerivedStore,
    pub(crate) built_ins: Arc<BuiltIns>,
    pub(crate) in_flight: InFlight,
    pub(crate) fast_path: FastPath,
    pub(crate) background: Background,
    pub(crate) salts: Salts,
    pub(crate) relatives: Relatives,
}

impl Reuse {
    /// Opens the view cache and the derived store of a home.
    pub(crate) async fn open(
        home: &Home,
        store: Arc<dyn MetadataStore>,
        object_stores: ObjectStores,
        options: &NectarineOptions,
    ) -> Result<Self> {
        let memory = parse_size("nectarine.cache.memory", &options.cache_memory, machine::memory_bytes())?;
        let elsewhere = place::place(home, &options.cache_location)?;
        let derived = DerivedStore::open(&home.derived(), elsewhere.as_ref(), object_stores, memory);
        let derived = derived.map_err(|error| {
            let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
            EngineError::new(ErrorKind::Configuration, "cannot open the derived store")
                .with_detail(cause)
                .with_source(error)
        })?;
        let cache = ViewCache::open(store).await?;
        Ok(Self {
            cache,
            store: derived,
            built_ins: Arc::new(BuiltIns::default()),
            in_flight: InFlight::default(),
            fast_path: FastPath::default(),
            background: Background::default(),
            salts: Salts::default(),
            relatives: Relatives::default(),
        })
    }

    /// Sees what other processes did.
    pub(crate) async fn refresh(&self) {
        if let Err(error) = self.cache.refresh().await {
            tracing::warn!(%error, "cannot read the view cache; going on with what is known");
        }
    }

    /// Forgets entries and deletes what only they had.
    pub(crate) async fn drop_entries(&self, keys: &[Fingerprint]) {
        let parts = self.forget(keys).await;
        delete(&self.store, &parts).await;
    }

    /// Forgets an entry; what only it had is deleted in the background.
    pub(crate) async fn drop_entry_soon(&self, key: Fingerprint) {
        let parts = self.forget(&[key]).await;
        let store = self.store.clone();
        self.background.spawn(async move { delete(&store, &parts).await });
    }

    async fn forget(&self, keys: &[Fingerprint]) -> Vec<EntryPart> {
        keys.iter().for_each(|key| self.store.forget(key));
        self.cache.remove(keys).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot drop cache entries");
            vec![]
        })
    }

    /// Ends what goes on in the background and writes down what was counted.
    pub(crate) async fn flush(&self) {
        self.background.finish().await;
        if let Err(error) = self.cache.flush().await {
            tracing::warn!(%error, "cannot write down the uses of cache entries");
        }
    }
}

async fn delete(store: &DerivedStore, parts: &[EntryPart]) {
    if let Err(error) = store.delete(parts).await {
        tracing::warn!(%error, "cannot delete parts of dropped entries");
    }
}
