//! What every metadata store does with what is known of files.

use super::{MemoryStore, MetadataStore, SqliteStore, extent, gone, known};
use crate::store::KnownFile;
use crate::{ByteRange, Extent};

conformance! {
    known_files_are_saved_replaced_and_forgotten
    what_was_learnt_wins_over_what_is_gone
    many_known_files_are_saved_and_forgotten
}

async fn known_files_are_saved_replaced_and_forgotten(store: &dyn MetadataStore) {
    let range = |start, end| Some(ByteRange { start, end });
    let head = KnownFile { extent: Extent { range: range(0, 10), ..extent(9) }, ..known(9, 2) };
    let tail = KnownFile { extent: Extent { range: range(10, 30), ..extent(9) }, ..known(9, 3) };
    let learnt = [head.clone(), tail, known(1, 1), known(2, 0)];
    store.save_known_files("here", &learnt, &[]).await.expect("saved");
    store.save_known_files("there", &[known(1, 0)], &[]).await.expect("saved");

    // Another range from the same byte on is the same record, as is the same file at another position.
    let longer =
        KnownFile { extent: Extent { range: range(10, 40), etag: Some("e".into()), ..extent(9) }, ..known(9, 3) };
    let moved = KnownFile { identity: vec![], racy: false, ..known(1, 0) };
    store.save_known_files("here", &[moved.clone(), longer.clone()], &[gone(2), gone(77)]).await.expect("saved");
    assert_eq!(store.known_files("here").await.expect("known files"), [moved, head, longer.clone()]);

    // Only one of the ranges goes.
    store.save_known_files("here", &[], &[gone(9), gone(1)]).await.expect("saved");
    assert_eq!(store.known_files("here").await.expect("known files"), [longer]);
    assert_eq!(store.known_files("there").await.expect("known files"), [known(1, 0)]);
    assert_eq!(store.known_files("her").await.expect("known files"), []);
}

async fn what_was_learnt_wins_over_what_is_gone(store: &dyn MetadataStore) {
    store.save_known_files("here", &[known(1, 0)], &[]).await.expect("saved");
    let whole = known(1, 5);
    store.save_known_files("here", std::slice::from_ref(&whole), &[gone(1)]).await.expect("saved");
    assert_eq!(store.known_files("here").await.expect("known files"), [whole]);
}

async fn many_known_files_are_saved_and_forgotten(store: &dyn MetadataStore) {
    let many: Vec<_> = (0..1000).map(|number| known(number, 1000 - number as u32)).collect();
    store.save_known_files("here", &many, &[]).await.expect("saved");
    store.save_known_files("here", &many[..600], &[]).await.expect("saved again");
    let in_order: Vec<_> = many.iter().rev().cloned().collect();
    assert!(store.known_files("here").await.expect("known files") == in_order);
    let gone: Vec<_> = (0..999).map(gone).collect();
    store.save_known_files("here", &[], &gone).await.expect("forgotten");
    assert_eq!(store.known_files("here").await.expect("known files"), many[999..]);
}
