//! [`CacheReadOperator`]: the rows of a cache entry.
//!
//! ```text
//!   plan --> prepare_cache_reads: all parts loaded and verified; a fault names the entry --> execute
//!                    |
//!                    +-- fault: the engine drops the entry and plans again
//! ```
//!
//! Everything is held from `prepare` on, see [`Held`], so that executing it does not depend on the store any more: rows that
//! have left can not be taken back, and the rest of them could not be computed by themselves.
//! Bounded      preparing takes no longer than computing would have; a store that is silent is given up before.
//! Order        rows are read in their order, by one partition, unless they are states, whose order means nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{DataFusionError, Result, Statistics, internal_err};
use datafusion::execution::runtime_env::RuntimeEnv;
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
use tokio::sync::OnceCell;

use super::held::Held;
use crate::derived::{DerivedError, DerivedStore};

/// Reading may always take this long, also where computing took no time.
const PATIENCE_MIN: Duration = Duration::from_secs(10);

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
    pub(super) held: Arc<OnceCell<Held>>,
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

    /// Makes sure that the whole entry is there and undamaged, and stays so.
    pub async fn prepare(&self, runtime: &RuntimeEnv) -> Result<(), EntryFault> {
        self.held(runtime).await.map(|_| ())
    }

    async fn held(&self, runtime: &RuntimeEnv) -> Result<&Held, EntryFault> {
        let schema = self.schema();
        let hold = || async {
            let patience = PATIENCE_MIN.max(Duration::from_micros(self.entry.cost_us));
            let held = Held::new(&self.entry, &self.store, &schema, runtime);
            let held = tokio::time::timeout(patience, held).await;
            held.unwrap_or_else(|late| Err(DerivedError::unavailable("read", &self.entry.key.to_string(), late)))
        };
        self.held.get_or_try_init(hold).await.map_err(|error| EntryFault { key: self.entry.key, error })
    }
}

/// Prepares every read of an entry in a plan; to be called after planning and before execution.
pub async fn prepare_cache_reads(plan: &Arc<dyn ExecutionPlan>, runtime: &RuntimeEnv) -> Result<(), EntryFault> {
    let mut reads = vec![];
    // The closure does not fail.
    let _ = plan.apply(|node| {
        if let Some(read) = node.downcast_ref::<CacheReadOperator>() {
            reads.push(read.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    for read in reads {
        read.prepare(runtime).await?;
    }
    Ok(())
}

/// `n_parts` in `n` groups of neighbours, none empty unless there are no parts.
fn spread(n_parts: usize, n: usize) -> Vec<std::ops::Range<usize>> {
    (0..n).map(|group| group * n_parts / n..(group + 1) * n_parts / n).collect()
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
            .map(move |ordinal| read.clone().part(ordinal, context.runtime_env()))
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
    /// The rows of one part. Whoever did not prepare it waits for all others here.
    async fn part(self, ordinal: usize, runtime: Arc<RuntimeEnv>) -> Result<Vec<RecordBatch>> {
        let fault = |fault: EntryFault| DataFusionError::External(Box::new(fault));
        let held = self.held(&runtime).await.map_err(fault)?;
        let part = held.part(&self.entry, ordinal, &self.schema()).await;
        part.map_err(|error| fault(EntryFault { key: self.entry.key, error }))
    }
}
