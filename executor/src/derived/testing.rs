//! What tests of derived data share: stores that fail or hang, prefixes, streams.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use bytes::Bytes;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::stream::{self, BoxStream};
use nectarine_catalog::{CacheEntry, EntryKind, Fingerprint, ObjectStores};
use nectarine_planner::node::{PrefixKey, Worth};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions,
    PutOptions, PutPayload, PutResult,
};

use super::place::Place;
use super::{DerivedStore, Finished};

pub(crate) fn key(name: &str) -> Fingerprint {
    Fingerprint::of_bytes(name.as_bytes())
}

pub(crate) fn prefix(name: &str) -> Arc<PrefixKey> {
    prefix_worth(name, Worth::Wanted)
}

pub(crate) fn prefix_worth(name: &str, worth: Worth) -> Arc<PrefixKey> {
    Arc::new(PrefixKey { key: key(name), program: key("program"), ordinal: 0, worth })
}

pub(crate) fn store_over(objects: Arc<dyn ObjectStore>) -> DerivedStore {
    DerivedStore::new(objects, Path::from("home/derived"), 64 << 20)
}

/// A store that loses patience quickly.
pub(crate) fn impatient_store(objects: Arc<dyn ObjectStore>) -> DerivedStore {
    let place = Place::objects(None, objects, Path::from("home/derived")).with_patience(Duration::from_millis(600));
    DerivedStore::of(place, None, ObjectStores::new(), 64 << 20)
}

pub(crate) fn memory_store() -> DerivedStore {
    store_over(Arc::new(InMemory::new()))
}

pub(crate) fn entry_of(name: &str, finished: &Finished) -> CacheEntry {
    CacheEntry {
        key: key(name),
        program: key("program"),
        kind: EntryKind::Rows,
        parts: finished.parts.clone(),
        rows: finished.rows,
        bytes: finished.bytes,
        cost_us: 1_000,
        inputs: vec![],
        description: name.to_owned(),
        created_at: 0,
    }
}

pub(crate) fn number_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]))
}

pub(crate) fn numbers(range: Range<i64>) -> RecordBatch {
    RecordBatch::try_new(number_schema(), vec![Arc::new(Int64Array::from_iter_values(range))]).unwrap()
}

pub(crate) fn stream_of(schema: SchemaRef, items: Vec<Result<RecordBatch>>) -> SendableRecordBatchStream {
    Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(items)))
}

/// An object store that can be told to fail or to hang.
#[derive(Debug, Default)]
pub(crate) struct Unwell {
    pub(crate) inner: InMemory,
    pub(crate) fails: AtomicBool,
    pub(crate) hangs: AtomicBool,
    pub(crate) n_puts: AtomicUsize,
}

impl fmt::Display for Unwell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unwell")
    }
}

impl Unwell {
    async fn suffer(&self) -> object_store::Result<()> {
        if self.hangs.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        match self.fails.load(Ordering::SeqCst) {
            true => Err(object_store::Error::Generic { store: "unwell", source: "no space left".into() }),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl ObjectStore for Unwell {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.n_puts.fetch_add(1, Ordering::SeqCst);
        self.suffer().await?;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        self.suffer().await?;
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> object_store::Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
