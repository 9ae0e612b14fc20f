//! Reuse: what every statement asks of the view cache, and what it leaves there.
//!
//! ```text
//!   admin      looking after the cache by hand
//!   trouble    what keeps results from being kept, told once
//!   background work that no statement waits for
//!   check      entries against what is computed anew
//!   oracle     the view cache as the planner's rule asks it
//!   statement  one statement's mode, its tries to plan, what it found
//!   late       marks that read entries become operators, once the entries are known to be whole
//!   place      where new results go
//!   keeping    what a statement records, and publishing it when it has ended
//!   in_flight  the same query at the same time is computed once
//!   fast_path  the same text over the same snapshot is not planned again
//!   programs   every program that ran is written down, once
//!   ran        how a program came to be
//!   follow     what others drop is let go of, also while nobody asks for anything
//!   lineage    what entries were made of, for the store
//!   pins       the pins of views follow their programs
//!   relatives  which programs have the same rows in other columns
//!   receipt    what an answer used and saved
//!   lookups    what a statement asked for, for the query log
//!   salt       what settings mean for fingerprints, worked out once
//!   explain    EXPLAIN REUSE
//!   dear       what is not worth computing first
//!   changed    which inputs of a program are others than an entry's
//!   nearest    the entry that a prefix is most like
//! ```
//!
//! A fault of the cache never fails a statement: it is logged, and the rows are computed.

mod admin;
mod background;
mod changed;
mod check;
mod dear;
mod explain;
mod fast_path;
mod follow;
mod in_flight;
mod keeping;
mod late;
mod lineage;
mod lookups;
mod nearest;
mod oracle;
mod pins;
mod place;
mod programs;
mod ran;
mod receipt;
mod relatives;
mod salt;
mod statement;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{Clock, Fingerprint, ObjectStores, ViewCache};
use nectarine_executor::{DerivedStore, Room, Writer, exact_aggregates};
use nectarine_planner::canonical::BuiltIns;

pub use self::admin::{CacheAdmin, CacheStats};
pub(crate) use self::background::Background;
pub(crate) use self::check::Verified;
pub(crate) use self::dear::Dear;
pub(crate) use self::explain::{explain, explain_schema};
pub(crate) use self::fast_path::{
    FastPath, Read, Remembered, SettingsDigest, extents_digest, is_timeless, statement_key,
};
pub(crate) use self::follow::follow;
pub(crate) use self::in_flight::{InFlight, Leader};
pub(crate) use self::keeping::Keeping;
pub(crate) use self::lookups::{answered, lookups};
pub(crate) use self::oracle::Oracle;
pub(crate) use self::pins::Pins;
pub(crate) use self::programs::Programs;
pub(crate) use self::ran::{Ran, Root, functions_of, one_line};
pub(crate) use self::receipt::ReceiptSlot;
pub use self::receipt::{Receipt, Reused};
pub(crate) use self::relatives::Relatives;
pub(crate) use self::salt::Salts;
pub(crate) use self::statement::{Planned, StatementReuse};
pub(crate) use self::trouble::Trouble;

use crate::caretaker::Caretaker;
use crate::collector::Collector;
use crate::eviction::{Budget, Evictor, InVain, Ledger, Readers, Why};
use crate::home::Home;
use crate::mended_functions::mended_functions;
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
    pub(crate) dear: Dear,
    pub(crate) programs: Programs,
    pub(crate) pins: Pins,
    pub(crate) caretaker: Arc<Caretaker>,
    pub(crate) readers: Readers,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) trouble: Trouble,
    /// What a computation is taken to have taken at least; see [`EngineBuilder`](crate::EngineBuilder).
    pub(crate) cost_min: Duration,
    /// About how large parts of results are, if that is not left to the recording; see [`EngineBuilder`](crate::EngineBuilder).
    pub(crate) part_bytes: Option<usize>,
}

