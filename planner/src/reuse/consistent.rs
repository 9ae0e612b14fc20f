//! Never one half of a query from the cache and the other computed anew, where that could show.
//!
//! Sums of floats differ in their last bits from run to run, and a LIMIT may choose other rows. A query that uses such a
//! prefix twice (`WHERE total = (SELECT max(total) FROM ..)`) is right only if both uses see the same run. So: where an
//! inexact prefix occurs several times in a plan, either each occurrence is read from the entry of that very prefix, or
//! all lie within one hit, or no hit may contain any of them.

use std::collections::{HashMap, HashSet};

use nectarine_catalog::Fingerprint;

use crate::canonical::{Exactness, PrefixNode};

/// Where one occurrence of an inexact prefix is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// It is itself read from its entry.
    Itself,
    /// Inside a hit; two hits on one entry see the same run.
    Inside(Fingerprint),
    /// It is computed.
    Computed,
}

/// The hits among `chosen` that must be given up.
pub(super) fn inconsistent(root: &PrefixNode, chosen: &HashSet<Fingerprint>) -> HashSet<Fingerprint> {
    let mut n_occurrences = HashMap::new();
    count(root, None, &mut n_occurrences);
    let mut walk = Walk { chosen, n_occurrences, places: HashMap::new() };
    walk.visit(root, None, None);
    let mut given_up = HashSet::new();
    for places in walk.places.values() {
        let first = places[0];
        if places.iter().all(|place| *place == first) {
            continue;
        }
        for place in places {
            if let Place::Inside(hit) = place {
                given_up.insert(*hit);
            }
        }
    }
    given_up
}

/// How often each inexact prefix occurs. A node that only renames has the key of its child: one occurrence, not two.
fn count(node: &PrefixNode, parent: Option<Fingerprint>, n_occurrences: &mut HashMap<Fingerprint, usize>) {
    let key = node.prefix.as_ref().ok().map(|prefix| prefix.key);
    if let Ok(prefix) = &node.prefix
        && prefix.exactness != Exactness::Exact
        && parent != key
    {
        *n_occurrences.entry(prefix.key).or_default() += 1;
    }
    node.children.iter().for_each(|child| count(child, key, n_occurrences));
}

struct Walk<'a> {
    chosen: &'a HashSet<Fingerprint>,
    n_occurrences: HashMap<Fingerprint, usize>,
    places: HashMap<Fingerprint, Vec<Place>>,
}

impl Walk<'_> {
    fn visit(&mut self, node: &PrefixNode, inside: Option<Fingerprint>, parent: Option<Fingerprint>) {
        let mut inside = inside;
        let key = node.prefix.as_ref().ok().map(|prefix| prefix.key);
        if let Some(key) = key {
            let is_hit = inside.is_none() && self.chosen.contains(&key);
            if self.is_shared(key, parent) {
                let place = match inside {
                    Some(hit) => Place::Inside(hit),
                    None if is_hit => Place::Itself,
                    None => Place::Computed,
                };
                self.places.entry(key).or_default().push(place);
            }
            if is_hit {
                inside = Some(key);
            }
        }
        node.children.iter().for_each(|child| self.visit(child, inside, key));
    }

    /// Whether several parts of the plan use this prefix. What only ever occurs below a shared one goes with it.
    fn is_shared(&self, key: Fingerprint, parent: Option<Fingerprint>) -> bool {
        let count = |key: &Fingerprint| self.n_occurrences.get(key).copied().unwrap_or(0);
        let n_here = count(&key);
        n_here > 1 && parent != Some(key) && parent.is_none_or(|parent| count(&parent) != n_here)
    }
}
