//! [`CacheReadOperator`]: the rows of a cache entry.
//!
//! ```text
//!   plan --> prepare_cache_reads: all parts loaded or verified; a fault names the entry --> execute
//!                    |
//!                    +-- fault: the engine drops the entry and plans again
//! ```
//!
//! Small entries are held from `prepare` on, so that executing them can not fail. Larger ones are read through once to
//! verify them, and again part by part when executed; each part is checked as a whole before its first row leaves.
//! Order        rows are read in their order, by one partition, unless they are states, whose order means nothing.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, RecordOutput};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt, stream};
use nectarine_catalog::{CacheEntry, EntryKind, Fingerprint};
use nectarine_planner::node::{CacheReadExec, short};

use crate::derived::{DerivedError, DerivedStore, relabel};

/// Stored bytes up to which an entry is held in memory between `prepare` and its end.
const HELD_BYTES_MAX: u64 = 32 << 20;

/// Parts that are read ahead of the one whose rows are given out.
const PARTS_AHEAD: usize = 2;

/// An entry could not be used.
#[derive(Debug, Clone, thiserror::Error)]
#[error("cache entry {key} can not be used")]
pub struct EntryFault {
    /// Which entry.
    pub key: Fingerprint,
    /// Why.
    #[source]
    pub error: DerivedError,
}

impl EntryFault {
    /// The fault behind an error that came out of a running plan, if there is one.
    pub fn find(error: &DataFusionError) -> Option<&Self> {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return Some(fault);
            }
            cause = error.source();
        }
        None
    }
}

