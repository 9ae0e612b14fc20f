//! What the tracker says of real files, under an adversary who knows how files are recognised.

mod web;

use std::fs;
use std::fs::FileTimes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicUsize};
use std::time::{Duration, SystemTime};

use arrow::datatypes::{DataType, Field};
use datafusion_common::stats::Precision;
use datafusion_common::{ColumnStatistics, ScalarValue};
use object_store::ObjectStoreExt;

use super::*;
use crate::identity::FileIdentity;
use crate::store::MemoryStore;
use crate::{FileFormatKind, RACY_NS, SystemClock};

/// Offset against the machine's clock.
#[derive(Debug, Default)]
struct TestClock(AtomicI64);

impl Clock for TestClock {
    fn now_ns(&self) -> i64 {
        SystemClock.now_ns() + self.0.load(Ordering::SeqCst)
    }
}

/// Counts what it is asked to describe.
#[derive(Default)]
struct TestReader {
    n_described: AtomicUsize,
    n_columns: usize,
}

#[async_trait]
impl ExtentReader for TestReader {
    async fn describe(&self, _: &ExternalSource, file: &ListedFile) -> Result<Description> {
        self.n_described.fetch_add(1, Ordering::SeqCst);
        let column = ColumnStatistics {
            null_count: Precision::Exact(0),
            min_value: Precision::Exact(ScalarValue::from(-1_700_000_000_000_i64)),
            max_value: Precision::Exact(ScalarValue::from(1_700_000_000_000_i64)),
            ..ColumnStatistics::new_unknown()
        };
        let stats = Statistics {
            num_rows: Precision::Exact(1),
            total_byte_size: Precision::Exact(10),
            column_statistics: vec![column; self.n_columns],
        };
        Ok(Description { rows: Some(file.identity.size), stats })
    }
}

struct World {
    folder: tempfile::TempDir,
    clock: Arc<TestClock>,
    store: Arc<dyn MetadataStore>,
    stores: ObjectStores,
    tracker: ExtentTracker,
    reader: TestReader,
    source: ExternalSource,
    schema: SchemaRef,
}

