//! [`Relative`]: an entry that has other columns than a prefix, but the same rows, and enough columns to answer it.
//!
//! ```text
//!   kept      SELECT word, sum(n), count(*) .. GROUP BY word        columns: word, sum(n), count(*)
//!   asked     SELECT word, count(*) .. GROUP BY word
//!   read      ProjectionExec: word, count(*)
//!               CacheReadExec
//! ```
//!
//! Fires when   lineage says that entry and prefix have the same rows (`canonical::lineage`), and every column of the prefix is
//!              one of the entry's, or, on a choice of columns, can be computed from them.
//! Sets         below a DISTINCT, a semijoin is as good as the join it was made from: rows may be there more than once. Not below
//!              what is kept in between: others may count its rows.
//! Stays quiet  where two computations could differ (floats that were added up, luck), and where order may mean something.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use nectarine_catalog::Fingerprint;

use super::Found;
use super::candidate::candidate;
use crate::canonical::{Exactness, Lineage, Prefix, PrefixKind, PrefixNode};
use crate::node::CacheReadExec;

/// Entries up to this size are kept although they are a part of another.
const SMALL_BYTES: u64 = 1 << 20;

/// A program that has, or had, entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Relative {
    /// FP_P.
    pub program: Fingerprint,
    /// What its columns are, within its family.
    pub columns: Arc<[Fingerprint]>,
    /// Their types.
    pub schema: SchemaRef,
}

/// Whether entries of `prefix` may stand for others of its family.
pub fn may_cover(prefix: &Prefix) -> bool {
    let is_rows = prefix.kind != PrefixKind::States;
    is_rows && prefix.exactness == Exactness::Exact && prefix.borrowed == Exactness::Exact
}

/// The node's prefix, if a relative may stand for it: what is worth a question, and choices of columns above that.
pub(super) fn coverable(node: &PrefixNode) -> Option<&Prefix> {
    let prefix = node.prefix.as_ref().ok()?;
    let mut works = node;
    while works.plan.is::<ProjectionExec>() {
        works = works.children.first()?;
    }
    candidate(works, false)?;
    let is_understood =
        matches!(prefix.kind, PrefixKind::Aggregate | PrefixKind::Join | PrefixKind::Filter | PrefixKind::Projection);
    (is_understood && may_cover(prefix) && !prefix.ordered).then_some(prefix)
}

/// Whether it does not matter below a node how often each row is there, given whether it matters at the node. What `is_kept` is
/// kept for others, who may count its rows.
pub(super) fn is_set_below(plan: &Arc<dyn ExecutionPlan>, is_set: bool, is_kept: bool) -> bool {
    match plan.downcast_ref::<AggregateExec>() {
        Some(aggregate) => aggregate.aggr_expr().is_empty() && aggregate.limit_options().is_none(),
        None => is_set && !is_kept && plan.is::<ProjectionExec>(),
    }
}

/// Where the rows of a prefix come from: as they are, or as a set.
pub(super) fn lineage(prefix: &Prefix, as_set: bool) -> &Lineage {
    prefix.as_set.as_ref().filter(|_| as_set).unwrap_or(&prefix.lineage)
}

/// An entry that stands for a prefix.
#[derive(Clone, Debug)]
pub(super) struct Cover {
    /// Whether only as a set.
    pub(super) as_set: bool,
    pub(super) key: Fingerprint,
    pub(super) found: Found,
    pub(super) relative: Relative,
}

impl Cover {
    /// The node's rows from the entry; `None` if it lacks a column.
    pub(super) fn plan(&self, node: &PrefixNode) -> Option<Arc<dyn ExecutionPlan>> {
        let mut used = vec![None; self.relative.columns.len()];
        let exprs = self.exprs(node, &mut used)?;
        // Whether there are NULLs is known of these extents, not of those that the relative was first seen on.
        let fields = self.relative.schema.fields().iter().zip(used);
        let fields = fields.map(|(field, used)| field.as_ref().clone().with_nullable(used.unwrap_or(true)));
        let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), node.plan.schema().metadata().clone());
        let Found { rows, bytes, cost_us } = self.found;
        let read = CacheReadExec::new(self.key, self.relative.program, rows, bytes, cost_us, Arc::new(schema));
        let plan = ProjectionExec::try_new(exprs, Arc::new(read)).ok()?;
        // The same types, and NULL where it may be: nobody above may notice.
        (plan.schema() == node.plan.schema()).then(|| Arc::new(plan) as Arc<dyn ExecutionPlan>)
    }

    /// Whether the node is little more than this entry once again: large, and most of its columns.
    pub(super) fn is_nearly(&self, node: &PrefixNode) -> bool {
        let (shown, kept) = (node.plan.schema().fields().len(), self.relative.columns.len());
        self.found.bytes > SMALL_BYTES && shown * 2 >= kept
    }

    /// What the node shows, over the entry's columns; `used` is told which of them may hold NULL.
    fn exprs(&self, node: &PrefixNode, used: &mut [Option<bool>]) -> Option<Vec<ProjectionExpr>> {
        let wanted = &lineage(node.prefix.as_ref().ok()?, self.as_set).columns;
        let projection = node.plan.downcast_ref::<ProjectionExec>();
        let schema = node.plan.schema();
        let mut exprs = vec![];
        for (what, field) in wanted.iter().zip(schema.fields()) {
            let expr: Arc<dyn PhysicalExpr> = match self.column(what, field, used) {
                Some(column) => Arc::new(column),
                None => self.computed(&projection?.expr().get(exprs.len())?.expr, node.children.first()?, used)?,
            };
            exprs.push(ProjectionExpr { expr, alias: field.name().clone() });
        }
        Some(exprs)
    }

    /// The entry's column that is `what`, which the plan knows as `field`.
    fn column(&self, what: &Fingerprint, field: &Field, used: &mut [Option<bool>]) -> Option<Column> {
        let position = self.relative.columns.iter().position(|other| other == what)?;
        let kept = self.relative.schema.fields().get(position)?;
        if kept.data_type() != field.data_type() {
            return None;
        }
        let nullable = used.get_mut(position)?;
        *nullable = Some(nullable.unwrap_or(true) && field.is_nullable());
        Some(Column::new(kept.name(), position))
    }

    /// An expression over the columns of `below`, over the entry's.
    fn computed(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
        below: &PrefixNode,
        used: &mut [Option<bool>],
    ) -> Option<Arc<dyn PhysicalExpr>> {
        let columns = &lineage(below.prefix.as_ref().ok()?, self.as_set).columns;
        let schema = below.plan.schema();
        let mut lacks = false;
        let expr = Arc::clone(expr).transform_up(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
            let known = columns.get(column.index()).zip(schema.fields().get(column.index()));
            match known.and_then(|(what, field)| self.column(what, field, used)) {
                Some(column) => Ok(Transformed::yes(Arc::new(column) as Arc<dyn PhysicalExpr>)),
                None => {
                    lacks = true;
                    Ok(Transformed::no(expr))
                }
            }
        });
        let expr: Result<_> = expr.data();
        expr.ok().filter(|_| !lacks)
    }
}
