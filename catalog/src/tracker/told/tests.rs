//! A file behind the same path that is another one, before or after it was read.

use std::fs;
use std::time::{Duration, SystemTime};

use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use tempfile::TempDir;

use super::*;

/// A file that has rested for an hour.
fn rested(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    touch(path, SystemTime::now() - Duration::from_secs(3600));
}

fn touch(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a b.bin");
    rested(&path, b"0123456789");
    (folder, path)
}

/// What a process tells of a file as it is now.
fn told(path: &Path, by_content: bool, range: Option<ByteRange>) -> Told {
    let location: Arc<str> = Arc::from(url::Url::from_file_path(path).unwrap().as_str());
    let now = FileIdentity::of_local(Arc::clone(&location), &fs::metadata(path).unwrap());
    let bytes = fs::read(path).unwrap();
    let part = range.map_or(&bytes[..], |range| &bytes[range.start as usize..range.end as usize]);
    let fingerprint = match by_content {
        true => {
            content_fingerprint(&location, range.map_or(0, |range| range.start), blake3::hash(part).as_bytes(), &[])
        }
        false => now.fingerprint(&[]),
    };
    Told {
        location,
        range,
        file_bytes: now.size,
        modified_at: now.modified_at(),
        etag: None,
        fingerprint,
        by_content,
        partition_values: Arc::from([]),
    }
}

/// What is found wrong with a file that is changed before it is read, and while it is.
async fn wrong(told: &Told, before: impl FnOnce(), meanwhile: impl FnOnce()) -> Option<String> {
    let files = SameFiles::default();
    before();
    let looked = match files.look(vec![Wanted { told: told.clone(), store: None }]).await {
        Ok(looked) => looked,
        Err(error) => return Some(error.to_string()),
    };
    meanwhile();
    files.look_again(looked).await.err().map(|error| error.to_string())
}

fn says(found: Option<&str>, path: &Path, detail: &str) {
    assert_eq!(found, Some(format!("\"{}\" {detail}", path.display()).as_str()));
}

#[tokio::test]
async fn the_same_file_passes() {
    let (_folder, path) = folder();
    for by_content in [false, true] {
        assert_eq!(wrong(&told(&path, by_content, None), || (), || ()).await, None);
    }
    let range = ByteRange { start: 2, end: 7 };
    assert_eq!(wrong(&told(&path, true, Some(range)), || (), || ()).await, None);
    // A copy on another disk: everything else differs.
    let told = told(&path, false, None);
    let (bytes, time) = (fs::read(&path).unwrap(), modified(&path));
    fs::remove_file(&path).unwrap();
    fs::write(&path, bytes).unwrap();
    touch(&path, time);
    assert_eq!(wrong(&told, || (), || ()).await, None);
}

/// A file of our own is named by its bytes and nothing else.
#[tokio::test]
async fn files_of_our_own_are_known_by_their_bytes() {
    let (_folder, path) = folder();
    let ours = Told { fingerprint: Fingerprint::of_bytes(b"0123456789"), modified_at: 7, ..told(&path, true, None) };
    assert_eq!(wrong(&ours, || (), || ()).await, None);
    says(wrong(&ours, || rested(&path, b"012345678x"), || ()).await.as_deref(), &path, "holds something else");
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let (_folder, path) = folder();
    let told = told(&path, false, None);
    says(wrong(&told, || fs::remove_file(&path).unwrap(), || ()).await.as_deref(), &path, "is not there");
    rested(&path, b"0123456789");
    touch(&path, SystemTime::UNIX_EPOCH + Duration::from_micros(told.modified_at as u64));
    says(wrong(&told, || (), || fs::remove_file(&path).unwrap()).await.as_deref(), &path, "is not there");
}

#[tokio::test]
async fn another_file_before_reading() {
    let (_folder, path) = folder();
    let time = modified(&path);
    let by_identity = told(&path, false, None);
    let by_content = told(&path, true, None);
    let longer = || {
        fs::write(&path, b"0123456789ab").unwrap();
        touch(&path, time);
    };
    says(wrong(&by_identity, longer, || ()).await.as_deref(), &path, "has 12 bytes, not 10");
    says(wrong(&by_content, longer, || ()).await.as_deref(), &path, "has 12 bytes, not 10");
    let later = || {
        fs::write(&path, b"01234x6789").unwrap();
        touch(&path, time + Duration::from_micros(1));
    };
    says(wrong(&by_identity, later, || ()).await.as_deref(), &path, "was modified at another time");
    // Size and time say nothing; the bytes do.
    let same_time = || {
        fs::write(&path, b"01234x6789").unwrap();
        touch(&path, time);
    };
    says(wrong(&by_content, same_time, || ()).await.as_deref(), &path, "holds something else");
}

