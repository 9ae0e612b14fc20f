//! What every metadata store does with leases, evictions and what the collector asks.

use std::sync::Arc;

use super::cache::{entry, key, part};
use super::{MemoryStore, MetadataStore, SqliteStore};
use crate::cache::{CacheLease, EvictionNote, EvictionTotals, SpaceOutcome, SpaceRequest, UseCount};

conformance! {
    room_is_set_aside_within_the_budget
    who_knows_too_little_asks_again
    leases_are_replaced_and_given_up
    files_that_could_not_be_deleted_count
    evictions_are_recorded_with_their_reason
    what_is_evicted_again_is_recorded_again
    evictions_are_bounded_and_counted_for_ever
    dropping_is_no_eviction
    locations_are_told_by_range
    lists_that_entries_have_stay
}

fn note(reason: &str) -> EvictionNote<'_> {
    EvictionNote { reason, at: 500, keep: 100, spares_pinned: false }
}

async fn version(store: &dyn MetadataStore) -> i64 {
    store.versions().await.expect("versions").cache
}

async fn request(store: &dyn MetadataStore, holder: &str, least: u64, most: u64) -> SpaceOutcome {
    let version = version(store).await;
    let holder = holder.to_owned();
    let request = SpaceRequest { holder, least, most, budget: 100, used: 20, version, expires_at: 7 };
    store.reserve_cache_space(&request).await.expect("an answer")
}

async fn reserved(store: &dyn MetadataStore) -> Vec<(String, u64)> {
    let leases = store.cache_leases().await.expect("leases");
    leases.into_iter().map(|lease| (lease.holder, lease.reserved)).collect()
}

async fn room_is_set_aside_within_the_budget(store: &dyn MetadataStore) {
    assert_eq!(reserved(store).await, []);
    assert_eq!(request(store, "a", 10, 50).await, SpaceOutcome::Granted(50));
    // 30 are left: as much as there is, as long as it is enough.
    assert_eq!(request(store, "b", 10, 50).await, SpaceOutcome::Granted(30));
    assert_eq!(request(store, "c", 1, 1).await, SpaceOutcome::Refused { others: 80 });
    // What the asker has is not in its own way, and a refusal takes nothing.
    assert_eq!(request(store, "a", 51, 60).await, SpaceOutcome::Refused { others: 30 });
    assert_eq!(reserved(store).await, [("a".to_owned(), 50), ("b".to_owned(), 30)]);
    assert_eq!(request(store, "a", 5, 10).await, SpaceOutcome::Granted(10));
    assert_eq!(request(store, "c", 0, 1000).await, SpaceOutcome::Granted(40));
    assert_eq!(request(store, "d", 0, 1000).await, SpaceOutcome::Granted(0));
    let full = SpaceRequest { used: u64::MAX, ..ask(store, "d").await };
    assert_eq!(store.reserve_cache_space(&full).await.expect("an answer"), SpaceOutcome::Refused { others: 80 });
}

async fn ask(store: &dyn MetadataStore, holder: &str) -> SpaceRequest {
    let (holder, version) = (holder.to_owned(), version(store).await);
    SpaceRequest { holder, least: 1, most: 1, budget: 1000, used: 0, version, expires_at: 7 }
}

async fn who_knows_too_little_asks_again(store: &dyn MetadataStore) {
    let old = ask(store, "a").await;
    store.add_cache_entries(&[entry(1)]).await.expect("added");
    assert_eq!(store.reserve_cache_space(&old).await.expect("an answer"), SpaceOutcome::Stale);
    assert_eq!(reserved(store).await, []);
    let now = ask(store, "a").await;
    assert_eq!(store.reserve_cache_space(&now).await.expect("an answer"), SpaceOutcome::Granted(1));
    // Setting room aside is no change of entries.
    assert_eq!(version(store).await, now.version);
}

