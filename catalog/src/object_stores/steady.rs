//! [`SteadyStore`]: streams of local files that end.
//!
//! The library reads a piece of a file until it has all of its bytes. Of a file that was cut meanwhile it never gets them,
//! and asks for ever. Here a file that is shorter than it was is an error.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, RenameOptions, Result,
};

/// Bytes that are read at once.
const CHUNK_BYTES: u64 = 64 * 1024;

/// A store whose streams end.
#[derive(Debug)]
pub struct SteadyStore {
    inner: Arc<dyn ObjectStore>,
    /// Whether whole files come as streams too. Some readers want the file itself, and read it to whatever its end is.
    whole: bool,
}

impl SteadyStore {
    /// Pieces of files are streams that end; whole files are files.
    pub fn new(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, whole: false }
    }

    /// Everything is a stream that ends.
    pub fn streaming(inner: Arc<dyn ObjectStore>) -> Self {
        Self { inner, whole: true }
    }
}

impl fmt::Display for SteadyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.inner)
    }
}

#[async_trait]
impl ObjectStore for SteadyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let wanted = options.range.clone();
        let mut result = self.inner.get_opts(location, options).await?;
        if !(self.whole || wanted.is_some()) || !matches!(result.payload, GetResultPayload::File(..)) {
            return Ok(result);
        }
        let none = GetResultPayload::Stream(stream::empty().boxed());
        if let GetResultPayload::File(file, path) = std::mem::replace(&mut result.payload, none) {
            if let Some(GetRange::Bounded(wanted)) = wanted
                && wanted.end > result.range.end
            {
                return Err(cut(&path));
            }
            result.payload = GetResultPayload::Stream(read(file, path, result.range.clone())?);
        }
        Ok(result)
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    fn list_with_offset(&self, prefix: Option<&Path>, offset: &Path) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list_with_offset(prefix, offset)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }

    async fn rename_opts(&self, from: &Path, to: &Path, options: RenameOptions) -> Result<()> {
        self.inner.rename_opts(from, to, options).await
    }
}

fn read(mut file: File, path: PathBuf, range: Range<u64>) -> Result<BoxStream<'static, Result<Bytes>>> {
    file.seek(SeekFrom::Start(range.start)).map_err(unreadable)?;
    let left = range.end.saturating_sub(range.start);
    let chunks = stream::try_unfold((file, path, left), |(mut file, path, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let wanted = left.min(CHUNK_BYTES);
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or_default());
        let n_read = (&mut file).take(wanted).read_to_end(&mut bytes).map_err(unreadable)?;
        match n_read {
            0 => Err(cut(&path)),
            n_read => Ok(Some((Bytes::from(bytes), (file, path, left - n_read as u64)))),
        }
    });
    Ok(chunks.boxed())
}

fn cut(path: &std::path::Path) -> Error {
    Error::Precondition { path: path.display().to_string(), source: "it is shorter than it was".into() }
}

fn unreadable(error: std::io::Error) -> Error {
    Error::Generic { store: "LocalFileSystem", source: Box::new(error) }
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use object_store::ObjectStoreExt;
    use object_store::local::LocalFileSystem;

    use super::*;

    #[tokio::test]
    async fn a_file_that_is_cut_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        std::fs::write(&path, vec![b'x'; 300_000]).unwrap();
        let location = Path::from_absolute_path(&path).unwrap();
        let files: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new());
        for store in [SteadyStore::new(Arc::clone(&files)), SteadyStore::streaming(files)] {
            let whole = store.get_range(&location, 10..250_000).await.unwrap();
            assert_eq!(whole.len(), 249_990);
            assert_eq!(store.get(&location).await.unwrap().bytes().await.unwrap().len(), 300_000);
            let options = GetOptions { range: Some(GetRange::Bounded(0..300_000)), ..GetOptions::default() };
            let mut stream = store.get_opts(&location, options).await.unwrap().into_stream();
            stream.try_next().await.unwrap();
            File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
            let error = stream.try_collect::<Vec<_>>().await.unwrap_err();
            assert!(matches!(error, Error::Precondition { .. }), "{error}");
            let error = store.get_range(&location, 0..200_000).await.unwrap_err();
            assert!(matches!(error, Error::Precondition { .. }), "{error}");
            File::options().write(true).open(&path).unwrap().set_len(300_000).unwrap();
        }
    }
}
