//! [`Recheck`]: for check mode, entries over today's extents or some of them, each with a plan that computes it anew.
//!
//! A statement in check mode computes its answer over all of today's extents; entries over some of them would never be
//! looked at, nor would states, which several spellings of the same groups may fill differently. So every entry that a
//! segment hit could read is computed once more by itself:
//!
//! ```text
//!   kind of entry   read                        computed
//!   rows            CacheReadExec               the program over the entry's extents
//!   states          AggregateExec: Final        AggregateExec: Final
//!                     CacheReadExec               AggregateExec: Partial
//!                                                   .. over the entry's extents
//! ```
//!
//! For VERIFY every prefix of the plan that has an entry is computed anew by itself as well, and nothing else runs.
//!
//! States are compared when finished: the same groups may be in one state or in several, lists in whatever order.
//! Where the filter is a window (`windows`), entries of the program that inner extents share are computed anew as well.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::Result;
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use nectarine_catalog::Fingerprint;

use super::segments::{Combine, combine, over};
use super::{ReuseContext, Segment};
use crate::canonical::{Exactness, Prefix, PrefixKind, PrefixNode, Salt};
use crate::node::CacheReadExec;
use crate::segment::{Lists, extents_of, term, windows};

/// Entries that one statement computes anew at most.
const RECHECKS_MAX: usize = 64;

/// An entry, and what it should hold.
#[derive(Debug)]
pub struct Recheck {
    /// FP_PD of the entry.
    pub key: Fingerprint,
    /// Gives the rows of the entry; states finished.
    pub read: Arc<dyn ExecutionPlan>,
    /// Computes them.
    pub computed: Arc<dyn ExecutionPlan>,
}

/// An entry that can not be computed anew by itself, or compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unchecked {
    /// FP_PD.
    pub key: Fingerprint,
    /// Why.
    pub reason: &'static str,
}

/// All entries that segment hits and windows in this plan could read; for VERIFY, those of all prefixes too.
pub(super) fn rechecks(
    root: &PrefixNode,
    context: &ReuseContext,
    config: &ConfigOptions,
    salt: &Salt,
) -> Result<(Vec<Recheck>, Vec<Unchecked>)> {
    let n_max = if context.verifies { usize::MAX } else { RECHECKS_MAX };
    let mut search = Search { context, config, salt, n_max, seen: HashSet::new(), found: vec![], unchecked: vec![] };
    search.visit(root, true)?;
    Ok((search.found, search.unchecked))
}

/// A program whose entries are looked for.
struct Program<'a> {
    prefix: &'a Prefix,
    /// The first half of an aggregate, if entries are its states.
    partial: Option<&'a AggregateExec>,
    /// What is computed over the extents of an entry; what lies below the states, if entries are such.
    below: &'a Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
}

struct Search<'a> {
    context: &'a ReuseContext,
    config: &'a ConfigOptions,
    salt: &'a Salt,
    n_max: usize,
    seen: HashSet<Fingerprint>,
    found: Vec<Recheck>,
    unchecked: Vec<Unchecked>,
}

