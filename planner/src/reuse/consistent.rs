//! Never one half of a query from the cache and the other computed anew, where that could show.
//!
//! Sums of floats differ in their last bits from run to run, and a LIMIT may choose other rows. A query that uses such a
//! prefix twice (`WHERE total = (SELECT max(total) FROM ..)`) is right only if both uses see the same run. So: where an
//! inexact prefix occurs several times in a plan, either each occurrence is read from the entry of that very prefix, or
//! all lie within one hit, or no hit may contain any of them.
//!
//! DataFusion drops columns that nobody needs, so two uses of one view may be two programs that decide the same: `sum(f)`, and
//! `sum(f), count(*)` (see [`Doubles`]). No entry stands for both. So either all of them lie within one hit, or all are computed,
//! from the same hits below or from none: then they are as alike as they would be without the cache.

use std::collections::{BTreeSet, HashMap, HashSet};

use nectarine_catalog::Fingerprint;

use super::derived::address;
use crate::canonical::{BuiltIns, Exactness, PrefixNode, lucky};

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
pub(super) fn inconsistent(
    root: &PrefixNode,
    chosen: &HashSet<Fingerprint>,
    doubles: &Doubles,
) -> HashSet<Fingerprint> {
    let mut n_occurrences = HashMap::new();
    count(root, None, &mut n_occurrences);
    let mut walk = Walk { chosen, n_occurrences, places: HashMap::new() };
    walk.visit(root, None, None);
    let mut given_up = doubles.apart(root, chosen);
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

/// Values that luck decides in several places of a plan, and by other programs: beside other columns.
#[derive(Debug, Default)]
pub(super) struct Doubles {
    /// Which of these values a node decides, by its address.
    of: HashMap<usize, Vec<usize>>,
    /// First halves of these nodes.
    halves: HashSet<usize>,
    /// In how many places each value is decided.
    n_places: Vec<usize>,
}

/// Where one of these values comes from.
#[derive(Clone, PartialEq, Eq)]
enum Source {
    /// A hit, perhaps on a larger prefix.
    Hit(Fingerprint),
    /// It is computed, from these hits among others.
    Computed(BTreeSet<Fingerprint>),
}

impl Doubles {
    pub(super) fn of(root: &PrefixNode, built_ins: &BuiltIns) -> Self {
        let mut places: HashMap<(Fingerprint, Fingerprint), Vec<(&PrefixNode, Fingerprint)>> = HashMap::new();
        root.for_each(&mut |node| {
            let Ok(prefix) = &node.prefix else { return };
            for value in lucky(node, built_ins) {
                let rows = prefix.key_of(&prefix.lineage.family);
                places.entry((rows, value)).or_default().push((node, prefix.key));
            }
        });
        let mut doubles = Self::default();
        for nodes in places.into_values() {
            if nodes.iter().all(|(_, key)| *key == nodes[0].1) {
                continue;
            }
            for (node, _) in &nodes {
                doubles.of.entry(address(&node.plan)).or_default().push(doubles.n_places.len());
                doubles.halves.extend(node.children.iter().map(|child| address(&child.plan)));
            }
            doubles.n_places.push(nodes.len());
        }
        doubles
    }

    /// Whether a node decides such a value, or is the first half of one that does.
    pub(super) fn has(&self, node: &PrefixNode) -> bool {
        let node = address(&node.plan);
        self.of.contains_key(&node) || self.halves.contains(&node)
    }

    /// Whether a prefix that occurs so often has some of the places of such a value, and others are elsewhere.
    pub(super) fn are_torn(&self, node: &PrefixNode, n_occurrences: usize) -> bool {
        let mut inside: HashMap<usize, usize> = HashMap::new();
        if !self.of.is_empty() {
            node.for_each(&mut |node| {
                self.values(node).iter().for_each(|value| *inside.entry(*value).or_default() += 1);
            });
        }
        inside.into_iter().any(|(value, n_inside)| n_inside * n_occurrences < self.n_places[value])
    }

    fn values(&self, node: &PrefixNode) -> &[usize] {
        self.of.get(&address(&node.plan)).map_or(&[], Vec::as_slice)
    }

    /// The hits that keep these values apart.
    fn apart(&self, root: &PrefixNode, chosen: &HashSet<Fingerprint>) -> HashSet<Fingerprint> {
        let mut given_up = HashSet::new();
        if self.of.is_empty() || chosen.is_empty() {
            return given_up;
        }
        let mut sources = vec![vec![]; self.n_places.len()];
        self.visit(root, None, chosen, &mut sources);
        for places in sources {
            if places.iter().all(|place| *place == places[0]) {
                continue;
            }
            let hits = |place: &Source| match place {
                Source::Hit(hit) => Some(*hit),
                Source::Computed(_) => None,
            };
            let above: Vec<Fingerprint> = places.iter().filter_map(hits).collect();
            // Without these, all may be made of the same.
            if !above.is_empty() {
                given_up.extend(above);
                continue;
            }
            for place in places {
                if let Source::Computed(below) = place {
                    given_up.extend(below);
                }
            }
        }
        given_up
    }

    fn visit(
        &self,
        node: &PrefixNode,
        inside: Option<Fingerprint>,
        chosen: &HashSet<Fingerprint>,
        sources: &mut [Vec<Source>],
    ) {
        let own = node.prefix.as_ref().ok().map(|prefix| prefix.key).filter(|key| chosen.contains(key));
        let hit = inside.or(own);
        for value in self.values(node) {
            sources[*value].push(match hit {
                Some(hit) => Source::Hit(hit),
                None => Source::Computed(hits_below(node, chosen)),
            });
        }
        node.children.iter().for_each(|child| self.visit(child, hit, chosen, sources));
    }
}

fn hits_below(node: &PrefixNode, chosen: &HashSet<Fingerprint>) -> BTreeSet<Fingerprint> {
    let mut hits = BTreeSet::new();
    for child in &node.children {
        match child.prefix.as_ref().ok().filter(|prefix| chosen.contains(&prefix.key)) {
            Some(prefix) => _ = hits.insert(prefix.key),
            None => hits.extend(hits_below(child, chosen)),
        }
    }
    hits
}
