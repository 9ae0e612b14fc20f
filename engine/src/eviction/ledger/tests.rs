//! The budget holds whoever asks, in one process and in two.

use nectarine_catalog::store::MemoryStore;
use nectarine_catalog::{CacheEntry, EntryKind, EntryPart, Fingerprint, ProgramRecord, SystemClock};

use super::*;
use crate::settings::NectarineOptions;

fn budget(bytes: u64) -> Budget {
    let options = NectarineOptions { cache_budget: bytes.to_string(), ..NectarineOptions::default() };
    Budget::new(&options, None).expect("valid")
}

async fn ledger(store: &Arc<dyn MetadataStore>, holder: &str, bytes: u64) -> (Ledger, ViewCache) {
    let cache = ViewCache::open(Arc::clone(store)).await.expect("it opens");
    let clock = Arc::new(SystemClock);
    (Ledger::new(cache.clone(), Arc::clone(store), clock, holder.to_owned(), budget(bytes)), cache)
}

fn store() -> Arc<dyn MetadataStore> {
    Arc::new(MemoryStore::new())
}

/// Publishes an entry of so many bytes that were set aside.
async fn publish(ledger: &Ledger, cache: &ViewCache, number: u64, bytes: u64) {
    let key = Fingerprint::of_bytes(&number.to_le_bytes());
    let part = EntryPart { location: number.to_string(), bytes, rows: 1, checksum: key };
    let entry = CacheEntry {
        key,
        program: key,
        kind: EntryKind::Rows,
        parts: vec![part],
        rows: 1,
        bytes,
        cost_us: 1,
        inputs: vec![],
        description: String::new(),
        created_at: 1,
    };
    let program = ProgramRecord { program: key, encoding: Arc::from([1]), description: String::new() };
    assert!(cache.add(entry, program).await.expect("added"));
    ledger.release(bytes, true);
}

async fn leased(store: &Arc<dyn MetadataStore>) -> u64 {
    store.cache_leases().await.expect("leases").iter().map(|lease| lease.reserved).sum()
}

#[tokio::test]
async fn what_is_published_counts_once() {
    let store = store();
    let (ledger, cache) = ledger(&store, "a", 1000).await;
    for number in 0..10 {
        assert!(ledger.reserve(100, true).await, "{number}");
        publish(&ledger, &cache, number, 100).await;
    }
    assert!(!ledger.reserve(1, true).await, "the budget is used up");
    assert_eq!(ledger.held(), 0);
    assert_eq!(cache.totals().bytes, 1000);
}

#[tokio::test]
async fn what_is_deleted_makes_room_again() {
    let store = store();
    let (ledger, _) = ledger(&store, "a", 1000).await;
    assert!(ledger.reserve(900, true).await);
    assert!(!ledger.reserve(200, true).await);
    ledger.release(900, false);
    assert!(ledger.reserve(1000, true).await);
    ledger.release(1000, false);
    ledger.tidy().await;
    assert_eq!(store.cache_leases().await.expect("leases"), [], "nothing is in flight");
}

/// Small results take from what was granted: many of them, and few transactions.
#[tokio::test]
async fn parts_do_not_cost_a_transaction_each() {
    let store = store();
    let (ledger, _) = ledger(&store, "a", 1 << 30).await;
    assert!(ledger.reserve(1000, true).await);
    let lease = leased(&store).await;
    assert!(lease > 1 << 20, "{lease}");
    for _ in 0..1000 {
        assert!(ledger.reserve(1000, true).await);
    }
    assert_eq!(leased(&store).await, lease, "nobody asked again");
    // Big ones ask.
    assert!(ledger.reserve(100 << 20, true).await);
    assert!(leased(&store).await >= 100 << 20);
}

#[tokio::test]
async fn what_nobody_asked_for_finds_no_room_where_it_is_tight() {
    let store = store();
    let (ledger, cache) = ledger(&store, "a", 1000).await;
    assert!(ledger.reserve(790, false).await);
    publish(&ledger, &cache, 1, 790).await;
    assert!(!ledger.is_tight());
    assert!(ledger.reserve(20, true).await);
    assert!(ledger.is_tight(), "810 of 1000");
    assert!(!ledger.reserve(10, false).await);
    assert!(ledger.reserve(10, true).await);
}

/// Processes that reserve, publish and give up at random never come to more than the budget together.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_share_one_budget() {
    const BUDGET: u64 = 10_000;
    let store = store();
    let (mut tasks, mut ledgers) = (vec![], vec![]);
    for process in 0..3_u64 {
        let (ledger, cache) = ledger(&store, &format!("p{process}"), BUDGET).await;
        let (ledger, cache) = (Arc::new(ledger), cache);
        ledgers.push(Arc::clone(&ledger));
        for task in 0..3_u64 {
            let (ledger, cache, store) = (Arc::clone(&ledger), cache.clone(), Arc::clone(&store));
            tasks.push(tokio::spawn(async move {
                for round in 0..60_u64 {
                    let number = process * 10_000 + task * 1000 + round;
                    let bytes = 50 + number * 7919 % 400;
                    if !ledger.reserve(bytes, true).await {
                        let oldest = cache.entries().into_iter().take(3).map(|entry| entry.key).collect::<Vec<_>>();
                        cache.remove(&oldest).await.expect("removed");
                        continue;
                    }
                    // In flight for a moment: that counts as well.
                    tokio::task::yield_now().await;
                    let mut entries = 0;
                    store
                        .cache_changes(None, &mut |change| {
                            if let nectarine_catalog::CacheChange::Entry { summary, .. } = change {
                                entries += summary.bytes;
                            }
                        })
                        .await
                        .expect("entries");
                    assert!(entries <= BUDGET, "{entries}");
                    match number % 3 {
                        0 => ledger.release(bytes, false),
                        _ => publish(&ledger, &cache, number, bytes).await,
                    }
                    if number % 17 == 0 {
                        ledger.tidy().await;
                    }
                }
            }));
        }
    }
    for task in tasks {
        task.await.expect("no task fails");
    }
    // Until then a lease also has what became entries since it was written: too much, never too little.
    for ledger in &ledgers {
        ledger.tidy().await;
    }
    assert_eq!(leased(&store).await, 0, "nothing is in flight");
    let (last, cache) = ledger(&store, "last", BUDGET).await;
    assert!(cache.totals().bytes + leased(&store).await <= BUDGET);
    drop(last);
}

/// A process that died keeps its room until somebody buries it.
#[tokio::test]
async fn the_room_of_the_dead_is_not_given_away() {
    let store = store();
    let (dead, _) = ledger(&store, "dead", 1000).await;
    assert!(dead.reserve(900, true).await);
    drop(dead);
    let (ledger, _) = ledger(&store, "a", 1000).await;
    assert!(!ledger.reserve(200, true).await);
    store.drop_cache_lease("dead").await.expect("buried");
    tokio::time::sleep(REFUSED).await;
    assert!(ledger.reserve(200, true).await);
}
