//! What goes, what stays, and who protects it.

mod scale;

use std::fs;
use std::path::PathBuf;

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use nectarine_catalog::store::SqliteStore;
use nectarine_catalog::{CacheEntry, CacheLease, EntryKind, EntryPart, ObjectStores, ProgramRecord, SystemClock};
use tempfile::TempDir;

use super::*;
use crate::eviction::{Budget, InVain, Ledger, Readers, Why};
use crate::home::Home;
use crate::reuse::Trouble;
use crate::settings::NectarineOptions;

pub(super) fn key(number: u64) -> Fingerprint {
    Fingerprint::of_bytes(&number.to_le_bytes())
}

/// A home with a collector.
struct World {
    home: Home,
    collector: Collector,
    _folder: TempDir,
}

async fn world() -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Home::open(&folder.path().join("home")).expect("it opens");
    let collector = collector(&home).await;
    World { home, collector, _folder: folder }
}

async fn collector(home: &Home) -> Collector {
    let metadata: Arc<dyn MetadataStore> = Arc::new(SqliteStore::open(&home.metadata()).await.expect("a store"));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cache = ViewCache::open(Arc::clone(&metadata)).await.expect("a cache");
    let derived = DerivedStore::open(&home.derived(), None, ObjectStores::new(), 0).expect("a derived store");
    let budget = Budget::new(&NectarineOptions::default(), derived.folder()).expect("valid");
    let ledger = Ledger::new(cache.clone(), Arc::clone(&metadata), Arc::clone(&clock), home.process(), budget);
    let ledger = Arc::new(ledger);
    let derived = derived.written_by(Writer::of(&home.process()), Arc::clone(&ledger) as _);
    let evictor = Arc::new(Evictor {
        cache: cache.clone(),
        derived: derived.clone(),
        metadata: Arc::clone(&metadata),
        ledger,
        readers: Readers::default(),
        clock: Arc::clone(&clock),
        processes: home.processes(),
        fresh: Duration::ZERO,
        trouble: Trouble::default(),
        in_vain: InVain::default(),
    });
    Collector { cache, derived, metadata, clock, processes: home.processes(), evictor }
}

impl World {
    /// A part as this process, or another, writes it.
    async fn part(&self, number: u64, process: Option<&str>) -> EntryPart {
        let derived = match process {
            Some(process) => {
                let other = DerivedStore::open(&self.home.derived(), None, ObjectStores::new(), 0).expect("it opens");
                let room = Arc::clone(&self.collector.evictor.ledger);
                other.written_by(Writer::of(process), room as _)
            }
            None => self.collector.derived.clone(),
        };
        let numbers = Arc::new(Int64Array::from(vec![1, 2, 3])) as ArrayRef;
        let batch = RecordBatch::try_from_iter([("c0", numbers)]).expect("a batch");
        derived.write_part(&key(number), 0, &batch.schema(), std::slice::from_ref(&batch)).await.expect("written")
    }

    async fn publish(&self, number: u64, part: &EntryPart) {
        let entry = CacheEntry {
            key: key(number),
            program: key(number),
            kind: EntryKind::Rows,
            parts: vec![part.clone()],
            rows: 0,
            bytes: part.bytes,
            cost_us: 1,
            inputs: vec![],
            description: String::new(),
            created_at: 1,
        };
        let program = ProgramRecord { program: key(number), encoding: Arc::from([1]), description: String::new() };
        assert!(self.collector.cache.add(entry, program).await.expect("added"));
    }

    fn path(&self, part: &EntryPart) -> PathBuf {
        self.home.derived().join(&part.location)
    }

    async fn collect(&self) -> Collected {
        self.collector.collect(Pace::Fast).await.expect("swept")
    }

    async fn lease(&self, holder: &str) {
        let lease = CacheLease { holder: holder.to_owned(), reserved: 1, expires_at: i64::MAX };
        self.collector.metadata.save_cache_lease(&lease).await.expect("saved");
    }
}

fn age(path: &std::path::Path, age: Duration) {
    let file = fs::File::options().append(true).open(path).expect("a file");
    file.set_modified(std::time::SystemTime::now() - age).expect("a time can be set");
}

#[tokio::test]
async fn entries_and_what_is_in_flight_stay_and_orphans_go() {
    let world = world().await;
    let (kept, flying, orphan) = (world.part(1, None).await, world.part(2, None).await, world.part(3, None).await);
    world.publish(1, &kept).await;
    world.collector.derived.settle([&kept, &orphan]);
    let collected = world.collect().await;
    assert_eq!((collected.parts, collected.bytes), (1, orphan.bytes));
    assert!(world.path(&kept).exists() && world.path(&flying).exists() && !world.path(&orphan).exists());
    // Published in the last moment: no longer in flight, but an entry's.
    world.publish(2, &flying).await;
    world.collector.derived.settle([&flying]);
    assert_eq!(world.collect().await, Collected::default());
    assert!(world.path(&flying).exists());
}

