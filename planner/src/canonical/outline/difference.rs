//! What differs between two outlines, in words, and how much that is.
//!
//! ```text
//!   groups: sum(b)            groups: sum(c)             aggregate sum(b) instead of sum(c)
//!     filter: a > 5             filter: a > 7            filter a > 5 instead of a > 7
//!       scan: a, b                scan: a, c             (follows from what is above: not told)
//! ```
//!
//! Columns go by ordinal, so that `sum(b)` and `sum(c)` may be encoded alike and differ only in what is scanned. What such
//! steps say of their columns is told where it differs first, from below: what is above it follows from it.
//!
//! Steps are laid side by side at the least cost: a pair may differ in its parts, a step may have no counterpart, and where
//! nothing fits the whole subtree is another. Equal encodings are equal, whatever their size.

use std::collections::{BTreeMap, HashMap};

use super::{Outline, Part, STORE_OPTIONS, Step};

/// A part that differs.
const PART: u32 = 2;
/// The same parts in another order, or something that there is no word for.
const DETAIL: u32 = 1;
/// A step without counterpart, besides its parts.
const STEP: u32 = 2;

/// Differences that are told.
const TOLD_MAX: usize = 4;
/// Things that are told of one difference.
const ITEMS_MAX: usize = 3;

/// What differs between a program and another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// How much differs; 0 if nothing does.
    pub cost: u32,
    /// Each difference in words.
    pub words: Vec<String>,
}

impl Difference {
    /// All of it, in a bounded sentence.
    pub fn sentence(&self) -> String {
        let mut told = self.words.iter().take(TOLD_MAX).cloned().collect::<Vec<_>>().join("; ");
        if self.words.len() > TOLD_MAX {
            told.push_str(&format!("; and {} more", self.words.len() - TOLD_MAX));
        }
        told
    }
}

impl Outline {
    /// How much there is to it. Two programs differ by no less than their weights do.
    pub fn weight(&self) -> u32 {
        self.steps.iter().map(Step::weight).sum()
    }

    /// How much may differ for another program to be worth naming: about half.
    pub fn reach(&self) -> u32 {
        self.weight() / 2 + PART
    }

    /// What this program has otherwise than an entry's.
    pub fn difference(&self, entry: &Self) -> Difference {
        let mut comparison = Comparison { mine: &self.steps, theirs: &entry.steps, best: HashMap::new() };
        let (mine, theirs) = (self.steps.len() - 1, entry.steps.len() - 1);
        let cost = comparison.cost(mine, theirs);
        let mut told = Telling::default();
        comparison.tell(mine, theirs, &mut told);
        let words = if told.loud.is_empty() { told.quiet } else { told.loud };
        Difference { cost, words }
    }
}

impl Step {
    fn weight(&self) -> u32 {
        if self.is_quiet() {
            return 0;
        }
        STEP + PART * self.loud().count() as u32
    }

    /// Whether it only chooses columns.
    fn is_quiet(&self) -> bool {
        self.kind == "columns" && self.loud().next().is_none()
    }

    fn loud(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(|part| !part.quiet)
    }
}

/// How two subtrees are laid side by side.
#[derive(Clone, Copy)]
enum Side {
    Same,
    Pair,
    /// The step of the program has no counterpart; what is below it may have.
    OnlyMine,
    OnlyTheirs,
    Other,
}

struct Comparison<'a> {
    mine: &'a [Step],
    theirs: &'a [Step],
    best: HashMap<(usize, usize), (u32, Side)>,
}

impl Comparison<'_> {
    fn cost(&mut self, mine: usize, theirs: usize) -> u32 {
        self.best(mine, theirs).0
    }

    fn best(&mut self, mine: usize, theirs: usize) -> (u32, Side) {
        if let Some(known) = self.best.get(&(mine, theirs)) {
            return *known;
        }
        let best = self.find_best(mine, theirs);
        self.best.insert((mine, theirs), best);
        best
    }

    fn find_best(&mut self, mine: usize, theirs: usize) -> (u32, Side) {
        let (one, two) = (&self.mine[mine], &self.theirs[theirs]);
        if one.whole == two.whole {
            return (0, Side::Same);
        }
        let mut best = (subtree(self.mine, mine) + subtree(self.theirs, theirs), Side::Other);
        let mut consider = |cost: u32, side: Side| {
            if cost < best.0 {
                best = (cost, side);
            }
        };
        if one.kind == two.kind && one.children.len() == two.children.len() {
            let below: u32 =
                one.children.iter().zip(&two.children).map(|(mine, theirs)| self.cost(*mine, *theirs)).sum();
            consider(Parts::compare(one, two, below > 0).cost() + below, Side::Pair);
        }
        if let [below] = one.children.as_slice() {
            consider(one.weight() + self.cost(*below, theirs), Side::OnlyMine);
        }
        if let [below] = two.children.as_slice() {
            consider(two.weight() + self.cost(mine, *below), Side::OnlyTheirs);
        }
        best
    }

    fn tell(&mut self, mine: usize, theirs: usize, told: &mut Telling) {
        let (one, two) = (&self.mine[mine], &self.theirs[theirs]);
        match self.best(mine, theirs).1 {
            Side::Same => {}
            Side::Pair => {
                let pairs = one.children.iter().zip(&two.children);
                let below: u32 = pairs.map(|(mine, theirs)| self.cost(*mine, *theirs)).sum();
                Parts::compare(one, two, below > 0).tell(one.kind, told);
                for (mine, theirs) in one.children.iter().zip(&two.children) {
                    self.tell(*mine, *theirs, told);
                }
            }
            Side::OnlyMine => {
                told.only(one, "which the entry has not");
                self.tell(one.children[0], theirs, told);
            }
            Side::OnlyTheirs => {
                told.only(two, "which only the entry has");
                self.tell(mine, two.children[0], told);
            }
            Side::Other if one.kind == two.kind => told.loud.push(format!("another {} below", one.kind)),
            Side::Other => told.loud.push(format!("{} instead of {}", one.kind, two.kind)),
        }
    }
}

