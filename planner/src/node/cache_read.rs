//! [`CacheReadExec`]: the rows of one cache entry, instead of computing them.
//!
//! ```text
//!   CacheReadExec: entry=1a2b3c4d5e6f, rows=12, bytes=3.1 KB, saves=2.41 s
//! ```
//!
//! A leaf of one partition. Entries know columns by position; `schema` names them anew.
//! Does not run: the executor lowers it to the operator that reads the derived store.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use nectarine_catalog::Fingerprint;

use super::units::{short, size, time};

/// Reads one cache entry.
#[derive(Debug, Clone)]
pub struct CacheReadExec {
    key: Fingerprint,
    program: Fingerprint,
    rows: u64,
    bytes: u64,
    cost_us: u64,
    properties: Arc<PlanProperties>,
}

impl CacheReadExec {
    /// The entry of that key, its columns named as in `schema`.
    pub fn new(key: Fingerprint, program: Fingerprint, rows: u64, bytes: u64, cost_us: u64, schema: SchemaRef) -> Self {
        let properties = properties(EquivalenceProperties::new(schema));
        Self { key, program, rows, bytes, cost_us, properties }
    }

    /// Says that the entry's rows are in this order: that of the subtree which it replaces. Whatever is said here is
    /// believed, and no one sorts again.
    #[must_use]
    pub fn with_ordering(mut self, ordering: Option<LexOrdering>) -> Self {
        if let Some(ordering) = ordering {
            let schema = Arc::clone(self.properties.eq_properties.schema());
            self.properties = properties(EquivalenceProperties::new_with_orderings(schema, [ordering]));
        }
        self
    }

    /// FP_PD.
    pub fn key(&self) -> Fingerprint {
        self.key
    }

    /// FP_P.
    pub fn program(&self) -> Fingerprint {
        self.program
    }

    /// What computing it took.
    pub fn cost_us(&self) -> u64 {
        self.cost_us
    }

    /// The line of EXPLAIN, which the operator repeats.
    pub fn describe(key: &Fingerprint, rows: u64, bytes: u64, cost_us: u64) -> String {
        format!("CacheReadExec: entry={}, rows={rows}, bytes={}, saves={}", short(key), size(bytes), time(cost_us))
    }
}

fn properties(equivalences: EquivalenceProperties) -> Arc<PlanProperties> {
    Arc::new(PlanProperties::new(
        equivalences,
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    ))
}

impl DisplayAs for CacheReadExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => write!(f, "entry={}\nrows={}", short(&self.key), self.rows),
            _ => f.write_str(&Self::describe(&self.key, self.rows, self.bytes, self.cost_us)),
        }
    }
}

impl ExecutionPlan for CacheReadExec {
    fn name(&self) -> &str {
        "CacheReadExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        // Which side of a join is built depends on it. Not exact: nothing may be answered from it without reading the entry.
        let rows = Precision::Inexact(self.rows as usize);
        Ok(Arc::new(Statistics::new_unknown(&self.schema()).with_num_rows(rows)))
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a read of entry {} reached execution without being lowered", self.key)
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::physical_plan::displayable;

    use super::*;

    #[test]
    fn explain_names_the_entry_and_what_it_saves() {
        let mut key = [0; 32];
        key[..6].copy_from_slice(&[0x1a, 0x2b, 0x3c, 0x4d, 0x5e, 0x6f]);
        let key = Fingerprint::from_bytes(key);
        let node = CacheReadExec::new(key, key, 12, 3_200, 2_410_000, Arc::new(Schema::empty()));
        let text = displayable(&node).one_line().to_string();
        assert_eq!(text.trim(), "CacheReadExec: entry=1a2b3c4d5e6f, rows=12, bytes=3.1 KB, saves=2.41 s");
    }
}
