//! [`Relatives`]: programs that have entries, by the rows they give.
//!
//! What a query drops from an earlier one's columns makes it another program; here it finds the earlier one again. Only names
//! are held, never results: whether there is an entry, over which extents, the view cache says.
//!
//! Bounded      the youngest families, and of each the youngest programs.
//! Durable      written down before the entry is published, and read when the home is opened and when others published something.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use arrow::datatypes::Schema;
use nectarine_catalog::{Fingerprint, RelativeRecord, ViewCache};
use nectarine_planner::canonical::Prefix;
use nectarine_planner::reuse::Relative;
use parking_lot::Mutex;

/// Families that are remembered, about 1 KB each; and programs that are written down.
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
    /// Up to where the metadata store was read.
    read_to: i64,
    /// The version of the view cache that was then.
    version: Option<i64>,
}

impl Relatives {
    /// Programs of a family, the youngest first.
    pub(crate) fn of(&self, family: &Fingerprint) -> Vec<Relative> {
        self.0.lock().families.get(family).map_or_else(Vec::new, |programs| programs.iter().cloned().collect())
    }

    /// Reads what was written down since the last time. That it can not be read is no reason to fail.
    pub(crate) async fn refresh(&self, cache: &ViewCache) {
        let version = cache.version();
        let read_to = {
            let known = self.0.lock();
            if known.version == Some(version) {
                return;
            }
            known.read_to
        };
        match cache.relatives(read_to, FAMILIES_MAX).await {
            Ok((read_to, relatives)) => {
                let mut known = self.0.lock();
                relatives.into_iter().for_each(|relative| _ = known.add(relative));
                known.read_to = known.read_to.max(read_to);
                known.version = known.version.max(Some(version));
            }
            Err(error) => tracing::warn!(%error, "cannot read what programs give"),
        }
    }

    /// Entries of these prefixes are about to be made.
    pub(crate) async fn introduce(&self, prefixes: impl Iterator<Item = &Prefix>, cache: &ViewCache) {
        let new: Vec<_> = {
            let mut known = self.0.lock();
            prefixes.map(record).filter(|relative| known.add(relative.clone())).collect()
        };
        if !new.is_empty()
            && let Err(error) = cache.save_relatives(&new, FAMILIES_MAX).await
        {
            tracing::warn!(%error, "cannot write down what programs give");
        }
    }
}

fn record(prefix: &Prefix) -> RelativeRecord {
    RelativeRecord {
        program: prefix.program,
        family: prefix.lineage.family,
        columns: Arc::clone(&prefix.lineage.columns),
        // Types only: what else a file's schema says belongs to that file.
        schema: Arc::new(Schema::new(prefix.schema.fields().clone())),
    }
}

impl Known {
    /// Whether it is new.
    fn add(&mut self, RelativeRecord { program, family, columns, schema }: RelativeRecord) -> bool {
        let programs = self.families.entry(family).or_insert_with(|| {
            self.order.push_back(family);
            VecDeque::new()
        });
        let n_before = programs.len();
        programs.retain(|other| other.program != program);
        let is_new = programs.len() == n_before;
        programs.push_front(Relative { program, columns, schema });
        programs.truncate(PROGRAMS_MAX);
        if self.order.len() > FAMILIES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.families.remove(&oldest);
        }
        is_new
    }
}
