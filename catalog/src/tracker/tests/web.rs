//! Files of a web host that tells of them what a test says, whatever their bytes are.

use chrono::{DateTime, TimeDelta, Utc};
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};

use super::*;

type Stored<T> = object_store::Result<T>;

/// A host with one file.
#[derive(Debug, Default)]
struct Host {
    files: InMemory,
    told: Mutex<(Option<&'static str>, DateTime<Utc>)>,
    n_read: AtomicUsize,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

#[async_trait]
impl ObjectStore for Host {
    async fn put_opts(&self, path: &ObjectPath, payload: PutPayload, options: PutOptions) -> Stored<PutResult> {
        self.files.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Stored<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &ObjectPath, options: GetOptions) -> Stored<GetResult> {
        self.n_read.fetch_add(usize::from(!options.head), Ordering::SeqCst);
        let mut result = self.files.get_opts(path, GetOptions { if_match: None, ..options }).await?;
        let (etag, modified) = *self.told.lock();
        result.meta.e_tag = etag.map(str::to_owned);
        result.meta.last_modified = modified;
        Ok(result)
    }

    fn delete_stream(&self, paths: BoxStream<'static, Stored<ObjectPath>>) -> BoxStream<'static, Stored<ObjectPath>> {
        self.files.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Stored<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Stored<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &ObjectPath, to: &ObjectPath, options: CopyOptions) -> Stored<()> {
        self.files.copy_opts(from, to, options).await
    }
}

impl Host {
    async fn write(&self, text: &'static str, etag: Option<&'static str>, modified: DateTime<Utc>) {
        self.files.put(&ObjectPath::from("d/x.parquet"), text.into()).await.unwrap();
        *self.told.lock() = (etag, modified);
    }

    fn n_read(&self) -> usize {
        self.n_read.load(Ordering::SeqCst)
    }
}

fn world() -> (World, Arc<Host>) {
    let world = World::new(FileFormatKind::Parquet, "http://host/d/x.parquet");
    let host = Arc::new(Host::default());
    world.stores.insert(&url::Url::parse("http://host/").unwrap(), Arc::clone(&host) as Arc<dyn ObjectStore>);
    (world, host)
}

const ETAG: Option<&str> = Some("\"66f2a1b0-3\"");

#[tokio::test]
async fn a_young_file_of_a_web_host_is_known_by_content_until_it_rested() {
    let (mut world, host) = world();
    let now = Utc::now();
    host.write("aaa", ETAG, now).await;
    let first = world.snapshot().await;
    world.verify(&first).await.unwrap();
    // Size, time and etag are the same.
    host.write("bbb", ETAG, now).await;
    assert!(matches!(world.verify(&first).await, Err(CatalogError::Changed { .. })));
    assert_ne!(world.fingerprints().await, [first[0].fingerprint]);
    // The same from one process to the next.
    let later = now + TimeDelta::seconds(1);
    host.write("ccc", ETAG, later).await;
    let second = world.fingerprints().await;
    world.restart();
    host.write("ddd", ETAG, later).await;
    let third = world.fingerprints().await;
    assert_ne!(third, second);
    // The host's clock may be behind ours; what looked the same for long enough to us has rested.
    world.clock.0.fetch_add(2 * RACY_NS, Ordering::SeqCst);
    assert_eq!(world.fingerprints().await, third, "the same bytes");
    let n_read = host.n_read();
    let rested = world.snapshot().await;
    world.verify(&rested).await.unwrap();
    world.restart();
    assert_eq!(*world.snapshot().await, *rested);
    assert_eq!(host.n_read(), n_read, "it is not read again");
    host.write("eee", ETAG, now + TimeDelta::seconds(2)).await;
    assert!(matches!(world.verify(&rested).await, Err(CatalogError::Changed { .. })));
    assert_ne!(world.fingerprints().await, third);
}

#[tokio::test]
async fn a_rested_file_of_a_web_host_is_known_by_what_is_told_of_it() {
    let (mut world, host) = world();
    let modified = Utc::now() - TimeDelta::hours(1);
    host.write("aaa", ETAG, modified).await;
    let first = world.snapshot().await;
    world.verify(&first).await.unwrap();
    world.restart();
    assert_eq!(*world.snapshot().await, *first);
    assert_eq!((host.n_read(), world.n_described()), (0, 1));
    let mut seen = vec![first[0].fingerprint];
    for (text, etag, modified) in [
        ("bbb", Some("\"other\""), modified),
        ("ccc", Some("\"other\""), modified + TimeDelta::seconds(1)),
        ("ddd", None, modified + TimeDelta::seconds(1)),
    ] {
        host.write(text, etag, modified).await;
        let now = world.fingerprints().await;
        assert!(!seen.contains(&now[0]), "{text}");
        seen.extend(now);
    }
}

#[tokio::test]
async fn a_host_that_tells_no_time() {
    let untold = DateTime::UNIX_EPOCH;
    // Without anything that tells files apart, each look reads it.
    for etag in [None, Some("W/\"weak\"")] {
        let (world, host) = world();
        host.write("aaa", etag, untold).await;
        let first = world.fingerprints().await;
        world.rest();
        assert_eq!(world.fingerprints().await, first);
        world.rest();
        host.write("bbb", etag, untold).await;
        assert_ne!(world.fingerprints().await, first, "{etag:?}");
    }
    // With an etag it rests, also from one process to the next.
    let (mut world, host) = world();
    host.write("aaa", ETAG, untold).await;
    let first = world.fingerprints().await;
    world.restart();
    world.clock.0.fetch_add(2 * RACY_NS, Ordering::SeqCst);
    assert_eq!(world.fingerprints().await, first);
    let n_read = host.n_read();
    world.restart();
    assert_eq!(world.fingerprints().await, first);
    assert_eq!(host.n_read(), n_read, "it has rested");
    host.write("bbb", Some("\"other\""), untold).await;
    assert_ne!(world.fingerprints().await, first);
}

/// Earlier versions named files of web hosts by their etag alone.
#[tokio::test]
async fn names_of_an_earlier_version_are_not_believed() {
    let (mut world, host) = world();
    host.write("aaa", ETAG, Utc::now() - TimeDelta::hours(1)).await;
    let first = world.snapshot().await;
    let key = table_key(&world.source, &world.schema);
    let mut known = world.store.known_files(&key).await.unwrap();
    known[0].extent.fingerprint = Fingerprint::of_bytes(b"an etag");
    world.store.save_known_files(&key, &known, &[]).await.unwrap();
    world.restart();
    let again = world.snapshot().await;
    assert_eq!(again[0].fingerprint, first[0].fingerprint);
    world.verify(&again).await.unwrap();
    world.restart();
    assert_eq!(world.fingerprints().await, [first[0].fingerprint]);
    assert_eq!(world.n_described(), 2);
}
