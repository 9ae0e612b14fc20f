//! [`Keeping`]: what a statement records, and publishing it when the statement has ended.
//!
//! Keeps true   nothing is published before the external extents that the statement read were looked at again: what was
//!              read from a file that changed meanwhile is the result of nothing.
//! By worth     what costs more to read than it cost to compute is thrown away.
//! Cancelled    at any moment, it leaves no parts and no room behind: see [`Unpublished`]. What the metadata store may have made an
//!              entry's is not deleted before that store was asked.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::SendableRecordBatchStream;
use nectarine_catalog::{
    CacheEntry, EntryKind, Fingerprint, NewEntry, PinMoves, ProgramRecord, ProgramRun, Publication, fail_point,
};
use nectarine_executor::{Finished, LoadedEntry, Lowering, NotRecorded, Recording, RecordingLimits, Unpublished};
use nectarine_planner::canonical::{Prefix, PrefixKind};
use nectarine_planner::node::{PrefixKey, Worth};
use nectarine_planner::reuse::{Findings, Found, MadeOf, ReuseMode, is_worth_it, may_cover};

use super::lineage::lineage;
use super::ran::one_line;
use super::{Ran, Reuse, check};
use crate::Result;
use crate::rows::look_again;
use crate::statement::StatementCatalog;

/// One prefix that is recorded.
struct Kept {
    prefix: Prefix,
    recording: Arc<Recording>,
    /// What computing the entries took that it is made from.
    reused: Duration,
    made_of: MadeOf,
}

/// One entry that is about to be published.
struct Made {
    key: Fingerprint,
    locations: Vec<String>,
    unpublished: Unpublished,
    /// Its rows, if they are few.
    loaded: Option<Arc<LoadedEntry>>,
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
    catalog: Arc<StatementCatalog>,
    /// The statement, if it has a program.
    ran: Option<Arc<Ran>>,
    /// Whether it has ended well.
    has_ended: bool,
    /// Whether the answer is kept whatever it is worth.
    pub(super) must_keep: bool,
    /// Pins of views that move to what is made here.
    moves: PinMoves,
}

impl Keeping {
    pub(super) fn new(
        reuse: Reuse,
        mode: ReuseMode,
        lowering: &Lowering,
        findings: &Findings,
        catalog: &Arc<StatementCatalog>,
    ) -> Self {
        let recordings = lowering.recordings();
        let kept = recordings.into_iter().filter_map(|recording| {
            let kept = findings.kept.get(recording.prefix().ordinal)?;
            let reused = Duration::from_micros(kept.reused_us);
            Some(Kept { prefix: kept.prefix.clone(), recording, reused, made_of: kept.made_of.clone() })
        });
        Self {
            below: kept.collect(),
            reuse,
            mode,
            root: None,
            replaced: HashSet::new(),
            description: String::new(),
            catalog: Arc::clone(catalog),
            ran: None,
            has_ended: false,
            must_keep: false,
            moves: PinMoves::default(),
        }
    }

    pub(super) fn keep_root(&mut self, root: &Prefix, reused: Duration, limits: RecordingLimits, made_of: &MadeOf) {
        self.keep_rows(root, Worth::Wanted, reused, limits, made_of);
    }

    /// The same for what keeping may cost only so much.
    pub(super) fn keep_rows(
        &mut self,
        root: &Prefix,
        worth: Worth,
        reused: Duration,
        limits: RecordingLimits,
        made_of: &MadeOf,
    ) {
        let key = PrefixKey { key: root.key, program: root.program, ordinal: usize::MAX, worth };
        let recording = Recording::new(self.reuse.store.clone(), Arc::new(key), limits);
        self.root = Some(Kept { prefix: root.clone(), recording, reused, made_of: made_of.clone() });
    }

    /// What this statement keeps takes the place of these entries, which it could not use.
    pub(super) fn replaces(&mut self, entries: &HashSet<Fingerprint>) {
        self.replaced.clone_from(entries);
    }

    /// These pins move to what is made here.
    pub(super) fn moves(&mut self, moves: PinMoves) {
        self.moves = moves;
    }

