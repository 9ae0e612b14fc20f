//! What is found, what it is, and what is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use futures::TryStreamExt;
use nectarine_catalog::ObjectStores;
use object_store::memory::InMemory;
use url::Url;

use super::super::testing::{key, numbers, store_over};
use super::*;

async fn write(store: &DerivedStore, name: &str) -> EntryPart {
    let batch = numbers(0..3);
    store.write_part(&key(name), 0, &batch.schema(), std::slice::from_ref(&batch)).await.unwrap()
}

async fn all(store: &DerivedStore) -> Vec<Section> {
    store.sections().try_collect().await.unwrap()
}

fn kinds(sections: &[Section]) -> BTreeMap<String, FoundKind> {
    sections.iter().flat_map(|section| &section.found).map(|one| (one.location.clone(), one.kind)).collect()
}

#[tokio::test]
async fn everything_in_the_folder_is_named_and_nothing_outside() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("derived");
    let store = DerivedStore::local(&folder, 0).unwrap();
    let part = write(&store, "k").await;
    let path = folder.join(&part.location);
    let staged = format!("{}#1", path.display());
    fs::write(&staged, b"half").unwrap();
    fs::write(folder.join("by hand.parquet"), b"x").unwrap();
    fs::write(path.with_file_name("by hand.arrow"), b"x").unwrap();
    fs::write(path.parent().unwrap().parent().unwrap().join("stray"), b"x").unwrap();
    // Another home's folder, and a link.
    fs::create_dir_all(folder.join("0197c6a000007000800000000000abcd/1a/2b")).unwrap();
    fs::write(folder.join("0197c6a000007000800000000000abcd/1a/2b/x.arrow"), b"x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(home.path(), folder.join("ab")).unwrap();

    let sections = all(&store).await;
    let found = kinds(&sections);
    assert_eq!(found.len(), 4, "{found:?}");
    assert_eq!(found.values().filter(|kind| **kind == FoundKind::Foreign).count(), 3);
    let ours: Vec<_> = sections.iter().flat_map(|section| &section.found).filter(|one| one.writer.is_some()).collect();
    assert_eq!(ours.len(), 2);
    assert!(ours.iter().all(|one| one.writer == Some(store.writer()) && one.location == part.location));
    // Every name that a part can have is in a range that was listed whole.
    let ranges: Vec<_> = sections.iter().filter_map(|section| section.range.clone()).collect();
    assert_eq!(ranges.len(), 256);
    assert!(ranges.iter().any(|(from, to)| *from <= part.location && part.location < *to));

    let garbage: Vec<_> = sections.into_iter().flat_map(|section| section.found).collect();
    let looked = store.look_at(garbage).await;
    assert!(looked.iter().all(|one| one.bytes > 0 && one.modified_us.is_some()));
    assert_eq!(store.remove(looked).await.gone.len(), 5);
    assert_eq!(kinds(&all(&store).await), BTreeMap::new());
    assert!(folder.join("0197c6a000007000800000000000abcd/1a/2b/x.arrow").exists());
    assert_eq!(store.is_there(&part.location).await, Some(false));
}

#[tokio::test]
async fn a_folder_that_was_deleted_is_empty_and_a_disk_that_is_away_is_unknown() {
    let home = tempfile::tempdir().unwrap();
    let elsewhere = home.path().join("disk/results");
    let url = Url::from_file_path(&elsewhere).unwrap();
    let store = DerivedStore::open(&home.path().join("derived"), Some(&url), ObjectStores::new(), 0).unwrap();
    let part = write(&store, "k").await;
    assert!(part.location.starts_with("file://"));
    assert_eq!(all(&store).await.iter().filter(|section| section.range.is_some()).count(), 2 * 256);
    fs::remove_dir_all(home.path().join("derived")).unwrap();
    // Its mount point stays.
    fs::remove_dir_all(&elsewhere).unwrap();
    let sections = all(&store).await;
    assert_eq!(sections.iter().filter(|section| section.range.is_some()).count(), 256, "the home's own");
    assert!(sections.iter().all(|section| section.found.is_empty()));
}

#[tokio::test]
async fn a_bucket_is_listed_and_swept() {
    let store = store_over(Arc::new(InMemory::new()));
    let part = write(&store, "k").await;
    let sections = all(&store).await;
    assert!(sections.iter().all(|section| section.range.is_none()));
    let found: Vec<_> = sections.into_iter().flat_map(|section| section.found).collect();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].location, found[0].writer), (&part.location, Some(store.writer())));
    assert!(store.is_in_flight(&part.location));
    assert_eq!(store.remove(store.look_at(found).await).await.gone.len(), 1);
    assert!(all(&store).await.is_empty());
}

#[tokio::test]
async fn parts_are_in_flight_until_they_are_settled_or_deleted() {
    let home = tempfile::tempdir().unwrap();
    let store = DerivedStore::local(&home.path().join("derived"), 0).unwrap();
    let (first, second) = (write(&store, "a").await, write(&store, "b").await);
    assert!(store.is_in_flight(&first.location) && store.is_in_flight(&second.location));
    store.settle([&first]);
    store.delete(std::slice::from_ref(&second)).await.unwrap();
    assert!(!store.is_in_flight(&first.location) && !store.is_in_flight(&second.location));
    // One that could not be written is not in flight either.
    fs::remove_dir_all(home.path().join("derived")).unwrap();
    fs::write(home.path().join("derived"), b"no folder").unwrap();
    let batch = numbers(0..3);
    assert!(store.write_part(&key("c"), 0, &batch.schema(), std::slice::from_ref(&batch)).await.is_err());
}
