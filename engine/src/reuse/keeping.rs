//! [`Keeping`]: what a statement records, and publishing it when the statement has ended.
//!
//! Keeps true   nothing is published before the external extents that the statement read were looked at again: what was
//!              read from a file that changed meanwhile is the result of nothing.
//! By worth     what costs more to read than it cost to compute is thrown away.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SendableRecordBatchStream;
use nectarine_catalog::{CacheEntry, EntryKind, Fingerprint, ProgramRecord, fail_point};
use nectarine_executor::{Finished, Lowering, Recording, RecordingLimits};
use nectarine_planner::canonical::{Prefix, PrefixKind};
use nectarine_planner::node::PrefixKey;
use nectarine_planner::reuse::{Findings, Found, ReuseMode, is_worth_it, may_cover};

use super::{Reuse, check};
use crate::Result;
use crate::managed::now_micros;
use crate::rows::look_again;
use crate::statement::StatementCatalog;

/// One prefix that is recorded.
struct Kept {
    prefix: Prefix,
    recording: Arc<Recording>,
    /// What computing the entries took that it is made from.
    reused: Duration,
}

/// What one statement records.
pub(crate) struct Keeping {
    reuse: Reuse,
    mode: ReuseMode,
    below: Vec<Kept>,
    root: Option<Kept>,
    /// Entries that are there and could not be used.
    replaced: HashSet<Fingerprint>,
    /// For people: the statement.
    description: String,
}

impl Keeping {
    pub(super) fn new(reuse: Reuse, mode: ReuseMode, lowering: &Lowering, findings: &Findings) -> Self {
        let recordings = lowering.recordings();
        let kept = recordings.into_iter().filter_map(|recording| {
            let kept = findings.kept.get(recording.prefix().ordinal)?;
            let reused = Duration::from_micros(kept.reused_us);
            Some(Kept { prefix: kept.prefix.clone(), recording, reused })
        });
        Self { below: kept.collect(), ..Self::of(reuse, mode) }
    }

    /// Keeps nothing yet.
    fn of(reuse: Reuse, mode: ReuseMode) -> Self {
        Self { reuse, mode, below: vec![], root: None, replaced: HashSet::new(), description: String::new() }
    }

    pub(super) fn keep_root(&mut self, root: &Prefix, reused: Duration, limits: RecordingLimits) {
        let key = PrefixKey { key: root.key, program: root.program, ordinal: usize::MAX };
        let recording = Recording::new(self.reuse.store.clone(), Arc::new(key), limits);
        self.root = Some(Kept { prefix: root.clone(), recording, reused });
    }

    /// What this statement keeps takes the place of these entries, which it could not use.
    pub(super) fn replaces(&mut self, entries: &HashSet<Fingerprint>) {
        self.replaced.clone_from(entries);
    }

    /// Whether publishing is better left to the background: it depends on another machine, and nobody waits for what it
    /// finds.
    pub(crate) fn takes_its_time(&self) -> bool {
        self.mode != ReuseMode::Check && self.reuse.store.is_remote()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none() && self.below.is_empty()
    }

    pub(crate) fn describe(&mut self, sql: &str) {
        self.description = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    }

    /// The rows of the statement, which are recorded as they pass.
    pub(crate) fn tee(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        match &self.root {
            Some(root) => root.recording.tee(0, 1, stream),
            None => stream,
        }
    }

    /// Publishes if the extents that were read are still what they were; returns how many entries.
    pub(super) async fn publish_verified(self, catalog: &StatementCatalog, elapsed: Duration) -> usize {
        match look_again(catalog).await {
            Ok(()) => self.add(elapsed).await,
            Err(_) => {
                self.discard();
                0
            }
        }
    }

    /// Publishes what is whole and worth it; returns how many entries. `elapsed` is what the statement took; `verified`
    /// says that what was read is still there.
    pub(crate) async fn publish(self, elapsed: Duration) -> Result<usize> {
        if self.mode == ReuseMode::Check {
            return self.check().await.map(|()| 0);
        }
        Ok(self.add(elapsed).await)
    }

