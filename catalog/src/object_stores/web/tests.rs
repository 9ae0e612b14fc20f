//! A host that gives whole files only, and one that stops talking.

use std::sync::atomic::AtomicUsize;

use object_store::memory::InMemory;

use super::*;

/// A host that knows no ranges.
#[derive(Debug, Default)]
struct Host {
    files: InMemory,
    n_fetched: AtomicUsize,
    /// It takes requests and does not answer them.
    is_silent: bool,
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Host")
    }
}

#[async_trait]
impl ObjectStore for Host {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.files.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.files.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        if self.is_silent {
            std::future::pending::<()>().await;
        }
        if options.range.is_some() {
            return Err(Error::NotSupported { source: "no ranges".into() });
        }
        self.n_fetched.fetch_add(usize::from(!options.head), Ordering::SeqCst);
        let result = self.files.get_opts(location, options).await?;
        let (meta, range, attributes) = (result.meta.clone(), result.range.clone(), result.attributes.clone());
        let whole = result.bytes().await?;
        // In pieces that fit no range.
        let pieces: Vec<Result<Bytes>> = whole.chunks(7).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        Ok(GetResult { payload: GetResultPayload::Stream(stream::iter(pieces).boxed()), meta, range, attributes })
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.files.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.files.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.files.copy_opts(from, to, options).await
    }
}

struct World {
    host: Arc<Host>,
    store: WebStore,
    path: Path,
}

impl World {
    /// A file of 5000 bytes.
    async fn new(kept_bytes_max: u64) -> Self {
        let host = Arc::new(Host::default());
        let store = WebStore::with_room(Arc::clone(&host) as Arc<dyn ObjectStore>, kept_bytes_max);
        let world = Self { host, store, path: Path::from("d/x") };
        world.write(0).await;
        world
    }

    async fn write(&self, first: u8) {
        self.host.put(&self.path, content(first).into()).await.unwrap();
    }

    fn n_fetched(&self) -> usize {
        self.host.n_fetched.load(Ordering::SeqCst)
    }
}

fn content(first: u8) -> Vec<u8> {
    (0..5000_u32).map(|at| (at % 251) as u8 ^ first).collect()
}

#[tokio::test]
async fn ranges_are_cut_out_of_whole_files() {
    let whole = content(0);
    // One that is kept, and one that has no room.
    for kept_bytes_max in [1 << 20, 1024] {
        let world = World::new(kept_bytes_max).await;
        for range in [0..1, 0..5000, 6..8, 7..14, 4999..5000, 100..3000] {
            let part = world.store.get_range(&world.path, range.clone()).await.unwrap();
            assert_eq!(part, whole[range.start as usize..range.end as usize], "{range:?}");
        }
        let ranges = [4000..4100, 3..30, 29..31, 0..5000];
        let parts = world.store.get_ranges(&world.path, &ranges).await.unwrap();
        for (part, range) in parts.iter().zip(&ranges) {
            assert_eq!(*part, whole[range.start as usize..range.end as usize], "{range:?}");
        }
        for (range, expected) in [
            (GetRange::Suffix(8), 4992..5000),
            (GetRange::Offset(4990), 4990..5000),
            (GetRange::Bounded(4990..6000), 4990..5000),
        ] {
            let options = GetOptions { range: Some(range), ..GetOptions::default() };
            let result = world.store.get_opts(&world.path, options).await.unwrap();
            assert_eq!((result.range.clone(), result.meta.size), (expected.clone(), 5000));
            let bytes = result.bytes().await.unwrap();
            assert_eq!(bytes, whole[expected.start as usize..expected.end as usize]);
        }
        world.store.get_range(&world.path, 5000..5001).await.unwrap_err();
        world.store.get_ranges(&world.path, &[0..1, 6000..7000]).await.unwrap_err();
        let n_fetched = world.n_fetched();
        assert_eq!(n_fetched == 1, kept_bytes_max > 1024, "it was fetched {n_fetched} times");
    }
}

/// A look makes what was kept of no use, whether it saw another file or not.
#[tokio::test]
async fn nothing_kept_is_older_than_the_last_look() {
    let world = World::new(1 << 20).await;
    let part = async || world.store.get_range(&world.path, 0..10).await.unwrap();
    assert_eq!(part().await, content(0)[..10]);
    world.write(1).await;
    assert_eq!(part().await, content(0)[..10], "nobody looked");
    world.store.head(&world.path).await.unwrap();
    assert_eq!(part().await, content(1)[..10]);
    world.write(2).await;
    let whole = world.store.get(&world.path).await.unwrap();
    assert_eq!(part().await, content(2)[..10]);
    assert_eq!(whole.bytes().await.unwrap(), content(2));
    // A condition holds for what is kept as well.
    let range = Some(GetRange::Bounded(0..10));
    let options = GetOptions { if_match: Some("other".to_owned()), range, ..GetOptions::default() };
    let error = world.store.get_opts(&world.path, options).await.unwrap_err();
    assert!(matches!(error, Error::Precondition { .. }), "{error}");
}

#[tokio::test]
async fn many_parts_at_once_are_one_fetch() {
    let world = World::new(1 << 20).await;
    let starts: Vec<u64> = (0..50).collect();
    let parts = starts.iter().map(|start| world.store.get_range(&world.path, start * 100..start * 100 + 10));
    let parts = futures::future::try_join_all(parts).await.unwrap();
    assert_eq!(parts[49], content(0)[4900..4910]);
    assert_eq!(world.n_fetched(), 1);
}

#[tokio::test]
async fn who_is_silent_is_an_error() {
    const SOON: Duration = Duration::from_millis(50);
    let host = Host { is_silent: true, ..Host::default() };
    let store = WebStore { silence_max: SOON, ..WebStore::new(Arc::new(host)) };
    let error = store.head(&Path::from("x")).await.unwrap_err();
    assert!(error.to_string().contains("does not answer"), "{error}");
    let begun = stream::iter([Ok(Bytes::from_static(b"abc"))]).chain(stream::pending());
    let mut bytes = talking(begun.boxed(), SOON);
    assert_eq!(bytes.try_next().await.unwrap().unwrap(), "abc");
    let error = bytes.try_next().await.unwrap_err();
    assert!(error.to_string().contains("does not answer"), "{error}");
}
