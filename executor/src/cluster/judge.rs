//! [`judge`]: whether the rows of a job can be believed.
//!
//! Pure: it sees what was found of a job as plain numbers, and says yes or why not. `graph` finds them in Ballista's own types.
//!
//! ```text
//!   stages      all ended, none was begun again, one of them is the last
//!   tasks       those that ended well read each partition of their stage once
//!   inputs      what a stage read is what the tasks before it wrote, each piece once
//!   rows        of the last stage are on executors that are there
//! ```
//!
//! Fails closed: what is not known to be whole is not believed, and the job runs again.

use std::collections::BTreeMap;

/// What was found of a job: its stages by number.
pub(super) type JobFound = BTreeMap<usize, StageFound>;

/// What was found of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StageFound {
    /// Whether it ended well; else what it is.
    pub(super) ended: Result<(), String>,
    /// How often it was begun again.
    pub(super) attempt: usize,
    /// Partitions that it works on.
    pub(super) n_partitions: usize,
    /// Stages that read its rows.
    pub(super) read_by: Vec<usize>,
    /// What it read, by the stage that wrote it.
    pub(super) inputs: BTreeMap<usize, Vec<Piece>>,
    /// Its tasks that ended well.
    pub(super) tasks: Vec<TaskFound>,
}

/// What was found of a task that ended well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskFound {
    /// Who ran it, and has what it wrote.
    pub(super) executor: String,
    /// Partitions of its stage that it worked on.
    pub(super) partitions: Vec<usize>,
    /// What it wrote.
    pub(super) wrote: Vec<Piece>,
}

/// A piece of what a stage wrote.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// The task that wrote it.
    pub(super) task: usize,
    /// Which partition of the next stage it is for.
    pub(super) partition: usize,
    /// Which file it is in.
    pub(super) file: Option<u64>,
    /// Who has it.
    pub(super) executor: String,
    /// Rows, batches and bytes.
    pub(super) sizes: String,
}

/// Why a job is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Doubt {
    #[error("stage {stage} is {state}")]
    NotEnded { stage: usize, state: String },
    #[error("stage {stage} was begun again")]
    BegunAgain { stage: usize },
    #[error("stage {stage} has no partition {partition}")]
    NoPartition { stage: usize, partition: usize },
    #[error("stage {stage} read partition {partition} {times} times")]
    NotOnce { stage: usize, partition: usize, times: usize },
    #[error("stage {stage} is gone")]
    StageGone { stage: usize },
    #[error("stage {stage} read other rows than stage {from} wrote")]
    OtherRows { stage: usize, from: usize },
    #[error("it has not one last stage")]
    NotOneLast,
    #[error("an executor that holds rows is gone")]
    ExecutorGone,
}

/// The last stage of a job whose rows can be believed, or why they can not. `is_there` knows executors.
pub(super) fn judge(job: &JobFound, is_there: impl Fn(&str) -> bool) -> Result<usize, Doubt> {
    for (id, stage) in job {
        if let Err(state) = &stage.ended {
            return Err(Doubt::NotEnded { stage: *id, state: state.clone() });
        }
        if stage.attempt > 0 {
            return Err(Doubt::BegunAgain { stage: *id });
        }
    }
    for (id, stage) in job {
        reads_all_once(*id, stage)?;
        for (from, read) in &stage.inputs {
            let Some(writer) = job.get(from) else { return Err(Doubt::StageGone { stage: *from }) };
            let written = writer.tasks.iter().flat_map(|task| &task.wrote);
            if sorted(read) != sorted(written) {
                return Err(Doubt::OtherRows { stage: *id, from: *from });
            }
        }
    }
    let mut last = job.iter().filter(|(_, stage)| stage.read_by.is_empty());
    let (Some((id, last)), None) = (last.next(), last.next()) else { return Err(Doubt::NotOneLast) };
    match last.tasks.iter().all(|task| is_there(&task.executor)) {
        true => Ok(*id),
        false => Err(Doubt::ExecutorGone),
    }
}

fn reads_all_once(id: usize, stage: &StageFound) -> Result<(), Doubt> {
    let mut n_reads = vec![0_usize; stage.n_partitions];
    for partition in stage.tasks.iter().flat_map(|task| &task.partitions) {
        match n_reads.get_mut(*partition) {
            Some(n) => *n += 1,
            None => return Err(Doubt::NoPartition { stage: id, partition: *partition }),
        }
    }
    match n_reads.iter().position(|n| *n != 1) {
        None => Ok(()),
        Some(partition) => Err(Doubt::NotOnce { stage: id, partition, times: n_reads[partition] }),
    }
}

