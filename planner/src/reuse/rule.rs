//! [`ReusePrefixes`]: the largest prefixes that were computed before are read; what is worth it is kept.
//!
//! ```text
//!   before                          after
//!   SortExec: revenue DESC          SortExec: revenue DESC
//!     AggregateExec: Final            CacheReadExec: entry=8d2f31.., rows=5, saves=1.2 s
//!       AggregateExec: Partial
//!         HashJoinExec
//! ```
//!
//! Fires when   the statement's configuration carries a [`ReuseContext`](super::ReuseContext).
//! Runs         first of all physical rules, on DataFusion's initial plan: nothing there depends on statistics or partitions.
//! Keeps true   the plan's schema and rows. Nodes of the plan are used once, never copied: DataFusion's nodes hold state.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use nectarine_catalog::Fingerprint;

use super::candidate::candidate;
use super::consistent::{Doubles, inconsistent};
use super::context::{ExtentCounts, Findings, Hit, MadeOf, ReuseContext, ReuseExtension, ReuseMode};
use super::cover::{Cover, coverable, is_set_below, lineage};
use super::cut::{Cut, Cuts};
use super::derived::{innermost, lower_derived, mark_named, plain, with_config, without_names};
use super::growing::Growth;
use super::recheck::rechecks;
use super::repeated::repeated;
use super::segments::ChosenSegments;
use super::windows::ChosenWindow;
use super::{Found, Inquiry, PrefixReport, Verdict};
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode, Salt, prefixes};
use crate::node::{CacheReadExec, DerivedTableExec, ExtentScanExec, Worth};

/// What opening an entry costs, in microseconds.
const OPEN_US: u64 = 150;
/// Bytes of an entry that are read in a microsecond.
const READ_BYTES_PER_US: u64 = 400;

/// The rule.
#[derive(Debug, Default)]
pub struct ReusePrefixes;