/// Reads one entry.
#[derive(Clone)]
pub struct CacheReadOperator {
    entry: Arc<CacheEntry>,
    store: DerivedStore,
    /// Parts per partition.
    groups: Vec<std::ops::Range<usize>>,
    held: Arc<OnceLock<Vec<Vec<RecordBatch>>>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CacheReadOperator {
    /// Reads `entry` under the names of `schema`, in `ordering` if there is one, with up to `n_partitions` partitions if
    /// its rows have no order.
    pub fn new(
        entry: Arc<CacheEntry>,
        store: DerivedStore,
        schema: SchemaRef,
        ordering: Option<LexOrdering>,
        n_partitions: usize,
    ) -> Self {
        let ordered = entry.kind == EntryKind::Rows || ordering.is_some();
        let n_partitions = if ordered { 1 } else { n_partitions.min(entry.parts.len()).max(1) };
        let groups = spread(entry.parts.len(), n_partitions);
        let equivalences = match ordering {
            Some(ordering) => EquivalenceProperties::new_with_orderings(schema, [ordering]),
            None => EquivalenceProperties::new(schema),
        };
        let properties = Arc::new(PlanProperties::new(
            equivalences,
            Partitioning::UnknownPartitioning(groups.len()),
            EmissionType::Incremental,
            Boundedness::Bounded,
        ));
        Self { entry, store, groups, held: Arc::default(), properties, metrics: ExecutionPlanMetricsSet::new() }
    }

    /// What it reads.
    pub fn entry(&self) -> &Arc<CacheEntry> {
        &self.entry
    }

    /// Makes sure that the whole entry is there and undamaged.
    pub async fn prepare(&self) -> Result<(), EntryFault> {
        if self.held.get().is_some() {
            return Ok(());
        }
        let fault = |error| EntryFault { key: self.entry.key, error };
        let schema = self.schema();
        let rows: u64 = self.entry.parts.iter().map(|part| part.rows).sum();
        if rows != self.entry.rows {
            let detail = format!("its parts have {rows} rows instead of {}", self.entry.rows);
            return Err(fault(DerivedError::Damaged { location: self.entry.key.to_string(), detail }));
        }
        if self.entry.bytes <= HELD_BYTES_MAX {
            let loaded = self.store.load(&self.entry, &schema).await.map_err(fault)?;
            let named = loaded.batches.iter().zip(&self.entry.parts).map(|(batches, part)| {
                batches.iter().map(|batch| named(batch, &schema, &part.location)).collect::<Result<Vec<_>, _>>()
            });
            let named = named.collect::<Result<Vec<_>, _>>().map_err(fault)?;
            // Whoever was faster loaded the same.
            let _ = self.held.set(named);
        } else {
            for (ordinal, part) in self.entry.parts.iter().enumerate() {
                self.store.verify_part(part, &self.entry.key, ordinal, &schema).await.map_err(fault)?;
            }
        }
        Ok(())
    }
}

/// Prepares every read of an entry in a plan; to be called after planning and before execution.
pub async fn prepare_cache_reads(plan: &Arc<dyn ExecutionPlan>) -> Result<(), EntryFault> {
    let mut reads = vec![];
    // The closure does not fail.
    let _ = plan.apply(|node| {
        if let Some(read) = node.downcast_ref::<CacheReadOperator>() {
            reads.push(read.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    for read in reads {
        read.prepare().await?;
    }
    Ok(())
}

/// `n_parts` in `n` groups of neighbours, none empty unless there are no parts.
fn spread(n_parts: usize, n: usize) -> Vec<std::ops::Range<usize>> {
    (0..n).map(|group| group * n_parts / n..(group + 1) * n_parts / n).collect()
}

fn named(batch: &RecordBatch, schema: &SchemaRef, location: &str) -> Result<RecordBatch, DerivedError> {
    relabel(batch, schema)
        .map_err(|error| DerivedError::Damaged { location: location.to_owned(), detail: error.to_string() })
}

/// The batch in pieces of at most `rows` rows.
fn pieces(batch: RecordBatch, rows: usize) -> impl Iterator<Item = RecordBatch> {
    let rows = rows.max(1);
    let n_rows = batch.num_rows();
    (0..n_rows.div_ceil(rows)).map(move |piece| match n_rows <= rows {
        true => batch.clone(),
        false => batch.slice(piece * rows, rows.min(n_rows - piece * rows)),
    })
}

impl fmt::Debug for CacheReadOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheReadOperator").field("entry", &self.entry.key).finish()
    }
}

impl DisplayAs for CacheReadOperator {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CacheEntry { key, rows, bytes, cost_us, .. } = self.entry.as_ref();
        match format {
            DisplayFormatType::TreeRender => write!(f, "entry={}\nrows={rows}", short(key)),
            _ => f.write_str(&CacheReadExec::describe(key, *rows, *bytes, *cost_us)),
        }
    }
}

impl ExecutionPlan for CacheReadOperator {
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

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let rows: u64 = match arguments.partition() {
            None => self.entry.rows,
            Some(partition) => {
                let parts = self.groups.get(partition).and_then(|group| self.entry.parts.get(group.clone()));
                parts.unwrap_or_default().iter().map(|part| part.rows).sum()
            }
        };
        Ok(Arc::new(Statistics::new_unknown(&self.schema()).with_num_rows(Precision::Exact(rows as usize))))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(group) = self.groups.get(partition).cloned() else {
            return internal_err!("partition {partition} of {}", self.groups.len());
        };
        let batch_size = context.session_config().batch_size();
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let schema = self.schema();
        let read = self.clone();
        let batches = stream::iter(group)
            .map(move |ordinal| read.clone().part(ordinal))
            .buffered(PARTS_AHEAD)
            .map_ok(move |batches| {
                stream::iter(batches)
                    .flat_map(move |batch| stream::iter(pieces(batch, batch_size)))
                    .map(Ok::<_, DataFusionError>)
            })
            .try_flatten()
            .map(move |batch: Result<RecordBatch>| batch.record_output(&metrics));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}

impl CacheReadOperator {
    /// The rows of one part, held or read now.
    async fn part(self, ordinal: usize) -> Result<Vec<RecordBatch>> {
        if let Some(batches) = self.held.get().and_then(|held| held.get(ordinal)) {
            return Ok(batches.clone());
        }
        let Some(part) = self.entry.parts.get(ordinal) else {
            return internal_err!("part {ordinal} of {}", self.entry.parts.len());
        };
        let schema = self.schema();
        let read = self.store.read_part(part, &self.entry.key, ordinal, &schema).await;
        let batches = read.and_then(|batches| {
            batches.iter().map(|batch| named(batch, &schema, &part.location)).collect::<Result<Vec<_>, _>>()
        });
        batches.map_err(|error| DataFusionError::External(Box::new(EntryFault { key: self.entry.key, error })))
    }
}
