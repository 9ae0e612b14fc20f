//! Whole or nothing; and whatever the store does, rows pass.

use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::common::DataFusionError;
use datafusion::execution::RecordBatchStream;
use futures::{StreamExt, TryStreamExt};

use nectarine_catalog::Fingerprint;

use super::super::testing::*;
use super::*;

fn small_parts() -> RecordingLimits {
    RecordingLimits { part_bytes: 4 << 10, parts_behind_max: 1_000, ..RecordingLimits::default() }
}

fn ten_batches() -> Vec<RecordBatch> {
    (0..10).map(|n| numbers(n * 1000..(n + 1) * 1000)).collect()
}

fn passing(batches: Vec<RecordBatch>) -> SendableRecordBatchStream {
    stream_of(number_schema(), batches.into_iter().map(Ok).collect())
}

async fn n_stored(store: &DerivedStore) -> usize {
    store.list().try_collect::<Vec<_>>().await.unwrap().len()
}

/// Deleting happens in the background.
async fn becomes_empty(store: &DerivedStore) {
    for _ in 0..500 {
        if n_stored(store).await == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("parts were left behind");
}

#[tokio::test]
async fn one_partition_keeps_its_order() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let passed: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    assert_eq!(passed, ten_batches());
    let finished = recording.finish().await.unwrap();
    assert_eq!((finished.rows, finished.in_order), (10_000, true));
    assert!(finished.parts.len() > 5);
    assert_eq!(n_stored(&store).await, finished.parts.len());
    let mut all = vec![];
    for (ordinal, part) in finished.parts.iter().enumerate() {
        for batch in store.read_part(part, &key("p"), ordinal, &number_schema()).await.unwrap() {
            all.extend_from_slice(batch.column(0).as_primitive::<Int64Type>().values());
        }
    }
    assert!(all.into_iter().eq(0..10_000));
    assert!(matches!(recording.finish().await, Err(NotRecorded::FinishedBefore)));
    drop(recording);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(n_stored(&store).await, finished.parts.len());
}

#[tokio::test]
async fn a_small_result_is_one_part_and_comes_along() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), RecordingLimits::default());
    let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    let finished = recording.finish().await.unwrap();
    assert_eq!(finished.parts.len(), 1);
    let entry = entry_of("p", &finished);
    let loaded = finished.loaded.unwrap();
    assert_eq!(loaded.batches.iter().flatten().map(RecordBatch::num_rows).sum::<usize>(), 10_000);
    assert!(store.in_memory(&entry, &number_schema()).is_none());
    store.remember(entry.key, &loaded);
    assert!(store.in_memory(&entry, &number_schema()).is_some());
    let mut published_again = entry.clone();
    published_again.parts[0].location.push('x');
    assert!(store.in_memory(&published_again, &number_schema()).is_none());
    let other = arrow::datatypes::Field::new("n", arrow::datatypes::DataType::Int32, false);
    assert!(store.in_memory(&entry, &arrow::datatypes::Schema::new(vec![other])).is_none());
    store.forget(&entry.key);
    assert!(store.in_memory(&entry, &number_schema()).is_none());
}

#[tokio::test]
async fn nothing_is_a_result_too() {
    let recording = Recording::new(memory_store(), prefix("p"), RecordingLimits::default());
    let _: Vec<_> = recording.tee(0, 1, passing(vec![numbers(0..0)])).try_collect().await.unwrap();
    let finished = recording.finish().await.unwrap();
    assert_eq!((finished.rows, finished.bytes, finished.parts.len()), (0, 0, 0));
    assert!(finished.loaded.is_some());
}

#[tokio::test]
async fn all_partitions_must_end() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let streams: Vec<_> = (0..3).map(|partition| recording.tee(partition, 3, passing(ten_batches()))).collect();
    for stream in streams {
        let _: Vec<_> = stream.try_collect().await.unwrap();
    }
    let finished = recording.finish().await.unwrap();
    assert_eq!((finished.rows, finished.in_order), (30_000, false));

    // The third is never asked for.
    let recording = Recording::new(store.clone(), prefix("q"), small_parts());
    for partition in 0..2 {
        let _: Vec<_> = recording.tee(partition, 3, passing(ten_batches())).try_collect().await.unwrap();
    }
    let not = recording.finish().await.unwrap_err();
    assert!(matches!(not, NotRecorded::NotAllRows { ended: 2, partitions: 3 }), "{not:?}");

    // Asked for, never polled.
    let recording = Recording::new(store.clone(), prefix("r"), small_parts());
    drop(recording.tee(0, 1, passing(ten_batches())));
    assert!(matches!(recording.finish().await, Err(NotRecorded::NotAllRows { .. })));
    let recording = Recording::new(store.clone(), prefix("s"), small_parts());
    assert!(matches!(recording.finish().await, Err(NotRecorded::NotAllRows { ended: 0, partitions: 0 })));

    store.delete(&finished.parts).await.unwrap();
    becomes_empty(&store).await;
}

