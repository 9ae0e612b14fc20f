//! [`NotingStore`]: an object store that remembers why it could not write.
//!
//! DataFusion's writers put words of their own in the place of the cause.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};
use parking_lot::Mutex;

/// The first error of a store's writes. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstFault(Arc<Mutex<Option<StoreError>>>);

impl FirstFault {
    /// The error, if there was one.
    pub(crate) fn take(&self) -> Option<StoreError> {
        self.0.lock().take()
    }

    /// Keeps the error and gives one that reads the same.
    pub(crate) fn note(&self, error: StoreError) -> StoreError {
        let shown = StoreError::Generic { store: "noting", source: error.to_string().into() };
        self.0.lock().get_or_insert(error);
        shown
    }
}

/// A store, and where its first fault is kept.
#[derive(Debug)]
pub(crate) struct NotingStore {
    inner: Arc<dyn ObjectStore>,
    fault: FirstFault,
}

impl NotingStore {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>, fault: FirstFault) -> Self {
        Self { inner, fault }
    }
}

impl fmt::Display for NotingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NotingStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for NotingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> StoreResult<PutResult> {
        self.inner.put_opts(location, payload, options).await.map_err(|error| self.fault.note(error))
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, options).await;
        let upload = upload.map_err(|error| self.fault.note(error))?;
        Ok(Box::new(NotingUpload { inner: upload, fault: self.fault.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

#[derive(Debug)]
struct NotingUpload {
    inner: Box<dyn MultipartUpload>,
    fault: FirstFault,
}

#[async_trait]
impl MultipartUpload for NotingUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, fault) = (self.inner.put_part(data), self.fault.clone());
        Box::pin(async move { part.await.map_err(|error| fault.note(error)) })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        self.inner.complete().await.map_err(|error| self.fault.note(error))
    }

    /// Giving up is a consequence, and what goes wrong with it is no cause.
    async fn abort(&mut self) -> StoreResult<()> {
        self.inner.abort().await
    }
}