impl World {
    fn new(format: FileFormatKind, location: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(TestClock::default());
        let store: Arc<dyn MetadataStore> = Arc::new(MemoryStore::new());
        let stores = ObjectStores::new();
        let source = ExternalSource {
            location: Location::parse(location, folder.path()).unwrap().as_str().to_owned(),
            more_locations: Vec::new(),
            format,
            partition_columns: Vec::new(),
            options: BTreeMap::new(),
            content_fingerprint: false,
            order: Vec::new(),
        };
        let tracker = ExtentTracker::new(Arc::clone(&store), stores.clone(), Arc::clone(&clock) as Arc<dyn Clock>);
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        Self {
            folder,
            clock,
            store,
            stores,
            tracker,
            reader: TestReader { n_columns: 1, ..TestReader::default() },
            source,
            schema,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// From now on every file that exists has rested.
    fn rest(&self) {
        self.clock.0.fetch_add(10 * RACY_NS, Ordering::SeqCst);
    }

    /// Time passes, but files written from now on are fresh: as if the machine's clock had moved too.
    fn fresh(&self) {
        self.clock.0.store(0, Ordering::SeqCst);
    }

    async fn snapshot(&self) -> Arc<[Arc<Extent>]> {
        self.tracker.snapshot(&self.source, &self.schema, &self.reader).await.unwrap()
    }

    async fn fingerprints(&self) -> Vec<Fingerprint> {
        self.snapshot().await.iter().map(|extent| extent.fingerprint).collect()
    }

    async fn verify(&self, extents: &[Arc<Extent>]) -> Result<()> {
        self.tracker.verify(extents).await
    }

    fn n_described(&self) -> usize {
        self.reader.n_described.load(Ordering::SeqCst)
    }

    /// Another process on the same home.
    fn restart(&mut self) {
        self.tracker =
            ExtentTracker::new(Arc::clone(&self.store), self.stores.clone(), Arc::clone(&self.clock) as Arc<dyn Clock>);
    }
}

fn set_mtime(path: &Path, time: SystemTime) {
    fs::File::options().write(true).open(path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
}

fn mtime(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

#[tokio::test]
async fn known_files_are_not_opened_again() {
    let mut world = World::new(FileFormatKind::Parquet, ".");
    world.write("a.parquet", "aaa");
    world.write("b.parquet", "bb");
    world.write("empty.parquet", "");
    world.rest();
    let first = world.snapshot().await;
    assert_eq!(
        first.iter().map(|extent| extent.rows).collect::<Vec<_>>(),
        [Some(3), Some(2)],
        "an empty file has no extent"
    );
    assert_eq!(world.n_described(), 2);
    assert!(Arc::ptr_eq(&first, &world.snapshot().await));
    world.write("c.parquet", "c");
    world.rest();
    let second = world.snapshot().await;
    assert_eq!((second.len(), world.n_described()), (3, 3));
    assert!(Arc::ptr_eq(&first[0], &second[0]));
    world.restart();
    assert_eq!(*world.snapshot().await, *second, "the metadata store remembers");
    assert_eq!(world.n_described(), 3);
    fs::remove_file(world.path("b.parquet")).unwrap();
    let third = world.snapshot().await;
    assert_eq!(third.len(), 2);
    world.restart();
    assert_eq!(*world.snapshot().await, *third);
    let key = table_key(&world.source, &world.schema);
    assert_eq!(world.store.known_files(&key).await.unwrap().len(), 2, "what is gone is forgotten");
    assert_eq!(world.n_described(), 3);
}

#[tokio::test]
async fn what_is_gone_or_another_is_forgotten() {
    let mut world = World::new(FileFormatKind::Parquet, ".");
    for name in ["a.parquet", "b.parquet", "c.parquet"] {
        world.write(name, "aaa");
    }
    world.rest();
    world.snapshot().await;
    let key = table_key(&world.source, &world.schema);
    let known = world.store.known_files(&key).await.unwrap();
    let known: Vec<_> = known.into_iter().map(|file| (key.clone(), file)).collect();
    assert_eq!(world.tracker.forget_gone(&known).await.unwrap(), 0, "nothing happened to them");
    fs::remove_file(world.path("a.parquet")).unwrap();
    world.write("b.parquet", "bbbb");
    assert_eq!(world.tracker.forget_gone(&known).await.unwrap(), 2);
    let left = world.store.known_files(&key).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(left[0].extent.location.ends_with("c.parquet"));
    world.rest();
    assert_eq!(world.snapshot().await.len(), 2);
    assert_eq!(world.n_described(), 4, "only what changed is read again");
    world.restart();
    assert_eq!(world.snapshot().await.len(), 2);
    assert_eq!(world.n_described(), 4);
}

#[tokio::test]
async fn a_fresh_file_is_known_by_content_until_it_rested() {
    let world = World::new(FileFormatKind::Parquet, ".");
    world.write("a.parquet", "aaa");
    let first = world.fingerprints().await;
    let key = table_key(&world.source, &world.schema);
    assert!(world.store.known_files(&key).await.unwrap()[0].racy);
    assert_eq!(world.fingerprints().await, first);
    world.rest();
    assert_eq!(world.fingerprints().await, first);
    assert!(!world.store.known_files(&key).await.unwrap()[0].racy, "it rested");
    assert_eq!(world.n_described(), 1);
}

#[tokio::test]
async fn a_rewrite_within_one_tick_is_seen() {
    // The clock of the file system is stopped by hand: size, mtime and inode stay, and ctime may.
    let world = World::new(FileFormatKind::Parquet, ".");
    world.write("a.parquet", "aaa");
    let path = world.path("a.parquet");
    let mut last = world.fingerprints().await;
    for text in ["bbb", "ccc", "ddd", "ddd", "aaa"] {
        let time = mtime(&path);
        let changed = fs::read_to_string(&path).unwrap() != text;
        fs::write(&path, text).unwrap();
        set_mtime(&path, time);
        let now = world.fingerprints().await;
        assert_eq!(now != last, changed, "{text}");
        last = now;
    }
}

/// A rewrite within one tick of the file system's clock that leaves no trace at all, ctime included. Where the clock is too
/// fine for that there is nothing to see.
#[tokio::test]
async fn a_rewrite_without_a_trace_is_seen() {
    for format in [FileFormatKind::Parquet, FileFormatKind::Csv] {
        let mut n_without_trace = 0;
        for _ in 0..100 {
            let world = World::new(format, "a.*");
            let path = world.path("a.data");
            world.write("a.data", "aaa");
            let identity = |path: &PathBuf| FileIdentity::of_local(Arc::from("a"), &fs::metadata(path).unwrap());
            let (time, before) = (mtime(&path), world.fingerprints().await);
            let (pinned, seen) = (world.snapshot().await, identity(&path));
            fs::write(&path, "bbb").unwrap();
            set_mtime(&path, time);
            if !identity(&path).is_unchanged(&seen) {
                continue;
            }
            n_without_trace += 1;
            assert!(matches!(world.verify(&pinned).await, Err(CatalogError::Changed { .. })), "{format}");
            assert_ne!(world.fingerprints().await, before, "{format}");
            if n_without_trace == 3 {
                break;
            }
        }
    }
}

/// Each trick, on a file that was first seen fresh (known by content) and on one that had rested (known by identity).
#[tokio::test]
async fn the_adversary_changes_fingerprints_exactly_with_bytes() {
    type Trick = fn(&World, &Path);
    let tricks: [(&str, bool, Trick); 9] = [
        ("same size, mtime set back", true, |_, path| {
            let time = mtime(path);
            fs::write(path, "bbb").unwrap();
            set_mtime(path, time);
        }),
        ("truncate and regrow", true, |_, path| {
            let time = mtime(path);
            fs::File::create(path).unwrap();
            fs::write(path, "ccc").unwrap();
            set_mtime(path, time);
        }),
        ("rename over", true, |world, path| {
            let time = mtime(path);
            world.write("other", "ddd");
            set_mtime(&world.path("other"), time);
            fs::rename(world.path("other"), path).unwrap();
        }),
        ("rename the same content over", false, |world, path| {
            world.write("other", "aaa");
            fs::rename(world.path("other"), path).unwrap();
        }),
        ("hard link to another file", true, |world, path| {
            let time = mtime(path);
            world.write("other", "eee");
            set_mtime(&world.path("other"), time);
            fs::remove_file(path).unwrap();
            fs::hard_link(world.path("other"), path).unwrap();
        }),
        ("write through another hard link", true, |world, path| {
            fs::hard_link(path, world.path("link")).unwrap();
            let time = mtime(path);
            world.write("link", "fff");
            set_mtime(path, time);
        }),
        ("touch", false, |_, path| set_mtime(path, SystemTime::now())),
        ("rewrite with the same content", false, |_, path| fs::write(path, "aaa").unwrap()),
        ("longer", true, |_, path| fs::write(path, "aaaa").unwrap()),
    ];
    for format in [FileFormatKind::Parquet, FileFormatKind::Csv] {
        for (name, changes, trick) in tricks {
            for seen_fresh in [true, false] {
                for look_fresh in [true, false] {
                    let world = World::new(format, "a.*");
                    let path = world.path("a.data");
                    world.write("a.data", "aaa");
                    if !seen_fresh {
                        world.rest();
                    }
                    let before = world.fingerprints().await;
                    let pinned = world.snapshot().await;
                    world.rest();
                    assert_eq!(world.fingerprints().await, before, "{name}");
                    world.verify(&pinned).await.unwrap();
                    if look_fresh {
                        world.fresh();
                    }
                    trick(&world, &path);
                    let after = world.fingerprints().await;
                    let what = format!("{name}, {format}, seen fresh {seen_fresh}, looked at fresh {look_fresh}");
                    if changes {
                        assert_ne!(after, before, "{what}");
                    } else if format == FileFormatKind::Csv || seen_fresh {
                        assert_eq!(after, before, "{what}");
                    }
                    // Who wrote to a file may have written something else in between, except at its end.
                    let verified = world.verify(&pinned).await;
                    let grown = name == "longer" && format == FileFormatKind::Csv;
                    if grown {
                        verified.unwrap();
                    } else if changes || name == "touch" {
                        assert!(matches!(verified, Err(CatalogError::Changed { .. })), "{what}");
                    }
                }
            }
        }
    }
}

/// What was read in between is not what was pinned, although that is there again.
#[tokio::test]
async fn swapped_and_put_back_is_changed() {
    for format in [FileFormatKind::Parquet, FileFormatKind::Csv] {
        for looked_at_between in [false, true] {
            let world = World::new(format, "a.*");
            let path = world.path("a.data");
            world.write("a.data", "aaa");
            let before = world.fingerprints().await;
            let pinned = world.snapshot().await;
            world.verify(&pinned).await.unwrap();
            let swap = |text: &str, seconds| {
                world.write("other", text);
                set_mtime(&world.path("other"), SystemTime::now() - Duration::from_secs(seconds));
                fs::rename(world.path("other"), &path).unwrap();
            };
            swap("bbb", 60);
            if looked_at_between {
                assert_ne!(world.fingerprints().await, before);
            }
            swap("aaa", 30);
            if looked_at_between {
                assert_eq!(world.fingerprints().await, before);
            }
            assert!(matches!(world.verify(&pinned).await, Err(CatalogError::Changed { .. })), "{format}");
            world.verify(&world.snapshot().await).await.unwrap();
        }
    }
}

#[tokio::test]
async fn content_fingerprints_on_demand() {
    let mut world = World::new(FileFormatKind::Parquet, ".");
    world.source.content_fingerprint = true;
    world.write("a.parquet", "aaa");
    world.rest();
    let before = world.fingerprints().await;
    set_mtime(&world.path("a.parquet"), SystemTime::now());
    assert_eq!(world.fingerprints().await, before);
    assert_eq!(world.n_described(), 1);
    world.write("a.parquet", "bbb");
    assert_ne!(world.fingerprints().await, before);
    assert_eq!(world.n_described(), 2);
}

#[tokio::test]
async fn a_log_grows_by_ranges() {
    let mut world = World::new(FileFormatKind::Json, "log.ndjson");
    world.write("log.ndjson", "{\"a\":1}\n");
    let first = world.snapshot().await;
    let append = |text: &str| {
        use std::io::Write;
        fs::OpenOptions::new().append(true).open(world.path("log.ndjson")).unwrap().write_all(text.as_bytes()).unwrap();
    };
    append("{\"a\":2}\n{\"a\"");
    let second = world.snapshot().await;
    assert_eq!(second.len(), 2, "the unfinished record waits");
    assert_eq!((second[0].fingerprint, second[0].first_seen_at), (first[0].fingerprint, first[0].first_seen_at));
    world.verify(&first).await.unwrap();
    world.verify(&second).await.unwrap();
    append(":3}\n");
    world.verify(&second).await.unwrap();
    world.restart();
    let third = world.snapshot().await;
    assert_eq!(third.iter().map(|extent| extent.range.unwrap().start).collect::<Vec<_>>(), [0, 8, 16]);
    assert_eq!(third[1].fingerprint, second[1].fingerprint);
    assert_eq!(third[1].first_seen_at, second[1].first_seen_at);
    world.write("log.ndjson", "{\"a\":9}\n{\"a\":2}\n{\"a\":3}\n");
    assert!(matches!(world.verify(&third).await, Err(CatalogError::Changed { .. })));
    let fourth = world.snapshot().await;
    assert!(fourth.iter().all(|extent| third.iter().all(|old| old.fingerprint != extent.fingerprint)));
    let key = table_key(&world.source, &world.schema);
    assert_eq!(world.store.known_files(&key).await.unwrap().len(), fourth.len());
    fs::remove_file(world.path("log.ndjson")).unwrap();
    assert!(matches!(world.verify(&fourth).await, Err(CatalogError::Changed { .. })));
}

/// Two processes see a log grow and cut it at different places; what both wrote down is not taken together by a third.
#[tokio::test]
async fn who_cut_a_log_elsewhere_is_not_believed_in_part() {
    let mut world = World::new(FileFormatKind::Json, ".");
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let other = ExtentTracker::new(Arc::clone(&world.store), world.stores.clone(), clock);
    world.write("a.json", "{\"a\":0}\n");
    assert_eq!(other.snapshot(&world.source, &world.schema, &world.reader).await.unwrap().len(), 1);
    world.write("log.json", "{\"a\":1}\n");
    assert_eq!(world.snapshot().await.len(), 2);
    let mut log = fs::OpenOptions::new().append(true).open(world.path("log.json")).unwrap();
    std::io::Write::write_all(&mut log, b"{\"a\":2}\n").unwrap();
    drop(log);
    world.rest();
    let ranges = |extents: &[Arc<Extent>]| -> Vec<(u64, u64)> {
        let log = extents.iter().filter(|extent| extent.location.ends_with("log.json"));
        log.map(|extent| extent.range.unwrap()).map(|range| (range.start, range.end)).collect()
    };
    assert_eq!(ranges(&world.snapshot().await), [(0, 8), (8, 16)]);
    let whole = other.snapshot(&world.source, &world.schema, &world.reader).await.unwrap();
    assert_eq!(ranges(&whole), [(0, 16)]);
    world.restart();
    assert_eq!(ranges(&world.snapshot().await), [(0, 16)]);
    // What the first wrote down is forgotten: from now on the log grows by ranges again.
    let mut log = fs::OpenOptions::new().append(true).open(world.path("log.json")).unwrap();
    std::io::Write::write_all(&mut log, b"{\"a\":3}\n").unwrap();
    drop(log);
    world.rest();
    assert_eq!(ranges(&world.snapshot().await), [(0, 16), (16, 24)]);
    world.restart();
    assert_eq!(ranges(&world.snapshot().await), [(0, 16), (16, 24)]);
}

#[tokio::test]
async fn tables_differ_by_what_decides_reading() {
    let world = World::new(FileFormatKind::Csv, ".");
    let key = table_key(&world.source, &world.schema);
    let other = |change: fn(&mut ExternalSource)| {
        let mut source = world.source.clone();
        change(&mut source);
        table_key(&source, &world.schema)
    };
    assert_ne!(key, other(|source| source.location.push('x')));
    assert_ne!(key, other(|source| source.format = FileFormatKind::Json));
    assert_ne!(key, other(|source| source.partition_columns.push("p".to_owned())));
    assert_ne!(key, other(|source| source.content_fingerprint = true));
    assert_ne!(key, other(|source| drop(source.options.insert("format.quote".to_owned(), "'".to_owned()))));
    assert_ne!(key, other(|source| drop(source.options.insert("aws.endpoint".to_owned(), "x".to_owned()))));
    assert_eq!(key, other(|source| drop(source.options.insert("aws.secret_access_key".to_owned(), "x".to_owned()))));
    let renamed = Schema::new(vec![Field::new("b", DataType::Int64, true)]);
    assert_ne!(key, table_key(&world.source, &renamed));
}

#[tokio::test]
async fn statements_at_the_same_time_discover_once() {
    let world = World::new(FileFormatKind::Parquet, ".");
    for n in 0..100 {
        world.write(&format!("{n}.parquet"), "x");
    }
    world.rest();
    let all = futures::future::join_all((0..8).map(|_| world.snapshot())).await;
    assert!(all.iter().all(|extents| extents.len() == 100));
    assert_eq!(world.n_described(), 100);
}

#[tokio::test]
async fn partitions_and_statistics_reach_the_extent() {
    let mut world = World::new(FileFormatKind::Parquet, ".");
    world.source.partition_columns = vec!["p".to_owned()];
    world.schema =
        Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true), Field::new("p", DataType::Utf8, true)]));
    fs::create_dir(world.path("p=1")).unwrap();
    world.write("p=1/a.parquet", "x");
    let extents = world.snapshot().await;
    assert_eq!(extents[0].partition_values.as_ref(), [Some(Arc::from("1"))]);
    let total = crate::stats::merge_total(&extents, &world.schema, None);
    assert_eq!(total.column_statistics[0].min_value, Precision::Exact(ScalarValue::from(-1_700_000_000_000_i64)));
    assert_eq!(total.column_statistics[1].max_value, Precision::Exact(ScalarValue::from("1")));
}

