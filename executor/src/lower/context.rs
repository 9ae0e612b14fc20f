//! [`Lowering`]: what lowering one statement needs to know, and what it tells.
//!
//! Rules of DataFusion see nothing of a statement but its plan and its options, so this travels with the options:
//!
//! ```text
//!   let lowering = Arc::new(Lowering::new(store, entries, limits));
//!   state.config_mut().options_mut().extensions.insert(StatementLowering(Arc::clone(&lowering)));
//!   .. plan, prepare_cache_reads, run to the end ..
//!   for recording in lowering.recordings() { recording.finish().await }
//! ```

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{Result, config_err};
use datafusion::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use nectarine_catalog::{CacheEntry, Fingerprint};
use nectarine_planner::node::PrefixKey;
use parking_lot::Mutex;

use crate::derived::{DerivedStore, Recording, RecordingLimits};

/// The derived data that one statement reads and makes.
#[derive(Debug)]
pub struct Lowering {
    store: DerivedStore,
    entries: HashMap<Fingerprint, Arc<CacheEntry>>,
    limits: RecordingLimits,
    recordings: Mutex<Vec<Arc<Recording>>>,
}

impl Lowering {
    /// For a statement that may read `entries`.
    pub fn new(
        store: DerivedStore,
        entries: impl IntoIterator<Item = Arc<CacheEntry>>,
        limits: RecordingLimits,
    ) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.key, entry)).collect();
        Self { store, entries, limits, recordings: Mutex::default() }
    }

    /// What the plan records. Planning twice with one context records twice: each planning wants its own.
    pub fn recordings(&self) -> Vec<Arc<Recording>> {
        self.recordings.lock().clone()
    }

    /// Forgets what a plan would have recorded that came to nothing.
    pub(super) fn forget_recordings(&self) {
        self.recordings.lock().clear();
    }

    /// Where derived data is.
    pub fn store(&self) -> &DerivedStore {
        &self.store
    }

    pub(super) fn entry(&self, key: &Fingerprint) -> Option<&Arc<CacheEntry>> {
        self.entries.get(key)
    }

    /// A recording for `prefix`; `None` if this statement records it already.
    pub(super) fn record(&self, prefix: &Arc<PrefixKey>) -> Option<Arc<Recording>> {
        let mut recordings = self.recordings.lock();
        if recordings.iter().any(|recording| recording.prefix().key == prefix.key) {
            return None;
        }
        let recording = Recording::new(self.store.clone(), Arc::clone(prefix), self.limits.clone());
        recordings.push(Arc::clone(&recording));
        Some(recording)
    }
}

/// Carries a [`Lowering`] in the options of a statement's session state. Has no options that anyone could set.
#[derive(Debug, Clone)]
pub struct StatementLowering(pub Arc<Lowering>);

impl ConfigExtension for StatementLowering {
    const PREFIX: &'static str = "nectarine_lowering";
}

impl ExtensionOptions for StatementLowering {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _value: &str) -> Result<()> {
        config_err!("there is no option \"{key}\"")
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        vec![]
    }
}
