//! The collector: what nobody needs in the derived store goes. Mark and sweep, beside everything else that happens.
//!
//! ```text
//!   parts       parts that no entry has                     what a killed process, or a failed delete, left
//!   unfinished  parts that were not written to their end    the same
//!   foreign     files that no computation made              put there by hand
//!   lost        entries whose parts are gone                deleted by hand
//!   lists       lists of extents that no entry has          of entries whose records were damaged
//!   dead        leases and temporary folders of processes that died
//! ```
//!
//! Never takes what is in flight. In this order, for each section of the store: what is there, then who is alive and what this
//! process has in flight, then which files entries have. A part that is about to be published is protected at the second
//! question, or is an entry's by the third.
//! What can not be deleted is written down, counts, and is tried again before anything else.
//! Dies well     everything here may stop anywhere; the next sweep does the rest. A dead process's lease goes last, so that its
//!               room is given back only when what it left is gone.
//! Slow          on purpose: it rests as long as it works, unless somebody waits for it.
//! Programs stay for ever.

mod dead;
mod foreign;
mod lists;
mod lost;
mod parts;
mod unfinished;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use nectarine_catalog::store::MetadataStore;
use nectarine_catalog::{Clock, Fingerprint, ViewCache};
use nectarine_executor::{DerivedStore, Found, FoundKind, Removed, Section, Writer};

use crate::Result;
use crate::eviction::Evictor;
use crate::home::{Liveness, Processes};

/// How long files stay of which nobody can tell who wrote them: an older version may be about to publish them.
const UNKNOWN_GRACE: Duration = Duration::from_secs(3600);

/// What a sweep took away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Collected {
    /// Parts that no entry had.
    pub parts: usize,
    /// Parts that were not written to their end.
    pub unfinished: usize,
    /// Files that no computation made.
    pub foreign: usize,
    /// What the files took.
    pub bytes: u64,
    /// Entries whose parts were gone.
    pub entries: usize,
    /// Lists of extents that no entry had.
    pub lists: usize,
    /// Processes that had died and left something.
    pub processes: usize,
    /// Files that nobody needs and that could not be deleted.
    pub left: usize,
    /// What those take.
    pub left_bytes: u64,
}

/// How much of the time a sweep may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// As fast as it goes.
    Fast,
    /// It rests as long as it works.
    Gentle,
}

/// See the module.
pub(crate) struct Collector {
    pub(crate) cache: ViewCache,
    pub(crate) derived: DerivedStore,
    pub(crate) metadata: Arc<dyn MetadataStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) processes: Processes,
    pub(crate) evictor: Arc<Evictor>,
}

/// Which processes may be about to publish what they wrote.
struct Living(HashSet<Writer>);

/// What entries say of a section.
struct Marks {
    /// Where parts are, and whose.
    locations: HashMap<String, Vec<Fingerprint>>,
}

impl Collector {
    /// Sweeps once.
    pub(crate) async fn collect(&self, pace: Pace) -> Result<Collected> {
        let mut collected = Collected::default();
        let dead = self.dead().await?;
        self.evictor.write_down_undeleted().await;
        let tried = self.evictor.try_again(usize::MAX).await?;
        (collected.parts, collected.bytes) = (tried.n_gone, tried.gone_bytes);
        if tried.n_gone > 0 {
            self.evictor.in_vain.learn(true);
        }
        let known = self.metadata.undeleted_parts().await?.into_iter().map(|part| part.location).collect();
        let mut sections = self.derived.sections();
        let mut is_whole = true;
        loop {
            let started = Instant::now();
            let Some(section) = sections.next().await else { break };
            match section {
                Ok(section) => self.sweep(section, &known, &mut collected).await?,
                Err(error) => {
                    tracing::warn!(%error, "a part of the derived store can not be swept");
                    is_whole = false;
                }
            }
            pace.rest(started).await;
        }
        collected.lists = self.sweep_lists(pace).await?;
        for part in self.metadata.undeleted_parts().await? {
            collected.left += 1;
            collected.left_bytes += part.bytes;
        }
        if is_whole {
            collected.processes = self.bury(&dead).await?;
        }
        self.processes.sweep();
        tracing::debug!(?collected, "swept the derived store");
        Ok(collected)
    }

    /// Whether a process died and left something to sweep.
    pub(crate) async fn is_due(&self) -> bool {
        self.dead().await.is_ok_and(|dead| !dead.is_empty())
    }