#[tokio::test]
async fn remote_objects_are_known_by_their_etag() {
    let mut world = World::new(FileFormatKind::Parquet, "memory:///d/");
    let store = world.stores.get(&url::Url::parse("memory:///").unwrap()).unwrap();
    let put = async |name: &str, text: &'static str| store.put(&name.into(), text.into()).await.unwrap();
    for n in 0..40 {
        put(&format!("d/{n}.parquet"), "x").await;
    }
    let first = world.snapshot().await;
    assert_eq!((first.len(), world.n_described()), (40, 40));
    world.verify(&first).await.unwrap();
    world.verify(&first[..3]).await.unwrap();
    world.restart();
    assert_eq!(*world.snapshot().await, *first);
    assert_eq!(world.n_described(), 40);
    put("d/7.parquet", "y").await;
    assert!(matches!(world.verify(&first).await, Err(CatalogError::Changed { .. })));
    world.verify(&world.snapshot().await).await.unwrap();
    assert_eq!(world.n_described(), 41);
    store.delete(&"d/8.parquet".into()).await.unwrap();
    let error = world.verify(&first).await.unwrap_err();
    assert!(error.to_string().contains("changed while it was being read"), "{error}");
}

#[tokio::test]
async fn a_file_that_goes_while_it_is_described_is_listed_again() {
    struct Remover(PathBuf);
    #[async_trait]
    impl ExtentReader for Remover {
        async fn describe(&self, _: &ExternalSource, file: &ListedFile) -> Result<Description> {
            if file.location().ends_with("b.parquet") {
                let _gone_already = fs::remove_file(&self.0);
            }
            Ok(Description::default())
        }
    }
    let world = World::new(FileFormatKind::Parquet, ".");
    world.write("a.parquet", "a");
    world.write("b.parquet", "b");
    let remover = Remover(world.path("b.parquet"));
    let extents = world.tracker.snapshot(&world.source, &world.schema, &remover).await.unwrap();
    assert_eq!(extents.len(), 1);
}

