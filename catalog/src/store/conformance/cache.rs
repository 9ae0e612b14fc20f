//! What every metadata store does with cache entries.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};

use super::{MemoryStore, MetadataStore, SqliteStore, table};
use crate::cache::{
    CacheChange, CacheEntry, EntryKind, EntryPart, LookupCount, ProgramRecord, RelativeRecord, UseCount,
};
use crate::store::Versions;
use crate::{EntrySummary, Fingerprint, Replace};

conformance! {
    a_new_store_has_no_entries
    entries_come_back_as_they_were
    programs_are_kept_once
    a_key_is_taken_once
    several_entries_are_one_transaction
    dropped_entries_are_gone_and_remembered
    dropping_nothing_changes_nothing
    files_are_given_up_with_their_last_entry
    changes_are_told_once
    an_entry_that_is_back_is_not_dropped
    forgotten_drops_make_readers_read_everything
    pages_follow_the_keys
    neighbours_share_an_input_or_are_young
    uses_are_added_up
    lookups_are_added_up_and_bounded
    relatives_are_kept_once_and_bounded
    versions_do_not_disturb_each_other
    many_entries_with_many_parts
}

// Things to store.

pub(crate) fn key(number: u64) -> Fingerprint {
    Fingerprint::of_bytes(&number.to_le_bytes())
}

pub(crate) fn part(name: &str) -> EntryPart {
    EntryPart { location: name.to_owned(), bytes: 10, rows: 2, checksum: Fingerprint::of_bytes(name.as_bytes()) }
}

/// Ten numbers share a program.
pub(crate) fn entry(number: u64) -> (CacheEntry, ProgramRecord) {
    let program = Fingerprint::of_bytes(format!("program {}", number / 10).as_bytes());
    let entry = CacheEntry {
        key: key(number),
        program,
        kind: if number.is_multiple_of(2) { EntryKind::Rows } else { EntryKind::States },
        parts: vec![part(&format!("{number}/0.arrow")), part(&format!("{number}/1.arrow"))],
        rows: 4,
        bytes: 20,
        cost_us: 1000 + number,
        inputs: vec![Arc::from([key(7), key(8)]), Arc::from([]), Arc::from([key(number)])],
        description: "SELECT 'ü'".to_owned(),
        created_at: 1_700_000_000_000_000 + number as i64,
    };
    let program = ProgramRecord { program, encoding: Arc::from([1, 0, 255]), description: "SELECT 'ü'".to_owned() };
    (entry, program)
}

pub(crate) fn entries(numbers: std::ops::Range<u64>) -> Vec<(CacheEntry, ProgramRecord)> {
    numbers.map(entry).collect()
}

async fn add(store: &dyn MetadataStore, numbers: &[u64]) -> i64 {
    let entries: Vec<_> = numbers.iter().map(|number| entry(*number)).collect();
    let outcome = store.add_cache_entries(&entries).await.expect("added");
    assert!(outcome.added.iter().all(|added| *added), "{outcome:?}");
    outcome.version.expect("a version")
}

/// What a reader is told, sorted; whether it was told everything; and up to where.
async fn news(store: &dyn MetadataStore, since: Option<i64>) -> (Vec<Fingerprint>, Vec<Fingerprint>, bool, i64) {
    let (mut added, mut dropped, mut all) = (vec![], vec![], false);
    let mut visit = |change| match change {
        CacheChange::Everything => {
            assert!(added.is_empty() && dropped.is_empty() && !all, "everything comes first");
            all = true;
        }
        CacheChange::Entry { summary, version } => {
            assert!(all || Some(version) > since);
            added.push(summary.key);
        }
        CacheChange::Dropped { key, version } => {
            assert!(all || Some(version) > since);
            dropped.push(key);
        }
    };
    let changes = store.cache_changes(since, &mut visit).await.expect("changes");
    assert_eq!(changes.n_damaged, 0);
    added.sort();
    dropped.sort();
    (added, dropped, all, changes.version)
}

fn keys(numbers: &[u64]) -> Vec<Fingerprint> {
    let mut keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    keys.sort();
    keys
}

async fn cache_version(store: &dyn MetadataStore) -> i64 {
    store.versions().await.expect("versions").cache
}

async fn summary(store: &dyn MetadataStore, key: Fingerprint) -> EntrySummary {
    let mut found = None;
    let mut visit = |change| match change {
        CacheChange::Entry { summary, .. } if summary.key == key => found = Some(summary),
        _ => {}
    };
    store.cache_changes(None, &mut visit).await.expect("changes");
    found.expect("an entry")
}

