//! [`may_travel`]: whether a plan arrives on executors as it left.
//!
//! Fails closed: what is not listed here stays in this process, with the reason. What is listed was looked at: all that decides about
//! its rows is written down by DataFusion, restricted by Ballista to the partitions of a task, and read back.
//!
//! ```text
//!   nodes       those below, in the shapes below
//!   scans       Parquet, CSV and JSON files whose reading is all told; what is lost is put back, see `restore`
//!   files       each is told of, so that executors know whether they have the same, see `told`
//!   functions   see `codec`
//!   the plan    written, read and written again is the same, and prints the same
//!   floats      are added in one place at the most: two computations of the same floats never meet in one query
//! ```

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{CsvSource, FileScanConfig, JsonSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, Partitioning, displayable};
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;

use super::codec::{ClusterCodec, is_exact};
use super::told::{ToldFilesExec, files_of};
use crate::text_file::JsonArray;

/// Aggregates whose value does not depend on the order of rows, unless they add floats.
const ORDERLESS: [&str; 14] = [
    "count",
    "min",
    "max",
    "sum",
    "avg",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "approx_distinct",
    "grouping",
    "median",
    "percentile_cont",
];

/// Why a plan stays in this process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Stays(pub String);

type Checked = Result<(), Stays>;

fn stays(reason: impl Into<String>) -> Checked {
    Err(Stays(reason.into()))
}