#[tokio::test]
async fn what_the_living_write_stays_and_what_the_dead_left_goes_with_their_lease() {
    let world = world().await;
    let other = Home::open(world.home.root()).expect("it opens twice");
    let (alive, dead) = (other.process(), "0197c6a0000070008000000000000bad");
    world.lease(&alive).await;
    world.lease(dead).await;
    let (theirs, left) = (world.part(1, Some(&alive)).await, world.part(2, Some(dead)).await);
    let half = |part: &EntryPart| PathBuf::from(format!("{}#1", world.path(part).display()));
    fs::write(half(&theirs), b"half").expect("written");
    fs::write(half(&left), b"half").expect("written");
    assert!(world.collector.is_due().await);
    let collected = world.collect().await;
    assert_eq!((collected.parts, collected.unfinished, collected.processes), (1, 1, 1));
    assert!(world.path(&theirs).exists() && half(&theirs).exists());
    assert!(!world.path(&left).exists() && !half(&left).exists());
    assert!(!world.collector.is_due().await);
    // It ends, well or not: nobody will publish that part.
    drop(other);
    assert!(world.collector.is_due().await);
    let collected = world.collect().await;
    assert_eq!((collected.parts, collected.unfinished, collected.processes), (1, 1, 1));
    assert_eq!(world.collector.metadata.cache_leases().await.expect("leases"), []);
}

#[tokio::test]
async fn what_nobody_knows_goes_when_it_is_old() {
    let world = world().await;
    let derived = world.home.derived();
    let folder = derived.join("1a/2b");
    fs::create_dir_all(&folder).expect("a folder");
    let by_hand = [derived.join("x.parquet"), folder.join("x.arrow"), derived.join("1a/note")];
    let older_version = folder.join("0197c6a0-0000-7000-8000-000000000000.arrow");
    let all = by_hand.iter().chain([&older_version]);
    all.clone().for_each(|path| fs::write(path, b"by hand").expect("written"));
    // Not ours at all: another home's folder below this one's.
    let others = derived.join("0197c6a000007000800000000000abcd/1a/2b/x.arrow");
    fs::create_dir_all(others.parent().expect("a folder")).expect("a folder");
    fs::write(&others, b"x").expect("written");
    age(&others, UNKNOWN_GRACE * 2);
    assert_eq!(world.collect().await, Collected::default());
    all.clone().for_each(|path| age(path, UNKNOWN_GRACE * 2));
    let collected = world.collect().await;
    assert_eq!((collected.foreign, collected.parts), (3, 1));
    assert!(all.clone().all(|path| !path.exists()) && others.exists());
}

#[tokio::test]
async fn entries_whose_parts_are_gone_go_too() {
    let world = world().await;
    for number in 0..10 {
        let part = world.part(number, None).await;
        world.publish(number, &part).await;
        world.collector.derived.settle([&part]);
        if number % 2 == 0 {
            fs::remove_file(world.path(&part)).expect("removed");
        }
    }
    assert_eq!(world.collect().await, Collected { entries: 5, ..Collected::default() });
    assert_eq!(world.collector.cache.totals().entries, 5);
    let reasons = world.collector.metadata.evictions(10).await.expect("evictions");
    assert!(reasons.len() == 5 && reasons.iter().all(|gone| gone.reason == "lost"));
    fs::remove_dir_all(world.home.derived()).expect("removed");
    assert_eq!(world.collect().await.entries, 5, "all of it");
}