async fn lookups(store: &dyn MetadataStore) -> Vec<(Fingerprint, u64, i64)> {
    let mut all = vec![];
    let mut visit = |count: LookupCount| all.push((count.program, count.lookups, count.last_lookup_at));
    store.cache_lookups(&mut visit).await.expect("look-ups");
    all.sort();
    all
}

// Entries.

async fn a_new_store_has_no_entries(store: &dyn MetadataStore) {
    let (added, dropped, all, version) = news(store, None).await;
    assert_eq!((added, dropped, all), (vec![], vec![], true));
    assert_eq!(version, cache_version(store).await);
    assert_eq!(news(store, Some(version)).await, (vec![], vec![], false, version));
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), None);
    assert_eq!(store.cache_program(&key(1)).await.expect("an answer"), None);
    assert_eq!(store.cache_entries(None, 10).await.expect("a page"), []);
    assert_eq!(lookups(store).await, []);
}

async fn entries_come_back_as_they_were(store: &dyn MetadataStore) {
    let (mut odd, program) = entry(1);
    odd.parts = vec![];
    odd.inputs = vec![];
    (odd.rows, odd.bytes, odd.cost_us, odd.created_at) = (u64::MAX, u64::MAX - 1, 0, i64::MIN);
    odd.description = "another text".to_owned();
    let all = [entry(0), (odd, program), entry(2)];
    let version = store.add_cache_entries(&all).await.expect("added").version;
    assert_eq!(version, Some(cache_version(store).await));
    for (entry, program) in all {
        assert_eq!(store.cache_entry(&entry.key).await.expect("an answer"), Some(entry.clone()));
        assert_eq!(store.cache_program(&entry.program).await.expect("an answer"), Some(program));
        assert_eq!(summary(store, entry.key).await, entry.summary());
    }
}

async fn programs_are_kept_once(store: &dyn MetadataStore) {
    let (one, program) = entry(1);
    let (two, _) = entry(2);
    let renamed = ProgramRecord { description: "the same".to_owned(), ..program.clone() };
    store.add_cache_entries(&[(one.clone(), program.clone())]).await.expect("added");
    store.add_cache_entries(&[(two.clone(), renamed.clone())]).await.expect("added");
    let over_others = CacheEntry { description: renamed.description.clone(), ..entry(4).0 };
    store.add_cache_entries(&[(over_others.clone(), renamed)]).await.expect("added");
    assert_eq!(store.cache_program(&one.program).await.expect("an answer"), Some(program.clone()));
    // Each entry has the description it came with.
    assert_eq!(store.cache_entry(&two.key).await.expect("an answer"), Some(two));
    assert_eq!(store.cache_entry(&over_others.key).await.expect("an answer"), Some(over_others));

    let mended = ProgramRecord { encoding: Arc::from([9]), ..program };
    store.add_cache_entries(&[(entry(3).0, mended.clone())]).await.expect("added");
    assert_eq!(store.cache_program(&one.program).await.expect("an answer"), Some(mended.clone()));
    store.drop_cache_entries(&[key(1), key(2), key(3)], 10).await.expect("dropped");
    assert_eq!(store.cache_program(&one.program).await.expect("an answer"), Some(mended), "programs stay");
}

async fn a_key_is_taken_once(store: &dyn MetadataStore) {
    let version = add(store, &[1]).await;
    let (mut other, program) = entry(1);
    other.rows = 99;
    other.parts = vec![part("other")];
    let outcome = store.add_cache_entries(&[(other, program)]).await.expect("an answer");
    assert_eq!((outcome.version, outcome.added), (None, vec![false]));
    assert_eq!(cache_version(store).await, version);
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), Some(entry(1).0));
    assert_eq!(store.cache_files_referenced(&["other".to_owned()]).await.expect("an answer"), [false]);
    assert_eq!(store.add_cache_entries(&[]).await.expect("an answer").version, None);
}

async fn several_entries_are_one_transaction(store: &dyn MetadataStore) {
    add(store, &[2]).await;
    let mut twice = entry(3);
    twice.0.rows = 99;
    let outcome = store.add_cache_entries(&[entry(1), entry(2), entry(3), twice]).await.expect("added");
    assert_eq!(outcome.added, [true, false, true, false]);
    assert_eq!(news(store, outcome.version.map(|version| version - 1)).await.0, keys(&[1, 3]));
    assert_eq!(store.cache_entry(&key(3)).await.expect("an answer"), Some(entry(3).0));
}