impl PhysicalOptimizerRule for ReusePrefixes {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let context = config.extensions.get::<ReuseExtension>().and_then(|extension| extension.0.clone());
        match context {
            Some(context) => reuse(plan, config, &context),
            None => plain(plan),
        }
    }

    fn name(&self) -> &str {
        "reuse_prefixes"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn reuse(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    context: &ReuseContext,
) -> Result<Arc<dyn ExecutionPlan>> {
    let all = extents_below(&plan)?;
    let (plan, mut findings) = match plan.downcast_ref::<DerivedTableExec>() {
        // The whole answer is the derived table: its program is the statement's.
        Some(derived) => {
            let (program, own) = innermost(derived);
            let salt = Salt::new(own);
            let (program, mut findings) = rewrite(program, own, &salt, context, Origin::Derived(None))?;
            // What is run by itself is run with the settings of the statement.
            if salt != context.salt(config) {
                findings.repeated.clear();
                findings.rechecks.clear();
            }
            // Views that it was made from are those of then.
            findings.named.clear();
            (with_config(program, own)?, findings)
        }
        None => rewrite(plan, config, &context.salt(config), context, Origin::Statement)?,
    };
    let plan = lower_derived(plan, context, &mut findings)?;
    findings.scanned = extents_below(&plan)?;
    findings.made_of = made_of(&plan)?;
    let n_reused = match findings.made_of.entries.is_empty() {
        true => 0,
        false => all.difference(&findings.scanned).count(),
    };
    findings.extents = ExtentCounts { total: all.len(), reused: n_reused };
    context.found(findings);
    Ok(plan)
}

/// Whose plan it is.
pub(super) enum Origin<'a> {
    /// The statement's.
    Statement,
    /// That of a derived table, which is the whole statement, or inside of a plan in which so much was found.
    Derived(Option<&'a mut Findings>),
}

/// A plan that was made with `config`, rewritten.
pub(super) fn rewrite(
    plan: Arc<dyn ExecutionPlan>,
    config: &ConfigOptions,
    salt: &Salt,
    context: &ReuseContext,
    origin: Origin<'_>,
) -> Result<(Arc<dyn ExecutionPlan>, Findings)> {
    let (is_derived, outer) = match origin {
        Origin::Statement => (false, None),
        Origin::Derived(outer) => (true, outer),
    };
    let (plan, names) = without_names(plan)?;
    let mut root = prefixes(&plan, &context.built_ins, config, salt);
    let (named, views) = mark_named(&mut root, &names);
    let is_inner = outer.is_some();
    // Ordinals go on from those of the plan around it.
    let kept = outer.map(|outer| std::mem::take(&mut outer.kept)).unwrap_or_default();
    let mut n_occurrences = HashMap::new();
    count_occurrences(&root, None, &mut n_occurrences);
    let whole = root.prefix.as_ref().ok().filter(|prefix| is_derived && !prefix.inputs.is_empty());
    let derived_root = whole.map(|prefix| prefix.key);
    let mut cuts = Cuts::new(&plan, config);
    // What has a name is wanted as a whole.
    root.for_each(&mut |node| {
        if node.named {
            cuts.lift(&node.plan)
        }
    });
    let inquiries = inquire(&root, context, &cuts, is_derived);
    let known = root.prefix.as_ref().ok().and_then(|prefix| inquiries.get(&prefix.key));
    let mut growth = Growth::default();
    if known.is_some_and(|known| known.found.is_none() && known.n_other_extents > 0) {
        cuts.lift_growing(&root, context);
        // What is made anew takes the place of entries, whatever it may be good for.
        if context.mode == ReuseMode::On {
            growth = Growth::of(&root, context);
        }
    }
    let sees_more = cuts.is_lifted() || !named.is_empty();
    let mut rewrite = Rewrite {
        context,
        config,
        salt,
        derived_root,
        named,
        cuts,
        doubles: Doubles::of(&root, &context.built_ins),
        n_occurrences,
        segments: HashMap::new(),
        windows: HashMap::new(),
        has_grown: inquiries.values().any(|inquiry| inquiry.n_other_extents > 0),
        inquiries,
        growth,
        chosen: HashSet::new(),
        beaten: HashSet::new(),
        covers: HashMap::new(),
        inconsistent: HashSet::new(),
        kept_keys: kept.iter().map(|kept| kept.prefix.key).collect(),
        findings: Findings {
            root: root.prefix.clone(),
            keeps_root: true,
            hits: vec![],
            kept,
            repeated: vec![],
            rechecks: vec![],
            unchecked: vec![],
            extents: ExtentCounts::default(),
            named: views,
            made_of: MadeOf::default(),
            scanned: HashSet::new(),
            report: vec![],
            sees_more,
        },
    };
    rewrite.choose(&root)?;
    rewrite.growth.are_read(rewrite.segments.keys());
    let place = Place {
        depth: 0,
        is_root: !is_inner,
        is_inner,
        as_set: false,
        parent_lookups: 0,
        may_keep: context.mode.keeps(),
        is_below_join: false,
        is_cut: false,
    };
    let plan = rewrite.rewrite(&root, place)?;
    // Who computes anew needs one value in all places as well.
    if matches!(context.mode, ReuseMode::On | ReuseMode::Refresh) && !is_inner {
        let read =
            rewrite.chosen.iter().chain(rewrite.segments.keys()).chain(rewrite.windows.keys()).copied().collect();
        let Rewrite { inquiries, cuts, doubles, .. } = &rewrite;
        rewrite.findings.repeated = repeated(&root, &read, inquiries, cuts, doubles, context);
    }
    if context.mode == ReuseMode::Check && !is_inner {
        (rewrite.findings.rechecks, rewrite.findings.unchecked) = rechecks(&root, context, config, salt)?;
    }
    Ok((plan, rewrite.findings))
}

/// The extents that the scans of a plan read.
pub(super) fn extents_below(plan: &Arc<dyn ExecutionPlan>) -> Result<HashSet<Fingerprint>> {
    let mut extents = HashSet::new();
    plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<ExtentScanExec>() {
            extents.extend(scan.extents().iter().map(|extent| extent.fingerprint));
        }
        if let Some(derived) = node.downcast_ref::<DerivedTableExec>() {
            extents.extend(extents_below(derived.program())?);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(extents)
}

/// What the rows of a plan are made of.
pub(super) fn made_of(plan: &Arc<dyn ExecutionPlan>) -> Result<MadeOf> {
    let mut entries = vec![];
    plan.apply(|node| {
        if let Some(read) = node.downcast_ref::<CacheReadExec>()
            && !entries.contains(&read.key())
        {
            entries.push(read.key());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let scanned = match entries.is_empty() {
        true => None,
        false => Some(Arc::new(extents_below(plan)?)),
    };
    Ok(MadeOf { entries, scanned })
}

/// Batched questions. If the whole answer is there, the rest of the plan is not asked for.
///
/// Groups that a limit cuts short are looked for, but nobody asks for all of them: that is not counted.
fn inquire(root: &PrefixNode, context: &ReuseContext, cuts: &Cuts, is_derived: bool) -> HashMap<Fingerprint, Inquiry> {
    let mut answers = HashMap::new();
    let whole = match is_derived {
        // Also a mere scan: the rows of a derived table may outlive its files.
        true => root.prefix.as_ref().ok().filter(|prefix| !prefix.inputs.is_empty()),
        false => candidate(root, true),
    };
    if let Some(prefix) = whole {
        let answer = context.oracle.inquire(&[(prefix.key, prefix.program)], context.counts);
        let found = answer.first().is_some_and(|answer| answer.found.is_some());
        answers.extend(answer.into_iter().map(|answer| (prefix.key, answer)));
        if found && context.mode.reads() && !context.banned.contains(&prefix.key) {
            return answers;
        }
    }
    let mut asked: HashSet<Fingerprint> = answers.keys().copied().collect();
    for is_cut in [false, true] {
        let mut questions = vec![];
        root.for_each(&mut |node| {
            let states = node.prefix.as_ref().ok().filter(|prefix| prefix.kind == PrefixKind::States);
            if let Some(prefix) = candidate(node, false).or(states)
                && cuts.of(&node.plan).is_some() == is_cut
                && asked.insert(prefix.key)
            {
                questions.push((prefix.key, prefix.program));
            }
        });
        if !questions.is_empty() {
            let inquiries = context.oracle.inquire(&questions, context.counts && !is_cut);
            answers.extend(questions.iter().map(|(key, _)| *key).zip(inquiries));
        }
    }
    answers
}

/// Where in the plan a node is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) depth: usize,
    is_root: bool,
    /// Whether it is the top of a derived table's program, inside of a plan.
    is_inner: bool,
    /// Whether it does not matter how often each row is there.
    as_set: bool,
    pub(super) parent_lookups: u64,
    pub(super) may_keep: bool,
    /// Whether there is a join above it, whose other side may need few of its rows.
    is_below_join: bool,
    /// Whether there is a limit above it, which may be served by few of its rows: scans are told which those could be, or nobody asks
    /// for more. Groups, windows and what is kept need all rows, whatever is above them.
    is_cut: bool,
}

impl Place {
    /// Whether it is all of a program.
    pub(super) fn is_whole(self) -> bool {
        self.is_root || self.is_inner
    }

    /// Whether all rows of a prefix may be more than the statement would have computed of it by itself.
    fn may_need_less(self, kind: PrefixKind) -> bool {
        let is_of_groups = matches!(kind, PrefixKind::Aggregate | PrefixKind::States);
        !self.is_root && (self.is_inner || self.is_cut || self.is_below_join || !is_of_groups)
    }

    /// What keeping a prefix here may cost.
    pub(super) fn worth(self, is_wanted: bool) -> Worth {
        match (is_wanted, self.is_below_join) {
            (true, _) => Worth::Wanted,
            (false, false) => Worth::Cheap,
            (false, true) => Worth::GivesWay,
        }
    }
}

pub(super) struct Rewrite<'a> {
    pub(super) context: &'a ReuseContext,
    pub(super) config: &'a ConfigOptions,
    pub(super) salt: &'a Salt,
    /// The whole, if it is the program of a derived table.
    derived_root: Option<Fingerprint>,
    /// Prefixes that have a name.
    named: HashSet<Fingerprint>,
    /// Groups that a limit above them cuts short.
    cuts: Cuts,
    /// What luck decides in several places, in other company.
    pub(super) doubles: Doubles,
    pub(super) inquiries: HashMap<Fingerprint, Inquiry>,
    /// How often each prefix occurs in the plan.
    pub(super) n_occurrences: HashMap<Fingerprint, usize>,
    /// Prefixes that are read from their entries.
    chosen: HashSet<Fingerprint>,
    /// Prefixes that have entries, and are computed from smaller ones all the same.
    pub(super) beaten: HashSet<Fingerprint>,
    /// Those among them that have no entry of their own, with the entry that stands for it: as it is, or as a set.
    covers: HashMap<(Fingerprint, bool), Cover>,
    /// Prefixes of which some extents are read, by their keys.
    segments: HashMap<Fingerprint, Option<ChosenSegments>>,
    /// Those among them that are windows.
    windows: HashMap<Fingerprint, Option<ChosenWindow>>,
    /// Whether something of the plan was computed over other extents before: it will be again.
    pub(super) has_grown: bool,
    /// What that says about keeping.
    pub(super) growth: Growth,
    pub(super) inconsistent: HashSet<Fingerprint>,
    pub(super) kept_keys: HashSet<Fingerprint>,
    pub(super) findings: Findings,
}

/// How often each prefix occurs. A node that only renames has the key of its child: one occurrence, not two.
fn count_occurrences(node: &PrefixNode, parent: Option<Fingerprint>, counts: &mut HashMap<Fingerprint, usize>) {
    let key = node.prefix.as_ref().ok().map(|prefix| prefix.key);
    if let Some(key) = key.filter(|key| parent != Some(*key)) {
        *counts.entry(key).or_default() += 1;
    }
    node.children.iter().for_each(|child| count_occurrences(child, key, counts));
}

impl Rewrite<'_> {
    /// Largest prefixes first; then hits that do not go together are given up, and what lies below them is tried.
    fn choose(&mut self, root: &PrefixNode) -> Result<()> {
        if !self.context.mode.reads() && self.context.made.is_empty() {
            return Ok(());
        }
        loop {
            self.chosen.clear();
            self.beaten.clear();
            self.segments.clear();
            self.windows.clear();
            match self.context.mode.reads() {
                true => self.choose_below(root, true, false)?,
                false => self.choose_made(root),
            }
            let hits = self.chosen.iter().chain(self.segments.keys()).chain(self.windows.keys()).copied().collect();
            let given_up = inconsistent(root, &hits, &self.doubles);
            if given_up.is_empty() {
                return Ok(());
            }
            self.inconsistent.extend(given_up);
        }
    }

    /// Only what this statement made itself.
    fn choose_made(&mut self, node: &PrefixNode) {
        match candidate(node, false).filter(|prefix| self.usable(prefix).is_some()) {
            Some(prefix) => _ = self.chosen.insert(prefix.key),
            None => node.children.iter().for_each(|child| self.choose_made(child)),
        }
    }

    fn choose_below(&mut self, node: &PrefixNode, is_root: bool, as_set: bool) -> Result<()> {
        if let Some(prefix) = self.readable(node, is_root)
            && let Some(found) = self.usable(prefix).and_then(|found| self.as_cut(node, found))
        {
            // Two parts of a plan that use what luck decided must see the same.
            if is_root || prefix.exactness != Exactness::Exact || !self.is_beaten(node, &found) {
                self.chosen.insert(prefix.key);
                return Ok(());
            }
            self.beaten.insert(prefix.key);
        }
        if let Some(prefix) = coverable(node)
            && self.is_covered(node, prefix, as_set)
        {
            self.chosen.insert(prefix.key);
            return Ok(());
        }
        if let Ok(prefix) = &node.prefix {
            let at_least = self.saved_below(node);
            let segments = self.segments_of(node, is_root)?.filter(|segments| segments.saved_us() >= at_least);
            let more_than = segments.as_ref().map_or(at_least, |segments| segments.saved_us());
            if let Some(window) = self.window_of(node)?.filter(|window| window.saved_us > more_than) {
                self.windows.insert(prefix.key, Some(window));
                return Ok(());
            }
            if let Some(segments) = segments {
                self.segments.insert(prefix.key, Some(segments));
                return Ok(());
            }
        }
        let as_set = is_set_below(&node.plan, as_set, node.named);
        node.children.iter().try_for_each(|child| self.choose_below(child, false, as_set))
    }

    /// Whether something below a node is read from entries.
    fn reads_below(&self, node: &PrefixNode) -> bool {
        let is_read = |key: &Fingerprint| {
            self.chosen.contains(key) || self.segments.contains_key(key) || self.windows.contains_key(key)
        };
        let reads = |child: &PrefixNode| {
            child.prefix.as_ref().is_ok_and(|prefix| is_read(&prefix.key)) || self.reads_below(child)
        };
        node.children.iter().any(reads)
    }

    /// Whether the entry of a relative has all that this node gives; the smallest such entry is taken.
    fn is_covered(&mut self, node: &PrefixNode, prefix: &Prefix, as_set: bool) -> bool {
        // The entry itself is among its relatives: if that is beaten, so are larger ones.
        if self.beaten.contains(&prefix.key) || self.inconsistent.contains(&prefix.key) {
            return false;
        }
        if self.covers.contains_key(&(prefix.key, as_set)) {
            return true;
        }
        let relatives = self.context.oracle.relatives(&lineage(prefix, as_set).family);
        let questions: Vec<_> =
            relatives.iter().map(|relative| (prefix.key_of(&relative.program), relative.program)).collect();
        let inquiries = self.context.oracle.inquire(&questions, false);
        let covers =
            relatives.into_iter().zip(questions).zip(inquiries).filter_map(|((relative, (key, _)), inquiry)| {
                let found = inquiry.found.filter(is_worth_it).and_then(|found| self.as_cut(node, found))?;
                let cover = Cover { as_set, key, found, relative };
                (!self.context.banned.contains(&key) && cover.plan(node).is_some()).then_some(cover)
            });
        let Some(cover) = covers.min_by_key(|cover| cover.found.bytes) else { return false };
        if prefix.exactness == Exactness::Exact && self.is_beaten(node, &cover.found) {
            self.beaten.insert(prefix.key);
            return false;
        }
        self.covers.insert((prefix.key, as_set), cover);
        true
    }

    /// The node's prefix, if it could be read from the cache.
    fn readable<'n>(&self, node: &'n PrefixNode, is_whole: bool) -> Option<&'n Prefix> {
        let whole = node.prefix.as_ref().ok().filter(|prefix| is_whole && self.derived_root == Some(prefix.key));
        whole.or_else(|| candidate(node, is_whole))
    }

    /// How the groups of a node are cut short, if they are.
    pub(super) fn cut(&self, node: &PrefixNode) -> Option<Cut> {
        self.cuts.of(&node.plan)
    }

    /// An entry for a node; `None` if its groups are cut short, and computing so many of them is likely to be cheaper.
    pub(super) fn as_cut(&self, node: &PrefixNode, found: Found) -> Option<Found> {
        match self.cut(node) {
            Some(cut) => cut.read(found),
            None => Some(found),
        }
    }

    pub(super) fn usable(&self, prefix: &Prefix) -> Option<Found> {
        let found = self.inquiries.get(&prefix.key)?.found?;
        let is_excluded = self.context.banned.contains(&prefix.key)
            || self.inconsistent.contains(&prefix.key)
            || !self.context.reads(&prefix.key);
        // What a derived table is made of may be gone: its rows are read whatever that takes.
        let is_wanted = self.derived_root == Some(prefix.key) || is_worth_it(&found);
        (!is_excluded && is_wanted).then_some(found)
    }

    fn rewrite(&mut self, node: &PrefixNode, place: Place) -> Result<Arc<dyn ExecutionPlan>> {
        let prefix = self.readable(node, place.is_whole());
        if let Some(prefix) = prefix.filter(|prefix| self.chosen.contains(&prefix.key))
            && let Some(found) = self.usable(prefix)
        {
            self.report(node, place.depth, Verdict::Hit(found), false);
            self.findings.sees_more |= place.may_need_less(prefix.kind);
            // What it saves is what computing it here would have taken.
            let found = self.cut(node).map_or(found, |cut| cut.applied(found));
            self.findings.hits.push(Hit { key: prefix.key, program: prefix.program, found, is_root: place.is_root });
            return Ok(Arc::new(CacheReadExec::new(
                prefix.key,
                prefix.program,
                found.rows,
                found.bytes,
                found.cost_us,
                node.plan.schema(),
            )));
        }
        if let Ok(covered) = &node.prefix
            && self.chosen.contains(&covered.key)
            && let Some(cover) = self.covers.get(&(covered.key, place.as_set)).cloned()
            && let Some(plan) = cover.plan(node)
        {
            // What is little more than the entry once again is not kept beside it.
            self.findings.keeps_root &= !place.is_root || !cover.is_nearly(node);
            let kept = place.is_root && place.may_keep && self.findings.keeps_root;
            self.report(node, place.depth, Verdict::Hit(cover.found), kept);
            self.findings.sees_more |= place.may_need_less(covered.kind);
            let Cover { key, found, relative, .. } = cover;
            // Not the whole answer's own entry, even at the root: that is yet to be kept.
            self.findings.hits.push(Hit { key, program: relative.program, found, is_root: false });
            return Ok(plan);
        }
        let own = node.prefix.as_ref().ok();
        if let Some(prefix) = own
            && let Some(segments) = self.segments.get_mut(&prefix.key).map(Option::take)
            // Nodes are used once: a second occurrence gets plans of its own.
            && let Some(segments) = segments.map_or_else(|| self.segments_of(node, place.is_whole()), |known| Ok(Some(known)))?
        {
            self.findings.sees_more |= place.may_need_less(prefix.kind);
            let (n_hits, n_kept) = (self.findings.hits.len(), self.findings.kept.len());
            let rewritten = self.read_segments(node, prefix, segments, place)?;
            let reused_us = self.reused_us(n_hits);
            let keeps_all = self.findings.kept.len() == n_kept
                && candidate(node, place.is_whole()).is_some_and(|prefix| self.keeps(node, prefix, place));
            return Ok(match keeps_all {
                true => {
                    // Rows that came piece by piece are put together now and then.
                    let is_wanted = self.growth.is_of_rows(&prefix.key) || self.is_wanted(prefix, place);
                    let worth = place.worth(is_wanted);
                    self.kept(rewritten, prefix.clone(), reused_us, worth)?
                }
                false => rewritten,
            });
        }
        let keeps_states = self.keeps_states(node, place);
        if let Some(prefix) = own {
            let window = match self.windows.get_mut(&prefix.key).map(Option::take) {
                Some(Some(known)) => Some(known),
                Some(None) => self.window_of(node)?,
                // What is computed for the first time is kept so that other windows can use it.
                None if keeps_states
                    && self.context.mode == ReuseMode::On
                    && self.context.branches_max > 1
                    && !self.reads_below(node) =>
                {
                    self.window_of(node)?
                }
                None => None,
            };
            if let Some(window) = window {
                self.findings.sees_more |= place.may_need_less(prefix.kind);
                return self.read_window(node, prefix, window, place);
            }
        }
        let keeps = match own.filter(|_| keeps_states) {
            Some(states) => Some(states.clone()),
            None => prefix.filter(|prefix| self.keeps(node, prefix, place)).cloned(),
        };
        let n_hits = self.findings.hits.len();
        let verdict = self.verdict(node, prefix);
        // The whole answer is kept from the rows that the client is given.
        let keeps_answer = place.is_root && place.may_keep && prefix.is_some();
        self.report(node, place.depth, verdict, keeps.is_some() || keeps_answer);

        let worth = keeps.as_ref().map(|prefix| place.worth(self.is_wanted(prefix, place)));
        self.findings.sees_more |= keeps.as_ref().is_some_and(|prefix| place.may_need_less(prefix.kind));

        let cut = self.cut(node);
        // Who is cut short has not asked: what lies below was asked for by who is above.
        let asks = prefix.filter(|_| cut.is_none());
        let ends_early = self.context.mode == ReuseMode::On && cut.is_some_and(Cut::ends_early);
        let lookups = asks.and_then(|prefix| self.inquiries.get(&prefix.key)).map(|inquiry| inquiry.lookups);
        let below = Place {
            depth: place.depth + 1,
            is_root: false,
            is_inner: false,
            as_set: is_set_below(&node.plan, place.as_set, keeps.is_some()),
            parent_lookups: lookups.unwrap_or(place.parent_lookups),
            // A recursive term runs many times, and each time on other rows. What ends early is never whole.
            may_keep: place.may_keep && node.plan.name() != "RecursiveQueryExec" && !ends_early,
            is_below_join: place.is_below_join || node.plan.is::<HashJoinExec>(),
            is_cut: match reads_all(&node.plan) {
                true => cut.is_some_and(Cut::may_end_early),
                false => {
                    let is_kept = worth.is_some_and(|worth| worth != Worth::GivesWay);
                    !is_kept && (place.is_cut || node.plan.fetch().is_some())
                }
            },
        };
        let n_kept = self.findings.kept.len();
        let is_subquery = |child: usize| child > 0 && node.plan.is::<ScalarSubqueryExec>();
        let below = |child: usize| Place { is_cut: below.is_cut && !is_subquery(child), ..below };
        let children = node.children.iter().enumerate();
        let children: Vec<_> =
            children.map(|(position, child)| self.rewrite(child, below(position))).collect::<Result<_>>()?;
        if node.plan.is::<ScalarSubqueryExec>() {
            self.add_subqueries(node, &children, n_kept)?;
        }
        let is_same = children.iter().zip(node.plan.children()).all(|(new, old)| Arc::ptr_eq(new, old));
        let plan = match is_same {
            true => Arc::clone(&node.plan),
            false => Arc::clone(&node.plan)
                .replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))?,
        };
        let Some((prefix, worth)) = keeps.zip(worth) else { return Ok(plan) };
        let reused_us = self.reused_us(n_hits);
        self.kept(plan, prefix, reused_us, worth)
    }

    /// What was kept after the first `n_kept` and uses a scalar subquery of this node is made of what the subquery is made of:
    /// if that goes, because it was purged or turned out wrong, so must what was computed from its value.
    fn add_subqueries(&mut self, node: &PrefixNode, children: &[Arc<dyn ExecutionPlan>], n_kept: usize) -> Result<()> {
        // The first child is the plan that uses them.
        for (subquery, plan) in node.children.iter().zip(children).skip(1) {
            let Ok(subquery) = &subquery.prefix else { continue };
            let kept = self.findings.kept.iter_mut().skip(n_kept);
            let mut users = kept.filter(|kept| kept.prefix.uses(subquery)).peekable();
            if users.peek().is_none() {
                continue;
            }
            let (entries, scanned) = (made_of(plan)?.entries, extents_below(plan)?);
            users.for_each(|kept| kept.made_of.add(&entries, &scanned));
        }
        Ok(())
    }

    /// What computing the entries took that were hit after the first `n_hits`.
    fn reused_us(&self, n_hits: usize) -> u64 {
        self.findings.hits[n_hits..].iter().map(|hit| hit.found.cost_us).sum()
    }

    /// Whether an entry of this prefix is worth more to others than the statement's own speed.
    fn is_wanted(&self, prefix: &Prefix, place: Place) -> bool {
        if place.is_inner || self.named.contains(&prefix.key) {
            return true;
        }
        let Some(inquiry) = self.inquiries.get(&prefix.key) else { return true };
        self.context.mode != ReuseMode::On
            || self.context.policy.threshold <= 1
            // Rows may be far more than groups are.
            || (self.has_grown && !self.growth.is_of_rows(&prefix.key) && !self.growth.is_idle(&prefix.key))
            || inquiry.found.is_some()
            || self.context.policy.is_wanted(inquiry, place.parent_lookups)
    }

    /// Whether the plan keeps a prefix below the root; the root is kept from the stream that the client reads.
    fn keeps(&self, node: &PrefixNode, prefix: &Prefix, place: Place) -> bool {
        if !place.may_keep || place.is_root {
            return false;
        }
        // A root that only renames has the key of what lies below it.
        let is_root_key = !place.is_inner && self.findings.root.as_ref().is_ok_and(|root| root.key == prefix.key);
        let Some(inquiry) = self.inquiries.get(&prefix.key) else { return false };
        // One that could not be read is replaced.
        let is_banned = self.context.banned.contains(&prefix.key);
        let is_new = inquiry.found.is_none() || is_banned || !self.context.mode.reads();
        let admitted = match self.context.mode {
            ReuseMode::Check => inquiry.found.is_some(),
            _ if place.is_inner || self.named.contains(&prefix.key) => true,
            _ if self.is_too_large(prefix) => false,
            // A limit may be served by few rows of a scan: all of them would be computed for nobody. A join reads most of them anyway.
            _ if place.is_cut && is_of_rows(prefix.kind) => self.replaces(inquiry),
            // Only who needs all groups keeps them.
            _ if self.cut(node).is_some() => self.replaces(inquiry),
            _ if self.growth.is_of_rows(&prefix.key) => true,
            _ => self.context.policy.admits(prefix.kind, inquiry, place.parent_lookups),
        };
        !is_root_key && is_new && admitted && !self.kept_keys.contains(&prefix.key)
    }

    /// Whether there were too many rows to be kept the last time: somebody will try again, but not each statement.
    pub(super) fn is_too_large(&self, prefix: &Prefix) -> bool {
        self.context.mode == ReuseMode::On && self.context.oracle.is_too_large(&prefix.program)
    }

    /// Whether what is computed anew takes the place of an entry.
    pub(super) fn replaces(&self, inquiry: &Inquiry) -> bool {
        self.context.mode == ReuseMode::Refresh && inquiry.found.is_some()
    }

    pub(super) fn verdict(&self, node: &PrefixNode, prefix: Option<&Prefix>) -> Verdict {
        let Some(prefix) = prefix else {
            return match &node.prefix {
                Err(reason) => Verdict::Uncacheable(reason.clone()),
                Ok(_) => Verdict::NotAsked,
            };
        };
        let Some(inquiry) = self.inquiries.get(&prefix.key) else { return Verdict::NotAsked };
        match inquiry.found {
            // Dropped since, but not to make room.
            _ if self.context.banned.contains(&prefix.key) => Verdict::Damaged,
            Some(_) if !self.context.reads(&prefix.key) => Verdict::NotWanted,
            Some(_) if self.inconsistent.contains(&prefix.key) => Verdict::Inconsistent,
            Some(found) if self.beaten.contains(&prefix.key) || !is_worth_it(&found) => Verdict::NotWorthIt(found),
            _ if self.cut(node).is_some() => Verdict::CutShort,
            Some(_) => Verdict::NotAsked,
            None if inquiry.was_dropped => Verdict::Evicted,
            None if inquiry.n_other_extents > 0 => Verdict::InputsChanged { n_entries: inquiry.n_other_extents },
            None if inquiry.lookups > 0 => Verdict::NotKept,
            None => Verdict::NeverSeen,
        }
    }

    pub(super) fn report(&mut self, node: &PrefixNode, depth: usize, verdict: Verdict, kept: bool) {
        let prefix = node.prefix.as_ref().ok();
        let covers = matches!(verdict, Verdict::Hit(_) | Verdict::Segments { .. } | Verdict::Covered);
        self.findings.report.push(PrefixReport {
            depth,
            plan: Arc::clone(&node.plan),
            works: Arc::clone(&works(node).plan),
            key: prefix.map(|prefix| prefix.key),
            program: prefix.map(|prefix| prefix.program),
            verdict,
            kept,
            is_reason: prefix.is_none() && node.children.iter().all(|child| child.prefix.is_ok()),
            segments: vec![],
            prefix: prefix.filter(|_| self.context.explains).cloned().map(Box::new),
        });
        if covers {
            node.children.iter().for_each(|child| self.report(child, depth + 1, Verdict::Covered, false));
        }
    }
}

/// Whether a node reads all of its input before it gives the first row, or gives others than without the last.
fn reads_all(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<AggregateExec>() || plan.is::<WindowAggExec>() || plan.is::<BoundedWindowAggExec>()
}

/// Whether a prefix passes rows on, one by one.
fn is_of_rows(kind: PrefixKind) -> bool {
    matches!(kind, PrefixKind::Filter | PrefixKind::Union | PrefixKind::Unnest | PrefixKind::Projection)
}

/// The node below those that only rename.
fn works(node: &PrefixNode) -> &PrefixNode {
    let key = |node: &PrefixNode| node.prefix.as_ref().ok().map(|prefix| prefix.key);
    match node.children.as_slice() {
        [below] if key(node).is_some() && key(node) == key(below) => works(below),
        _ => node,
    }
}

/// Whether reading an entry takes less time than computing it took.
pub fn is_worth_it(found: &Found) -> bool {
    found.cost_us > read_us(found)
}

/// What reading an entry takes, in microseconds.
pub(crate) fn read_us(found: &Found) -> u64 {
    OPEN_US + found.bytes / READ_BYTES_PER_US
}
