//! Byte-range extents of growing text files: CSV and newline-delimited JSON, local and not compressed.
//!
//! ```text
//!   first look     |=========== r0 ===========|-tail-      tail: a last record without an end, a range of its own
//!   after growth   |=========== r0 ===========|===== r1 =====|      r0 verified by content; the tail went into r1
//!   rewritten      |================= r0' ==================|      some old range does not verify: all anew
//! ```
//!
//! Guarantees   ranges start and end where records do, quotes considered, and follow each other without gaps. A range's
//!              fingerprint names its bytes, so it changes exactly when they do. Reads stop at the size that the file
//!              had when it was opened; one that shrinks meanwhile is looked at again.
//! Caveats      a last record that cannot be whole yet is left out for as long as somebody may still be writing it: see
//!              `last_record`. JSON that is not one value per line is one extent.
//! Cost         each look at a changed file reads it once, in one bounded buffer, at the speed of BLAKE3.

mod bytes;
mod csv;
mod dialect;
mod json;
mod last_record;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

pub use self::csv::{CsvDialect, CsvRecords, OpenQuote};
pub(crate) use self::dialect::TextDialect;
pub use self::last_record::whole_records;
pub(crate) use self::last_record::{UNFINISHED_NS, Unfinished};
use crate::identity::content::{BUFFER_BYTES, hash_reader};
use crate::identity::{FileIdentity, content_fingerprint};
use crate::{ByteRange, Fingerprint};

/// A log that grew between very many statements becomes one range again, before its ranges cost more than reading it.
const MAX_RANGES: usize = 1024;

/// How often a file that shrinks under our hands is looked at again.
const ATTEMPTS: usize = 4;

/// A range as it was or is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct TextRange {
    /// `None` if the file cannot be cut.
    pub(crate) range: Option<ByteRange>,
    pub(crate) fingerprint: Fingerprint,
    /// A last record without an end.
    pub(crate) tail: bool,
    /// No line end in it is inside of a record.
    pub(crate) lines: bool,
}

/// What a look at a text file found.
#[derive(Debug)]
pub(crate) struct TextLook {
    /// As it was when it was opened; reading went up to its size.
    pub(crate) identity: FileIdentity,
    /// Whether it was the same after reading.
    pub(crate) steady: bool,
    pub(crate) ranges: Vec<TextRange>,
    /// What became of a last record that cannot be whole.
    pub(crate) unfinished: Unfinished,
}

