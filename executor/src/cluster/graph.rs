//! What a job did: is it whole, and where are its rows?
//!
//! Ballista 55 recovers from the loss of an executor by beginning stages again, and then counts what their first tries had written as
//! well. So nothing that it says of a job as a whole is believed; its tasks are looked at one by one, and `judge` decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::ShuffleWriter;
use ballista_core::serde::protobuf::{ShuffleWritePartition, SuccessfulTask, task_status};
use ballista_core::serde::scheduler::{ExecutorMetadata, PartitionId, PartitionLocation, PartitionStats};
use ballista_scheduler::planner::{DefaultDistributedPlanner, DistributedPlanner};
use ballista_scheduler::state::execution_graph::ExecutionGraph;
use ballista_scheduler::state::execution_stage::{ExecutionStage, StageOutput, SuccessfulStage, TaskInfo};
use datafusion::config::ConfigOptions;
use datafusion::physical_plan::{ExecutionPlan, displayable};

use super::job::Counts;
use super::judge::{JobFound, Piece, StageFound, TaskFound, judge};
use super::server::StageSummary;

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(super) struct ResultPart {
    /// Where it is.
    pub(super) location: PartitionLocation,
    /// Rows that it has.
    pub(super) rows: u64,
}

/// The first stage that was begun again, if there is one.
pub(super) fn begun_again(graph: &dyn ExecutionGraph) -> Option<usize> {
    graph.stages().iter().find(|(_, stage)| attempt_of(stage) > 0).map(|(id, _)| *id)
}

/// Where the rows of a job are, or why it is not believed. `executors` are those that are there.
pub(super) fn result_of(
    graph: &dyn ExecutionGraph,
    executors: &HashMap<String, ExecutorMetadata>,
) -> Result<Vec<ResultPart>, String> {
    let found: JobFound = graph.stages().iter().map(|(id, stage)| (*id, found(stage))).collect();
    let last = judge(&found, |executor| executors.contains_key(executor)).map_err(|doubt| doubt.to_string())?;
    match graph.stages().get(&last) {
        Some(ExecutionStage::Successful(stage)) => locations(graph.job_id(), stage, executors),
        _ => Err(format!("stage {last} is gone")),
    }
}

/// A stage in plain numbers.
fn found(stage: &ExecutionStage) -> StageFound {
    let ExecutionStage::Successful(stage) = stage else {
        return StageFound {
            ended: Err(stage.variant_name().to_owned()),
            attempt: attempt_of(stage),
            n_partitions: 0,
            read_by: vec![],
            inputs: BTreeMap::new(),
            tasks: vec![],
        };
    };
    let tasks = ended_well(&stage.task_infos).map(|(task, ended)| TaskFound {
        executor: ended.executor_id.clone(),
        partitions: task.global_input_partition_ids.clone(),
        wrote: ended.partitions.iter().map(|part| written(task.task_id, &ended.executor_id, part)).collect(),
    });
    StageFound {
        ended: Ok(()),
        attempt: stage.stage_attempt_num,
        n_partitions: stage.partitions,
        read_by: stage.output_links.clone(),
        inputs: stage.inputs.iter().map(|(from, output)| (*from, read(output))).collect(),
        tasks: tasks.collect(),
    }
}

/// Tasks that ended well, by what they did.
fn ended_well(tasks: &[TaskInfo]) -> impl Iterator<Item = (&TaskInfo, &SuccessfulTask)> {
    tasks.iter().filter_map(|task| match &task.task_status {
        task_status::Status::Successful(ended) => Some((task, ended)),
        _ => None,
    })
}

fn written(task: usize, executor: &str, part: &ShuffleWritePartition) -> Piece {
    Piece {
        task,
        partition: part.partition_id as usize,
        file: part.file_id,
        executor: executor.to_owned(),
        sizes: sizes(part).to_string(),
    }
}

fn read(output: &StageOutput) -> Vec<Piece> {
    let piece = |at: &PartitionLocation| Piece {
        task: at.map_partition_id,
        partition: at.partition_id.partition_id,
        file: at.file_id,
        executor: at.executor_meta.id.clone(),
        sizes: at.partition_stats.to_string(),
    };
    output.partition_locations.values().flatten().map(piece).collect()
}

fn sizes(part: &ShuffleWritePartition) -> PartitionStats {
    PartitionStats::new(Some(part.num_rows), Some(part.num_batches), Some(part.num_bytes))
}

/// In the order of partitions: one that is sorted is the only one.
fn locations(
    job: &JobId,
    stage: &SuccessfulStage,
    executors: &HashMap<String, ExecutorMetadata>,
) -> Result<Vec<ResultPart>, String> {
    let mut found = vec![];
    for (task, ended) in ended_well(&stage.task_infos) {
        let Some(executor) = executors.get(&ended.executor_id) else {
            return Err("an executor that holds rows is gone".to_owned());
        };
        for part in &ended.partitions {
            let partition_id = part.partition_id as usize;
            let location = PartitionLocation {
                map_partition_id: task.task_id,
                partition_id: PartitionId { job_id: job.clone(), stage_id: stage.stage_id, partition_id },
                executor_meta: executor.clone(),
                partition_stats: sizes(part),
                file_id: part.file_id,
                is_sort_shuffle: part.is_sort_shuffle,
            };
            found.push(ResultPart { location, rows: part.num_rows });
        }
    }
    found.sort_by_key(|part| (part.location.partition_id.partition_id, part.location.map_partition_id));
    Ok(found)
}

