//! Whatever happens to the files of an entry after it was prepared, its rows come.

use std::sync::Arc;

use arrow::compute::concat_batches;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use super::super::CacheReadOperator;
use super::*;
use crate::derived::testing::{entry_of, number_schema, numbers, prefix, store_over, stream_of};
use crate::derived::{Recording, RecordingLimits};

const N_BATCHES: i64 = 10;

/// An entry of many parts that says it is `bytes` large.
async fn large(objects: &Arc<InMemory>, bytes: u64) -> (DerivedStore, Arc<CacheEntry>) {
    let store = store_over(Arc::clone(objects) as _);
    let limits = RecordingLimits { part_bytes: 4 << 10, parts_behind_max: 1000, ..RecordingLimits::default() };
    let recording = Recording::new(store.clone(), prefix("p"), limits);
    let items = (0..N_BATCHES).map(|n| Ok(numbers(n * 1000..(n + 1) * 1000))).collect();
    let stream = recording.tee(0, 1, stream_of(number_schema(), items));
    datafusion::physical_plan::common::collect(stream).await.unwrap();
    let finished = recording.finish().await.unwrap();
    assert!(finished.parts.len() > 5);
    let entry = CacheEntry { bytes, ..entry_of("p", &finished) };
    finished.unpublished.published();
    (store, Arc::new(entry))
}

fn runtime(memory: usize, spill: u64) -> Arc<RuntimeEnv> {
    let disk = DiskManagerBuilder::default().with_max_temp_directory_size(spill);
    let pool = Arc::new(GreedyMemoryPool::new(memory));
    RuntimeEnvBuilder::new().with_memory_pool(pool).with_disk_manager_builder(disk).build_arc().unwrap()
}

async fn damage(objects: &InMemory, how: &str) {
    let paths: Vec<Path> = objects.list(None).map(|meta| meta.unwrap().location).collect().await;
    for path in paths {
        let mut bytes = objects.get(&path).await.unwrap().bytes().await.unwrap().to_vec();
        match how {
            "delete" => {
                objects.delete(&path).await.unwrap();
                continue;
            }
            "cut" => bytes.truncate(bytes.len() / 2),
            _ => {
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
            }
        }
        objects.put(&path, bytes.into()).await.unwrap();
    }
}

fn all() -> RecordBatch {
    numbers(0..N_BATCHES * 1000)
}

#[tokio::test]
async fn files_may_go_once_an_entry_is_prepared() {
    const LARGE: u64 = DECODED_BYTES_MAX + 1;
    // Decoded; in memory; in a temporary file.
    for (bytes, memory, kind) in [(1000, 1 << 30, "rows"), (LARGE, 1 << 30, "bytes"), (LARGE, 1 << 20, "file")] {
        for how in ["delete", "cut", "flip"] {
            let objects = Arc::new(InMemory::new());
            let (store, entry) = large(&objects, bytes).await;
            store.forget(&entry.key);
            let read = CacheReadOperator::new(Arc::clone(&entry), store.clone(), number_schema(), None, 1);
            let runtime = runtime(memory, 1 << 30);
            read.prepare(&runtime).await.unwrap();
            match (kind, read.held.get().unwrap()) {
                ("rows", Held::Rows(_)) | ("bytes", Held::Bytes { .. }) | ("file", Held::File(_)) => {}
                _ => panic!("it should be held as {kind}"),
            }
            let is_counted = (runtime.memory_pool.reserved() > 0, runtime.disk_manager.used_disk_space() > 0);
            assert_eq!(is_counted, (kind == "bytes", kind == "file"));
            damage(&objects, how).await;
            let rows = collect(Arc::new(read), SessionContext::new().task_ctx()).await.unwrap();
            assert_eq!(concat_batches(&number_schema(), &rows).unwrap(), all(), "{kind}, {how}");
            assert_eq!((runtime.memory_pool.reserved(), runtime.disk_manager.used_disk_space()), (0, 0));
            // Damage that is there before is told before.
            store.forget(&entry.key);
            let read = CacheReadOperator::new(entry, store, number_schema(), None, 1);
            let fault = read.prepare(&runtime).await.unwrap_err();
            assert!(fault.error.is_lost(), "{fault:?}");
            assert_eq!((runtime.memory_pool.reserved(), runtime.disk_manager.used_disk_space()), (0, 0));
        }
    }
}

#[tokio::test]
async fn files_may_go_while_an_entry_is_read() {
    for memory in [1 << 30, 1 << 20] {
        let objects = Arc::new(InMemory::new());
        let (store, entry) = large(&objects, DECODED_BYTES_MAX + 1).await;
        let read = CacheReadOperator::new(entry, store, number_schema(), None, 1);
        read.prepare(&runtime(memory, 1 << 30)).await.unwrap();
        let mut stream = read.execute(0, SessionContext::new().task_ctx()).unwrap();
        let mut rows = vec![stream.next().await.unwrap().unwrap()];
        damage(&objects, "flip").await;
        rows.push(stream.next().await.unwrap().unwrap());
        damage(&objects, "delete").await;
        while let Some(batch) = stream.next().await {
            rows.push(batch.unwrap());
        }
        assert_eq!(concat_batches(&number_schema(), &rows).unwrap(), all());
    }
}

/// The copy is no more trusted than the original.
#[tokio::test]
async fn a_damaged_copy_is_an_error_and_never_a_row() {
    let objects = Arc::new(InMemory::new());
    let (store, entry) = large(&objects, DECODED_BYTES_MAX + 1).await;
    let read = CacheReadOperator::new(entry, store, number_schema(), None, 1);
    let runtime = runtime(1 << 20, 1 << 30);
    read.prepare(&runtime).await.unwrap();
    let Some(Held::File(spilled)) = read.held.get() else { panic!("it should be in a file") };
    let path = spilled._spill.path().unwrap().to_owned();
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = collect(Arc::new(read), SessionContext::new().task_ctx()).await.unwrap_err();
    assert!(super::super::EntryFault::find(&error).is_some(), "{error:?}");
}

/// Where there is no room at all, the entry is not used; it is not lost either.
#[tokio::test]
async fn without_room_an_entry_is_left_alone() {
    let objects = Arc::new(InMemory::new());
    let (store, entry) = large(&objects, DECODED_BYTES_MAX + 1).await;
    let disabled = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let disabled = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(GreedyMemoryPool::new(1 << 20)))
        .with_disk_manager_builder(disabled)
        .build_arc()
        .unwrap();
    for runtime in [disabled, runtime(1 << 20, 100)] {
        let read = CacheReadOperator::new(Arc::clone(&entry), store.clone(), number_schema(), None, 1);
        let fault = read.prepare(&runtime).await.unwrap_err();
        assert!(!fault.error.is_lost(), "{fault:?}");
        assert_eq!((runtime.memory_pool.reserved(), runtime.disk_manager.used_disk_space()), (0, 0));
    }
}
