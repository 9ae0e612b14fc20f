//! [`Extent`]: an immutable piece of a stream, and all that planning needs to know of it.
//!
//! A whole file, or a byte range of a growing text file. An extent never changes: when the bytes behind a location do,
//! they become another extent with another fingerprint.

use std::sync::Arc;

use crate::Fingerprint;

/// Bytes `start..end` of a file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteRange {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

impl ByteRange {
    /// Number of bytes.
    pub fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.end == self.start
    }
}

/// An immutable piece of a stream. Small on purpose: a table may have a hundred thousand.
#[derive(Clone, PartialEq, Debug)]
pub struct Extent {
    /// Full URL of the file: `file:///data/a.parquet`, `s3://bucket/key`.
    pub location: Arc<str>,
    /// `None` for a whole file; ranges of one file follow each other without gaps.
    pub range: Option<ByteRange>,
    /// A range of text in which every line end is a record's end, so that it can be read from the middle. Where this is not
    /// known it is false.
    pub lines: bool,
    /// Size of the whole file when the extent was pinned (not of the range).
    pub file_bytes: u64,
    /// Last modification of the file, microseconds since 1970.
    pub modified_at: i64,
    /// What the object store says of the version, if it does.
    pub etag: Option<Arc<str>>,
    /// What the extent is.
    pub fingerprint: Fingerprint,
    /// Number of rows, where the format tells without reading everything.
    pub rows: Option<u64>,
    /// Column statistics in the encoding of `stats`; empty where nothing is known.
    pub stats: Arc<[u8]>,
    /// Values of Hive partition columns as written in the path, in the table's order; `None` is NULL.
    pub partition_values: Arc<[Option<Arc<str>>]>,
    /// When this extent was first seen, microseconds since 1970.
    pub first_seen_at: i64,
}

impl Extent {
    /// Bytes that belong to this extent.
    pub fn bytes(&self) -> u64 {
        self.range.map_or(self.file_bytes, |range| range.len())
    }
}
