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
//! States are compared when finished: the same groups may be in one state or in several, lists in whatever order.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use nectarine_catalog::Fingerprint;

use super::segments::{Combine, combine, over};
use super::{ReuseContext, Segment};
use crate::canonical::{Exactness, Prefix, PrefixNode};
use crate::node::CacheReadExec;
use crate::segment::{extents_of, term};

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

/// All entries that segment hits in this plan could read.
pub(super) fn rechecks(root: &PrefixNode, context: &ReuseContext) -> Result<Vec<Recheck>> {
    let mut found = vec![];
    collect(root, true, context, &mut HashSet::new(), &mut found)?;
    Ok(found)
}

fn collect(
    node: &PrefixNode,
    is_root: bool,
    context: &ReuseContext,
    seen: &mut HashSet<Fingerprint>,
    found: &mut Vec<Recheck>,
) -> Result<()> {
    if let (Ok(prefix), Some(combine)) = (&node.prefix, combine(node, is_root)) {
        let is_states = combine == Combine::MergeGroups;
        // Which rows a limit leaves is a matter of luck, and so is the smallest of floats where there are NaN.
        if prefix.exactness != Exactness::Any {
            for segment in context.oracle.segments(&prefix.program, is_states) {
                // Rows over all of today's extents are recorded and compared while the statement runs.
                let is_recorded = !is_states && segment.key == prefix.key;
                if found.len() < RECHECKS_MAX && !is_recorded && seen.insert(segment.key) {
                    found.extend(recheck(node, prefix, &segment, is_states)?);
                }
            }
        }
    }
    node.children.iter().try_for_each(|child| collect(child, false, context, seen, found))
}

/// `None` if the entry is about extents that are gone, or the plan can not be made anew.
fn recheck(node: &PrefixNode, prefix: &Prefix, segment: &Segment, is_states: bool) -> Result<Option<Recheck>> {
    let Some(lists) = extents_of(segment, &prefix.lists()) else { return Ok(None) };
    let Segment { key, found, .. } = segment;
    let (rows, bytes, cost_us) = (found.rows, found.bytes, found.cost_us);
    let read = Arc::new(CacheReadExec::new(*key, prefix.program, rows, bytes, cost_us, node.plan.schema()));
    let partial = node.plan.downcast_ref::<AggregateExec>().filter(|_| is_states);
    let below = match (partial, node.children.as_slice()) {
        (Some(_), [child]) => &child.plan,
        (Some(_), _) => return Ok(None),
        (None, _) => &node.plan,
    };
    let Some(computed) = term(below, &lists, None)? else { return Ok(None) };
    Ok(Some(match partial {
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
