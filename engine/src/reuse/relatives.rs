//! [`Relatives`]: programs that have entries, by the rows they give.
//!
//! What a query drops from an earlier one's columns makes it another program; here it finds the earlier one again. Only names
//! are held, never results: whether there is an entry, over which extents, the view cache says.
//!
//! Bounded      the youngest families, and of each the youngest programs.
//! Forgetful    a new process knows the programs whose entries it makes itself; until then it computes as if there were none.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nectarine_catalog::Fingerprint;
use nectarine_planner::canonical::Prefix;
use nectarine_planner::reuse::Relative;
use parking_lot::Mutex;

/// Families that are remembered, about 1 KB each.
const FAMILIES_MAX: usize = 16_384;
/// Programs of a family.
const PROGRAMS_MAX: usize = 8;

/// All that are known; cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relatives(Arc<Mutex<Known>>);

#[derive(Debug, Default)]
struct Known {
    families: HashMap<Fingerprint, VecDeque<Relative>>,
    /// The oldest first.
    order: VecDeque<Fingerprint>,
}

impl Relatives {
    /// Programs of a family, the youngest first.
    pub(crate) fn of(&self, family: &Fingerprint) -> Vec<Relative> {
        self.0.lock().families.get(family).map_or_else(Vec::new, |programs| programs.iter().cloned().collect())
    }

    /// An entry of this prefix was made.
    pub(crate) fn add(&self, prefix: &Prefix) {
        let relative = Relative {
            program: prefix.program,
            columns: Arc::clone(&prefix.lineage.columns),
            schema: Arc::clone(&prefix.schema),
        };
        let known = &mut *self.0.lock();
        let family = prefix.lineage.family;
        let programs = known.families.entry(family).or_insert_with(|| {
            known.order.push_back(family);
            VecDeque::new()
        });
        programs.retain(|other| other.program != relative.program);
        programs.push_front(relative);
        programs.truncate(PROGRAMS_MAX);
        if known.order.len() > FAMILIES_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.families.remove(&oldest);
        }
    }
}