    /// Whether somebody waits for what publishing finds.
    pub(crate) fn tells(&self) -> bool {
        self.mode == ReuseMode::Check
    }

    /// Whether publishing depends on another machine, which nobody should wait for.
    pub(crate) fn takes_its_time(&self) -> bool {
        self.reuse.store.is_remote()
    }

    /// How many results are whole; they may still turn out not to be worth it.
    pub(crate) fn n_whole(&self) -> usize {
        self.below.iter().chain(&self.root).filter(|kept| kept.recording.is_whole()).count()
    }

    /// What the rows of the whole are kept by.
    pub(super) fn recording(&self) -> Option<Arc<Recording>> {
        self.root.as_ref().map(|root| Arc::clone(&root.recording))
    }

    /// Whether the rows of the whole will not be kept.
    pub(crate) fn has_given_up(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.recording.has_given_up())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.root.is_none() && self.below.is_empty()
    }

    /// Which statement it is.
    pub(crate) fn describe(&mut self, sql: &str, ran: Option<Arc<Ran>>) {
        self.description = one_line(sql);
        self.ran = ran;
    }

    /// The statement has ended well.
    pub(crate) fn ended(&mut self) {
        self.has_ended = true;
    }

    /// The rows of the statement, which are recorded as they pass.
    pub(crate) fn tee(&self, stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
        match &self.root {
            Some(root) => root.recording.tee(0, 1, stream),
            None => stream,
        }
    }

    /// Publishes if the extents that were read are still what they were; returns which entries.
    pub(super) async fn publish_verified(self, elapsed: Duration) -> Vec<Fingerprint> {
        match look_again(&self.catalog).await {
            Ok(()) => self.add(elapsed).await,
            Err(_) => {
                self.discard();
                vec![]
            }
        }
    }

    /// Publishes what is whole and worth it; returns how many entries. `elapsed` is what the statement took; `verified`
    /// says that what was read is still there.
    pub(crate) async fn publish(self, elapsed: Duration) -> Result<usize> {
        if self.mode == ReuseMode::Check {
            return self.check().await.map(|()| 0);
        }
        Ok(self.add(elapsed).await.len())
    }

    async fn add(self, elapsed: Duration) -> Vec<Fingerprint> {
        let mut entries = vec![];
        let mut made = vec![];
        let mut unworthy = vec![];
        for (kept, is_root) in
            self.below.iter().map(|kept| (kept, false)).chain(self.root.iter().map(|kept| (kept, true)))
        {
            let finished = match kept.recording.finish().await {
                Ok(finished) => finished,
                Err(reason) => {
                    tracing::debug!(entry = %kept.prefix.key, %reason, "not kept");
                    self.reuse.trouble.learn(&reason);
                    // The next one does not try in vain.
                    if let NotRecorded::TooLarge { bytes_max } = reason {
                        self.reuse.dear.learn(kept.prefix.program, bytes_max);
                    }
                    continue;
                }
            };
            // Made from entries, it cost what they did as well: that is what remaking it would take.
            let computing = if is_root { elapsed } else { cost_of(&finished, elapsed) };
            let cost = kept.reused + computing.max(self.reuse.cost_min);
            let found = Found { rows: finished.rows, bytes: finished.bytes, cost_us: cost.as_micros() as u64 };
            let is_wanted = is_root && self.must_keep;
            if !is_wanted && !is_worth_it(&found) {
                tracing::debug!(entry = %kept.prefix.key, ?found, "not worth it");
                unworthy.push(finished.unpublished);
                continue;
            }
            let entry = self.entry(&kept.prefix, &finished, found);
            made.push(Made {
                key: entry.key,
                locations: entry.parts.iter().map(|part| part.location.clone()).collect(),
                unpublished: finished.unpublished,
                loaded: finished.loaded,
            });
            entries.push(NewEntry {
                entry,
                program: program_of(&kept.prefix, &self.description),
                lineage: Some(lineage(&self.catalog, &kept.prefix, &kept.made_of)),
            });
        }
        for unpublished in unworthy {
            unpublished.delete().await;
        }
        let run = self.ran.as_ref().map(|ran| ran.runs(&self.reuse.programs, u64::from(self.has_ended)));
        if entries.is_empty() {
            run.into_iter().for_each(|run| self.ran_once(run));
            return vec![];
        }
        let is_replaced = |key: &Fingerprint| self.mode == ReuseMode::Refresh || self.replaced.contains(key);
        let replaced: Vec<_> = entries.iter().map(|new| new.entry.key).filter(is_replaced).collect();
        fail_point("entry_finished");
        if !replaced.is_empty() {
            self.reuse.drop_entries(&replaced, None).await;
            fail_point("entry_replaced");
        }
        self.introduce(&entries).await;
        let (purges, pins) = (Some(self.catalog.purges), self.moves.clone());
        let publication = Publication { entries, run: run.clone(), purges, pins };
        made.iter_mut().for_each(|made| made.unpublished.offer());
        match self.reuse.cache.publish(publication).await {
            Ok(added) => {
                fail_point("entry_published");
                self.reuse.pins.moved(&self.moves);
                match (run, added.contains(&true)) {
                    (Some(run), true) => self.reuse.programs.written([run.source]),
                    (Some(run), false) => self.ran_once(run),
                    (None, _) => {}
                }
                self.reuse.trouble.is_over();
                let mut ours = vec![];
                for (Made { key, unpublished, loaded, .. }, added) in made.into_iter().zip(added) {
                    match added {
                        true => {
                            unpublished.published();
                            loaded.iter().for_each(|rows| self.reuse.store.remember(key, rows));
                            ours.push(key);
                        }
                        // Somebody else was faster, or what it was made of was purged.
                        false => unpublished.delete().await,
                    }
                }
                ours
            }
            Err(error) => {
                tracing::warn!(%error, "cannot publish cache entries");
                for made in made {
                    self.take_back(made).await;
                }
                vec![]
            }
        }
    }

    /// A statement that leaves nothing behind ran all the same.
    fn ran_once(&self, run: ProgramRun) {
        if run.runs > 0 {
            self.reuse.programs.ran(run, &self.reuse.cache, &self.reuse.background);
        }
    }

    /// Compares what was recorded with the entries that are there.
    async fn check(self) -> Result<()> {
        for kept in self.below.iter().chain(&self.root) {
            let Ok(finished) = kept.recording.finish().await else { continue };
            let outcome = check::compare(&self.reuse, &kept.prefix, &finished).await;
            finished.unpublished.delete().await;
            outcome?;
        }
        Ok(())
    }

    /// Throws away what was recorded.
    pub(crate) fn discard(&self) {
        self.below.iter().chain(&self.root).for_each(|kept| kept.recording.discard());
    }

    /// Programs of the entries become known to those that have the same rows in other columns.
    async fn introduce(&self, entries: &[NewEntry]) {
        let prefixes = self.below.iter().chain(&self.root).map(|kept| &kept.prefix);
        let is_made = |prefix: &&Prefix| entries.iter().any(|new| new.entry.key == prefix.key) && may_cover(prefix);
        self.reuse.relatives.introduce(prefixes.filter(is_made), &self.reuse.cache).await;
    }

    /// Publishing failed. A store that fails while it commits may have done it all the same.
    async fn take_back(&self, Made { locations, unpublished, .. }: Made) {
        match self.reuse.cache.referenced(&locations).await {
            Ok(referenced) if referenced.contains(&true) => unpublished.published(),
            Ok(_) => unpublished.delete().await,
            Err(_) => unpublished.leave(),
        }
    }

    fn entry(&self, prefix: &Prefix, finished: &Finished, found: Found) -> CacheEntry {
        let inputs = prefix.inputs.iter().map(|input| input.extents.iter().map(|extent| extent.fingerprint).collect());
        CacheEntry {
            key: prefix.key,
            program: prefix.program,
            kind: if prefix.kind == PrefixKind::States { EntryKind::States } else { EntryKind::Rows },
            parts: finished.parts.clone(),
            rows: found.rows,
            bytes: found.bytes,
            cost_us: found.cost_us,
            inputs: inputs.collect(),
            description: self.description.clone(),
            created_at: self.reuse.clock.now_ns() / 1000,
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
