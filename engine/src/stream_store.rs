//! [`StreamStore`]: one file that is no file: bytes go on as they come, in their order.
//!
//! For standard output, pipes and devices: nothing there can be held back until all rows are written, or taken back.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error as StoreError, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, UploadPart,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::noting_store::FirstFault;

/// The scheme of URLs that mean the one file.
pub(crate) const STREAM: &str = "stream";

/// Where bytes go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// To whoever holds the other end.
    Channel(mpsc::Sender<Vec<u8>>),
    /// Into a device or a pipe, which is opened when there is something to write.
    Device { path: PathBuf, file: Arc<Mutex<Option<File>>> },
}

impl Sink {
    async fn send(&self, payload: PutPayload) -> io::Result<()> {
        match self {
            Self::Channel(channel) => {
                for bytes in payload {
                    let sent = channel.send(bytes.to_vec()).await;
                    sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads it any more"))?;
                }
                Ok(())
            }
            Self::Device { path, file } => {
                let (path, file) = (path.clone(), Arc::clone(file));
                let writing = tokio::task::spawn_blocking(move || {
                    let mut slot = file.lock();
                    let file = match &mut *slot {
                        Some(file) => file,
                        // A pipe waits here for its reader. What is a file behind `/dev/stdout` is not cut.
                        slot => slot.insert(OpenOptions::new().append(true).open(path)?),
                    };
                    payload.iter().try_for_each(|bytes| file.write_all(bytes))?;
                    file.flush()
                });
                writing.await.map_err(io::Error::other)?
            }
        }
    }
}

/// A store whose every upload goes to the same sink.
#[derive(Debug)]
pub(crate) struct StreamStore {
    pub(crate) sink: Arc<Sink>,
    pub(crate) fault: FirstFault,
}

impl fmt::Display for StreamStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamStore")
    }
}

fn refused<T>(operation: &str) -> StoreResult<T> {
    Err(StoreError::NotImplemented { operation: operation.to_string(), implementer: "StreamStore".to_string() })
}

fn failed(fault: &FirstFault, error: io::Error) -> StoreError {
    fault.note(StoreError::Generic { store: "stream", source: Box::new(error) })
}

const DONE: PutResult = PutResult { e_tag: None, version: None };

#[async_trait]
impl ObjectStore for StreamStore {
    async fn put_opts(&self, _location: &Path, payload: PutPayload, _options: PutOptions) -> StoreResult<PutResult> {
        let sent = self.sink.send(payload).await;
        sent.map(|()| DONE).map_err(|error| failed(&self.fault, error))
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        Ok(Box::new(Parts { sink: Arc::clone(&self.sink), fault: self.fault.clone(), before: None }))
    }

    async fn get_opts(&self, _location: &Path, _options: GetOptions) -> StoreResult<GetResult> {
        refused("reading")
    }

    fn delete_stream(&self, _: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        futures::stream::once(async { refused("deleting") }).boxed()
    }

    fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        futures::stream::once(async { refused("listing") }).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> StoreResult<ListResult> {
        refused("listing")
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> StoreResult<()> {
        refused("copying")
    }
}

/// Parts that are sent one after the other, although several may be on their way.
#[derive(Debug)]
struct Parts {
    sink: Arc<Sink>,
    fault: FirstFault,
    /// Done when the part before was sent.
    before: Option<oneshot::Receiver<()>>,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (done, next) = oneshot::channel();
        let before = self.before.replace(next);
        let (sink, fault) = (Arc::clone(&self.sink), self.fault.clone());
        Box::pin(async move {
            // A part that failed, or was given up, was not sent: what follows it must not be either.
            if let Some(before) = before
                && before.await.is_err()
            {
                return Err(failed(&fault, io::Error::other("what comes before was not written")));
            }
            sink.send(data).await.map_err(|error| failed(&fault, error))?;
            let _ = done.send(());
            Ok(())
        })
    }

    async fn complete(&mut self) -> StoreResult<PutResult> {
        Ok(DONE)
    }

    async fn abort(&mut self) -> StoreResult<()> {
        Ok(())
    }
}