/// What is told of a file must be told of the bytes that its fingerprint names.
#[tokio::test]
async fn a_file_that_changes_while_it_is_described_is_looked_at_again() {
    struct Rewriter(PathBuf, AtomicUsize);
    #[async_trait]
    impl ExtentReader for Rewriter {
        async fn describe(&self, _: &ExternalSource, _: &ListedFile) -> Result<Description> {
            if self.1.fetch_add(1, Ordering::SeqCst) == 0 {
                fs::write(&self.0, "bb").unwrap();
                set_mtime(&self.0, SystemTime::now() - Duration::from_secs(60));
            }
            Ok(Description { rows: Some(fs::metadata(&self.0).unwrap().len()), ..Description::default() })
        }
    }
    for rests in [false, true] {
        let world = World::new(FileFormatKind::Parquet, ".");
        world.write("a.parquet", "a");
        if rests {
            world.rest();
        }
        let rewriter = Rewriter(world.path("a.parquet"), AtomicUsize::new(0));
        let extents = world.tracker.snapshot(&world.source, &world.schema, &rewriter).await.unwrap();
        assert_eq!((extents[0].file_bytes, extents[0].rows), (2, Some(2)));
        world.verify(&extents).await.unwrap();
    }
}

#[tokio::test]
async fn not_being_able_to_save_is_no_error() {
    let world = World::new(FileFormatKind::Parquet, ".");
    world.write("a.parquet", "a");
    world.store.close().await;
    assert_eq!(world.snapshot().await.len(), 1);
    assert_eq!(world.snapshot().await.len(), 1);
}

