//! [`AddEntryExec`]: what passes here is kept as a cache entry.
//!
//! ```text
//!   AddEntryExec: entry=1a2b3c4d5e6f
//! ```
//!
//! Passes its input on. Does not run: the executor lowers it to the operator that records, or to its input alone where
//! nothing is recorded.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::Fingerprint;

use super::units::short;

/// Which prefix of a statement this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixKey {
    /// FP_PD.
    pub key: Fingerprint,
    /// FP_P.
    pub program: Fingerprint,
    /// Its place among the prefixes of the statement.
    pub ordinal: usize,
    /// What it may cost the statement.
    pub worth: Worth,
}

/// What keeping a prefix may cost the statement that computes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Worth {
    /// Somebody asked for it before, or it is the answer itself: all its rows are computed, and kept.
    Wanted,
    /// Nobody asked for it yet: kept if that is cheap.
    Cheap,
    /// The same below a join, whose other side may need few of its rows: then only those are computed, and nothing is kept.
    GivesWay,
}

/// Marks a prefix whose rows are to be kept.
#[derive(Debug, Clone)]
pub struct AddEntryExec {
    input: Arc<dyn ExecutionPlan>,
    prefix: Arc<PrefixKey>,
}

impl AddEntryExec {
    /// Keeps what `input` gives as the entry of `prefix`.
    pub fn new(input: Arc<dyn ExecutionPlan>, prefix: Arc<PrefixKey>) -> Self {
        Self { input, prefix }
    }

    /// What is kept.
    pub fn input(&self) -> &Arc<dyn ExecutionPlan> {
        &self.input
    }

    /// Under which key.
    pub fn prefix(&self) -> &Arc<PrefixKey> {
        &self.prefix
    }
}

impl DisplayAs for AddEntryExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "entry={}", short(&self.prefix.key)),
            _ => write!(f, "AddEntryExec: entry={}", short(&self.prefix.key)),
        }
    }
}

impl ExecutionPlan for AddEntryExec {
    fn name(&self) -> &str {
        "AddEntryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(input), true) => Ok(Arc::new(Self::new(input, Arc::clone(&self.prefix)))),
            _ => internal_err!("AddEntryExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("the mark of entry {} reached execution without being lowered", self.prefix.key)
    }
}
