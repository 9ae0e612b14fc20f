//! The memory of a home's statements: shared evenly by operators that can spill, with a part that those never take.
//!
//! Operators that cannot spill (a merge of sorted runs, an aggregate's last step) come after ones that can. Were the
//! latter given all there is, a statement that spills would fail where it has almost ended: when one of two sorts has
//! ended before the other, the other would take its share too, and nothing would be left to merge both.

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Of so many parts of the memory, one is kept from operators that can spill.
const KEPT_PART: usize = 5;

/// Where operators that cannot spill hold memory, more of them will come, and want about as much: a merge of sorts follows those of
/// their spills. So much is kept for them besides, or a part of the rest, if that is more.
const KEPT_BYTES: usize = 6 << 20;

/// How the memory of one statement is called where it is not enough.
pub(crate) const OF_QUERY: &str = "query";

/// A bound on memory: see this module.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    /// What it is the memory of, in errors.
    name: &'static str,
    limit: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// How many operators share what can be spilled.
    n_spilling: usize,
    spillable: usize,
    unspillable: usize,
}

impl SharedMemory {
    /// For all statements.
    pub(crate) fn new(limit: usize) -> Self {
        Self { name: "shared", limit, held: Mutex::default() }
    }

    /// For one statement.
    pub(crate) fn of_query(limit: usize) -> Self {
        Self { name: OF_QUERY, ..Self::new(limit) }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Held> {
        // Numbers only: they are whole whatever happened to another thread.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn too_little(&self, reservation: &MemoryReservation, additional: usize, available: usize) -> DataFusionError {
        DataFusionError::ResourcesExhausted(format!(
            "Failed to allocate additional {} for {} with {} already allocated for this reservation - {} remain \
             available for the total memory pool: {self}",
            human_readable_size(additional),
            reservation.consumer().name(),
            human_readable_size(reservation.size()),
            human_readable_size(available),
        ))
    }
}

impl MemoryPool for SharedMemory {
    fn name(&self) -> &str {
        self.name
    }

    fn register(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            self.held().n_spilling += 1;
        }
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        if consumer.can_spill() {
            let mut held = self.held();
            held.n_spilling = held.n_spilling.saturating_sub(1);
        }
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        let mut held = self.held();
        match reservation.consumer().can_spill() {
            true => held.spillable += additional,
            false => held.unspillable += additional,
        }
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        let mut held = self.held();
        match reservation.consumer().can_spill() {
            true => held.spillable = held.spillable.saturating_sub(shrink),
            false => held.unspillable = held.unspillable.saturating_sub(shrink),
        }
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut held = self.held();
        match reservation.consumer().can_spill() {
            true => {
                let rest = self.limit.saturating_sub(held.unspillable);
                let more = (2 * held.unspillable).min((rest / KEPT_PART).max(KEPT_BYTES)).min(rest / 2);
                let kept = (self.limit / KEPT_PART).max(held.unspillable + more);
                let share = self.limit.saturating_sub(kept) / held.n_spilling.max(1);
                if reservation.size() + additional > share {
                    return Err(self.too_little(reservation, additional, share));
                }
                held.spillable += additional;
            }
            false => {
                let free = self.limit.saturating_sub(held.unspillable + held.spillable);
                if additional > free {
                    return Err(self.too_little(reservation, additional, free));
                }
                held.unspillable += additional;
            }
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        let held = self.held();
        held.spillable + held.unspillable
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}

impl fmt::Display for SharedMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(pool_size: {})", self.name(), human_readable_size(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn pool(limit: usize) -> Arc<dyn MemoryPool> {
        Arc::new(SharedMemory::new(limit))
    }

    const MB: usize = 1 << 20;

    #[test]
    fn spilling_operators_leave_a_part_to_those_that_cannot() {
        let pool = pool(1000 * MB);
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        let other = MemoryConsumer::new("other sort").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(401 * MB).is_err());
        sort.try_grow(400 * MB).unwrap();
        drop(other);
        sort.try_grow(400 * MB).unwrap();
        let error = sort.try_grow(1).unwrap_err().to_string();
        assert!(error.contains("for sort with 800.0 MB already allocated"), "{error}");
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(200 * MB).unwrap();
        assert!(merge.try_grow(1).is_err());
        assert_eq!(pool.reserved(), 1000 * MB);
        drop(sort);
        merge.try_grow(800 * MB).unwrap();
        drop(merge);
        assert_eq!(pool.reserved(), 0);
    }

    /// What is held already is not what is kept: a merge that comes later finds room too.
    #[test]
    fn what_cannot_spill_narrows_what_can() {
        let pool = pool(1000 * MB);
        let join = MemoryConsumer::new("join").register(&pool);
        join.try_grow(700 * MB).unwrap();
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(241 * MB).is_err());
        sort.try_grow(240 * MB).unwrap();
        let merge = MemoryConsumer::new("merge").register(&pool);
        merge.try_grow(60 * MB).unwrap();
        // What is taken without asking is counted all the same.
        join.grow(100 * MB);
        assert_eq!(pool.reserved(), 1100 * MB);
        assert!(join.try_grow(1).is_err());
    }

    #[test]
    fn little_memory_keeps_room_for_batches() {
        let pool = pool(20 * MB);
        let merge_of_spills = MemoryConsumer::new("merge of spills").register(&pool);
        merge_of_spills.try_grow(4 * MB).unwrap();
        let sort = MemoryConsumer::new("sort").with_can_spill(true).register(&pool);
        assert!(sort.try_grow(10 * MB + 1).is_err());
        sort.try_grow(10 * MB).unwrap();
        MemoryConsumer::new("merge").register(&pool).try_grow(6 * MB).unwrap();
    }
}
