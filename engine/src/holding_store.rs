//! [`HoldingStore`]: an object store that keeps back the end of every upload, until all of them may end.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::Result;
use datafusion::execution::object_store::ObjectStoreRegistry;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};
use parking_lot::Mutex;
use url::Url;
use uuid::Uuid;

use crate::noting_store::{FirstFault, NotingStore};
use crate::stream_store::{STREAM, StreamStore};

/// Files of one statement that are not there yet.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) store: Arc<dyn ObjectStore>,
    /// Where uploads go.
    pub(crate) base: String,
    /// What files are called.
    pub(crate) names: FileNames,
    pub(crate) files: Mutex<Vec<HeldFile>>,
    /// What went wrong in the store first.
    pub(crate) fault: FirstFault,
}

/// What files are called below where uploads go.
#[derive(Debug)]
pub(crate) enum FileNames {
    /// Our own names.
    Own {
        /// What they end in.
        ending: String,
    },
    /// The whole paths that writers give them.
    Kept,
    /// What writers' paths are below this folder.
    Below(String),
}

#[derive(Debug)]
pub(crate) struct HeldFile {
    /// Path below the base, and below the table's folder.
    pub(crate) target: String,
    pub(crate) content: Content,
    /// Whether the writer has ended it.
    pub(crate) whole: bool,
}

#[derive(Debug)]
pub(crate) enum Content {
    Small(PutPayload),
    Large(Box<dyn MultipartUpload>),
}

impl Held {
    /// The partition folders of a writer's path, and a name of our own; or that path as it is.
    fn target(&self, location: &Path) -> String {
        let ending = match &self.names {
            FileNames::Own { ending } => ending,
            FileNames::Kept => return location.to_string(),
            FileNames::Below(folder) => {
                let path = location.as_ref();
                return path.strip_prefix(folder.as_str()).unwrap_or(path).trim_start_matches('/').to_string();
            }
        };
        let folders = location.as_ref().rsplit_once('/').map_or("", |(folders, _)| folders);
        // Partitioned files are put below the one file that unpartitioned ones would be.
        let folders = folders.strip_prefix("rows").unwrap_or(folders).trim_start_matches('/');
        join(folders, &format!("{}{ending}", Uuid::now_v7().as_simple()))
    }

    pub(crate) fn path(&self, target: &str) -> StoreResult<Path> {
        Ok(Path::parse(join(&self.base, target))?)
    }

    /// Ends all uploads and says what they are called; what a fault left is given up. The store tells of the fault first.
    async fn end(&self) -> StoreResult<Vec<String>> {
        let files = std::mem::take(&mut *self.files.lock());
        let mut files = files.into_iter();
        let mut targets = vec![];
        let ended = loop {
            let Some(mut file) = files.next() else { break Ok(()) };
            let ended = match &mut file.content {
                _ if !file.whole => Err(unfinished()),
                Content::Small(payload) => match self.path(&file.target) {
                    Ok(path) => self.store.put(&path, payload.clone()).await.map(|_| ()),
                    Err(error) => Err(error),
                },
                Content::Large(upload) => upload.complete().await.map(|_| ()),
            };
            if let Err(error) = ended {
                self.files.lock().push(file);
                break Err(error);
            }
            targets.push(file.target);
        };
        self.files.lock().extend(files);
        ended.map(|()| targets)
    }

    /// Gives up what was not committed.
    pub(crate) async fn discard(&self) {
        let files = std::mem::take(&mut *self.files.lock());
        for file in files {
            if let Content::Large(mut upload) = file.content
                && let Err(error) = upload.abort().await
            {
                tracing::warn!(target = file.target, %error, "cannot abort an upload");
            }
        }
    }
}

/// A path of two parts that may be empty.
pub(crate) fn join(folder: &str, name: &str) -> String {
    [folder, name].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

fn unfinished() -> StoreError {
    StoreError::Generic { store: "copy", source: "a file was left unfinished".into() }
}

const DONE: PutResult = PutResult { e_tag: None, version: None };

/// A store that keeps back the end of every upload.
#[derive(Debug)]
pub(crate) struct HoldingStore(pub(crate) Arc<Held>);

impl fmt::Display for HoldingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HoldingStore({})", self.0.store)
    }
}