    async fn add(self, elapsed: Duration) -> usize {
        let mut entries = vec![];
        let mut loaded = vec![];
        let mut unworthy = vec![];
        for (kept, is_root) in
            self.below.iter().map(|kept| (kept, false)).chain(self.root.iter().map(|kept| (kept, true)))
        {
            let finished = match kept.recording.finish().await {
                Ok(finished) => finished,
                Err(reason) => {
                    tracing::debug!(entry = %kept.prefix.key, %reason, "not kept");
                    continue;
                }
            };
            // Made from entries, it cost what they did as well: that is what remaking it would take.
            let cost = kept.reused + if is_root { elapsed } else { cost_of(&finished, elapsed) };
            let found = Found { rows: finished.rows, bytes: finished.bytes, cost_us: cost.as_micros() as u64 };
            if !is_worth_it(&found) {
                tracing::debug!(entry = %kept.prefix.key, ?found, "not worth it");
                unworthy.extend(finished.parts);
                continue;
            }
            if let Some(rows) = finished.loaded.clone() {
                loaded.push((kept.prefix.key, rows));
            }
            entries.push((self.entry(&kept.prefix, finished, found), program_of(&kept.prefix, &self.description)));
        }
        let n_entries = entries.len();
        self.delete(unworthy).await;
        if n_entries == 0 {
            return 0;
        }
        let is_replaced = |key: &Fingerprint| self.mode == ReuseMode::Refresh || self.replaced.contains(key);
        let replaced: Vec<_> = entries.iter().map(|(entry, _)| entry.key).filter(is_replaced).collect();
        fail_point("entry_finished");
        if !replaced.is_empty() {
            self.reuse.drop_entries(&replaced).await;
            fail_point("entry_replaced");
        }
        let parts: Vec<_> = entries.iter().map(|(entry, _)| (entry.key, entry.parts.clone())).collect();
        self.introduce(&entries);
        match self.reuse.cache.add_all(entries).await {
            Ok(added) => {
                fail_point("entry_published");
                let mut superfluous = vec![];
                for ((key, parts), added) in parts.into_iter().zip(&added) {
                    match added {
                        true => self.remember(&key, &loaded),
                        // Somebody else was faster.
                        false => superfluous.extend(parts),
                    }
                }
                self.delete(superfluous).await;
                added.into_iter().filter(|added| *added).count()
            }
            Err(error) => {
                tracing::warn!(%error, "cannot publish cache entries");
                self.delete(parts.into_iter().flat_map(|(_, parts)| parts).collect()).await;
                0
            }
        }
    }

    /// Compares what was recorded with the entries that are there.
    async fn check(self) -> Result<()> {
        for kept in self.below.iter().chain(&self.root) {
            let Ok(finished) = kept.recording.finish().await else { continue };
            let outcome = check::compare(&self.reuse, &kept.prefix, &finished).await;
            self.delete(finished.parts).await;
            outcome?;
        }
        Ok(())
    }

    /// Throws away what was recorded.
    pub(crate) fn discard(&self) {
        self.below.iter().chain(&self.root).for_each(|kept| kept.recording.discard());
    }

    /// Programs of the entries become known to those that have the same rows in other columns.
    fn introduce(&self, entries: &[(CacheEntry, ProgramRecord)]) {
        for kept in self.below.iter().chain(&self.root) {
            if entries.iter().any(|(entry, _)| entry.key == kept.prefix.key) && may_cover(&kept.prefix) {
                self.reuse.relatives.add(&kept.prefix);
            }
        }
    }

    fn remember(&self, key: &Fingerprint, loaded: &[(Fingerprint, Arc<nectarine_executor::LoadedEntry>)]) {
        if let Some((_, rows)) = loaded.iter().find(|(other, _)| other == key) {
            self.reuse.store.remember(*key, rows);
        }
    }

    async fn delete(&self, parts: Vec<nectarine_catalog::EntryPart>) {
        if parts.is_empty() {
            return;
        }
        if let Err(error) = self.reuse.store.delete(&parts).await {
            tracing::debug!(%error, "cannot delete parts that nobody needs");
        }
    }

    fn entry(&self, prefix: &Prefix, finished: Finished, found: Found) -> CacheEntry {
        let inputs = prefix.inputs.iter().map(|input| input.extents.iter().map(|extent| extent.fingerprint).collect());
        CacheEntry {
            key: prefix.key,
            program: prefix.program,
            kind: if prefix.kind == PrefixKind::States { EntryKind::States } else { EntryKind::Rows },
            parts: finished.parts,
            rows: found.rows,
            bytes: found.bytes,
            cost_us: found.cost_us,
            inputs: inputs.collect(),
            description: self.description.clone(),
            created_at: now_micros(),
        }
    }
}

/// What computing a prefix took: the work of the operators below it, but never more than the statement.
fn cost_of(finished: &Finished, elapsed: Duration) -> Duration {
    finished.wall.min(elapsed)
}

fn program_of(prefix: &Prefix, description: &str) -> ProgramRecord {
    ProgramRecord {
        program: prefix.program,
        encoding: Arc::clone(&prefix.encoding),
        description: description.to_string(),
    }
}
