//! [`Oracle`]: the view cache as the planner's rule asks it.

use nectarine_catalog::{Fingerprint, ViewCache};
use nectarine_planner::reuse::{CacheOracle, Found, Inquiry, Relative};

use super::Relatives;

/// Answers from the view cache's memory.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) cache: ViewCache,
    pub(crate) relatives: Relatives,
}

impl CacheOracle for Oracle {
    fn inquire(&self, prefixes: &[(Fingerprint, Fingerprint)], count: bool) -> Vec<Inquiry> {
        let answers = self.cache.inquire(prefixes, count);
        let one = |answer: nectarine_catalog::Inquiry| Inquiry {
            found: answer.hit.map(|entry| Found { rows: entry.rows, bytes: entry.bytes, cost_us: entry.cost_us }),
            lookups: answer.lookups,
            n_other_extents: answer.entries_of_program.saturating_sub(u32::from(answer.hit.is_some())),
            was_dropped: answer.dropped,
        };
        answers.into_iter().map(one).collect()
    }

    fn relatives(&self, family: &Fingerprint) -> Vec<Relative> {
        self.relatives.of(family)
    }
}