fn subtree(steps: &[Step], at: usize) -> u32 {
    let below: u32 = steps[at].children.iter().map(|child| subtree(steps, *child)).sum();
    steps[at].weight() + below
}

/// Differences in words; quiet ones are told only if there are no others.
#[derive(Default)]
struct Telling {
    loud: Vec<String>,
    quiet: Vec<String>,
}

impl Telling {
    /// A step without counterpart.
    fn only(&mut self, step: &Step, which: &str) {
        if step.is_quiet() {
            self.quiet.push(format!("a choice of columns, {which}"));
            return;
        }
        let mut by_label: BTreeMap<&str, Vec<&Part>> = BTreeMap::new();
        step.loud().for_each(|part| by_label.entry(part.label).or_default().push(part));
        if by_label.is_empty() {
            self.loud.push(format!("{}, {which}", step.kind));
        }
        for (label, parts) in by_label {
            self.loud.push(format!("{label} {}, {which}", list(&parts, false)));
        }
    }
}

/// How the parts of two steps of one kind differ.
struct Parts<'a> {
    by_label: Vec<Differing<'a>>,
    /// Something differs, but no part does.
    has_detail: bool,
}

struct Differing<'a> {
    label: &'static str,
    quiet: bool,
    added: Vec<&'a Part>,
    removed: Vec<&'a Part>,
}

impl<'a> Parts<'a> {
    /// `is_told`: what is below them differs in something that is told.
    fn compare(mine: &'a Step, theirs: &'a Step, is_told: bool) -> Self {
        let is_same = mine.own == theirs.own;
        // What they say of their inputs' columns may still differ, which then follows from that.
        if is_same && is_told {
            return Self { by_label: vec![], has_detail: false };
        }
        let mut labels: Vec<&'static str> = vec![];
        for part in mine.parts.iter().chain(&theirs.parts) {
            if !labels.contains(&part.label) {
                labels.push(part.label);
            }
        }
        let mut by_label = vec![];
        for label in labels {
            let of = |step: &'a Step| step.parts.iter().filter(move |part| part.label == label).collect::<Vec<_>>();
            let (mine, theirs) = (of(mine), of(theirs));
            let (added, removed) = (without(&mine, &theirs), without(&theirs, &mine));
            let same_order = mine.iter().zip(&theirs).all(|(one, two)| one.words.exact == two.words.exact);
            let is_ordered = mine.iter().any(|part| part.ordered);
            let differs = !added.is_empty() || !removed.is_empty() || (is_ordered && !same_order);
            if differs {
                let quiet = added.iter().chain(&removed).all(|part| part.quiet)
                    && (!added.is_empty() || !removed.is_empty() || mine.iter().all(|part| part.quiet));
                by_label.push(Differing { label, quiet, added, removed });
            }
        }
        Self { has_detail: by_label.is_empty() && !is_same, by_label }
    }

    fn cost(&self) -> u32 {
        let loud = self.by_label.iter().filter(|differing| !differing.quiet);
        let parts: u32 = loud
            .map(|differing| match differing.added.len().max(differing.removed.len()) {
                0 => DETAIL,
                n => PART * n as u32,
            })
            .sum();
        parts + if self.has_detail { DETAIL } else { 0 }
    }

    fn tell(&self, kind: &str, told: &mut Telling) {
        for differing in &self.by_label {
            let words = differing.words();
            if differing.quiet { told.quiet.push(words) } else { told.loud.push(words) }
        }
        if self.has_detail {
            told.quiet.push(format!("a detail of the {kind}"));
        }
    }
}

impl Differing<'_> {
    fn words(&self) -> String {
        let Self { label, added, removed, .. } = self;
        match (added.is_empty(), removed.is_empty()) {
            _ if *label == STORE_OPTIONS => (*label).to_string(),
            (true, true) => format!("the order of {label}"),
            (false, true) => format!("{label} {}, which the entry has not", list(added, false)),
            (true, false) => format!("{label} {}, which only the entry has", list(removed, false)),
            (false, false) => {
                // What looks alike differs in what is not shown otherwise: types, options.
                let exact = added.iter().any(|one| removed.iter().any(|two| one.words.short == two.words.short));
                format!("{label} {} instead of {}", list(added, exact), list(removed, exact))
            }
        }
    }
}

/// The parts of one that the other has not, each as often as it has it more often.
fn without<'a>(parts: &[&'a Part], others: &[&'a Part]) -> Vec<&'a Part> {
    let mut left: Vec<&str> = others.iter().map(|part| part.words.exact.as_str()).collect();
    let is_new = |part: &&&Part| match left.iter().position(|other| *other == part.words.exact) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    parts.iter().filter(is_new).copied().collect()
}

fn list(parts: &[&Part], exact: bool) -> String {
    let words = |part: &&Part| if exact { part.words.exact.clone() } else { part.words.short.clone() };
    let mut text = parts.iter().take(ITEMS_MAX).map(words).collect::<Vec<_>>().join(", ");
    if parts.len() > ITEMS_MAX {
        text.push_str(&format!(" and {} more", parts.len() - ITEMS_MAX));
    }
    text
}