impl Reuse {
    /// Opens the view cache and the derived store of a home.
    pub(crate) async fn open(
        home: &Home,
        store: Arc<dyn MetadataStore>,
        object_stores: ObjectStores,
        options: &NectarineOptions,
        clock: Arc<dyn Clock>,
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
        let cache = ViewCache::open_with(Arc::clone(&store), Arc::clone(&clock)).await?;
        let budget = Budget::new(options, derived.folder())?;
        let pins = Pins::new(Arc::clone(&store));
        let ledger = Ledger::new(cache.clone(), Arc::clone(&store), Arc::clone(&clock), home.process(), budget);
        let (ledger, readers, processes) = (Arc::new(ledger), Readers::default(), home.processes());
        let trouble = Trouble::default();
        let derived = derived.written_by(Writer::of(processes.own()), Arc::clone(&ledger) as Arc<dyn Room>);
        let evictor = Arc::new(Evictor {
            cache: cache.clone(),
            derived: derived.clone(),
            metadata: Arc::clone(&store),
            ledger: Arc::clone(&ledger),
            readers: readers.clone(),
            clock: Arc::clone(&clock),
            processes: processes.clone(),
            fresh: Duration::from_secs(options.cache_fresh_seconds as u64),
            trouble: trouble.clone(),
            in_vain: InVain::default(),
        });
        let collector = Collector {
            cache: cache.clone(),
            derived: derived.clone(),
            metadata: store,
            clock: Arc::clone(&clock),
            processes,
            evictor: Arc::clone(&evictor),
        };
        let caretaker = Caretaker::new(ledger, evictor, collector);
        caretaker.start();
        Ok(Self {
            cache,
            caretaker,
            readers,
            clock,
            trouble,
            store: derived,
            built_ins: Arc::new(BuiltIns::default().with_exact(exact_aggregates()).with_mended(mended_functions())),
            in_flight: InFlight::default(),
            fast_path: FastPath::default(),
            background: Background::default(),
            salts: Salts::default(),
            relatives: Relatives::default(),
            dear: Dear::default(),
            programs: Programs::default(),
            cost_min: Duration::ZERO,
            part_bytes: None,
            pins,
        })
    }

    /// Sees what other processes did.
    pub(crate) async fn refresh(&self) {
        if let Err(error) = self.cache.refresh().await {
            tracing::warn!(%error, "cannot read the view cache; going on with what is known");
        }
        self.let_go();
        self.relatives.refresh(&self.cache).await;
    }

    /// Lets go of rows in memory whose entries others dropped.
    pub(crate) fn let_go(&self) {
        match self.cache.take_gone() {
            Some(keys) => keys.iter().for_each(|key| self.store.forget(key)),
            None => self.store.forget_unless(|key| self.cache.lookup(key).is_some()),
        }
    }

    /// Waits until what earlier statements left behind is published; whether there was anything to wait for.
    pub(crate) async fn settled(&self) -> bool {
        self.background.settled().await
    }

    /// Forgets entries and deletes what only they had; why, if it is to be remembered.
    pub(crate) async fn drop_entries(&self, keys: &[Fingerprint], why: Option<Why>) {
        if let Err(error) = self.caretaker.evictor.drop_entries(keys, why).await {
            tracing::warn!(%error, "cannot drop cache entries");
        }
    }

    /// Forgets an entry that is of no use; what only it had is deleted in the background.
    pub(crate) async fn drop_entry_soon(&self, key: Fingerprint) {
        self.store.forget(&key);
        let parts = match self.cache.evict(&[key], Why::Lost.as_str()).await {
            Ok(dropped) => dropped.parts,
            Err(error) => {
                tracing::warn!(%error, "cannot drop a cache entry");
                return;
            }
        };
        let (store, evictor) = (self.store.clone(), Arc::clone(&self.caretaker.evictor));
        self.background.spawn(async move {
            store.dispose(parts, None).await;
            evictor.write_down_undeleted().await;
        });
    }

    /// Ends what goes on in the background and writes down what was counted.
    pub(crate) async fn flush(&self) {
        self.background.finish().await;
        self.programs.write(&self.cache).await;
        self.caretaker.close().await;
        if let Err(error) = self.cache.flush().await {
            tracing::warn!(%error, "cannot write down the uses of cache entries");
        }
    }
}