#[async_trait]
impl ObjectStore for HoldingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> StoreResult<PutResult> {
        let file = HeldFile { target: self.0.target(location), content: Content::Small(payload), whole: true };
        self.0.files.lock().push(file);
        Ok(DONE)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        let target = self.0.target(location);
        let path = self.0.path(&target)?;
        let upload = self.0.store.put_multipart_opts(&path, options).await?;
        Ok(Box::new(HeldUpload { held: Arc::clone(&self.0), target, upload: Some(upload) }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        self.0.store.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        self.0.store.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.0.store.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.0.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.0.store.copy_opts(from, to, options).await
    }
}

/// An upload that ends later.
#[derive(Debug)]
struct HeldUpload {
    held: Arc<Held>,
    target: String,
    upload: Option<Box<dyn MultipartUpload>>,
}

impl HeldUpload {
    fn hold(&mut self, whole: bool) {
        if let Some(upload) = self.upload.take() {
            let file = HeldFile { target: std::mem::take(&mut self.target), content: Content::Large(upload), whole };
            self.held.files.lock().push(file);
        }
    }
}

#[async_trait]
impl MultipartUpload for HeldUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        match &mut self.upload {
            Some(upload) => upload.put_part(data),
            None => {
                let ended = StoreError::Generic { store: "insert", source: "the upload has ended".into() };
                Box::pin(async move { Err(ended) })
            }
        }
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        self.hold(true);
        Ok(DONE)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        self.hold(false);
        Ok(())
    }
}

impl Drop for HeldUpload {
    fn drop(&mut self) {
        self.hold(false);
    }
}

/// The stores of another registry, whose uploads end together.
#[derive(Debug)]
pub(crate) struct HoldingRegistry {
    pub(crate) inner: Arc<dyn ObjectStoreRegistry>,
    pub(crate) fault: FirstFault,
    pub(crate) uploads: Uploads,
    /// The hidden folder of files of this machine, and the one where they will be.
    pub(crate) staging: Option<(String, String)>,
    /// What stands for a place that is no file.
    pub(crate) stream: Option<Arc<StreamStore>>,
}

/// Uploads of one statement, in whichever store; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Uploads(Arc<Mutex<Vec<Arc<Held>>>>);

impl Uploads {
    /// Makes all files appear, and says where.
    pub(crate) async fn end(&self) -> StoreResult<Vec<String>> {
        let all = self.0.lock().clone();
        let mut targets = vec![];
        for held in all {
            targets.extend(held.end().await?);
        }
        Ok(targets)
    }

    /// Gives up what did not appear.
    pub(crate) async fn discard(&self) {
        let all = std::mem::take(&mut *self.0.lock());
        for held in all {
            held.discard().await;
        }
    }
}

impl ObjectStoreRegistry for HoldingRegistry {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.inner.register_store(url, store)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Some(stream) = &self.stream {
            return match url.scheme() == STREAM {
                true => Ok(Arc::clone(stream) as Arc<dyn ObjectStore>),
                false => self.inner.get_store(url),
            };
        }
        let store = Arc::new(NotingStore::new(self.inner.get_store(url)?, self.fault.clone()));
        let (base, names) = match &self.staging {
            Some((hidden, folder)) if url.scheme() == "file" => (hidden.clone(), FileNames::Below(folder.clone())),
            _ => (String::new(), FileNames::Kept),
        };
        let (files, fault) = (Mutex::default(), self.fault.clone());
        let held = Arc::new(Held { store, base, names, files, fault });
        self.uploads.0.lock().push(Arc::clone(&held));
        Ok(Arc::new(HoldingStore(held)))
    }
}

/// Whatever the URL, the one store.
#[derive(Debug)]
pub(crate) struct OneStore(pub(crate) Arc<dyn ObjectStore>);

impl ObjectStoreRegistry for OneStore {
    fn register_store(&self, _url: &Url, _store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        None
    }

    fn get_store(&self, _url: &Url) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.0))
    }
}
