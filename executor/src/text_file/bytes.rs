//! The text of a file as a stream of bytes: unpacked, and counted as it was read.

use std::io::{self, Read};

use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::physical_plan::metrics::Count;
use datafusion_datasource_json::utils::JsonArrayToNdjsonReader;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::GetResultPayload;
use tokio::sync::mpsc;

use super::start::{check, without_mark};

/// Text that comes in pieces.
pub(super) type Bytes = BoxStream<'static, Result<bytes::Bytes>>;

/// Bytes that are handed on at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Pieces that may wait for who unpacks them, and unpacked ones for who reads them.
const PIECES: usize = 16;

/// Counts what passes.
pub(super) fn counted(text: Bytes, n_bytes: Count) -> Bytes {
    text.inspect_ok(move |bytes| n_bytes.add(bytes.len())).boxed()
}

/// The text of a whole file; of an array, its elements as lines.
pub(super) fn unpacked(
    payload: GetResultPayload,
    compression: FileCompressionType,
    is_array: bool,
    n_bytes: Count,
) -> Result<Bytes> {
    match payload {
        GetResultPayload::File(file, _) => {
            let text = compression.convert_read(CountedRead { inner: file, n_bytes })?;
            Ok(stream::iter(Pieces::of(text, is_array)?).boxed())
        }
        GetResultPayload::Stream(packed) => {
            let packed = counted(packed.map_err(DataFusionError::from).boxed(), n_bytes);
            match compression.is_compressed() || is_array {
                true => Ok(aside(packed, compression, is_array)),
                false => Ok(packed),
            }
        }
    }
}

/// Unpacks on a thread for that: those of DataFusion's decoders that need none take the first of several packed streams in a
/// file for all of them.
fn aside(mut packed: Bytes, compression: FileCompressionType, is_array: bool) -> Bytes {
    let (to_unpack, waiting) = mpsc::channel::<io::Result<bytes::Bytes>>(PIECES);
    let (unpacked, mut text) = mpsc::channel::<Result<bytes::Bytes>>(PIECES);
    tokio::task::spawn_blocking(move || {
        let waiting = WaitingRead { waiting, piece: bytes::Bytes::new() };
        let pieces = match compression.convert_read(waiting).and_then(|text| Pieces::of(text, is_array)) {
            Ok(pieces) => pieces,
            Err(error) => return drop(unpacked.blocking_send(Err(error))),
        };
        for piece in pieces {
            // Nobody wants it any more.
            if unpacked.blocking_send(piece).is_err() {
                break;
            }
        }
    });
    let feed = async move {
        while let Some(piece) = packed.next().await {
            if to_unpack.send(piece.map_err(io::Error::other)).await.is_err() {
                break;
            }
        }
    };
    // Both ends are driven by whoever reads: when that one stops, so does the thread between them.
    let mut feed = Box::pin(feed);
    let mut is_fed = false;
    stream::poll_fn(move |context| {
        if !is_fed {
            is_fed = feed.as_mut().poll(context).is_ready();
        }
        text.poll_recv(context)
    })
    .boxed()
}

struct CountedRead<R> {
    inner: R,
    n_bytes: Count,
}

impl<R: Read> Read for CountedRead<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        self.n_bytes.add(n_read);
        Ok(n_read)
    }
}

struct WaitingRead {
    waiting: mpsc::Receiver<io::Result<bytes::Bytes>>,
    piece: bytes::Bytes,
}

impl Read for WaitingRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.waiting.blocking_recv() {
                Some(piece) => self.piece = piece?,
                None => return Ok(0),
            }
        }
        let n_read = buffer.len().min(self.piece.len());
        buffer[..n_read].copy_from_slice(&self.piece.split_to(n_read));
        Ok(n_read)
    }
}

/// What a reader gives, piece by piece.
enum Pieces {
    Plain(Box<dyn Read + Send>),
    Array(Box<JsonArrayToNdjsonReader<Box<dyn Read + Send>>>),
    Done,
}

impl Pieces {
    fn of(text: Box<dyn Read + Send>, is_array: bool) -> Result<Self> {
        Ok(match is_array {
            true => Self::Array(Box::new(JsonArrayToNdjsonReader::with_capacity(unmarked(text)?, CHUNK_BYTES))),
            false => Self::Plain(text),
        })
    }

    fn read(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(CHUNK_BYTES);
        match self {
            Self::Plain(text) => {
                text.take(CHUNK_BYTES as u64).read_to_end(&mut piece)?;
            }
            Self::Array(text) => {
                text.as_mut().take(CHUNK_BYTES as u64).read_to_end(&mut piece)?;
                if piece.is_empty() {
                    text.validate_complete()?;
                }
            }
            Self::Done => {}
        }
        Ok(piece)
    }
}

/// The text of an array behind a byte order mark, which who looks for its first bracket does not know.
fn unmarked(mut text: Box<dyn Read + Send>) -> Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    text.by_ref().take(4).read_to_end(&mut start)?;
    check(&start)?;
    let start = without_mark(&start).to_vec();
    Ok(Box::new(io::Cursor::new(start).chain(text)))
}

impl Iterator for Pieces {
    type Item = Result<bytes::Bytes>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.read() {
            Ok(piece) if piece.is_empty() => {
                *self = Self::Done;
                None
            }
            Ok(piece) => Some(Ok(piece.into())),
            Err(error) => {
                *self = Self::Done;
                Some(Err(error.into()))
            }
        }
    }
}