/// Fails with the reason unless `plan` may run on executors. `context` has the object stores that the plan reads from.
pub fn may_travel(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Checked {
    let mut checked = Ok(());
    let (mut n_scans, mut n_told) = (0, 0);
    let mut n_inexact = 0;
    let walked = plan.apply(|node| {
        n_scans += usize::from(files_of(node).is_some());
        n_told += usize::from(node.is::<ToldFilesExec>());
        n_inexact += usize::from(depends_on_order(node));
        checked = check_node(node);
        Ok(if checked.is_ok() { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
    });
    checked?;
    walked.map_err(|error| Stays(error.strip_backtrace()))?;
    if n_scans == 0 {
        return stays("it reads no files");
    }
    // Each of those is about one scan.
    if n_told != n_scans {
        return stays("executors would not know which files it is about");
    }
    if n_inexact > 1 {
        return stays("it computes what depends on the order of rows in more than one place");
    }
    check_round_trip(plan, context)
}

fn check_node(node: &Arc<dyn ExecutionPlan>) -> Checked {
    if let Some(scan) = node.downcast_ref::<DataSourceExec>() {
        return match scan.data_source().downcast_ref::<FileScanConfig>() {
            Some(config) => check_scan(config),
            None => stays("it reads what is in this process's memory"),
        };
    }
    if let Some(told) = node.downcast_ref::<ToldFilesExec>() {
        return told.needed().map(|_| ()).map_err(|error| Stays(error.strip_backtrace()));
    }
    if let Some(repartition) = node.downcast_ref::<RepartitionExec>() {
        return match (repartition.partitioning(), repartition.preserve_order()) {
            (Partitioning::Hash(..), false) => Ok(()),
            _ => stays("rows would be dealt out other than by their keys"),
        };
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        return check_hash_join(join);
    }
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        return check_collected(*join.join_type(), join.right());
    }
    if node.downcast_ref::<AggregateExec>().is_some_and(|aggregate| *aggregate.mode() == AggregateMode::PartialReduce) {
        return stays("it merges cached groups");
    }
    match is_plain(node) {
        true => Ok(()),
        false => stays(format!("{} has not been taught to travel", node.name())),
    }
}

/// Nodes that work on each partition by itself, or on all of them where Ballista begins a stage.
fn is_plain(node: &Arc<dyn ExecutionPlan>) -> bool {
    node.is::<FilterExec>()
        || node.is::<ProjectionExec>()
        || node.is::<AggregateExec>()
        || node.is::<CoalescePartitionsExec>()
        || node.is::<CooperativeExec>()
        || node.is::<SortExec>()
        || node.is::<SortPreservingMergeExec>()
        || node.is::<GlobalLimitExec>()
        || node.is::<LocalLimitExec>()
        || node.is::<UnionExec>()
        || node.is::<CrossJoinExec>()
        || node.is::<WindowAggExec>()
        || node.is::<BoundedWindowAggExec>()
}

fn check_hash_join(join: &HashJoinExec) -> Checked {
    if join.null_aware {
        return stays("NOT IN over values that may be NULL needs all rows in one place");
    }
    let partitions = |side: &Arc<dyn ExecutionPlan>| side.output_partitioning().partition_count();
    match join.partition_mode() {
        PartitionMode::Partitioned if partitions(join.left()) == partitions(join.right()) => Ok(()),
        PartitionMode::Partitioned => stays("the sides of a join have different numbers of partitions"),
        PartitionMode::CollectLeft => check_collected(*join.join_type(), join.right()),
        PartitionMode::Auto => stays("it is not yet known how a join runs"),
    }
}

/// Joins whose left side is read whole by each task: none of them may give out rows of it that found no partner, because none knows
/// what the others found.
fn check_collected(kind: JoinType, right: &Arc<dyn ExecutionPlan>) -> Checked {
    let is_of_right = matches!(
        kind,
        JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark
    );
    match is_of_right || right.output_partitioning().partition_count() == 1 {
        true => Ok(()),
        false => stays(format!("a {kind} join without keys needs all rows in one place")),
    }
}

fn check_scan(config: &FileScanConfig) -> Checked {
    if config.limit.is_some_and(|limit| u32::try_from(limit).is_err()) {
        return stays("its limit is too large a number");
    }
    let is_plain = config.file_compression_type == FileCompressionType::from(CompressionTypeVariant::UNCOMPRESSED);
    let source = config.file_source();
    if source.is::<ParquetSource>() {
        return Ok(());
    }
    if !is_plain {
        return stays("it reads packed text");
    }
    if let Some(csv) = source.downcast_ref::<CsvSource>() {
        return match csv.terminator() {
            None => Ok(()),
            Some(_) => stays("lines of a CSV file end other than usual"),
        };
    }
    if source.is::<JsonSource>() {
        let mut files = config.file_groups.iter().flat_map(|group| group.files());
        return match files.any(|file| file.extension::<JsonArray>().is_some()) {
            false => Ok(()),
            true => stays("it reads arrays of JSON"),
        };
    }
    stays(format!("files of type {} have not been taught to travel", source.file_type()))
}

/// Whether a node computes something that another run, over the same rows, may compute otherwise.
fn depends_on_order(node: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
        let is_first = matches!(
            aggregate.mode(),
            AggregateMode::Partial | AggregateMode::Single | AggregateMode::SinglePartitioned
        );
        return is_first && aggregate.aggr_expr().iter().any(|function| is_inexact(function));
    }
    let windows = node.downcast_ref::<WindowAggExec>().map(WindowAggExec::window_expr);
    let bounded = node.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr);
    windows.or(bounded).is_some_and(|functions| {
        functions.iter().any(|function| function.field().is_ok_and(|field| field.data_type().is_floating()))
    })
}

fn is_inexact(function: &AggregateFunctionExpr) -> bool {
    if !ORDERLESS.contains(&function.fun().name()) {
        return true;
    }
    let adds = matches!(function.fun().name(), "sum" | "avg");
    adds && !is_exact(function.fun()) && function.field().data_type().is_floating()
}

fn check_round_trip(plan: &Arc<dyn ExecutionPlan>, context: &TaskContext) -> Checked {
    let codec = ClusterCodec::default();
    let told = |error: datafusion::common::DataFusionError| Stays(error.strip_backtrace());
    let written = PhysicalPlanNode::try_from_physical_plan(Arc::clone(plan), &codec).map_err(told)?;
    let read = written.try_into_physical_plan(context, &codec).map_err(told)?;
    let again = PhysicalPlanNode::try_from_physical_plan(Arc::clone(&read), &codec).map_err(told)?;
    let text = |plan: &Arc<dyn ExecutionPlan>| displayable(plan.as_ref()).indent(true).to_string();
    let is_same = written == again
        && plan.schema() == read.schema()
        && plan.output_partitioning().partition_count() == read.output_partitioning().partition_count()
        && text(plan) == text(&read);
    match is_same {
        true => Ok(()),
        false => stays("it would not arrive as it left"),
    }
}

#[cfg(test)]
mod tests;