async fn files_that_could_not_be_deleted_count(store: &dyn MetadataStore) {
    assert_eq!(store.undeleted_bytes().await.expect("bytes"), 0);
    let parts = [part("a"), part("b"), part("c")];
    store.add_undeleted_parts(&parts[..2]).await.expect("written down");
    store.add_undeleted_parts(&parts).await.expect("written down again");
    assert_eq!(store.undeleted_parts().await.expect("parts"), parts);
    assert_eq!(store.undeleted_bytes().await.expect("bytes"), 30);
    // They leave 50 of the 80, whoever asks.
    assert_eq!(request(store, "a", 51, 51).await, SpaceOutcome::Refused { others: 30 });
    assert_eq!(request(store, "a", 20, 20).await, SpaceOutcome::Granted(20));
    assert_eq!(request(store, "b", 10, 99).await, SpaceOutcome::Granted(30));
    store.forget_undeleted_parts(&["a".to_owned(), "c".to_owned()]).await.expect("forgotten");
    assert_eq!(store.undeleted_parts().await.expect("parts"), parts[1..2]);
    assert_eq!(request(store, "b", 10, 99).await, SpaceOutcome::Granted(50));
}

async fn leases_are_replaced_and_given_up(store: &dyn MetadataStore) {
    let lease = |holder: &str, reserved, expires_at| CacheLease { holder: holder.to_owned(), reserved, expires_at };
    store.save_cache_lease(&lease("b", 5, 1)).await.expect("saved");
    store.save_cache_lease(&lease("a", u64::MAX >> 1, 2)).await.expect("saved");
    store.save_cache_lease(&lease("b", 0, 3)).await.expect("saved");
    let leases = store.cache_leases().await.expect("leases");
    assert_eq!(leases, [lease("a", u64::MAX >> 1, 2), lease("b", 0, 3)]);
    store.drop_cache_lease("a").await.expect("dropped");
    store.drop_cache_lease("nobody").await.expect("nothing to do");
    assert_eq!(store.cache_leases().await.expect("leases"), [lease("b", 0, 3)]);
}

async fn evictions_are_recorded_with_their_reason(store: &dyn MetadataStore) {
    store.add_cache_entries(&[entry(1), entry(2), entry(3)]).await.expect("added");
    let used = UseCount { key: key(2), uses: 4, saved_us: 9, last_used_at: 400 };
    store.save_cache_counts(&[used], &[], None).await.expect("counted");
    let dropped = store.evict_cache_entries(&[key(2), key(9), key(1)], 100, &note("space")).await.expect("evicted");
    assert_eq!(dropped.keys.len(), 2);
    assert_eq!(dropped.parts.len(), 4);
    assert_eq!(dropped.version, Some(version(store).await));
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), None);
    let evictions = store.evictions(10).await.expect("evictions");
    assert_eq!(evictions.len(), 2, "the newest first, and nothing of what was not there: {evictions:?}");
    let (second, first) = (&evictions[0], &evictions[1]);
    assert_eq!((first.key, second.key), (key(1), key(2)));
    assert_eq!((second.uses, second.bytes, second.cost_us), (4, 20, 1002));
    assert_eq!((second.program, second.description.as_str()), (entry(2).0.program, "SELECT 'ü'"));
    assert_eq!((second.reason.as_str(), second.evicted_at, second.remade), ("space", 500, None));

    // One comes back, at another cost.
    let (mut again, program) = entry(2);
    (again.cost_us, again.created_at) = (77, 600);
    store.add_cache_entries(&[(again, program), entry(8)]).await.expect("added");
    let evictions = store.evictions(1).await.expect("evictions");
    assert_eq!((evictions.len(), evictions[0].key, evictions[0].remade), (1, key(2), Some((600, 77))));
}

