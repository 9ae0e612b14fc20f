//! [`Programs`]: every program that ran well is written down, once, for ever; how often it ran is counted.
//!
//! Waits not   a statement leaves a note in memory. New programs are written in the background, or with the entries that the
//!             statement leaves; counts with the next new program, or when the home is closed.
//! Bounded     what is known to be written down is remembered up to a number; beyond it the store is asked, which knows.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nectarine_catalog::{Fingerprint, ProgramRun, ViewCache};
use parking_lot::Mutex;

use super::Background;
use crate::managed::now_micros;

/// Sources that are remembered to be written down.
const KNOWN_MAX: usize = 100_000;
/// Programs whose counts wait in memory.
const COUNTS_MAX: usize = 4096;

/// Programs of one home; clones share them.
#[derive(Clone, Default)]
pub(crate) struct Programs {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    known: HashSet<Fingerprint>,
    pending: HashMap<Fingerprint, ProgramRun>,
    is_writing: bool,
}

/// Somebody writes, however that ends.
struct Writing(Arc<Mutex<State>>);

impl Programs {
    /// Whether a source is written down, as far as is known.
    pub(crate) fn is_known(&self, source: &Fingerprint) -> bool {
        self.state.lock().known.contains(source)
    }

    /// A program that is written down ran once more.
    pub(crate) fn count(&self, source: Fingerprint, program: Fingerprint) {
        let now = now_micros();
        let run = ProgramRun { source, program, what: None, runs: 1, first_run_at: now, last_run_at: now };
        self.state.lock().note(run);
    }

    /// A program ran; it is written down soon.
    pub(crate) fn ran(&self, run: ProgramRun, cache: &ViewCache, background: &Background) {
        let mut state = self.state.lock();
        let is_new = run.what.is_some();
        state.note(run);
        if (!is_new && state.pending.len() < COUNTS_MAX) || std::mem::replace(&mut state.is_writing, true) {
            return;
        }
        drop(state);
        let writing = Writing(Arc::clone(&self.state));
        let (programs, cache) = (self.clone(), cache.clone());
        background.spawn(async move {
            // What comes while this is written is written next.
            while programs.has_new() && programs.write(&cache).await {}
            drop(writing);
        });
    }

    /// These are written down.
    pub(crate) fn written(&self, sources: impl IntoIterator<Item = Fingerprint>) {
        let mut state = self.state.lock();
        if state.known.len() >= KNOWN_MAX {
            state.known.clear();
        }
        state.known.extend(sources);
    }

    /// Writes down what waits; `false` if that failed.
    pub(crate) async fn write(&self, cache: &ViewCache) -> bool {
        let runs: Vec<ProgramRun> = std::mem::take(&mut self.state.lock().pending).into_values().collect();
        if runs.is_empty() {
            return true;
        }
        match cache.save_program_runs(&runs).await {
            Ok(()) => {
                self.written(runs.iter().filter(|run| run.what.is_some()).map(|run| run.source));
                true
            }
            Err(error) => {
                tracing::warn!(%error, "cannot write down programs");
                let mut state = self.state.lock();
                // Not for ever: a store that is away must not fill the memory.
                if state.pending.len() < COUNTS_MAX {
                    runs.into_iter().for_each(|run| state.note(run));
                }
                false
            }
        }
    }

    fn has_new(&self) -> bool {
        let state = self.state.lock();
        state.pending.len() >= COUNTS_MAX || state.pending.values().any(|run| run.what.is_some())
    }
}

impl State {
    fn note(&mut self, run: ProgramRun) {
        match self.pending.get_mut(&run.source) {
            Some(known) => {
                known.runs += run.runs;
                known.first_run_at = known.first_run_at.min(run.first_run_at);
                known.last_run_at = known.last_run_at.max(run.last_run_at);
                if known.what.is_none() {
                    known.what = run.what;
                }
            }
            None => _ = self.pending.insert(run.source, run),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.0.lock().is_writing = false;
    }
}
