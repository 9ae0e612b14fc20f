//! The first bytes of a text file: a byte order mark is no text, and UTF-16 is not what we read.

use datafusion::common::{DataFusionError, Result};
use futures::{StreamExt, stream};

use super::bytes::Bytes;

/// The mark that some programs put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// Text without its mark.
pub(crate) fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(MARK).unwrap_or(text)
}

/// An error if a file that begins like this cannot be UTF-8, in words that help.
pub(super) fn check(start: &[u8]) -> Result<()> {
    let utf16 = match start {
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => "UTF-32",
        [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => "UTF-16",
        _ => return Ok(()),
    };
    let told = format!("it is {utf16} text: only UTF-8 is read (iconv -f {utf16} -t UTF-8 makes it such)");
    Err(DataFusionError::IoError(std::io::Error::new(std::io::ErrorKind::InvalidData, told)))
}

/// The text of a file from its start on, looked at and without a mark.
pub(super) fn checked(text: Bytes) -> Bytes {
    let checked = stream::unfold((text, Some(Vec::new())), |(mut text, mut start)| async move {
        loop {
            let piece = text.next().await;
            let Some(before) = &mut start else { return piece.map(|piece| (piece, (text, None))) };
            let is_over = match piece {
                Some(Ok(piece)) => {
                    before.extend_from_slice(&piece);
                    false
                }
                Some(Err(error)) => return Some((Err(error), (text, None))),
                None => true,
            };
            if before.is_empty() && is_over {
                return None;
            }
            if before.len() >= 4 || is_over {
                let start = std::mem::take(before);
                let piece = check(&start).map(|()| bytes::Bytes::copy_from_slice(without_mark(&start)));
                return Some((piece, (text, None)));
            }
        }
    });
    checked.boxed()
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;

    use super::*;

    async fn read(text: &'static [u8], piece: usize) -> Result<Vec<u8>> {
        let pieces = text.chunks(piece).map(|piece| Ok(bytes::Bytes::from_static(piece)));
        let all: Vec<_> = checked(stream::iter(pieces.collect::<Vec<_>>()).boxed()).try_collect().await?;
        Ok(all.concat())
    }

    #[tokio::test]
    async fn marks_are_no_text() {
        for piece in [1, 2, 3, 100] {
            assert_eq!(read(b"\xEF\xBB\xBFa,b\n", piece).await.unwrap(), b"a,b\n");
            assert_eq!(read(b"a\xEF\xBB\xBF", piece).await.unwrap(), b"a\xEF\xBB\xBF");
            assert_eq!(read(b"a", piece).await.unwrap(), b"a");
            assert_eq!(read(b"", piece).await.unwrap(), b"");
            let error = read(b"\xFF\xFEa\0,\0b\0", piece).await.unwrap_err().to_string();
            assert!(error.contains("UTF-16"), "{error}");
        }
    }
}
