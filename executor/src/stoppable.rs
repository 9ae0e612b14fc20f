//! [`Stoppable`], [`Interrupt`]: a statement that nobody waits for any more ends soon, whatever it is doing.
//!
//! ```text
//!   before                        after
//!   NestedLoopJoinExec            StoppableExec
//!     left                          NestedLoopJoinExec, whose filter looks whether it should go on
//!     right                           left
//!                                     right
//! ```
//!
//! DataFusion gives way to others where rows come from. A join or an UNNEST makes millions of batches of one that it reads, and
//! the filter of a join may look at billions of pairs of rows and let none pass: meanwhile its thread does nothing else, not even
//! notice that the statement was cancelled.
//!
//! Runs after   all other rules: none of them looks through the node.
//! Keeps true   schema, rows, order, partitions.

use std::cell::RefCell;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions, SchedulingType,
};
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder, PiecewiseMergeJoinExec,
    SortMergeJoinExec,
};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::unnest::UnnestExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt};

/// Whether a statement should end; an extension of its session's configuration.
#[derive(Debug, Default)]
pub struct Interrupt(AtomicBool);

impl Interrupt {
    /// Nobody waits for the statement any more.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn check(&self) -> Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => exec_err!("the statement was cancelled"),
            false => Ok(()),
        }
    }
}

thread_local! {
    /// Of the statement that this thread computes rows of: filters are evaluated without knowing whose they are.
    static CURRENT: RefCell<Option<Arc<Interrupt>>> = const { RefCell::new(None) };
}

/// See the module.
#[derive(Debug)]
pub struct Stoppable;

impl PhysicalOptimizerRule for Stoppable {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| match multiplies_rows(&node) {
            true => Ok(Transformed::yes(Arc::new(StoppableExec::over(with_stoppable_filter(node)?)) as _)),
            false => Ok(Transformed::no(node)),
        })
        .data()
    }

    fn name(&self) -> &str {
        "stoppable"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn multiplies_rows(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<CrossJoinExec>()
        || node.is::<NestedLoopJoinExec>()
        || node.is::<HashJoinExec>()
        || node.is::<SortMergeJoinExec>()
        || node.is::<PiecewiseMergeJoinExec>()
        || node.is::<UnnestExec>()
}

/// The same join, whose filter looks whether it should go on.
fn with_stoppable_filter(node: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
        && let Some(filter) = join.filter()
    {
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(stoppable(filter))).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>()
        && let Some(filter) = join.filter()
    {
        return Ok(Arc::new(join.builder().with_filter(Some(stoppable(filter))).build()?));
    }
    Ok(node)
}

fn stoppable(filter: &JoinFilter) -> JoinFilter {
    let expression = Arc::new(StoppableExpr(Arc::clone(filter.expression())));
    JoinFilter::new(expression, filter.column_indices().to_vec(), Arc::clone(filter.schema()))
}

/// The same value, unless the statement should end.
#[derive(Debug, Eq)]
struct StoppableExpr(Arc<dyn PhysicalExpr>);

// What `derive` makes of an `Arc<dyn ..>` does not compile.
impl PartialEq for StoppableExpr {
    fn eq(&self, other: &Self) -> bool {
        self.0.eq(&other.0)
    }
}

impl Hash for StoppableExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Display for StoppableExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PhysicalExpr for StoppableExpr {
    fn data_type(&self, input_schema: &Schema) -> Result<DataType> {
        self.0.data_type(input_schema)
    }

    fn nullable(&self, input_schema: &Schema) -> Result<bool> {
        self.0.nullable(input_schema)
    }

    fn return_field(&self, input_schema: &Schema) -> Result<FieldRef> {
        self.0.return_field(input_schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        CURRENT.with_borrow(|interrupt| interrupt.as_ref().map_or(Ok(()), |interrupt| interrupt.check()))?;
        self.0.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.0]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.is_empty()) {
            (Some(inner), true) => Ok(Arc::new(Self(inner))),
            _ => internal_err!("StoppableExpr has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_sql(f)
    }
}

/// The rows of its input, as long as somebody waits for them.
#[derive(Debug)]
struct StoppableExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl StoppableExec {
    fn over(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::clone(input.properties()).with_scheduling_type(SchedulingType::Cooperative);
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for StoppableExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => Ok(()),
            _ => f.write_str("StoppableExec"),
        }
    }
}

impl ExecutionPlan for StoppableExec {
    fn name(&self) -> &str {
        "StoppableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
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
            (Some(input), true) => Ok(Arc::new(Self::over(input))),
            _ => internal_err!("StoppableExec has one child"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            [input] => Ok(Arc::clone(input)),
            _ => internal_err!("StoppableExec has one child"),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let interrupt = context.session_config().get_extension::<Interrupt>();
        let rows = self.input.execute(partition, context)?;
        Ok(make_cooperative(Box::pin(StoppableStream { rows, interrupt })))
    }
}

struct StoppableStream {
    rows: SendableRecordBatchStream,
    interrupt: Option<Arc<Interrupt>>,
}

impl Stream for StoppableStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(interrupt) = self.interrupt.clone() else { return self.rows.poll_next_unpin(cx) };
        if let Err(stopped) = interrupt.check() {
            return Poll::Ready(Some(Err(stopped)));
        }
        let _current = Current::enter(interrupt);
        self.rows.poll_next_unpin(cx)
    }
}

impl RecordBatchStream for StoppableStream {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }
}

/// While it is there, what this thread evaluates belongs to a statement; joins stand above joins, of the same statement.
struct Current(Option<Arc<Interrupt>>);

impl Current {
    fn enter(interrupt: Arc<Interrupt>) -> Self {
        Self(CURRENT.replace(Some(interrupt)))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}