#[tokio::test]
async fn a_stream_that_is_dropped_early_is_not_whole() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let mut stream = recording.tee(0, 1, passing(ten_batches()));
    // All rows, but not the end: whoever reads can not know that there is no more.
    for _ in 0..10 {
        stream.next().await.unwrap().unwrap();
    }
    drop(stream);
    assert!(matches!(recording.finish().await, Err(NotRecorded::NotAllRows { ended: 0, partitions: 1 })));
    becomes_empty(&store).await;
}

#[tokio::test]
async fn an_error_is_passed_on_and_not_whole() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let mut items: Vec<_> = ten_batches().into_iter().map(Ok).collect();
    items.push(Err(DataFusionError::Execution("boom".to_owned())));
    let mut stream = recording.tee(0, 1, stream_of(number_schema(), items));
    let mut outcomes = vec![];
    while let Some(item) = stream.next().await {
        outcomes.push(item.is_ok());
    }
    assert_eq!(outcomes, [vec![true; 10], vec![false]].concat());
    assert!(matches!(recording.finish().await, Err(NotRecorded::Failed)));
    becomes_empty(&store).await;
}

#[tokio::test]
async fn a_partition_that_runs_twice_is_not_whole() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    for _ in 0..2 {
        let passed: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
        assert_eq!(passed, ten_batches());
    }
    assert!(matches!(recording.finish().await, Err(NotRecorded::RanTwice)));
    becomes_empty(&store).await;
}

/// Ends after each batch, and goes on when it is asked again.
struct EndsOften(std::vec::IntoIter<Option<RecordBatch>>);

impl futures::Stream for EndsOften {
    type Item = datafusion::common::Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().flatten().map(Ok))
    }
}

impl RecordBatchStream for EndsOften {
    fn schema(&self) -> SchemaRef {
        number_schema()
    }
}

#[tokio::test]
async fn rows_after_the_end_are_not_whole() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let items = vec![Some(numbers(0..5)), None, Some(numbers(5..10)), None].into_iter();
    let mut stream = recording.tee(0, 1, Box::pin(EndsOften(items)));
    let mut n_rows = vec![];
    for _ in 0..4 {
        n_rows.push(stream.next().await.map(|batch| batch.unwrap().num_rows()));
    }
    assert_eq!(n_rows, [Some(5), None, Some(5), None]);
    assert!(matches!(recording.finish().await, Err(NotRecorded::RanTwice)));
    becomes_empty(&store).await;
}

#[tokio::test]
async fn a_discarded_or_forgotten_recording_leaves_nothing() {
    let store = memory_store();
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    recording.discard();
    assert!(matches!(recording.finish().await, Err(NotRecorded::Discarded)));
    becomes_empty(&store).await;
    let recording = Recording::new(store.clone(), prefix("q"), small_parts());
    let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(n_stored(&store).await > 0);
    drop(recording);
    becomes_empty(&store).await;
}

/// Whoever finished it may be cancelled before it is published.
#[tokio::test]
async fn what_is_finished_and_not_published_is_deleted() {
    let store = memory_store();
    let finished = async |name: &str| {
        let recording = Recording::new(store.clone(), prefix(name), small_parts());
        let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
        recording.finish().await.unwrap()
    };
    let in_flight = |parts: &[EntryPart]| parts.iter().filter(|part| store.is_in_flight(&part.location)).count();
    let one = finished("dropped").await;
    let parts = one.parts.clone();
    assert!(parts.len() > 5 && in_flight(&parts) == parts.len());
    drop(one);
    becomes_empty(&store).await;
    assert_eq!(in_flight(&parts), 0);
    finished("deleted").await.unpublished.delete().await;
    assert_eq!(n_stored(&store).await, 0);
    // An entry may name these: whoever asked for it never heard.
    let mut one = finished("offered").await;
    let parts = one.parts.clone();
    one.unpublished.offer();
    drop(one);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!((n_stored(&store).await, in_flight(&parts)), (parts.len(), parts.len()));
    // These are one's, and those the collector judges.
    finished("published").await.unpublished.published();
    finished("left").await.unpublished.leave();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(n_stored(&store).await, 3 * parts.len());
}

#[tokio::test]
async fn too_many_bytes_are_given_up() {
    let store = memory_store();
    let limits = RecordingLimits { max_bytes: 20_000, ..small_parts() };
    let recording = Recording::new(store.clone(), prefix("p"), limits);
    let passed: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    assert_eq!(passed, ten_batches());
    assert!(matches!(recording.finish().await, Err(NotRecorded::TooLarge { bytes_max: 20_000 })));
    becomes_empty(&store).await;
}