async fn what_is_evicted_again_is_recorded_again(store: &dyn MetadataStore) {
    for round in 1..=3 {
        let (mut again, program) = entry(1);
        (again.cost_us, again.created_at) = (round, 100 * round as i64);
        store.add_cache_entries(&[(again, program)]).await.expect("added");
        let reason = format!("round {round}");
        store.evict_cache_entries(&[key(1)], 100, &note(&reason)).await.expect("evicted");
    }
    let evictions = store.evictions(10).await.expect("evictions");
    let told: Vec<_> = evictions.iter().map(|gone| (gone.reason.as_str(), gone.remade)).collect();
    assert_eq!(told, [("round 3", None), ("round 2", Some((300, 3))), ("round 1", Some((200, 2)))]);
}

async fn evictions_are_bounded_and_counted_for_ever(store: &dyn MetadataStore) {
    assert_eq!(store.eviction_totals().await.expect("totals"), EvictionTotals::default());
    let keys: Vec<_> = (0..700).map(key).collect();
    store.add_cache_entries(&(0..700).map(entry).collect::<Vec<_>>()).await.expect("added");
    let few = EvictionNote { keep: 5, ..note("space") };
    store.evict_cache_entries(&keys[..600], 100, &few).await.expect("evicted");
    store.evict_cache_entries(&keys[600..603], 100, &few).await.expect("evicted");
    let told: Vec<_> = store.evictions(100).await.expect("evictions").iter().map(|gone| gone.key).collect();
    assert_eq!(told, [key(602), key(601), key(600), key(599), key(598)]);
    let totals = store.eviction_totals().await.expect("totals");
    assert_eq!(totals, EvictionTotals { entries: 603, bytes: 603 * 20 });
    assert_eq!(store.cache_entries(None, 1000).await.expect("a page").len(), 97);
}

async fn dropping_is_no_eviction(store: &dyn MetadataStore) {
    store.add_cache_entries(&[entry(1)]).await.expect("added");
    store.drop_cache_entries(&[key(1)], 100).await.expect("dropped");
    assert_eq!(store.evictions(10).await.expect("evictions"), []);
    let nothing = store.evict_cache_entries(&[key(1)], 100, &note("space")).await.expect("an answer");
    assert_eq!((nothing.version, nothing.keys), (None, vec![]));
    assert_eq!(store.eviction_totals().await.expect("totals"), EvictionTotals::default());
}

async fn locations_are_told_by_range(store: &dyn MetadataStore) {
    let at = |number: u64, names: &[&str]| {
        let (mut entry, program) = entry(number);
        entry.parts = names.iter().map(|name| part(name)).collect();
        (entry, program)
    };
    let entries = [at(1, &["0a/x", "0b/y"]), at(2, &["0b/a"]), at(3, &["0c/a", "s3://b/0b/z"]), at(4, &[])];
    store.add_cache_entries(&entries).await.expect("added");
    let between = async |from: &str, to: &str| {
        let mut found = store.cache_locations(from, to).await.expect("locations");
        found.sort();
        found
    };
    assert_eq!(between("0b/", "0b0").await, [("0b/a".to_owned(), key(2)), ("0b/y".to_owned(), key(1))]);
    assert_eq!(between("0c/", "0c0").await, [("0c/a".to_owned(), key(3))]);
    assert_eq!(between("s3://b/0b/", "s3://b/0b0").await, [("s3://b/0b/z".to_owned(), key(3))]);
    assert_eq!(between("0d/", "0d0").await, []);
}

async fn lists_that_entries_have_stay(store: &dyn MetadataStore) {
    store.add_cache_entries(&[entry(1), entry(2)]).await.expect("added");
    store.drop_cache_entries(&[key(1)], 100).await.expect("dropped");
    let (mut after, mut n_looks) = (None, 0);
    loop {
        let (last, unused) = store.unused_cache_inputs(after.as_ref(), 2).await.expect("lists");
        assert_eq!(unused, [], "dropping took them along");
        n_looks += 1;
        assert!(n_looks < 10);
        match last {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    let all = [Arc::clone(&entry(2).0.inputs[0])].concat();
    assert_eq!(store.drop_cache_inputs(&all).await.expect("an answer"), 0);
    assert_eq!(store.cache_entry(&key(2)).await.expect("an answer"), Some(entry(2).0));
}