    /// `known` are parts that could not be deleted a moment ago.
    async fn sweep(&self, section: Section, known: &HashSet<String>, collected: &mut Collected) -> Result<()> {
        let living = self.living().await?;
        let is_suspect = |one: &&Found| {
            let stays = one.kind == FoundKind::Part && known.contains(&one.location);
            !stays && !self.is_needed(one, &living)
        };
        let suspects: Vec<Found> = section.found.iter().filter(is_suspect).cloned().collect();
        let marks = self.marks(&section, &suspects).await?;
        let mut garbage = parts::garbage(&suspects, &marks);
        garbage.extend(unfinished::garbage(&suspects));
        garbage.extend(foreign::garbage(&suspects));
        if !garbage.is_empty() {
            let now = self.clock.now_ns() / 1000;
            let mut garbage = self.derived.look_at(garbage).await;
            garbage.retain(|one| one.writer.is_some() || is_old(one, now));
            let removed = self.derived.remove(garbage).await;
            self.left(&removed).await?;
            for gone in removed.gone {
                tracing::debug!(location = gone.location, kind = ?gone.kind, "swept");
                collected.bytes += gone.bytes;
                *match gone.kind {
                    FoundKind::Part => &mut collected.parts,
                    FoundKind::Unfinished => &mut collected.unfinished,
                    FoundKind::Foreign => &mut collected.foreign,
                } += 1;
            }
        }
        if section.range.is_some() {
            collected.entries += self.sweep_lost(&section, &marks).await?;
        }
        Ok(())
    }

    /// Writes down which parts could not be deleted: before the leases go that counted them.
    async fn left(&self, removed: &Removed) -> Result<()> {
        let parts: Vec<_> = removed.left.iter().filter(|(one, _)| one.kind == FoundKind::Part).collect();
        if let Some((one, error)) = removed.left.first() {
            tracing::debug!(location = one.location, %error, "garbage stays for now");
        }
        if let Some((_, error)) = parts.first() {
            let parts: Vec<_> = parts.iter().map(|(one, _)| one.part()).collect();
            self.metadata.add_undeleted_parts(&parts).await?;
            self.evictor.ledger.learn_undeleted(self.metadata.undeleted_bytes().await?);
            self.evictor.trouble.learn_undeleted(&error.to_string());
        }
        Ok(())
    }

    /// Whether somebody may be about to publish it.
    fn is_needed(&self, found: &Found, living: &Living) -> bool {
        match found.writer {
            Some(writer) if writer == self.derived.writer() => self.derived.is_in_flight(&found.location),
            Some(writer) => living.0.contains(&writer),
            None => false,
        }
    }

    /// Processes that hold a lease and may be alive.
    async fn living(&self) -> Result<Living> {
        let leases = self.metadata.cache_leases().await?;
        let now = self.clock.now_ns() / 1000;
        let alive =
            leases.iter().filter(|lease| is_alive(self.processes.liveness(&lease.holder), lease.expires_at, now));
        Ok(Living(alive.map(|lease| Writer::of(&lease.holder)).collect()))
    }

    async fn marks(&self, section: &Section, suspects: &[Found]) -> Result<Marks> {
        let mut locations: HashMap<String, Vec<Fingerprint>> = HashMap::new();
        match &section.range {
            Some((from, to)) => {
                for (location, key) in self.metadata.cache_locations(from, to).await? {
                    locations.entry(location).or_default().push(key);
                }
            }
            None => {
                let asked: Vec<_> = suspects.iter().map(|one| one.location.clone()).collect();
                let referenced = self.cache.referenced(&asked).await?;
                let there = asked.into_iter().zip(referenced).filter(|(_, referenced)| *referenced);
                locations.extend(there.map(|(location, _)| (location, vec![])));
            }
        }
        Ok(Marks { locations })
    }
}

impl Pace {
    async fn rest(self, started: Instant) {
        match self {
            Self::Fast => tokio::task::yield_now().await,
            Self::Gentle => tokio::time::sleep(started.elapsed()).await,
        }
    }
}

/// A lease that can not be judged by its holder's lock is believed for as long as it says.
fn is_alive(liveness: Liveness, expires_at: i64, now: i64) -> bool {
    match liveness {
        Liveness::Alive => true,
        Liveness::Dead => false,
        Liveness::Unknown => now < expires_at,
    }
}

fn is_old(found: &Found, now: i64) -> bool {
    let age = found.modified_us.map_or(0, |modified| now.saturating_sub(modified));
    u128::try_from(age).is_ok_and(|age| age >= UNKNOWN_GRACE.as_micros())
}

#[cfg(test)]
mod tests;