#[tokio::test]
async fn another_file_while_it_is_read() {
    let (_folder, path) = folder();
    let time = modified(&path);
    for by_content in [false, true] {
        rested(&path, b"0123456789");
        touch(&path, time);
        let told = told(&path, by_content, None);
        // Written to and put back: what was read may have been the other.
        let written = || {
            // Longer than a tick of the file system's clock.
            std::thread::sleep(Duration::from_millis(50));
            fs::write(&path, b"9876543210").unwrap();
            fs::write(&path, b"0123456789").unwrap();
            touch(&path, time);
        };
        says(wrong(&told, || (), written).await.as_deref(), &path, "was written to while it was read");
        let swapped = || {
            let other = path.with_extension("other");
            rested(&other, b"9876543210");
            touch(&other, time);
            fs::rename(&other, &path).unwrap();
        };
        rested(&path, b"0123456789");
        touch(&path, time);
        says(wrong(&told, || (), swapped).await.as_deref(), &path, "was written to while it was read");
    }
}

/// A log may grow, also while it is read; what was told of it may not change.
#[tokio::test]
async fn a_log_may_grow() {
    use std::io::Write;
    let (_folder, path) = folder();
    let told = told(&path, true, Some(ByteRange { start: 2, end: 10 }));
    let grow = || File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
    assert_eq!(wrong(&told, grow, grow).await, None);
    let overwrite = || fs::write(&path, b"01234567xx and more and more").unwrap();
    says(wrong(&told, || (), overwrite).await.as_deref(), &path, "holds something else");
    says(wrong(&told, || fs::write(&path, b"012345").unwrap(), || ()).await.as_deref(), &path, "has 6 bytes, not 10");
}

/// Bytes are read once for as long as nobody touched the file; a fresh file is read each time.
#[tokio::test]
async fn what_was_read_is_remembered() {
    let (_folder, path) = folder();
    let told = told(&path, true, None);
    let files = SameFiles::default();
    // Its ctime is of now: the next change may leave no trace.
    files.look(vec![Wanted { told: told.clone(), store: None }]).await.unwrap();
    assert_eq!(files.read.lock().len(), 0);
    #[derive(Debug)]
    struct Later;
    impl Clock for Later {
        fn now_ns(&self) -> i64 {
            SystemClock.now_ns() + 10_000_000_000
        }
    }
    let files = SameFiles { clock: Arc::new(Later), read: Arc::default() };
    for _ in 0..2 {
        files.look(vec![Wanted { told: told.clone(), store: None }]).await.unwrap();
        assert_eq!(files.read.lock().len(), 1);
    }
    // Another ctime: not remembered.
    rested(&path, b"012345678x");
    let error = files.look(vec![Wanted { told: told.clone(), store: None }]).await.unwrap_err();
    says(Some(&error.to_string()), &path, "holds something else");
}

#[tokio::test]
async fn objects_are_known_by_their_etag() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let path = ObjectPath::from("a/b");
    store.put(&path, "0123456789".into()).await.unwrap();
    let meta = store.head(&path).await.unwrap();
    let location: Arc<str> = Arc::from("s3://bucket/a/b");
    let now = FileIdentity::of_object(Arc::clone(&location), &meta);
    let told = Told {
        location,
        range: None,
        file_bytes: 10,
        modified_at: now.modified_at(),
        etag: now.etag.clone(),
        fingerprint: now.fingerprint(&[]),
        by_content: false,
        partition_values: Arc::from([]),
    };
    assert!(told.etag.is_some());
    let wanted = || vec![Wanted { told: told.clone(), store: Some(Arc::clone(&store)) }];
    let files = SameFiles::default();
    let looked = files.look(wanted()).await.unwrap();
    let before = files.look(wanted()).await.unwrap();
    files.look_again(looked).await.unwrap();
    store.put(&path, "9876543210".into()).await.unwrap();
    let text = |error: CatalogError| error.to_string();
    let found = files.look_again(before).await.map_err(text);
    assert_eq!(found, Err("\"s3://bucket/a/b\" was written to while it was read".to_owned()));
    let found = files.look(wanted()).await.map(|_| ()).map_err(text);
    assert_eq!(found, Err("\"s3://bucket/a/b\" holds something else".to_owned()));
    store.delete(&path).await.unwrap();
    let found = files.look(wanted()).await.map(|_| ()).map_err(text);
    assert_eq!(found, Err("\"s3://bucket/a/b\" is not there".to_owned()));
}
