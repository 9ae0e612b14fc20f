//! What every metadata store does with pins.

use super::cache::{entry, key};
use super::{MemoryStore, MetadataStore, SqliteStore, add, table};
use crate::cache::{EvictionNote, NewEntry, Pin, PinMove, PinMoves, PinOutcome, PinSubject, Publication};
use crate::{CatalogError, Fingerprint, Replace, TableId};

conformance! {
    pins_come_back_as_they_were
    only_what_is_there_is_pinned
    pins_are_bounded
    a_subject_has_one_pin
    what_is_pinned_is_spared_if_that_is_said
    pins_outlive_their_entries
    pins_of_views_go_with_them
    pins_of_views_move_with_what_is_published
    pins_stay_where_moving_would_be_too_much
}

/// Entries take 20 bytes each.
const PINNED: PinOutcome = PinOutcome::Pinned { bytes: 20 };

pub(super) fn pin(number: u64) -> Pin {
    of(PinSubject::Entry(key(number)), number)
}

fn of(subject: PinSubject, number: u64) -> Pin {
    let (program, pinned_at) = (entry(number).0.program, 100 + number as i64);
    Pin { subject, what: format!("SELECT 'ü', {number}"), program, key: key(number), bytes: 20, pinned_at }
}

async fn pins(store: &dyn MetadataStore) -> Vec<Pin> {
    store.pins().await.expect("pins")
}

async fn keys(store: &dyn MetadataStore) -> Vec<Fingerprint> {
    pins(store).await.into_iter().map(|pin| pin.key).collect()
}

async fn entries(store: &dyn MetadataStore, numbers: std::ops::Range<u64>) {
    store.add_cache_entries(&numbers.map(entry).collect::<Vec<_>>()).await.expect("added");
}

async fn pins_come_back_as_they_were(store: &dyn MetadataStore) {
    entries(store, 1..4).await;
    let view = table("v");
    add(store, &view, &[]).await;
    assert_eq!(pins(store).await, []);
    let version = store.catalog_version().await.expect("a version");
    let all = [of(PinSubject::Query(key(77)), 1), of(PinSubject::View(view.id), 2), pin(3)];
    for pin in all.iter().rev() {
        assert_eq!(store.pin(pin, 1000).await.expect("pinned"), PINNED);
    }
    assert_eq!(pins(store).await, all, "the oldest first");
    assert_eq!(store.catalog_version().await.expect("a version"), version + 3);
    assert_eq!(store.unpin(&all[1].subject).await.expect("an answer"), Some(all[1].clone()));
    assert_eq!(store.unpin(&all[1].subject).await.expect("an answer"), None);
    assert_eq!(pins(store).await, [all[0].clone(), all[2].clone()]);
    assert_eq!(store.catalog_version().await.expect("a version"), version + 4, "what was not there changed nothing");
}

async fn only_what_is_there_is_pinned(store: &dyn MetadataStore) {
    entries(store, 1..2).await;
    let before = store.versions().await.expect("versions");
    assert_eq!(store.pin(&pin(2), 1000).await.expect("an answer"), PinOutcome::NoEntry);
    let gone = of(PinSubject::View(TableId::new()), 1);
    assert!(matches!(store.pin(&gone, 1000).await, Err(CatalogError::TableNotFound { .. })));
    assert_eq!(pins(store).await, []);
    assert_eq!(store.versions().await.expect("versions"), before);
    // The size is the entry's, whatever the caller believes.
    assert_eq!(store.pin(&Pin { bytes: 7, ..pin(1) }, 1000).await.expect("pinned"), PINNED);
    assert_eq!(pins(store).await, [pin(1)]);
}

async fn pins_are_bounded(store: &dyn MetadataStore) {
    entries(store, 1..4).await;
    assert_eq!(store.pin(&pin(1), 40).await.expect("pinned"), PINNED);
    assert_eq!(store.pin(&pin(2), 40).await.expect("pinned"), PINNED);
    assert_eq!(store.pin(&pin(3), 59).await.expect("an answer"), PinOutcome::TooMuch { bytes: 60 });
    // One result counts once, however many pins it has; so does one that is not there at the moment.
    assert_eq!(store.pin(&of(PinSubject::Query(key(77)), 2), 40).await.expect("pinned"), PINNED);
    store.drop_cache_entries(&[key(1)], 10).await.expect("dropped");
    assert_eq!(store.pin(&pin(3), 59).await.expect("an answer"), PinOutcome::TooMuch { bytes: 60 });
    store.unpin(&pin(1).subject).await.expect("unpinned");
    assert_eq!(store.pin(&pin(3), 40).await.expect("pinned"), PINNED);
}

async fn a_subject_has_one_pin(store: &dyn MetadataStore) {
    entries(store, 1..3).await;
    let query = PinSubject::Query(key(77));
    assert_eq!(store.pin(&of(query, 1), 20).await.expect("pinned"), PINNED);
    // What it had before makes room for what it has now.
    assert_eq!(store.pin(&of(query, 2), 20).await.expect("pinned"), PINNED);
    assert_eq!(pins(store).await, [of(query, 2)]);
}

