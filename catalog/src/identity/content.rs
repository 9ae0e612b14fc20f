//! BLAKE3 of a whole file, read in bounded pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use futures::StreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectStore};

/// Large enough for BLAKE3 to use all lanes, small enough to stay in the cache.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Hashes exactly `size` bytes; `UnexpectedEof` if there are fewer, which means that the file shrank.
pub(crate) fn hash_local(path: &Path, size: u64) -> io::Result<[u8; 32]> {
    hash_reader(&mut File::open(path)?, size)
}

pub(crate) fn hash_reader(reader: &mut impl Read, size: u64) -> io::Result<[u8; 32]> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER_BYTES.min(usize::try_from(size).unwrap_or(BUFFER_BYTES))];
    let mut left = size;
    while left > 0 {
        let want = usize::try_from(left).map_or(buffer.len(), |left| left.min(buffer.len()));
        reader.read_exact(&mut buffer[..want])?;
        hasher.update(&buffer[..want]);
        left -= want as u64;
    }
    Ok(*hasher.finalize().as_bytes())
}

/// Hashes an object while it streams by.
pub(crate) async fn hash_object(
    store: &dyn ObjectStore,
    path: &ObjectPath,
    options: GetOptions,
) -> object_store::Result<[u8; 32]> {
    let mut stream = store.get_opts(path, options).await?.into_stream();
    let mut hasher = blake3::Hasher::new();
    while let Some(bytes) = stream.next().await {
        hasher.update(&bytes?);
    }
    Ok(*hasher.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_was_pinned_and_no_more() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n as u8).collect();
        for size in [0, 1, BUFFER_BYTES, BUFFER_BYTES + 1, bytes.len()] {
            let hash = hash_reader(&mut bytes.as_slice(), size as u64).unwrap();
            assert_eq!(hash, *blake3::hash(&bytes[..size]).as_bytes(), "{size}");
        }
        let short = hash_reader(&mut bytes.as_slice(), bytes.len() as u64 + 1).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
    }
}