async fn dropped_entries_are_gone_and_remembered(store: &dyn MetadataStore) {
    add(store, &[1, 2, 3]).await;
    let outcome = store.drop_cache_entries(&[key(3), key(1), key(77)], 10).await.expect("dropped");
    let mut dropped = outcome.keys.clone();
    dropped.sort();
    assert_eq!(dropped, keys(&[1, 3]));
    let mut locations: Vec<_> = outcome.parts.iter().map(|part| part.location.as_str()).collect();
    locations.sort_unstable();
    assert_eq!(locations, ["1/0.arrow", "1/1.arrow", "3/0.arrow", "3/1.arrow"]);
    assert!(outcome.parts.contains(&part("3/1.arrow")));
    assert_eq!(outcome.version, Some(cache_version(store).await));
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), None);
    assert_eq!(store.cache_entry(&key(2)).await.expect("an answer"), Some(entry(2).0), "shares inputs with the others");
    let (added, dropped, ..) = news(store, None).await;
    assert_eq!((added, dropped), (keys(&[2]), keys(&[1, 3])));
}

async fn dropping_nothing_changes_nothing(store: &dyn MetadataStore) {
    let version = add(store, &[1]).await;
    for keys in [&[][..], &[key(5)]] {
        let outcome = store.drop_cache_entries(keys, 10).await.expect("an answer");
        assert_eq!((outcome.version, outcome.keys, outcome.parts), (None, vec![], vec![]));
    }
    assert_eq!(cache_version(store).await, version);
    assert_eq!(news(store, None).await.1, []);
}

async fn files_are_given_up_with_their_last_entry(store: &dyn MetadataStore) {
    let (mut one, mut two, mut three) = (entry(1), entry(2), entry(3));
    one.0.parts = vec![part("a"), part("b"), part("a")];
    two.0.parts = vec![part("b"), part("c")];
    three.0.parts = vec![part("c")];
    store.add_cache_entries(&[one, two, three]).await.expect("added");
    let locations = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(store.cache_files_referenced(&locations).await.expect("an answer"), [true, true, true, false]);
    assert_eq!(store.drop_cache_entries(&[key(1)], 10).await.expect("dropped").parts, [part("a")]);
    assert_eq!(store.cache_files_referenced(&locations).await.expect("an answer"), [false, true, true, false]);
    let parts = store.drop_cache_entries(&[key(2), key(3)], 10).await.expect("dropped").parts;
    assert_eq!(parts, [part("b"), part("c")], "each once");
}

// Changes.

async fn changes_are_told_once(store: &dyn MetadataStore) {
    let mut version = news(store, None).await.3;
    add(store, &[1, 2]).await;
    add(store, &[3]).await;
    let (added, dropped, all, next) = news(store, Some(version)).await;
    assert_eq!((added, dropped, all), (keys(&[1, 2, 3]), vec![], false));
    version = next;
    assert_eq!(news(store, Some(version)).await, (vec![], vec![], false, version));
    store.drop_cache_entries(&[key(2)], 10).await.expect("dropped");
    add(store, &[4]).await;
    assert_eq!(news(store, Some(version)).await, (keys(&[4]), keys(&[2]), false, version + 2));
}

async fn an_entry_that_is_back_is_not_dropped(store: &dyn MetadataStore) {
    let version = add(store, &[1, 2]).await;
    store.drop_cache_entries(&[key(1), key(2)], 10).await.expect("dropped");
    add(store, &[1]).await;
    assert_eq!(news(store, Some(version)).await, (keys(&[1]), keys(&[2]), false, version + 2));
    store.drop_cache_entries(&[key(1)], 10).await.expect("dropped");
    assert_eq!(news(store, Some(version)).await, (vec![], keys(&[1, 2]), false, version + 3));
}

async fn forgotten_drops_make_readers_read_everything(store: &dyn MetadataStore) {
    let version = add(store, &[1, 2, 3, 4, 5]).await;
    for number in 1..=3 {
        store.drop_cache_entries(&[key(number)], 2).await.expect("dropped");
    }
    assert_eq!(news(store, Some(version)).await, (keys(&[4, 5]), keys(&[2, 3]), true, version + 3));
    // Who knows of the forgotten drop needs no more than the others.
    assert_eq!(news(store, Some(version + 1)).await, (vec![], keys(&[2, 3]), false, version + 3));
    // A transaction is forgotten as a whole.
    store.drop_cache_entries(&[key(4), key(5)], 1).await.expect("dropped");
    assert_eq!(news(store, Some(version + 3)).await, (vec![], vec![], true, version + 4));
    assert_eq!(news(store, Some(version + 4)).await, (vec![], vec![], false, version + 4));
}

