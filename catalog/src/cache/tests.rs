//! What the index promises over a store, what two processes see of each other, and what a million entries cost.

mod damage;
mod scale;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use super::{CacheEntry, EntrySummary, Inquiry, ProgramRecord, Totals, ViewCache};
use crate::store::conformance_cache::{entries, entry, key, part};
use crate::store::{MemoryStore, MetadataStore, SqliteStore};
use crate::{CatalogError, Clock, DESCRIPTION_BYTES_MAX, Fingerprint};

/// A clock that moves a microsecond with every look.
#[derive(Debug, Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now_ns(&self) -> i64 {
        self.0.fetch_add(1000, Ordering::Relaxed) + 2_000_000_000_000_000_000
    }
}

async fn over(store: Arc<dyn MetadataStore>) -> ViewCache {
    ViewCache::open_with(store, Arc::new(Ticking::default())).await.expect("a cache")
}

async fn in_memory() -> ViewCache {
    over(Arc::new(MemoryStore::new())).await
}

async fn on(path: &Path) -> ViewCache {
    over(Arc::new(SqliteStore::open(path).await.expect("a store"))).await
}

async fn add(cache: &ViewCache, numbers: std::ops::Range<u64>) {
    for (entry, program) in entries(numbers) {
        assert!(cache.add(entry, program).await.expect("added"));
    }
}

fn sorted(cache: &ViewCache) -> Vec<EntrySummary> {
    let mut entries = cache.entries();
    entries.sort_by_key(|entry| entry.key);
    entries
}

/// What the index should hold, by the store's own word.
async fn truth(cache: &ViewCache) -> Vec<Fingerprint> {
    let entries = cache.page(None, usize::MAX).await.expect("all entries");
    entries.iter().map(|entry| entry.key).collect()
}

fn program_of(number: u64) -> Fingerprint {
    entry(number).0.program
}

// One process.

#[tokio::test]
async fn what_was_added_is_found() {
    let cache = in_memory().await;
    assert_eq!(cache.lookup(&key(1)), None);
    let (entry, program) = entry(1);
    assert!(cache.add(entry.clone(), program.clone()).await.expect("added"));
    assert_eq!(cache.lookup(&key(1)), Some(entry.summary()));
    assert_eq!(cache.entry(&key(1)).await.expect("an answer"), Some(entry.clone()));
    assert_eq!(cache.program(&entry.program).await.expect("an answer"), Some(program.clone()));
    assert_eq!(cache.totals(), Totals { entries: 1, bytes: 20, programs: 1, empty: 0 });

    let other = CacheEntry { rows: 99, ..entry.clone() };
    assert!(!cache.add(other, program).await.expect("an answer"), "the old one stays");
    assert_eq!(cache.lookup(&key(1)), Some(entry.summary()));
}

#[tokio::test]
async fn what_was_removed_is_remembered() {
    let cache = in_memory().await;
    add(&cache, 0..3).await;
    let files = cache.remove(&[key(1), key(50)]).await.expect("removed");
    assert_eq!(files, [part("1/0.arrow"), part("1/1.arrow")]);
    assert_eq!(cache.lookup(&key(1)), None);
    assert_eq!(cache.totals(), Totals { entries: 2, bytes: 40, programs: 1, empty: 0 });
    let answers = cache.inquire(&[(key(1), program_of(1)), (key(0), program_of(0)), (key(50), key(50))], false);
    let dropped: Vec<_> = answers.iter().map(|answer| (answer.hit.is_some(), answer.dropped)).collect();
    assert_eq!(dropped, [(false, true), (true, false), (false, false)]);
    add(&cache, 1..2).await;
    assert!(!cache.inquire(&[(key(1), program_of(1))], false)[0].dropped, "it is back");
    cache.remove(&[key(0), key(1), key(2)]).await.expect("removed");
    assert_eq!(cache.totals(), Totals::default());
}

#[tokio::test]
async fn inquiries_count_each_program_once() {
    let cache = in_memory().await;
    add(&cache, 0..3).await;
    let prefixes = [(key(0), program_of(0)), (key(70), program_of(70)), (key(1), program_of(1))];
    let answers = cache.inquire(&prefixes, true);
    let none = Inquiry { hit: None, lookups: 0, entries_of_program: 0, dropped: false };
    assert_eq!(answers[0], Inquiry { hit: cache.lookup(&key(0)), entries_of_program: 3, ..none });
    assert_eq!(answers[1], none);
    assert_eq!(answers[2].lookups, 0, "the same program in the same query");
    let lookups = |count| cache.inquire(&prefixes, count).iter().map(|answer| answer.lookups).collect::<Vec<_>>();
    assert_eq!(lookups(true), [1, 1, 1]);
    assert_eq!(lookups(false), [2, 2, 2]);
    assert_eq!(lookups(false), [2, 2, 2], "only asked");
    assert_eq!(cache.inquire(&[], true), []);
}