/// Entries that are being dropped when whoever asked for it is cancelled.
#[tokio::test]
async fn what_began_to_be_dropped_is_and_keeps_no_room() {
    let world = world().await;
    let mut parts = vec![];
    for number in 0..3 {
        let part = world.part(number, None).await;
        world.publish(number, &part).await;
        world.collector.derived.settle([&part]);
        parts.push(part);
    }
    let (evictor, keys) = (&world.collector.evictor, [key(0), key(1), key(2)]);
    {
        let mut dropping = std::pin::pin!(evictor.drop_entries(&keys, Some(Why::ByHand)));
        assert!(futures::poll!(&mut dropping).is_pending(), "it waits for the metadata store");
    }
    for _ in 0..500 {
        let is_held = evictor.ledger.held() > 0 || !evictor.metadata.cache_leases().await.expect("leases").is_empty();
        if !is_held && parts.iter().all(|part| !world.path(part).exists()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!((evictor.cache.totals().entries, evictor.ledger.held()), (0, 0));
    assert_eq!(evictor.metadata.cache_leases().await.expect("leases"), []);
    assert!(parts.iter().all(|part| !world.path(part).exists()));
}

/// Folders in their places can not be deleted like files.
#[tokio::test]
async fn what_can_not_be_deleted_counts_until_it_is_gone() {
    let world = world().await;
    let (evicted, dead) = (world.part(1, None).await, "0197c6a0000070008000000000000bad");
    world.publish(1, &evicted).await;
    let given_up = world.part(2, None).await;
    let orphan = world.part(3, Some(dead)).await;
    world.collector.derived.settle([&evicted]);
    let aside = |part: &EntryPart| world.home.root().join(format!("aside-{}", part.location.replace('/', "-")));
    let stuck = [&evicted, &given_up];
    for part in stuck {
        fs::rename(world.path(part), aside(part)).expect("renamed");
        fs::create_dir(world.path(part)).expect("a folder");
    }
    let evictor = &world.collector.evictor;
    let gone = evictor.drop_entries(&[key(1)], Some(Why::Space)).await.expect("dropped");
    assert_eq!((gone.entries, gone.bytes, gone.left), (1, evicted.bytes, evicted.bytes));
    assert_eq!(world.collector.derived.dispose(vec![given_up.clone()], None).await, given_up.bytes);
    let left = evicted.bytes + given_up.bytes;
    for n_parts in [1, 0] {
        let expected = Collected { parts: n_parts, left: 2, left_bytes: left, ..Collected::default() };
        assert_eq!(Collected { bytes: 0, ..world.collect().await }, expected);
        assert_eq!(evictor.metadata.undeleted_bytes().await.expect("bytes"), left);
        assert_eq!((evictor.ledger.undeleted(), evictor.ledger.held()), (left, 0));
    }
    assert!(!world.path(&orphan).exists());
    // It has become an entry's, for all that anybody knows: it stays, and counts there.
    world.publish(2, &given_up).await;
    for part in stuck {
        fs::remove_dir(world.path(part)).expect("removed");
        fs::rename(aside(part), world.path(part)).expect("renamed");
    }
    let expected = Collected { parts: 1, bytes: evicted.bytes, ..Collected::default() };
    assert_eq!(world.collect().await, expected);
    assert!(!world.path(&evicted).exists() && world.path(&given_up).exists());
    assert_eq!((evictor.metadata.undeleted_bytes().await.expect("bytes"), evictor.ledger.undeleted()), (0, 0));
}

#[tokio::test]
async fn a_sweep_that_can_not_see_everything_buries_nobody() {
    let world = world().await;
    world.lease("dead").await;
    fs::write(world.home.derived().join("1a"), b"no folder").expect("written");
    world.collect().await;
    assert_eq!(world.collector.metadata.cache_leases().await.expect("leases"), [], "a file is no obstacle");
    world.lease("dead").await;
    fs::remove_dir_all(world.home.derived()).expect("removed");
    fs::write(world.home.derived(), b"no folder").expect("written");
    world.collect().await;
    assert_eq!(world.collector.metadata.cache_leases().await.expect("leases").len(), 1);
}

#[test]
fn leases_without_locks_last_as_long_as_they_say() {
    assert!(is_alive(Liveness::Alive, 5, 1_000), "whatever the clock says");
    assert!(!is_alive(Liveness::Dead, i64::MAX, 0));
    assert!(is_alive(Liveness::Unknown, 5, 4));
    assert!(!is_alive(Liveness::Unknown, 5, 5));
}

/// Sweeps all the time beside others that write, publish and give up: no entry ever loses a part, and in the end nothing is
/// left that is no entry's.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn sweeping_beside_publishing() {
    let world = Arc::new(world().await);
    let mut writers = vec![];
    for writer in 0..4_u64 {
        let world = Arc::clone(&world);
        writers.push(tokio::spawn(async move {
            for round in 0..50_u64 {
                let number = writer * 1000 + round;
                let part = world.part(number, None).await;
                match number % 3 {
                    0 => world.collector.derived.delete(std::slice::from_ref(&part)).await.expect("deleted"),
                    1 => world.collector.derived.settle([&part]),
                    _ => {
                        tokio::task::yield_now().await;
                        world.publish(number, &part).await;
                        world.collector.derived.settle([&part]);
                    }
                }
            }
        }));
    }
    let sweeper = tokio::spawn({
        let world = Arc::clone(&world);
        async move {
            let mut n_swept = 0;
            for _ in 0..20 {
                let collected = world.collect().await;
                assert_eq!(collected.entries, 0, "no entry is lost");
                n_swept += collected.parts;
            }
            n_swept
        }
    });
    for writer in writers {
        writer.await.expect("no writer fails");
    }
    let before = sweeper.await.expect("it sweeps");
    let last = world.collect().await;
    println!("{before} swept meanwhile, {} at the end", last.parts);
    let entries = world.collector.cache.page(None, 1000).await.expect("entries");
    assert_eq!(
        before + last.parts,
        (0..4_u64).flat_map(|w| (0..50).map(move |r| w * 1000 + r)).filter(|n| n % 3 == 1).count()
    );
    assert!(entries.iter().flat_map(|entry| &entry.parts).all(|part| world.path(part).exists()));
    assert_eq!(world.collect().await, Collected::default());
}
