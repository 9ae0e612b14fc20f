//! [`QueryMemory`]: what one statement may take of the memory that all share; see `nectarine.query_memory`.
//!
//! ```text
//!   an operator asks --> the statement's own bound --> the bound of all statements
//! ```
//!
//! Keeps true   a statement that wants more than its part spills, or fails alone: what others need is still there.

use std::fmt;
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::context::SessionState;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::engine::options;
use crate::memory::SharedMemory;
use crate::settings::query_memory;

/// Of so many parts of what a partition may take, a sort sets one aside.
const MERGE_PART: usize = 64;

/// What a statement runs with.
pub(crate) fn task_context(state: &SessionState) -> Arc<TaskContext> {
    let context = TaskContext::from(state);
    let Some(runtime) = bounded(state) else { return Arc::new(context) };
    // What sorts set aside to merge what they spilled must fit in as well.
    let mut config = state.config().clone();
    if let MemoryLimit::Finite(limit) = runtime.memory_pool.memory_limit() {
        let execution = &mut config.options_mut().execution;
        let share = limit / execution.target_partitions.max(1) / MERGE_PART;
        execution.sort_spill_reservation_bytes = execution.sort_spill_reservation_bytes.min(share);
    }
    Arc::new(context.with_session_config(config).with_runtime(Arc::new(runtime)))
}

/// The runtime of one statement, if there is a bound on it that is narrower than that on all of them.
pub(crate) fn bounded(state: &SessionState) -> Option<RuntimeEnv> {
    let limit = query_memory(&options(state.config_options())).ok().flatten()?;
    let runtime = state.runtime_env();
    let memory_pool = Arc::new(QueryMemory::new(limit, Arc::clone(&runtime.memory_pool)));
    Some(RuntimeEnv { memory_pool, ..RuntimeEnv::clone(runtime) })
}

#[derive(Debug)]
struct QueryMemory {
    own: SharedMemory,
    all: Arc<dyn MemoryPool>,
}

impl QueryMemory {
    fn new(limit: usize, all: Arc<dyn MemoryPool>) -> Self {
        Self { own: SharedMemory::of_query(limit), all }
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        self.own.name()
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.own.register(consumer);
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.own.unregister(consumer);
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.own.grow(reservation, additional);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.own.shrink(reservation, shrink);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.own.try_grow(reservation, additional)?;
        self.all.try_grow(reservation, additional).inspect_err(|_| self.own.shrink(reservation, additional))
    }

    fn reserved(&self) -> usize {
        self.own.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.own.memory_limit()
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.own.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_its_part_and_all_have_theirs() {
        let all: Arc<dyn MemoryPool> = Arc::new(SharedMemory::new(1000));
        let pool = || Arc::new(QueryMemory::new(400, Arc::clone(&all))) as Arc<dyn MemoryPool>;
        let (first, second, third) = (pool(), pool(), pool());
        let take = |pool: &Arc<dyn MemoryPool>| MemoryConsumer::new("join").register(pool);
        let (one, two, three) = (take(&first), take(&second), take(&third));
        let error = one.try_grow(401).unwrap_err().to_string();
        assert!(error.contains("query(pool_size"), "{error}");
        one.try_grow(400).unwrap();
        two.try_grow(400).unwrap();
        // His own part is free, but that of all is not.
        let error = three.try_grow(300).unwrap_err().to_string();
        assert!(error.contains("shared(pool_size"), "{error}");
        assert_eq!((third.reserved(), all.reserved()), (0, 800));
        drop(one);
        three.try_grow(400).unwrap();
        drop((two, three));
        assert_eq!((third.reserved(), all.reserved()), (0, 0));
    }
}