fn attempt_of(stage: &ExecutionStage) -> usize {
    match stage {
        ExecutionStage::UnResolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Resolved(stage) => stage.stage_attempt_num,
        ExecutionStage::Running(stage) => stage.stage_attempt_num,
        ExecutionStage::Successful(stage) => stage.stage_attempt_num,
        ExecutionStage::Failed(stage) => stage.stage_attempt_num,
    }
}

/// Stages and tasks so far.
pub(super) fn counts(graph: &dyn ExecutionGraph) -> Counts {
    let mut counts = Counts { stages: graph.stage_count(), ..Counts::default() };
    for stage in graph.stages().values() {
        let summary = summary(0, stage);
        counts.stages_done += usize::from(summary.state == "finished");
        counts.tasks += summary.tasks;
        counts.tasks_done += summary.tasks_done;
    }
    counts.running = graph.running_tasks().len();
    counts
}

/// Stages as they are told.
pub(super) fn summaries(graph: &dyn ExecutionGraph) -> Vec<StageSummary> {
    let mut stages: Vec<_> = graph.stages().iter().map(|(id, stage)| summary(*id, stage)).collect();
    stages.sort_by_key(|stage| stage.id);
    stages
}

fn summary(id: usize, stage: &ExecutionStage) -> StageSummary {
    let (state, tasks, reads) = match stage {
        ExecutionStage::UnResolved(stage) => ("waiting", partitions_of(&stage.plan), keys(&stage.inputs)),
        ExecutionStage::Resolved(stage) => ("ready", stage.partitions, keys(&stage.inputs)),
        ExecutionStage::Running(stage) => ("running", stage.partitions, keys(&stage.inputs)),
        ExecutionStage::Successful(stage) => ("finished", stage.task_infos.len(), keys(&stage.inputs)),
        ExecutionStage::Failed(stage) => ("failed", stage.partitions, vec![]),
    };
    let all = stage.task_infos().unwrap_or_default();
    let done: Vec<_> = ended_well(all).collect();
    let written = || done.iter().flat_map(|(_, ended)| &ended.partitions);
    let times = || done.iter().map(|(task, _)| (task.start_exec_time, task.end_exec_time));
    let (first, last) = (times().map(|(start, _)| start).min(), times().map(|(_, end)| end).max());
    let longest = times().map(|(start, end)| end.saturating_sub(start)).max();
    let milliseconds = |time: u128| u64::try_from(time).unwrap_or(u64::MAX);
    StageSummary {
        id,
        reads,
        state,
        attempt: attempt_of(stage),
        // One task for each partition, unless the stage needs all of them in one place.
        tasks: tasks.max(done.len()),
        tasks_done: done.len(),
        rows: written().map(|part| part.num_rows).sum(),
        bytes: written().map(|part| part.num_bytes).sum(),
        elapsed_ms: milliseconds(last.unwrap_or(0).saturating_sub(first.unwrap_or(0))),
        longest_ms: milliseconds(longest.unwrap_or(0)),
    }
}

fn keys(inputs: &HashMap<usize, StageOutput>) -> Vec<usize> {
    let mut keys: Vec<usize> = inputs.keys().copied().collect();
    keys.sort_unstable();
    keys
}

fn partitions_of(plan: &Arc<dyn ExecutionPlan>) -> usize {
    plan.children().first().map_or(1, |below| below.properties().output_partitioning().partition_count())
}

/// A stage of a plan that has not run.
#[derive(Debug, Clone)]
pub struct StageShape {
    /// Its number in the job.
    pub id: usize,
    /// Stages whose rows it reads.
    pub reads: Vec<usize>,
    /// Partitions that it works on.
    pub partitions: usize,
    /// What it does, a line for each node.
    pub plan: String,
}

/// The stages that a plan would run as.
pub fn stage_shapes(
    plan: &Arc<dyn ExecutionPlan>,
    statement: &ConfigOptions,
    n_cores: usize,
) -> Result<Vec<StageShape>, String> {
    let config = super::options::sending_config(statement, n_cores).map_err(|error| error.strip_backtrace())?;
    let mut planner = DefaultDistributedPlanner::new();
    let stages = planner
        .plan_query_stages(&JobId::new("explained"), Arc::clone(plan), config.options())
        .map_err(|error| error.to_string())?;
    Ok(stages.iter().map(|stage| shape(stage.as_ref())).collect())
}

fn shape(stage: &dyn ShuffleWriter) -> StageShape {
    use ballista_core::execution_plans::UnresolvedShuffleExec;
    use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
    let below: Vec<Arc<dyn ExecutionPlan>> = stage.children().into_iter().cloned().collect();
    let mut reads = vec![];
    for plan in &below {
        // The closure does not fail.
        let _ = plan.apply(|node| {
            if let Some(read) = node.downcast_ref::<UnresolvedShuffleExec>() {
                reads.push(read.stage_id);
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    let partitions = below.first().map_or(1, |plan| plan.properties().output_partitioning().partition_count());
    let plan = below.iter().map(|plan| displayable(plan.as_ref()).indent(false).to_string()).collect();
    StageShape { id: stage.stage_id(), reads, partitions, plan }
}