#[tokio::test]
async fn entries_of_a_program_come_youngest_first() {
    let cache = in_memory().await;
    add(&cache, 5..15).await;
    let keys = |number| cache.entries_of(&program_of(number)).iter().map(|entry| entry.key).collect::<Vec<_>>();
    assert_eq!(keys(0), [key(9), key(8), key(7), key(6), key(5)]);
    cache.remove(&[key(7), key(9), key(5)]).await.expect("removed");
    assert_eq!(keys(0), [key(8), key(6)]);
    assert_eq!(keys(10).len(), 5);
    assert_eq!(keys(99), []);
}

#[tokio::test]
async fn uses_count_at_once_and_are_written_down() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let cache = on(&path).await;
    add(&cache, 0..2).await;
    cache.used(&key(0), 500);
    cache.used(&key(0), 700);
    cache.used(&key(9), 1);
    let used = cache.lookup(&key(0)).expect("an entry");
    assert_eq!((used.uses, used.saved_us), (2, 1200));
    assert!(used.last_used_at > used.created_at);
    cache.inquire(&[(key(0), program_of(0))], true);
    cache.flush().await.expect("written");
    assert_eq!(cache.lookup(&key(0)), Some(used));
    assert_eq!(sorted(&on(&path).await), sorted(&cache));

    cache.used(&key(0), 1);
    cache.flush().await.expect("written");
    cache.flush().await.expect("nothing to write");
    let reopened = on(&path).await;
    assert_eq!(reopened.lookup(&key(0)).map(|entry| (entry.uses, entry.saved_us)), Some((3, 1201)));
    assert_eq!(reopened.inquire(&[(key(0), program_of(0))], false)[0].lookups, 1);
    assert_eq!(cache.entry(&key(9)).await.expect("an answer"), None);
}

#[tokio::test]
async fn counts_that_cannot_be_written_stay() {
    let store = Arc::new(MemoryStore::new());
    let cache = over(Arc::<MemoryStore>::clone(&store)).await;
    add(&cache, 0..1).await;
    cache.used(&key(0), 5);
    cache.inquire(&[(key(0), program_of(0))], true);
    store.close().await;
    for _ in 0..2 {
        cache.flush().await.expect_err("a closed store");
        assert_eq!(cache.lookup(&key(0)).map(|entry| entry.uses), Some(1));
    }
    let waiting = cache.inner.lookups.lock().begin();
    assert_eq!(waiting.0.iter().map(|count| count.lookups).collect::<Vec<_>>(), [1]);
}

#[tokio::test]
async fn descriptions_are_bounded() {
    let cache = in_memory().await;
    let (mut entry, mut program) = entry(1);
    entry.description = "ü".repeat(DESCRIPTION_BYTES_MAX);
    program.description = format!("x{}", entry.description);
    cache.add(entry, program).await.expect("added");
    let entry = cache.entry(&key(1)).await.expect("an answer").expect("an entry");
    assert_eq!(entry.description.len(), DESCRIPTION_BYTES_MAX);
    let program = cache.program(&entry.program).await.expect("an answer").expect("a program");
    assert_eq!(program.description.len(), DESCRIPTION_BYTES_MAX - 1);
}

#[tokio::test]
async fn an_entry_needs_its_own_program() {
    let cache = in_memory().await;
    let program = ProgramRecord { program: key(5), ..entry(1).1 };
    let error = cache.add(entry(1).0, program).await.expect_err("a refusal");
    assert!(matches!(error, CatalogError::Damaged { .. }), "{error:?}");
    assert_eq!(truth(&cache).await, []);
}

#[tokio::test]
async fn lookups_of_old_programs_are_forgotten() {
    let cache = in_memory().await;
    let kept = super::counts::LOOKUPS_KEPT as u64;
    let prefixes: Vec<_> = (0..kept + kept / 4).map(|number| (key(0), key(number))).collect();
    for query in prefixes.chunks(1000) {
        cache.inquire(query, true);
    }
    cache.flush().await.expect("written");
    let lookups = |number: u64| cache.inquire(&[(key(0), key(number))], false)[0].lookups;
    assert_eq!(lookups(0), 0);
    assert_eq!(lookups(kept + kept / 4 - 1), 1);
    let mut n_written = 0;
    cache.inner.store.cache_lookups(&mut |_| n_written += 1).await.expect("look-ups");
    assert!(n_written <= kept + kept / 8, "{n_written}");
}