/// 4 KB per known extent with 16 columns is the budget.
#[tokio::test]
async fn a_known_extent_is_small() {
    let mut world = World::new(FileFormatKind::Parquet, ".");
    world.reader.n_columns = 16;
    world.schema =
        Arc::new(Schema::new((0..16).map(|n| Field::new(n.to_string(), DataType::Int64, true)).collect::<Vec<_>>()));
    let n_files = if cfg!(debug_assertions) { 100 } else { 1000 };
    for n in 0..n_files {
        world.write(&format!("part-{n:05}-0123456789abcdef.parquet"), "x");
    }
    world.rest();
    let resident = || -> usize {
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096
    };
    let before = resident();
    let extents = world.snapshot().await;
    let after = resident();
    let bytes = extents
        .iter()
        .map(|extent| {
            size_of::<Extent>() + size_of::<KnownEntry>() + extent.location.len() + extent.stats.len() + 8 * 16
        })
        .sum::<usize>()
        / extents.len();
    assert!(bytes <= 4096, "{bytes}");
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let started = std::time::Instant::now();
        world.snapshot().await;
        best = best.min(started.elapsed());
    }
    eprintln!(
        "{bytes} bytes per known extent with 16 columns ({} of them statistics; process grew by {} per extent); snapshot of {n_files} known: {best:?}",
        extents[0].stats.len(),
        after.saturating_sub(before) / extents.len()
    );
}
