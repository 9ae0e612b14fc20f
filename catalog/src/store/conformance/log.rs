//! What every metadata store does with the log of queries, and with what they looked up.

use super::{MemoryStore, MetadataStore, SqliteStore, cache, query};
use crate::store::{LookupRecord, QueryRecord};

conformance! {
    the_query_log_is_bounded_and_newest_first
    the_query_log_replaces_by_id
    lookups_stay_as_long_as_their_statement
}

async fn the_query_log_is_bounded_and_newest_first(store: &dyn MetadataStore) {
    // Of equal age, the later identifier is the newer one.
    let queries: Vec<_> = (0..300).map(|number| query(number / 2)).collect();
    store.log_queries(&queries, 1000).await.expect("logged");
    let newest: Vec<_> = queries.iter().rev().cloned().collect();
    assert_eq!(store.queries(usize::MAX).await.expect("queries"), newest);
    assert_eq!(store.queries(7).await.expect("queries"), newest[..7]);
    assert_eq!(store.queries(0).await.expect("queries"), []);

    store.log_queries(&[], 9).await.expect("only bounded");
    assert_eq!(store.queries(100).await.expect("queries"), newest[..9]);
    // One that is older than all that is kept does not stay.
    store.log_queries(&[query(-1)], 9).await.expect("logged");
    assert_eq!(store.queries(100).await.expect("queries"), newest[..9]);
    store.log_queries(&[], 0).await.expect("forgotten");
    assert_eq!(store.queries(100).await.expect("queries"), []);
}

async fn the_query_log_replaces_by_id(store: &dyn MetadataStore) {
    let running = QueryRecord {
        state: "running".to_owned(),
        elapsed_ms: None,
        cpu_ms: None,
        rows_returned: None,
        planning_ms: None,
        reuse: None,
        entries_used: None,
        saved_ms: None,
        extents_total: None,
        extents_reused: None,
        process: None,
        ..query(5)
    };
    store.log_queries(&[running.clone(), query(1)], 10).await.expect("logged");
    let failed = QueryRecord {
        state: "failed".to_owned(),
        error: Some("table \"t\" does not exist".to_owned()),
        elapsed_ms: Some(2.0),
        bytes_scanned: Some(i64::MAX),
        ..running
    };
    store.log_queries(std::slice::from_ref(&failed), 10).await.expect("logged");
    let queries = store.queries(10).await.expect("queries");
    assert_eq!(queries.len(), 2);
    assert_eq!(queries[0], failed);
}

fn lookup(number: u64) -> LookupRecord {
    LookupRecord {
        prefix: Some(cache::key(number)),
        program: Some(cache::key(number + 1)),
        is_hit: number.is_multiple_of(2),
        reason: Some("never \"seen\" – ü".to_owned()),
        detail: None,
        node: "FilterExec: a@0 > 1".to_owned(),
        asked_at: number as i64,
    }
}

async fn lookups_stay_as_long_as_their_statement(store: &dyn MetadataStore) {
    assert_eq!(store.lookups(10).await.expect("look-ups"), []);
    let unknown = LookupRecord { prefix: None, program: None, detail: Some("because".to_owned()), ..lookup(3) };
    let mut queries: Vec<_> = (0..4).map(query).collect();
    store.log_queries(&queries, 10).await.expect("logged");
    assert_eq!(store.lookups(10).await.expect("look-ups"), [], "nothing was asked for yet");
    queries[1].lookups = vec![lookup(1), unknown];
    queries[3].lookups = vec![lookup(2)];
    store.log_queries(&queries, 10).await.expect("logged");
    let expected = [3, 1].map(|number: usize| (queries[number].query_id, queries[number].lookups.clone()));
    assert_eq!(store.lookups(10).await.expect("look-ups"), expected);
    assert_eq!(store.lookups(1).await.expect("look-ups"), expected[..1]);
    let logged = store.queries(10).await.expect("queries");
    assert!(logged.iter().all(|query| query.lookups.is_empty()), "they are asked for apart");
    store.log_queries(&[], 2).await.expect("only bounded");
    assert_eq!(store.lookups(10).await.expect("look-ups"), expected[..1]);
}
