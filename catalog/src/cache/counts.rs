//! What is counted in memory until `flush` writes it down: uses of entries and look-ups of programs.
//!
//! A process that is killed loses what it counted since; counts decide what is worth keeping, never what is right.

use super::digest_map::{DigestMap, Keyed};
use super::{EntrySummary, LookupCount, UseCount};
use crate::Fingerprint;

/// Programs whose look-ups are remembered: those of some three thousand different queries, in about 10 MB.
pub(super) const LOOKUPS_KEPT: usize = 131_072;

impl Keyed for UseCount {
    fn key(&self) -> &Fingerprint {
        &self.key
    }
}

/// Uses that are not written down yet.
#[derive(Debug, Default)]
pub(super) struct Uses {
    pending: DigestMap<UseCount>,
    /// Being written down; counted until that is done.
    in_flight: DigestMap<UseCount>,
}

impl Uses {
    pub(super) fn count(&mut self, used: UseCount) {
        add(&mut self.pending, used);
    }

    /// What the store has of an entry, and what it does not have yet.
    pub(super) fn with(&self, mut entry: EntrySummary) -> EntrySummary {
        for used in [&self.pending, &self.in_flight].into_iter().filter_map(|uses| uses.get(&entry.key)) {
            entry.uses += used.uses;
            entry.saved_us = entry.saved_us.saturating_add(used.saved_us);
            entry.last_used_at = entry.last_used_at.max(used.last_used_at);
        }
        entry
    }

    /// What is to be written down, along with what an earlier attempt did not finish.
    pub(super) fn begin(&mut self) -> Vec<UseCount> {
        for used in self.pending.drain() {
            add(&mut self.in_flight, used);
        }
        self.in_flight.iter().copied().collect()
    }

    /// It is written down.
    pub(super) fn finish(&mut self) {
        self.in_flight = DigestMap::default();
    }
}

fn add(uses: &mut DigestMap<UseCount>, used: UseCount) {
    match uses.get_mut(&used.key) {
        Some(known) => {
            known.uses += used.uses;
            known.saved_us = known.saved_us.saturating_add(used.saved_us);
            known.last_used_at = known.last_used_at.max(used.last_used_at);
        }
        None => {
            uses.insert(used);
        }
    }
}

/// Look-ups of programs: all that are known, and which of them are not written down yet.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    programs: DigestMap<Program>,
    /// Programs with unwritten look-ups.
    pending: Vec<Fingerprint>,
    question: u64,
    /// Programs were forgotten here since the store was last told to.
    forgot: bool,
}

#[derive(Debug)]
struct Program {
    program: Fingerprint,
    lookups: u64,
    unwritten: u64,
    last_lookup_at: i64,
    /// The question that counted it last.
    question: u64,
}

impl Keyed for Program {
    fn key(&self) -> &Fingerprint {
        &self.program
    }
}

impl Lookups {
    /// Takes over what the store knows.
    pub(super) fn load(&mut self, stored: LookupCount) {
        if self.programs.find(&stored.program).is_none() {
            self.programs.insert(Program {
                program: stored.program,
                lookups: stored.lookups,
                unwritten: 0,
                last_lookup_at: stored.last_lookup_at,
                question: 0,
            });
        }
    }

    /// How often a program was looked up before the question that is being asked.
    pub(super) fn known(&self, program: &Fingerprint) -> u64 {
        self.programs.get(program).map_or(0, |known| known.lookups)
    }

    /// Starts a question; a program that it names several times is looked up once.
    pub(super) fn ask(&mut self) {
        self.question += 1;
        if self.programs.len() > LOOKUPS_KEPT + LOOKUPS_KEPT / 8 {
            self.forget();
        }
    }

    /// Counts, and says how often the program was looked up before.
    pub(super) fn count(&mut self, program: &Fingerprint, now: i64) -> u64 {
        let question = self.question;
        let Some(known) = self.programs.get_mut(program) else {
            let program = *program;
            self.programs.insert(Program { program, lookups: 1, unwritten: 1, last_lookup_at: now, question });
            self.pending.push(program);
            return 0;
        };
        if known.question == question {
            return known.lookups - 1;
        }
        if known.unwritten == 0 {
            self.pending.push(*program);
        }
        known.question = question;
        known.lookups += 1;
        known.unwritten += 1;
        known.last_lookup_at = now;
        known.lookups - 1
    }

    /// What is to be written down, and whether the store should forget the oldest.
    pub(super) fn begin(&mut self) -> (Vec<LookupCount>, bool) {
        let mut counts = Vec::with_capacity(self.pending.len());
        for program in self.pending.drain(..) {
            if let Some(known) = self.programs.get_mut(&program).filter(|known| known.unwritten > 0) {
                let lookups = std::mem::take(&mut known.unwritten);
                counts.push(LookupCount { program, lookups, last_lookup_at: known.last_lookup_at });
            }
        }
        (counts, std::mem::take(&mut self.forgot))
    }

    /// It could not be written down; it will be the next time.
    pub(super) fn give_back(&mut self, counts: &[LookupCount], forgot: bool) {
        self.forgot |= forgot;
        for count in counts {
            if let Some(known) = self.programs.get_mut(&count.program) {
                if known.unwritten == 0 {
                    self.pending.push(count.program);
                }
                known.unwritten += count.lookups;
            }
        }
    }

    /// Leaves the programs that were looked up last.
    fn forget(&mut self) {
        let mut ages: Vec<_> = self.programs.iter().map(|known| known.last_lookup_at).collect();
        let n_old = ages.len().saturating_sub(LOOKUPS_KEPT);
        let (_, oldest_kept, _) = ages.select_nth_unstable(n_old);
        let oldest_kept = *oldest_kept;
        // Programs of one instant go together, or those of a frozen clock would never go.
        self.programs.retain(|known| known.last_lookup_at > oldest_kept);
        self.forgot = true;
    }
}