async fn pages_follow_the_keys(store: &dyn MetadataStore) {
    let numbers: Vec<_> = (0..600).collect();
    store.add_cache_entries(&entries(0..600)).await.expect("added");
    let mut expected: Vec<_> = numbers.iter().map(|number| entry(*number).0).collect();
    expected.sort_by_key(|entry| entry.key);
    assert_eq!(store.cache_entries(None, usize::MAX).await.expect("a page"), expected);
    assert_eq!(store.cache_entries(None, 0).await.expect("a page"), []);
    let (mut all, mut after) = (vec![], None);
    loop {
        let page = store.cache_entries(after.as_ref(), 250).await.expect("a page");
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 250);
        after = Some(last.key);
        all.extend(page);
    }
    assert!(all == expected);
}

async fn neighbours_share_an_input_or_are_young(store: &dyn MetadataStore) {
    assert_eq!(store.cache_neighbours(&[Arc::from([key(1)])], 10).await.expect("an answer"), []);
    // Added one after the other, so that their order is known; each over the list [7, 8], and one of its own.
    for number in [5, 3, 9, 1] {
        add(store, &[number]).await;
    }
    let near = async |lists: &[Arc<[Fingerprint]>], limit| {
        let near = store.cache_neighbours(lists, limit).await.expect("an answer");
        near.into_iter().map(|(entry, _)| entry.key).collect::<Vec<_>>()
    };
    let all: Arc<[Fingerprint]> = Arc::from([key(7), key(8)]);
    let of_5: Arc<[Fingerprint]> = Arc::from([key(5)]);
    assert_eq!(near(&[], 2).await, [key(1), key(9)], "the youngest of all");
    assert_eq!(near(&[Arc::clone(&all)], 3).await, [key(1), key(9), key(3)]);
    assert_eq!(near(&[Arc::clone(&of_5), all], 1).await, [key(1), key(5)], "so many of each list");
    assert_eq!(near(&[Arc::from([key(8), key(7)])], 1).await, [key(1)], "another order is another list");
    let whole = store.cache_neighbours(&[of_5], 1).await.expect("an answer");
    assert_eq!(whole, [entry(1), entry(5)]);
    store.drop_cache_entries(&[key(1)], 10).await.expect("dropped");
    assert_eq!(near(&[], 1).await, [key(9)]);
}

async fn many_entries_with_many_parts(store: &dyn MetadataStore) {
    let mut many = entries(0..300);
    many[7].0.parts = (0..700).map(|number| part(&format!("7/{number}"))).collect();
    many[8].0.inputs = vec![(0..5000).map(key).collect(), (0..5000).map(key).collect()];
    store.add_cache_entries(&many).await.expect("added");
    for at in [7, 8, 299] {
        assert_eq!(store.cache_entry(&many[at].0.key).await.expect("an answer").as_ref(), Some(&many[at].0));
    }
    let all: Vec<_> = many.iter().map(|(entry, _)| entry.key).collect();
    let outcome = store.drop_cache_entries(&all, 1000).await.expect("dropped");
    assert_eq!((outcome.keys.len(), outcome.parts.len()), (300, 299 * 2 + 700));
    let (added, dropped, ..) = news(store, None).await;
    assert_eq!((added.len(), dropped.len()), (0, 300));
}

// Counts.

async fn uses_are_added_up(store: &dyn MetadataStore) {
    let version = add(store, &[1, 2]).await;
    let used = |number: u64, uses, last_used_at| UseCount { key: key(number), uses, saved_us: uses * 10, last_used_at };
    let later = entry(1).0.created_at + 5;
    let counted = store.save_cache_counts(&[used(1, 2, later), used(9, 1, later)], &[], None).await.expect("saved");
    assert_eq!(counted, Some(version + 1));
    assert_eq!(cache_version(store).await, version + 1);
    // Others hear of it; a use that comes late takes nothing back.
    assert_eq!(news(store, Some(version)).await, (keys(&[1]), vec![], false, version + 1));
    store.save_cache_counts(&[used(1, 1, 3)], &[], None).await.expect("saved");
    let now = summary(store, key(1)).await;
    assert_eq!(now, EntrySummary { uses: 3, saved_us: 30, last_used_at: later, ..entry(1).0.summary() });
    assert_eq!(summary(store, key(2)).await, entry(2).0.summary());
    assert_eq!(store.cache_entry(&key(1)).await.expect("an answer"), Some(entry(1).0));

    // Entries that are gone are not brought back.
    let counted = store.save_cache_counts(&[used(9, 1, later)], &[], None).await.expect("saved");
    assert_eq!(counted, None);
    assert_eq!(store.cache_entry(&key(9)).await.expect("an answer"), None);
}

