//! [`Neighbours`]: the entry that a prefix is most like, and what differs, in words.
//!
//! For EXPLAIN REUSE only. Looks at the youngest entries over the same extents and the youngest of all, a few hundred at
//! most; their programs are read from their canonical encodings. Entries that share no extent with the prefix are of other
//! data, and not named; nor are those of which less than about half is the same.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nectarine_catalog::{CacheEntry, Fingerprint, ViewCache};
use nectarine_planner::canonical::{Outline, Prefix};
use nectarine_planner::node::short;

/// Entries of each list of extents, and of all, that are looked at.
const ENTRIES_MAX: usize = 64;
/// Lists of extents whose entries are looked at.
const LISTS_MAX: usize = 16;
/// Characters of an entry's statement that are shown.
const SQL_CHARS_MAX: usize = 80;

/// Entries that prefixes of one statement may be like.
pub(super) struct Neighbours {
    entries: Vec<Neighbour>,
}

struct Neighbour {
    entry: CacheEntry,
    outline: Arc<Outline>,
    extents: HashSet<Fingerprint>,
}

impl Neighbours {
    /// Those of some prefixes.
    pub(super) async fn of(cache: &ViewCache, prefixes: &[&Prefix]) -> Self {
        let lists: BTreeSet<Arc<[Fingerprint]>> = prefixes.iter().flat_map(|prefix| extents_of(prefix)).collect();
        let lists: Vec<_> = lists.into_iter().take(LISTS_MAX).collect();
        let found = match prefixes.is_empty() {
            true => vec![],
            false => cache.neighbours(&lists, ENTRIES_MAX).await.unwrap_or_else(|error| {
                tracing::debug!(%error, "the nearest entries can not be told");
                vec![]
            }),
        };
        // Several entries of one program are one outline.
        let mut outlines: HashMap<Fingerprint, Option<Arc<Outline>>> = HashMap::new();
        let mut entries = vec![];
        for (entry, program) in found {
            let outline =
                outlines.entry(program.program).or_insert_with(|| Outline::read(&program.encoding).map(Arc::new));
            let Some(outline) = outline.clone() else { continue };
            let extents = entry.inputs.iter().flat_map(|list| list.iter().copied()).collect();
            entries.push(Neighbour { entry, outline, extents });
        }
        Self { entries }
    }

    /// The one that a prefix is most like, and what the prefix has otherwise.
    pub(super) fn nearest(&self, prefix: &Prefix) -> Option<String> {
        let outline = Outline::read(&prefix.encoding)?;
        let lists = extents_of(prefix);
        let mut best = None;
        let mut reach = outline.reach();
        for neighbour in &self.entries {
            let shares = || lists.iter().flat_map(|list| list.iter()).any(|one| neighbour.extents.contains(one));
            let is_far = outline.weight().abs_diff(neighbour.outline.weight()) > reach;
            if is_far || neighbour.entry.program == prefix.program || !shares() {
                continue;
            }
            let difference = outline.difference(&neighbour.outline);
            let same_inputs = neighbour.entry.inputs == lists;
            // The youngest come first, so that among equals they win.
            let is_better = match &best {
                None => difference.cost <= reach,
                Some((_, _, best_inputs)) => {
                    difference.cost < reach || (difference.cost == reach && same_inputs && !best_inputs)
                }
            };
            if is_better {
                reach = difference.cost;
                best = Some((neighbour, difference, same_inputs));
            }
        }
        let (neighbour, difference, same_inputs) = best?;
        let mut what = match difference.words.is_empty() {
            // Equal programs have equal encodings, so what is left is what is around them.
            true => "the settings or the version it was computed with".to_string(),
            false => difference.sentence(),
        };
        if !same_inputs {
            what.push_str("; and it is of other extents");
        }
        Some(format!("{} \"{}\" differs in: {what}", short(&neighbour.entry.key), cut(&neighbour.entry.description)))
    }
}

fn extents_of(prefix: &Prefix) -> Vec<Arc<[Fingerprint]>> {
    let list = |input: &nectarine_planner::canonical::Input| {
        input.extents.iter().map(|extent| extent.fingerprint).collect::<Arc<[Fingerprint]>>()
    };
    prefix.inputs.iter().map(list).collect()
}

fn cut(sql: &str) -> String {
    match sql.char_indices().nth(SQL_CHARS_MAX) {
        Some((end, _)) => format!("{}..", &sql[..end]),
        None => sql.to_string(),
    }
}
