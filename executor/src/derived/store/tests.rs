//! Parts are found where they were written; a store that hangs or fails is given up soon.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use object_store::ObjectStoreExt;

use super::super::testing::*;
use super::*;

fn url_of(folder: &Folder) -> Url {
    Url::from_directory_path(folder).unwrap()
}

async fn write(store: &DerivedStore) -> EntryPart {
    let batch = numbers(0..100);
    store.write_part(&key("k"), 0, &batch.schema(), std::slice::from_ref(&batch)).await.unwrap()
}

async fn read(store: &DerivedStore, part: &EntryPart) -> Result<Vec<RecordBatch>, DerivedError> {
    store.read_part(part, &key("k"), 0, &number_schema()).await
}

#[tokio::test]
async fn parts_stay_where_they_are_when_the_setting_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (home, one, two) = (folder.path().join("home"), folder.path().join("one"), folder.path().join("two"));
    let stores = ObjectStores::new();
    let open = |elsewhere: Option<&Url>| DerivedStore::open(&home, elsewhere, stores.clone(), 0).unwrap();
    let plain = open(None);
    let first = open(Some(&url_of(&one)));
    let second = open(Some(&url_of(&two)));
    let in_memory = Url::parse("memory:///results").unwrap();
    let third = open(Some(&in_memory));
    let parts = [write(&plain).await, write(&first).await, write(&second).await, write(&third).await];
    assert!(!parts[0].location.contains("://"), "the home may move: {}", parts[0].location);
    assert!(parts[1].location.starts_with("file:///") && parts[3].location.starts_with("memory:///results/"));
    for store in [&plain, &first, &second, &third] {
        for part in &parts {
            assert_eq!(read(store, part).await.unwrap().len(), 1, "{}", part.location);
        }
    }
    // What the collector sees: the home, and where new ones go.
    let listed: Vec<_> = second.list().map_ok(|found| found.location).try_collect().await.unwrap();
    assert_eq!(listed, [parts[0].location.as_str(), parts[2].location.as_str()]);
    // Deleted where they are.
    plain.delete(&parts).await.unwrap();
    plain.delete(&parts).await.unwrap();
    for part in &parts {
        assert!(matches!(read(&second, part).await, Err(DerivedError::Missing { .. })), "{}", part.location);
    }
    // A folder that is gone is a part that is gone.
    let part = write(&first).await;
    std::fs::remove_dir_all(&one).unwrap();
    assert!(matches!(read(&plain, &part).await, Err(DerivedError::Missing { .. })));
}

#[tokio::test]
async fn what_is_no_location_of_ours_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let store = DerivedStore::local(&folder.path().join("home"), 0).unwrap();
    let precious = folder.path().join("precious.arrow");
    std::fs::write(&precious, b"x").unwrap();
    let part = write(&store).await;
    for location in ["../precious.arrow".to_owned(), url_of(folder.path()).join("precious.arrow").unwrap().into()] {
        let part = EntryPart { location, ..part.clone() };
        assert!(matches!(read(&store, &part).await, Err(DerivedError::Missing { .. })));
        store.delete(&[part]).await.unwrap();
    }
    assert!(precious.exists());
    assert!(matches!(
        read(&store, &EntryPart { location: format!("ftp://host/{}", part.location), ..part }).await,
        Err(DerivedError::Unavailable { .. })
    ));
}

/// Bounded waiting, and only once.
#[tokio::test]
async fn a_store_that_hangs_is_left_alone() {
    let unwell = Arc::new(Unwell::default());
    let store = impatient_store(Arc::clone(&unwell) as _);
    let part = write(&store).await;
    assert!(read(&store, &part).await.is_ok() && store.is_writable());
    unwell.hangs.store(true, Ordering::SeqCst);
    let began = Instant::now();
    let error = read(&store, &part).await.unwrap_err();
    assert!(matches!(error, DerivedError::Unavailable { .. }) && !error.is_lost(), "{error:?}");
    let waited = began.elapsed();
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let began = Instant::now();
    for _ in 0..100 {
        assert!(read(&store, &part).await.is_err());
    }
    assert!(began.elapsed() < waited, "nobody waits again");
    assert!(!store.is_writable(), "nothing is recorded either");
}

#[tokio::test]
async fn a_failure_at_once_is_no_reason_to_stay_away() {
    let unwell = Arc::new(Unwell::default());
    let store = impatient_store(Arc::clone(&unwell) as _);
    let part = write(&store).await;
    unwell.fails.store(true, Ordering::SeqCst);
    assert!(matches!(read(&store, &part).await, Err(DerivedError::Unavailable { .. })));
    unwell.fails.store(false, Ordering::SeqCst);
    assert!(read(&store, &part).await.is_ok());
}

#[tokio::test]
async fn whole_entries_are_verified() {
    let objects = Arc::new(object_store::memory::InMemory::new());
    let store = store_over(Arc::clone(&objects) as _);
    let part = write(&store).await;
    let finished = super::super::Finished {
        rows: part.rows,
        bytes: part.bytes,
        parts: vec![part.clone()],
        loaded: None,
        in_order: true,
        wall: Duration::ZERO,
        work: crate::operator::Work::default(),
        unpublished: super::super::Unpublished::new(store.clone(), vec![], None),
    };
    let entry = entry_of("k", &finished);
    store.verify(&entry).await.unwrap();
    assert!(store.verify(&CacheEntry { rows: 1, ..entry.clone() }).await.is_err());
    assert!(store.verify(&CacheEntry { key: key("other"), ..entry.clone() }).await.is_err());
    let path = Path::from(format!("home/derived/{}", part.location));
    objects.put(&path, vec![0; part.bytes as usize].into()).await.unwrap();
    assert!(matches!(store.verify(&entry).await, Err(DerivedError::Damaged { .. })));
    objects.delete(&path).await.unwrap();
    assert!(matches!(store.verify(&entry).await, Err(DerivedError::Missing { .. })));
}