async fn what_is_pinned_is_spared_if_that_is_said(store: &dyn MetadataStore) {
    entries(store, 1..5).await;
    store.pin(&pin(2), 1000).await.expect("pinned");
    let all: Vec<_> = (1..4).map(key).collect();
    let space = EvictionNote { reason: "space", at: 5, keep: 10, spares_pinned: true };
    let dropped = store.evict_cache_entries(&all, 10, &space).await.expect("evicted");
    assert_eq!(dropped.keys.len(), 2);
    assert!(store.cache_entry(&key(2)).await.expect("an answer").is_some());
    assert_eq!(store.evictions(10).await.expect("evictions").len(), 2);
    let nothing = store.evict_cache_entries(&[key(2)], 10, &space).await.expect("an answer");
    assert_eq!((nothing.version, nothing.keys.len()), (None, 0));
    let by_hand = EvictionNote { spares_pinned: false, ..space };
    assert_eq!(store.evict_cache_entries(&[key(2)], 10, &by_hand).await.expect("evicted").keys, [key(2)]);
}

async fn pins_outlive_their_entries(store: &dyn MetadataStore) {
    entries(store, 1..2).await;
    store.pin(&pin(1), 1000).await.expect("pinned");
    store.drop_cache_entries(&[key(1)], 10).await.expect("dropped");
    assert_eq!(pins(store).await, [pin(1)]);
    entries(store, 1..2).await;
    let space = EvictionNote { reason: "space", at: 5, keep: 10, spares_pinned: true };
    assert_eq!(store.evict_cache_entries(&[key(1)], 10, &space).await.expect("an answer").keys, []);
}

async fn pins_of_views_go_with_them(store: &dyn MetadataStore) {
    entries(store, 1..4).await;
    let (one, two) = (table("one"), table("two"));
    for (view, number) in [(&one, 1), (&two, 2)] {
        add(store, view, &[]).await;
        store.pin(&of(PinSubject::View(view.id), number), 1000).await.expect("pinned");
    }
    store.pin(&pin(3), 1000).await.expect("pinned");
    store.drop_table(one.id).await.expect("dropped");
    assert_eq!(keys(store).await, [key(2), key(3)]);
    store.rename_table(two.id, &one.name).await.expect("renamed");
    assert_eq!(keys(store).await, [key(2), key(3)]);
    store.create_table(&table("one"), &[], Replace::Seen(Some(two.id))).await.expect("replaced");
    assert_eq!(keys(store).await, [key(3)]);
}

fn moves(view: TableId, number: u64, bytes_max: u64) -> PinMoves {
    PinMoves { moves: vec![PinMove { view, program: entry(1).0.program, key: key(number) }], bytes_max }
}

async fn publish(store: &dyn MetadataStore, number: u64, pins: PinMoves) {
    let (entry, program) = entry(number);
    let entries = vec![NewEntry { entry, program, lineage: None }];
    store.publish(&Publication { entries, pins, ..Publication::default() }).await.expect("published");
}

async fn pins_of_views_move_with_what_is_published(store: &dyn MetadataStore) {
    entries(store, 1..2).await;
    let view = table("v");
    add(store, &view, &[]).await;
    store.pin(&of(PinSubject::View(view.id), 1), 1000).await.expect("pinned");
    store.pin(&pin(1), 1000).await.expect("pinned");
    let version = store.catalog_version().await.expect("a version");
    publish(store, 2, moves(view.id, 2, 1000)).await;
    assert_eq!(keys(store).await, [key(1), key(2)], "that of the view, and no other");
    // Not to what is not there, and not of another program or view.
    publish(store, 3, moves(view.id, 9, 1000)).await;
    let program = key(99);
    let other = PinMoves { moves: vec![PinMove { program, ..moves(view.id, 3, 0).moves[0] }], bytes_max: 1000 };
    store.move_pins(&other).await.expect("an answer");
    store.move_pins(&moves(TableId::new(), 3, 1000)).await.expect("an answer");
    assert_eq!(keys(store).await, [key(1), key(2)]);
    // To one that is there already.
    store.move_pins(&moves(view.id, 3, 1000)).await.expect("moved");
    assert_eq!(keys(store).await, [key(1), key(3)]);
    assert_eq!(store.catalog_version().await.expect("a version"), version);
}

async fn pins_stay_where_moving_would_be_too_much(store: &dyn MetadataStore) {
    entries(store, 1..4).await;
    let view = table("v");
    add(store, &view, &[]).await;
    store.pin(&of(PinSubject::View(view.id), 1), 1000).await.expect("pinned");
    store.pin(&pin(3), 1000).await.expect("pinned");
    store.move_pins(&moves(view.id, 2, 39)).await.expect("an answer");
    assert_eq!(keys(store).await, [key(1), key(3)]);
    store.move_pins(&moves(view.id, 2, 40)).await.expect("moved");
    assert_eq!(keys(store).await, [key(2), key(3)]);
}