// Several processes.

#[tokio::test]
async fn processes_see_each_others_entries() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let (one, two) = (on(&path).await, on(&path).await);
    add(&one, 0..5).await;
    assert_eq!(two.lookup(&key(1)), None, "not before it looks");
    two.refresh().await.expect("refreshed");
    assert_eq!(sorted(&two), sorted(&one));
    two.remove(&[key(1), key(2)]).await.expect("removed");
    add(&two, 10..11).await;
    one.refresh().await.expect("refreshed");
    assert_eq!(sorted(&two), sorted(&one));
    assert_eq!(one.totals(), two.totals());
    assert!(one.inquire(&[(key(1), program_of(1))], false)[0].dropped);
    assert!(!two.add(entry(3).0, entry(3).1).await.expect("an answer"), "there already");

    // Uses travel, too, and are added up.
    one.used(&key(0), 10);
    one.flush().await.expect("written");
    two.used(&key(0), 1);
    two.flush().await.expect("written");
    two.refresh().await.expect("refreshed");
    one.refresh().await.expect("refreshed");
    let uses = |cache: &ViewCache| cache.lookup(&key(0)).map(|entry| (entry.uses, entry.saved_us));
    assert_eq!((uses(&one), uses(&two)), (Some((2, 11)), Some((2, 11))));
}

#[tokio::test]
async fn a_key_taken_by_another_process_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let (one, two) = (on(&path).await, on(&path).await);
    add(&one, 0..1).await;
    let (mine, program) = entry(0);
    let mine = CacheEntry { parts: vec![part("mine")], ..mine };
    assert!(!two.add(mine, program).await.expect("an answer"));
    two.refresh().await.expect("refreshed");
    assert_eq!(two.entry(&key(0)).await.expect("an answer"), Some(entry(0).0));
}

#[tokio::test]
async fn what_nobody_else_changed_is_not_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let cache = on(&path).await;
    add(&cache, 0..3).await;
    cache.remove(&[key(0)]).await.expect("removed");
    cache.used(&key(1), 1);
    cache.flush().await.expect("written");
    assert_eq!(cache.version(), cache.inner.store.versions().await.expect("versions").cache);
}

#[tokio::test]
async fn a_reader_that_slept_for_long_reads_everything() {
    let store: Arc<dyn MetadataStore> = Arc::new(MemoryStore::new());
    let (awake, asleep) = (over(Arc::clone(&store)).await, over(Arc::clone(&store)).await);
    add(&awake, 0..10).await;
    asleep.refresh().await.expect("refreshed");
    for number in 0..6 {
        // As `remove`, but for a store that remembers two drops only.
        store.drop_cache_entries(&[key(number)], 2).await.expect("dropped");
    }
    add(&awake, 20..21).await;
    for cache in [&awake, &asleep] {
        cache.refresh().await.expect("refreshed");
        let mut keys: Vec<_> = cache.entries().iter().map(|entry| entry.key).collect();
        keys.sort();
        assert_eq!(keys, truth(cache).await);
        assert_eq!(cache.totals().entries, 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_agree_after_a_crowd() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metadata.db");
    let mut crowd = vec![];
    let mut caches = vec![];
    for process in 0..3_u64 {
        let cache = on(&path).await;
        caches.push(cache.clone());
        for task in 0..2 {
            let cache = cache.clone();
            crowd.push(tokio::spawn(async move {
                let mut random = process * 10 + task + 1;
                for _ in 0..60 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let number = (random >> 33) % 25;
                    match (random >> 20) % 5 {
                        0 | 1 => _ = cache.add(entry(number).0, entry(number).1).await.expect("an answer"),
                        2 => _ = cache.remove(&[key(number), key(number + 1)]).await.expect("removed"),
                        3 => cache.refresh().await.expect("refreshed"),
                        _ => {
                            cache.used(&key(number), 1);
                            cache.flush().await.expect("written");
                        }
                    }
                }
            }));
        }
    }
    for one in crowd {
        one.await.expect("no panic");
    }
    let truth = truth(&caches[0]).await;
    let fresh = sorted(&on(&path).await);
    assert_eq!(fresh.iter().map(|entry| entry.key).collect::<Vec<_>>(), truth);
    for cache in &caches {
        cache.refresh().await.expect("refreshed");
        assert_eq!(sorted(cache), fresh);
        let of_programs: usize = [0, 10, 20].iter().map(|number| cache.entries_of(&program_of(*number)).len()).sum();
        assert_eq!(of_programs, truth.len());
    }
}