async fn lookups_are_added_up_and_bounded(store: &dyn MetadataStore) {
    let looked_up =
        |number: u64, lookups, last_lookup_at| LookupCount { program: key(number), lookups, last_lookup_at };
    let before = cache_version(store).await;
    let counts = [looked_up(1, 1, 10), looked_up(2, 2, 20), looked_up(3, 3, 30)];
    assert_eq!(store.save_cache_counts(&[], &counts, None).await.expect("saved"), None);
    store.save_cache_counts(&[], &[looked_up(1, 5, 40), looked_up(2, 1, 5)], None).await.expect("saved");
    let mut expected = vec![(key(1), 6, 40), (key(2), 3, 20), (key(3), 3, 30)];
    expected.sort();
    assert_eq!(lookups(store).await, expected);
    assert_eq!(cache_version(store).await, before, "nothing that an index has to know");
    store.save_cache_counts(&[], &[], Some(3)).await.expect("bounded");
    assert_eq!(lookups(store).await, expected);
    store.save_cache_counts(&[], &[], Some(2)).await.expect("bounded");
    expected.retain(|(program, ..)| *program != key(2));
    assert_eq!(lookups(store).await, expected);
    let many: Vec<_> = (100..1100).map(|number| looked_up(number, 1, number as i64)).collect();
    store.save_cache_counts(&[], &many, Some(10)).await.expect("saved");
    assert_eq!(lookups(store).await.len(), 10);
}

async fn relatives_are_kept_once_and_bounded(store: &dyn MetadataStore) {
    let relative = |number: u64, family: u64| RelativeRecord {
        program: key(number),
        family: key(family),
        columns: Arc::from([key(1), key(2)]),
        schema: Arc::new(Schema::new(vec![
            Field::new("k", DataType::Utf8View, false),
            Field::new("ü", DataType::Decimal128(38, 4), true),
        ])),
    };
    let before = cache_version(store).await;
    assert_eq!(store.relatives(0, 10).await.expect("an answer"), (0, vec![]));
    store.save_relatives(&[relative(1, 7), relative(2, 7)], 100).await.expect("saved");
    let (seen, all) = store.relatives(0, 10).await.expect("an answer");
    assert_eq!(all, [relative(1, 7), relative(2, 7)]);
    // Once, and what comes later is told by itself.
    store.save_relatives(&[relative(2, 8), relative(3, 7)], 100).await.expect("saved");
    let (last, new) = store.relatives(seen, 10).await.expect("an answer");
    assert_eq!(new, [relative(3, 7)]);
    assert_eq!(store.relatives(last, 10).await.expect("an answer"), (last, vec![]));
    assert_eq!(store.relatives(0, 2).await.expect("an answer").1, [relative(2, 7), relative(3, 7)], "the youngest");
    // Many, of which few stay.
    let many: Vec<_> = (100..700).map(|number| relative(number, 9)).collect();
    store.save_relatives(&many, 50).await.expect("saved");
    let (_, kept) = store.relatives(0, 1000).await.expect("an answer");
    assert_eq!(kept, many[550..]);
    assert_eq!(cache_version(store).await, before, "nothing that an index has to know");
}

async fn versions_do_not_disturb_each_other(store: &dyn MetadataStore) {
    let before = store.versions().await.expect("versions");
    add(store, &[1]).await;
    let after = store.versions().await.expect("versions");
    assert_eq!(after, Versions { catalog: before.catalog, cache: before.cache + 1, ..before });
    store.create_table(&table("t"), &[], Replace::Never).await.expect("a table");
    let last = store.versions().await.expect("versions");
    assert_eq!(last, Versions { catalog: before.catalog + 1, cache: after.cache, ..before });
    assert_eq!(last.catalog, store.catalog_version().await.expect("a version"));
}