impl Search<'_> {
    fn visit(&mut self, node: &PrefixNode, is_root: bool) -> Result<()> {
        if self.context.verifies
            && let Ok(prefix) = &node.prefix
        {
            self.own_entry(node, prefix)?;
        }
        if let (Ok(prefix), Some(combine)) = (&node.prefix, combine(node, is_root))
            // Which rows a limit leaves is a matter of luck, and so is the smallest of floats where there are NaN.
            && prefix.exactness != Exactness::Any
        {
            let partial = node.plan.downcast_ref::<AggregateExec>().filter(|_| combine == Combine::MergeGroups);
            let schema = node.plan.schema();
            let today = prefix.lists();
            match (partial, node.children.as_slice()) {
                (Some(partial), [child]) => {
                    let below = &child.plan;
                    self.entries(&Program { prefix, partial: Some(partial), below, schema }, &today)?;
                    self.inner_entries(prefix, partial, below)?;
                }
                (Some(_), _) => {}
                (None, _) => self.entries(&Program { prefix, partial: None, below: &node.plan, schema }, &today)?,
            }
        }
        node.children.iter().try_for_each(|child| self.visit(child, false))
    }

    /// The entry of a prefix, if it has one. States are among the entries of their program.
    fn own_entry(&mut self, node: &PrefixNode, prefix: &Prefix) -> Result<()> {
        let is_states = prefix.kind == PrefixKind::States && combine(node, false) == Some(Combine::MergeGroups);
        let answer = self.context.oracle.inquire(&[(prefix.key, prefix.program)], false);
        let Some(found) = answer.first().and_then(|inquiry| inquiry.found) else { return Ok(()) };
        if is_states || !self.seen.insert(prefix.key) {
            return Ok(());
        }
        if prefix.exactness == Exactness::Any {
            self.unchecked.push(Unchecked { key: prefix.key, reason: "its rows depend on the order of what was read" });
            return Ok(());
        }
        match term(&node.plan, &prefix.lists(), None)? {
            Some(computed) => {
                let (rows, bytes, cost_us) = (found.rows, found.bytes, found.cost_us);
                let schema = node.plan.schema();
                let read = Arc::new(CacheReadExec::new(prefix.key, prefix.program, rows, bytes, cost_us, schema));
                self.found.push(Recheck { key: prefix.key, read, computed });
            }
            None => self.unchecked.push(Unchecked { key: prefix.key, reason: "it can not be computed by itself" }),
        }
        Ok(())
    }

    /// Entries of the program that the inner extents of a window share.
    fn inner_entries(
        &mut self,
        prefix: &Prefix,
        partial: &AggregateExec,
        below: &Arc<dyn ExecutionPlan>,
    ) -> Result<()> {
        let today = prefix.lists();
        if prefix.inputs.len() != today.len() {
            return Ok(());
        }
        // Whichever of them it was that the entry was made for.
        for window in windows(below, &self.context.built_ins, self.config, true) {
            let program = self.context.inner_program(partial, below, &window, &today, self.config, self.salt)?;
            let Some((inner, inner_below)) = program else { continue };
            let schema = partial.schema();
            // Entries are about whole extents: those at the edge of this window were inside of another.
            self.entries(&Program { prefix: &inner, partial: Some(partial), below: &inner_below, schema }, &today)?;
        }
        Ok(())
    }

    /// Entries of a program over some of today's extents.
    fn entries(&mut self, program: &Program<'_>, today: &Lists) -> Result<()> {
        let is_states = program.partial.is_some();
        for segment in self.context.oracle.segments(&program.prefix.program, is_states) {
            // Rows over all of today's extents are recorded and compared while the statement runs.
            let is_recorded = !is_states && segment.key == program.prefix.key;
            if self.found.len() < self.n_max && !is_recorded && self.seen.insert(segment.key) {
                self.found.extend(recheck(program, today, &segment)?);
            }
        }
        Ok(())
    }
}

/// `None` if the entry is about extents that are gone, or the plan can not be made anew.
fn recheck(program: &Program<'_>, today: &Lists, segment: &Segment) -> Result<Option<Recheck>> {
    let Some(lists) = extents_of(segment, today) else { return Ok(None) };
    let Segment { key, found, .. } = segment;
    let (rows, bytes, cost_us) = (found.rows, found.bytes, found.cost_us);
    let schema = Arc::clone(&program.schema);
    let read = Arc::new(CacheReadExec::new(*key, program.prefix.program, rows, bytes, cost_us, schema));
    let Some(computed) = term(program.below, &lists, None)? else { return Ok(None) };
    Ok(Some(match program.partial {
        Some(partial) => Recheck {
            key: *key,
            read: Arc::new(finished(partial, read)?),
            computed: Arc::new(finished(partial, Arc::new(over(partial, computed)?))?),
        },
        None => Recheck { key: *key, read, computed },
    }))
}

/// The second half of an aggregate over states.
fn finished(partial: &AggregateExec, states: Arc<dyn ExecutionPlan>) -> Result<AggregateExec> {
    AggregateExec::try_new(
        AggregateMode::Final,
        partial.group_expr().as_final(),
        partial.aggr_expr().to_vec(),
        partial.filter_expr().to_vec(),
        states,
        partial.input_schema(),
    )
}
