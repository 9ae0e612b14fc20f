//! A CSV file whose last quoted field never ends is an error at its end: what looks like rows behind the quote would be lost.

use datafusion::common::DataFusionError;
use futures::{StreamExt, stream};
use nectarine_catalog::{CsvDialect, CsvRecords, OpenQuote};

use super::bytes::Bytes;

/// The same text, with an error behind it if a quote is still open there.
pub(super) fn closed(text: Bytes, dialect: CsvDialect) -> Bytes {
    let watch = Some(Watch { records: CsvRecords::new(dialect, true), n_bytes: 0, n_lines: 0, line: 1, quote: None });
    let watched = stream::unfold((text, watch), |(mut text, watch)| async move {
        let mut watch = watch?;
        match text.next().await {
            Some(Ok(bytes)) => {
                watch.look_at(&bytes);
                Some((Ok(bytes), (text, Some(watch))))
            }
            Some(Err(error)) => Some((Err(error), (text, None))),
            None => {
                let quote = watch.records.open_quote()?;
                let error = std::io::Error::new(std::io::ErrorKind::InvalidData, quote.message(watch.line));
                Some((Err(DataFusionError::IoError(error)), (text, None)))
            }
        }
    });
    watched.boxed()
}

struct Watch {
    records: CsvRecords,
    n_bytes: u64,
    n_lines: u64,
    /// Of the quote that was open last.
    line: u64,
    quote: Option<OpenQuote>,
}

impl Watch {
    fn look_at(&mut self, bytes: &[u8]) {
        self.records.last_end(bytes);
        let lines = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        let quote = self.records.open_quote();
        // Of an earlier piece, if it is open since then.
        if let Some(quote) = quote
            && self.quote.is_none_or(|before| before.at != quote.at)
        {
            let before = usize::try_from(quote.at.saturating_sub(self.n_bytes)).unwrap_or(0).min(bytes.len());
            self.line = 1 + self.n_lines + lines(&bytes[..before]);
        }
        self.quote = quote;
        self.n_bytes += bytes.len() as u64;
        self.n_lines += lines(bytes);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::Result;

    use super::*;

    async fn read(text: &str, piece: usize) -> std::result::Result<String, String> {
        let dialect = CsvDialect {
            delimiter: b',',
            quote: b'"',
            escape: None,
            terminator: None,
            comment: None,
            truncated_rows: false,
        };
        let pieces: Vec<Result<bytes::Bytes>> =
            text.as_bytes().chunks(piece).map(|piece| Ok(bytes::Bytes::copy_from_slice(piece))).collect();
        let mut all = closed(stream::iter(pieces).boxed(), dialect);
        let mut read = Vec::new();
        while let Some(bytes) = all.next().await {
            read.extend_from_slice(&bytes.map_err(|error| error.to_string())?);
        }
        Ok(String::from_utf8(read).unwrap())
    }

    #[tokio::test]
    async fn a_quote_that_stays_open_is_told() {
        for piece in [1, 2, 3, 5, 100] {
            for text in ["", "a,b\n1,2\n", "a\n\"x\ny\"\n", "a\n\"x\"", "a\n5\" disk\n"] {
                assert_eq!(read(text, piece).await.unwrap(), text);
            }
            let error = read("a,b\n1,\"x\n2\"\n3,\"4\n5,6\n", piece).await.unwrap_err();
            assert!(error.contains("the quote in line 4 (byte 14) is never closed, so everything"), "{error}");
            let error = read("\u{feff}a,b\n1,\"x", piece).await.unwrap_err();
            assert!(error.contains("the quote in line 2 (byte 9) is never closed"), "{error}");
            assert!(!error.contains("everything"), "{error}");
        }
    }
}