#[tokio::test]
async fn a_failing_store_fails_no_rows() {
    let unwell = Arc::new(Unwell::default());
    unwell.fails.store(true, Ordering::SeqCst);
    let recording = Recording::new(store_over(Arc::clone(&unwell) as _), prefix("p"), small_parts());
    let passed: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    assert_eq!(passed, ten_batches());
    let not = recording.finish().await.unwrap_err();
    assert!(matches!(not, NotRecorded::Store(DerivedError::Unavailable { .. })), "{not:?}");
}

#[tokio::test]
async fn a_hanging_store_stops_no_rows() {
    let unwell = Arc::new(Unwell::default());
    unwell.hangs.store(true, Ordering::SeqCst);
    let store = store_over(Arc::clone(&unwell) as _);
    // Behind by more than it may be.
    let limits = RecordingLimits { parts_behind_max: 3, ..small_parts() };
    let recording = Recording::new(store.clone(), prefix("p"), limits.clone());
    let passed: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    assert_eq!(passed, ten_batches());
    assert!(matches!(recording.finish().await, Err(NotRecorded::StoreTooSlow)));
    assert!(unwell.n_puts.load(Ordering::SeqCst) <= 3);
    // Hangs at the end.
    let limits = RecordingLimits { finish_wait: Duration::from_millis(50), ..RecordingLimits::default() };
    let recording = Recording::new(store, prefix("q"), limits);
    let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    assert!(matches!(recording.finish().await, Err(NotRecorded::StoreTooSlow)));
}

#[tokio::test]
async fn batches_that_contradict_their_stream_are_not_recorded() {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field, Schema};

    let one = |data_type| Arc::new(Schema::new(vec![Field::new("n", data_type, false)]));
    let two = Schema::new(vec![Field::new("n", DataType::Int64, false), Field::new("m", DataType::Int64, false)]);
    let nullable = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
    let null = RecordBatch::try_new(nullable, vec![Arc::new(Int64Array::from(vec![Some(1), None]))]).unwrap();
    for (schema, batch) in
        [(one(DataType::Int32), numbers(0..5)), (Arc::new(two), numbers(0..5)), (one(DataType::Int64), null)]
    {
        let recording = Recording::new(memory_store(), prefix("p"), RecordingLimits::default());
        let passing = stream_of(schema, vec![Ok(batch.clone())]);
        let passed: Vec<_> = recording.tee(0, 1, passing).try_collect().await.unwrap();
        assert_eq!(passed, [batch]);
        assert!(!recording.is_whole());
        let not = recording.finish().await.unwrap_err();
        assert!(matches!(not, NotRecorded::Unstorable { .. }), "{not:?}");
    }
}

#[tokio::test]
async fn a_local_folder_keeps_whole_files_only() {
    let folder = tempfile::tempdir().unwrap();
    let objects = object_store::local::LocalFileSystem::new_with_prefix(folder.path()).unwrap();
    let store = store_over(Arc::new(objects));
    let recording = Recording::new(store.clone(), prefix("p"), small_parts());
    let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
    let finished = recording.finish().await.unwrap();
    let listed: Vec<_> = store.list().try_collect().await.unwrap();
    assert_eq!(listed.len(), finished.parts.len());
    for part in &finished.parts {
        let stored = listed.iter().find(|stored| stored.location == part.location).unwrap();
        assert_eq!(stored.bytes, part.bytes);
        let path = folder.path().join("home/derived").join(&part.location);
        assert_eq!(Fingerprint::of_bytes(&std::fs::read(path).unwrap()), part.checksum);
    }
    store.delete(&finished.parts).await.unwrap();
    assert_eq!(n_stored(&store).await, 0);
}

#[tokio::test]
async fn what_nobody_asked_for_is_given_up_when_it_is_much() {
    for (worth, is_recorded) in [(Worth::Cheap, false), (Worth::GivesWay, false), (Worth::Wanted, true)] {
        let store = memory_store();
        let recording = Recording::new(store.clone(), prefix_worth("p", worth), small_parts());
        // 8 MB in no time.
        let batches: Vec<_> = (0..100).map(|n| numbers(n * 10_000..(n + 1) * 10_000)).collect();
        let passed: Vec<_> = recording.tee(0, 1, passing(batches.clone())).try_collect().await.unwrap();
        assert_eq!(passed, batches);
        match recording.finish().await {
            Ok(finished) => assert!(is_recorded && finished.rows == 1_000_000),
            Err(reason) => {
                assert!(!is_recorded && matches!(reason, NotRecorded::TooDear), "{reason}");
                becomes_empty(&store).await;
            }
        }
        // Little is recorded all the same.
        let recording = Recording::new(store.clone(), prefix_worth("q", worth), RecordingLimits::default());
        let _: Vec<_> = recording.tee(0, 1, passing(ten_batches())).try_collect().await.unwrap();
        assert!(recording.is_whole());
        assert_eq!(recording.finish().await.unwrap().rows, 10_000);
    }
}
