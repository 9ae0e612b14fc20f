//! Data files made without the engine, so that what it reads is not what it wrote itself.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arrow::array::{ArrayRef, Int64Array};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

/// Rows in a row group: small, so that files are read in several pieces.
const ROWS_IN_GROUP: usize = 10_000;

/// Longer than a file must rest before its identity alone is trusted.
const REST: Duration = Duration::from_millis(2300);

/// Writes a Parquet file. Neither packed nor coded, so that equal numbers of equally wide values give equal sizes.
pub fn parquet(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    std::fs::write(path, parquet_bytes(columns)).expect("a file can be written");
}

/// The bytes of such a file.
pub fn parquet_bytes(columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)));
    let batch = batch.expect("columns of one length");
    let properties = WriterProperties::builder()
        .set_compression(Compression::UNCOMPRESSED)
        .set_dictionary_enabled(false)
        .set_max_row_group_row_count(Some(ROWS_IN_GROUP))
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).expect("a valid schema");
    writer.write(&batch).expect("it fits");
    writer.close().expect("it fits");
    bytes
}

/// A Parquet file with one column of numbers, `n`.
pub fn numbers(path: &Path, range: Range<i64>) {
    std::fs::write(path, numbers_bytes(range)).expect("a file can be written");
}

/// The bytes of such a file.
pub fn numbers_bytes(range: Range<i64>) -> Vec<u8> {
    parquet_bytes(vec![("n", Arc::new(Int64Array::from_iter_values(range)) as ArrayRef)])
}

/// Writes beside the path and renames: whoever looks sees all of it or nothing.
pub fn appear(path: &Path, bytes: &[u8]) {
    let beside = path.with_extension("unfinished");
    std::fs::write(&beside, bytes).expect("a file can be written");
    std::fs::rename(&beside, path).expect("a file can be renamed");
}

/// Adds to the end of a file, as a logger does.
pub fn append(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut file = File::options().append(true).create(true).open(path).expect("a file can be opened");
    file.write_all(bytes.as_ref()).expect("a file can be written");
}

/// When the file was modified.
pub fn modified(path: &Path) -> SystemTime {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).expect("a file has a time")
}

/// Pretends that the file was modified then.
pub fn set_modified(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).expect("a file can be opened");
    file.set_modified(time).expect("its time can be set");
}

/// Overwrites in place with as many other bytes and puts the time of modification back.
pub fn overwrite_unnoticed(path: &Path, bytes: &[u8]) {
    let (time, size) = (modified(path), std::fs::metadata(path).expect("it is there").len());
    assert_eq!(bytes.len() as u64, size, "an unnoticed overwrite keeps the size");
    let mut file = File::options().write(true).open(path).expect("a file can be opened");
    file.write_all(bytes).expect("a file can be written");
    drop(file);
    set_modified(path, time);
}

/// Waits until files that were just written are no longer fresh.
pub async fn rest() {
    tokio::time::sleep(REST).await;
}

/// A gzip file whose content is stored, not packed.
pub fn gz(content: &[u8]) -> Vec<u8> {
    const BLOCK_MAX: usize = 0xffff;
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let blocks: Vec<&[u8]> = if content.is_empty() { vec![content] } else { content.chunks(BLOCK_MAX).collect() };
    for (at, block) in blocks.iter().enumerate() {
        let length = block.len() as u16;
        bytes.push(u8::from(at + 1 == blocks.len()));
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&(!length).to_le_bytes());
        bytes.extend_from_slice(block);
    }
    bytes.extend_from_slice(&crc32(content).to_le_bytes());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    bytes
}

/// A Zstandard file whose content is stored, not packed.
pub fn zst(content: &[u8]) -> Vec<u8> {
    const BLOCK_MAX: usize = 128 * 1024;
    // One segment with a content size of 8 bytes, no checksum.
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1110_0000];
    bytes.extend_from_slice(&(content.len() as u64).to_le_bytes());
    let blocks: Vec<&[u8]> = if content.is_empty() { vec![content] } else { content.chunks(BLOCK_MAX).collect() };
    for (at, block) in blocks.iter().enumerate() {
        let header = (block.len() as u32) << 3 | u32::from(at + 1 == blocks.len());
        bytes.extend_from_slice(&header.to_le_bytes()[..3]);
        bytes.extend_from_slice(block);
    }
    bytes
}

fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    };
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn equal_counts_give_equal_sizes() {
        assert_eq!(numbers_bytes(0..100).len(), numbers_bytes(1_000_000..1_000_100).len());
    }
}