fn sorted<'a>(pieces: impl IntoIterator<Item = &'a Piece>) -> Vec<&'a Piece> {
    let mut pieces: Vec<&Piece> = pieces.into_iter().collect();
    pieces.sort();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(task: usize, partition: usize, executor: &str) -> Piece {
        Piece { task, partition, file: None, executor: executor.to_owned(), sizes: "10 rows".to_owned() }
    }

    /// A task that worked on one partition and wrote a piece for each of two.
    fn task(id: usize, executor: &str) -> TaskFound {
        let wrote = (0..2).map(|partition| piece(id, partition, executor)).collect();
        TaskFound { executor: executor.to_owned(), partitions: vec![id], wrote }
    }

    /// A stage of two tasks, one on each executor.
    fn stage(reads: &[usize], read_by: &[usize]) -> StageFound {
        let tasks = vec![task(0, "a"), task(1, "b")];
        let written: Vec<Piece> = tasks.iter().flat_map(|task| task.wrote.clone()).collect();
        StageFound {
            ended: Ok(()),
            attempt: 0,
            n_partitions: 2,
            read_by: read_by.to_vec(),
            inputs: reads.iter().map(|from| (*from, written.clone())).collect(),
            tasks,
        }
    }

    /// Two maps, a join of them, and what comes after it.
    fn good() -> JobFound {
        BTreeMap::from([(1, stage(&[], &[3])), (2, stage(&[], &[3])), (3, stage(&[1, 2], &[4])), (4, stage(&[3], &[]))])
    }

    fn judged(change: impl FnOnce(&mut JobFound)) -> Result<usize, Doubt> {
        let mut job = good();
        change(&mut job);
        judge(&job, |executor| ["a", "b"].contains(&executor))
    }

    fn of(job: &mut JobFound, stage: usize) -> &mut StageFound {
        job.get_mut(&stage).unwrap()
    }

    #[test]
    fn a_whole_job_is_believed() {
        assert_eq!(judged(|_| ()), Ok(4));
    }

    /// Ballista lists pieces by partition, tasks list what they wrote: the order says nothing.
    #[test]
    fn the_order_of_pieces_says_nothing() {
        assert_eq!(judged(|job| of(job, 3).inputs.get_mut(&1).unwrap().reverse()), Ok(4));
        assert_eq!(judged(|job| of(job, 1).tasks.reverse()), Ok(4));
    }

    #[test]
    fn a_stage_that_did_not_end_is_not_believed() {
        let found = judged(|job| of(job, 2).ended = Err("Running".to_owned()));
        assert_eq!(found, Err(Doubt::NotEnded { stage: 2, state: "Running".to_owned() }));
    }

    /// All of its pieces are there once: Ballista may still have put rows of the first try into the files of the second.
    #[test]
    fn a_stage_that_was_begun_again_is_not_believed() {
        for id in 1..=4 {
            assert_eq!(judged(|job| of(job, id).attempt = 1), Err(Doubt::BegunAgain { stage: id }));
        }
    }

    /// A task that was lost and one that took its place, both of which ended.
    #[test]
    fn a_partition_that_was_read_twice_is_not_believed() {
        let found = judged(|job| {
            let again = TaskFound { wrote: vec![], ..task(1, "a") };
            of(job, 4).tasks.push(again);
        });
        assert_eq!(found, Err(Doubt::NotOnce { stage: 4, partition: 1, times: 2 }));
    }

    #[test]
    fn a_partition_that_nobody_read_is_not_believed() {
        let found = judged(|job| of(job, 4).tasks.truncate(1));
        assert_eq!(found, Err(Doubt::NotOnce { stage: 4, partition: 1, times: 0 }));
    }

    #[test]
    fn a_partition_that_the_stage_does_not_have_is_not_believed() {
        let found = judged(|job| of(job, 4).tasks[0].partitions.push(2));
        assert_eq!(found, Err(Doubt::NoPartition { stage: 4, partition: 2 }));
    }

    /// What Ballista does when a stage in the middle is rolled back: what its first try wrote stays among the inputs of the next.
    #[test]
    fn a_piece_that_was_read_twice_is_not_believed() {
        let found = judged(|job| {
            let read = of(job, 4).inputs.get_mut(&3).unwrap();
            read.push(read[0].clone());
        });
        assert_eq!(found, Err(Doubt::OtherRows { stage: 4, from: 3 }));
    }

    #[test]
    fn a_piece_that_nobody_wrote_is_not_believed() {
        let found = judged(|job| of(job, 4).inputs.get_mut(&3).unwrap().push(piece(7, 0, "c")));
        assert_eq!(found, Err(Doubt::OtherRows { stage: 4, from: 3 }));
    }

    #[test]
    fn a_piece_that_was_not_read_is_not_believed() {
        let found = judged(|job| _ = of(job, 3).inputs.get_mut(&2).unwrap().pop());
        assert_eq!(found, Err(Doubt::OtherRows { stage: 3, from: 2 }));
    }

    /// The piece of another try has the same name: task, partition, file, executor or sizes differ.
    #[test]
    fn a_piece_of_another_try_is_not_believed() {
        let changes: [fn(&mut Piece); 5] = [
            |piece| piece.task = 5,
            |piece| piece.partition = 1,
            |piece| piece.file = Some(1),
            |piece| piece.executor = "b".to_owned(),
            |piece| piece.sizes = "11 rows".to_owned(),
        ];
        for change in changes {
            let found = judged(|job| change(&mut of(job, 3).inputs.get_mut(&1).unwrap()[0]));
            assert_eq!(found, Err(Doubt::OtherRows { stage: 3, from: 1 }));
        }
    }

    #[test]
    fn a_stage_that_is_gone_is_missed() {
        assert_eq!(judged(|job| _ = job.remove(&1)), Err(Doubt::StageGone { stage: 1 }));
    }

    #[test]
    fn there_is_one_last_stage() {
        assert_eq!(judged(|job| of(job, 2).read_by.clear()), Err(Doubt::NotOneLast));
        assert_eq!(judged(|job| of(job, 4).read_by.push(5)), Err(Doubt::NotOneLast));
        assert_eq!(judged(JobFound::clear), Err(Doubt::NotOneLast));
    }

    #[test]
    fn rows_of_an_executor_that_is_gone_are_not_believed() {
        let found = judged(|job| of(job, 4).tasks[1].executor = "c".to_owned());
        assert_eq!(found, Err(Doubt::ExecutorGone));
    }

    /// What executors in the middle wrote was read already.
    #[test]
    fn executors_of_the_middle_may_be_gone() {
        let found = judged(|job| {
            for id in [1, 2] {
                of(job, id).tasks[0] = task(0, "c");
            }
            for read in of(job, 3).inputs.values_mut() {
                read.iter_mut().filter(|piece| piece.task == 0).for_each(|piece| piece.executor = "c".to_owned());
            }
        });
        assert_eq!(found, Ok(4));
    }
}