/// Looks at a file of which `old` was known. Blocks.
pub(crate) fn look(
    path: &Path,
    location: &Arc<str>,
    dialect: &TextDialect,
    old: &[TextRange],
    partition_values: &[Option<Arc<str>>],
    now_ns: i64,
) -> io::Result<TextLook> {
    let name = |start: u64, content: &[u8; 32]| content_fingerprint(location, start, content, partition_values);
    for _ in 0..ATTEMPTS {
        let mut file = File::open(path)?;
        let identity = FileIdentity::of_local(Arc::clone(location), &file.metadata()?);
        let mut reading = Reading {
            dialect,
            name: &name,
            size: identity.size,
            racy: identity.is_racy(now_ns),
            waits: identity.mtime_ns > now_ns.saturating_sub(UNFINISHED_NS),
        };
        match reading.ranges(&mut file, old) {
            Ok((ranges, unfinished)) => {
                let after = FileIdentity::of_local(Arc::clone(location), &file.metadata()?);
                return Ok(TextLook { steady: after.is_unchanged(&identity), identity, ranges, unfinished });
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file keeps shrinking while it is read"))
}

/// Whether bytes of a range are still those of its fingerprint. Blocks.
pub(crate) fn verify(
    file: &mut File,
    location: &str,
    range: ByteRange,
    fingerprint: &Fingerprint,
    partition_values: &[Option<Arc<str>>],
) -> io::Result<bool> {
    file.seek(SeekFrom::Start(range.start))?;
    match hash_reader(file, range.len()) {
        Ok(content) => Ok(content_fingerprint(location, range.start, &content, partition_values) == *fingerprint),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

struct Reading<'a> {
    dialect: &'a TextDialect,
    name: &'a dyn Fn(u64, &[u8; 32]) -> Fingerprint,
    size: u64,
    /// Whoever modified it just now may be in the middle of a record.
    racy: bool,
    /// It was modified so lately that what its last record lacks may still come.
    waits: bool,
}

/// What a walk through the new part of a file found.
struct Scanned {
    ranges: Vec<TextRange>,
    /// At a place in the file.
    open_quote: Option<OpenQuote>,
}

impl Reading<'_> {
    fn ranges(&mut self, file: &mut File, old: &[TextRange]) -> io::Result<(Vec<TextRange>, Unfinished)> {
        let kept = self.kept(file, old)?;
        let start = kept.last().and_then(|last| last.range).map_or(0, |range| range.end);
        if start == self.size {
            return Ok((kept, Unfinished::Nothing));
        }
        if start == 0 && !self.dialect.can_be_cut(file, self.size)? {
            return Ok((vec![self.whole(file)?], Unfinished::Nothing));
        }
        let mut scanned = self.scan(file, start)?;
        if kept.len() + scanned.ranges.len() > MAX_RANGES {
            scanned = self.scan(file, 0)?;
        } else {
            scanned.ranges.splice(..0, kept);
        }
        self.finish(file, scanned)
    }

    /// Old ranges that are still what they were, if all are; the tail only if nothing followed it.
    fn kept(&self, file: &mut File, old: &[TextRange]) -> io::Result<Vec<TextRange>> {
        let mut kept = Vec::with_capacity(old.len() + 2);
        let mut at = 0;
        for known in old {
            let Some(range) = known.range else { return Ok(Vec::new()) };
            if range.start != at || range.end > self.size {
                // A tail that is gone is no rewrite; anything else is.
                return Ok(if known.tail && range.start == at { kept } else { Vec::new() });
            }
            if known.tail && range.end < self.size {
                return Ok(kept);
            }
            // An older version may have cut there.
            if range.start == 0 && !known.tail && !self.dialect.has_first_record(file, range)? {
                return Ok(Vec::new());
            }
            file.seek(SeekFrom::Start(range.start))?;
            let content = hash_reader(file, range.len())?;
            if (self.name)(range.start, &content) != known.fingerprint {
                return Ok(if known.tail { kept } else { Vec::new() });
            }
            kept.push(*known);
            at = range.end;
        }
        Ok(kept)
    }

    /// Cuts what begins at `start` behind its last record, hashing both parts on the way.
    fn scan(&self, file: &mut File, start: u64) -> io::Result<Scanned> {
        file.seek(SeekFrom::Start(start))?;
        let mut records = self.dialect.records(start == 0);
        let mut buffer = vec![0; BUFFER_BYTES.min(usize::try_from(self.size - start).unwrap_or(BUFFER_BYTES))];
        let (mut all, mut tail) = (blake3::Hasher::new(), blake3::Hasher::new());
        let mut whole_records: Option<(u64, [u8; 32])> = None;
        let mut at = start;
        while at < self.size {
            let want = usize::try_from(self.size - at).map_or(buffer.len(), |left| left.min(buffer.len()));
            let bytes = &mut buffer[..want];
            file.read_exact(bytes)?;
            let rest = match records.last_end(bytes) {
                Some(end) => {
                    all.update(&bytes[..end]);
                    // The state is small; finishing it here spares keeping a copy.
                    whole_records = Some((at + end as u64, *all.finalize().as_bytes()));
                    tail = blake3::Hasher::new();
                    &bytes[end..]
                }
                None => bytes,
            };
            all.update(rest);
            tail.update(rest);
            at += want as u64;
        }
        let mut ranges = Vec::new();
        let mut tail_start = start;
        let lines = records.were_lines();
        // Before its first record there is nothing to cut off: the header is looked for where the file begins.
        if let Some((end, _)) = whole_records
            && start == 0
            && !self.dialect.has_first_record(file, ByteRange { start, end })?
        {
            whole_records = None;
            tail = all.clone();
        }
        if let Some((end, content)) = whole_records {
            ranges.push(TextRange { lines, ..self.range(start, end, &content, false) });
            tail_start = end;
        }
        if tail_start < self.size {
            ranges.push(self.range(tail_start, self.size, tail.finalize().as_bytes(), true));
        }
        let open_quote = records.open_quote().map(|quote| OpenQuote { at: start + quote.at, ..quote });
        Ok(Scanned { ranges, open_quote })
    }

    /// Decides about a last record without an end.
    fn finish(&self, file: &mut File, scanned: Scanned) -> io::Result<(Vec<TextRange>, Unfinished)> {
        let Scanned { mut ranges, open_quote } = scanned;
        let Some(TextRange { range: Some(tail), tail: true, .. }) = ranges.last().copied() else {
            return Ok((ranges, Unfinished::Nothing));
        };
        let unfinished = match open_quote {
            Some(quote) if quote.swallows_lines && self.racy => Unfinished::Swallows,
            Some(quote) if quote.swallows_lines || !self.waits => {
                return Err(last_record::never_closed(file, quote)?);
            }
            Some(_) => Unfinished::Waits,
            None if self.waits && !self.dialect.may_be_record(file, tail)? => Unfinished::Waits,
            None => return Ok((ranges, Unfinished::Nothing)),
        };
        ranges.pop();
        Ok((ranges, unfinished))
    }

    fn whole(&self, file: &mut File) -> io::Result<TextRange> {
        file.seek(SeekFrom::Start(0))?;
        let content = hash_reader(file, self.size)?;
        Ok(TextRange { range: None, fingerprint: (self.name)(0, &content), tail: false, lines: false })
    }

    fn range(&self, start: u64, end: u64, content: &[u8; 32], tail: bool) -> TextRange {
        TextRange {
            range: Some(ByteRange { start, end }),
            fingerprint: (self.name)(start, content),
            tail,
            lines: false,
        }
    }
}

/// At most `limit` bytes of a range.
fn read_some(file: &mut File, range: ByteRange, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(range.start))?;
    file.take(range.len().min(limit)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
