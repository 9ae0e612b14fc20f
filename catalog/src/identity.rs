//! [`FileIdentity`]: how a file is recognised without reading it, and when that is not enough.
//!
//! ```text
//!   looked at       just modified (racy)         rested
//!   first time      by content                   by identity
//!   again, same     content again: same => keep  trusted, nothing is read
//!   again, changed  by content                   by identity; by content if it was before, so that touching keeps it
//! ```
//!
//! Guarantees   two looks that give one fingerprint saw the same bytes. A change leaves traces in size, mtime, ctime,
//!              inode, device, etag or version, except within one tick of the file system's clock: so whoever was modified
//!              within [`RACY_NS`] of the look, or in the future, is known by its content only (git's racy-index rule).
//!              Etags of object stores name content, and excuse from that. Those of web hosts do not: nginx and Apache make
//!              them of size and time, in whole seconds. Nor is the time that such a host tells ours, if it tells one: a
//!              young file of a web host has rested when it has looked the same to us for [`RACY_NS`].
//! Caveats      touching a file that was never read by content gives it a new fingerprint; so does mounting its disk under
//!              another number. What is written through a memory map leaves no trace until the system writes it back, nor does
//!              anything else that the system itself does not notice. A web host is believed that tells the same of other bytes
//!              long after the first ones, or whose clock is more than [`WEB_RACY_NS`] behind ours.

pub(crate) mod content;

use std::fmt;
use std::fs::Metadata;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use object_store::ObjectMeta;

pub(crate) use self::content::{hash_local, hash_object};
use crate::object_stores::plain_location;
use crate::{Fingerprint, FingerprintBuilder};

/// How long a file must have rested before its identity alone is trusted: the coarsest clock of a file system in use.
pub const RACY_NS: i64 = 2_000_000_000;

/// The same for a web host, which tells whole seconds of a clock that is not ours.
const WEB_RACY_NS: i64 = 60_000_000_000;

/// What stands for the time of a file whose host tells none.
const UNTOLD_NS: i64 = 0;

/// Tells the time, so that tests can drive it.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Nanoseconds since 1970.
    fn now_ns(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ns(&self) -> i64 {
        system_time_ns(SystemTime::now())
    }
}

/// What is known of a file without reading it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileIdentity {
    /// Full URL.
    pub location: Arc<str>,
    /// Bytes.
    pub size: u64,
    /// Last modification, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of the inode; 0 where there is none.
    pub ctime_ns: i64,
    /// 0 where there is none.
    pub inode: u64,
    /// 0 where there is none.
    pub device: u64,
    /// What an object store says of the content.
    pub etag: Option<Arc<str>>,
    /// What an object store says of the version.
    pub version: Option<Arc<str>>,
}

/// What a file system says of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    size: u64,
    mtime_ns: i64,
    ctime_ns: i64,
    inode: u64,
    device: u64,
}

#[cfg(unix)]
impl From<&Metadata> for Attributes {
    fn from(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self {
            size: metadata.size(),
            mtime_ns: time_ns(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: time_ns(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            device: metadata.dev(),
        }
    }
}

#[cfg(target_os = "linux")]
impl From<&rustix::fs::Stat> for Attributes {
    fn from(stat: &rustix::fs::Stat) -> Self {
        Self {
            size: stat.st_size.cast_unsigned(),
            mtime_ns: time_ns(stat.st_mtime, stat.st_mtime_nsec as i64),
            ctime_ns: time_ns(stat.st_ctime, stat.st_ctime_nsec as i64),
            inode: stat.st_ino,
            device: stat.st_dev,
        }
    }
}

#[cfg(unix)]
fn time_ns(seconds: i64, ns: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(ns)
}

#[cfg(not(unix))]
impl From<&Metadata> for Attributes {
    fn from(metadata: &Metadata) -> Self {
        let mtime_ns = metadata.modified().map_or(i64::MAX, system_time_ns);
        Self { size: metadata.len(), mtime_ns, ctime_ns: 0, inode: 0, device: 0 }
    }
}

impl FileIdentity {
    /// Identity of a local file.
    pub fn of_local(location: Arc<str>, metadata: &Metadata) -> Self {
        Self::of_attributes(location, Attributes::from(metadata))
    }

    pub(crate) fn of_attributes(location: Arc<str>, attributes: Attributes) -> Self {
        let Attributes { size, mtime_ns, ctime_ns, inode, device } = attributes;
        Self { location, size, mtime_ns, ctime_ns, inode, device, etag: None, version: None }
    }

    /// Identity of an object.
    pub fn of_object(location: Arc<str>, meta: &ObjectMeta) -> Self {
        Self {
            location,
            size: meta.size,
            mtime_ns: meta.last_modified.timestamp_nanos_opt().unwrap_or(i64::MAX),
            ctime_ns: 0,
            inode: 0,
            device: 0,
            etag: meta.e_tag.as_deref().map(Arc::from),
            version: meta.version.as_deref().map(Arc::from),
        }
    }

    /// Last modification in microseconds, as extents keep it.
    pub fn modified_at(&self) -> i64 {
        self.mtime_ns.div_euclid(1000)
    }

    /// Whether nothing tells the two apart: the file need not be read again, unless it was racy.
    pub fn is_unchanged(&self, other: &Self) -> bool {
        if self.size != other.size || self.location != other.location {
            return false;
        }
        match (self.deciding_etag(), other.deciding_etag()) {
            // Listing and asking for one object give different versions and times of the same object, but one etag.
            (Some(one), Some(two)) => one == two,
            _ => {
                self.mtime_ns == other.mtime_ns
                    && self.ctime_ns == other.ctime_ns
                    && self.inode == other.inode
                    && self.device == other.device
                    && self.etag == other.etag
                    && self.version == other.version
            }
        }
    }

    /// Whether the file was modified so shortly before the look that the next change may leave no trace.
    pub fn is_racy(&self, looked_at_ns: i64) -> bool {
        if self.deciding_etag().is_some() || self.version.is_some() {
            return false;
        }
        if self.is_on_web() {
            return self.mtime_ns == UNTOLD_NS || self.mtime_ns > looked_at_ns.saturating_sub(WEB_RACY_NS);
        }
        self.mtime_ns.max(self.ctime_ns) > looked_at_ns.saturating_sub(RACY_NS)
    }

    /// Whether a racy file of a web host has rested all the same: by our clock it looks like this since `since_ns`, so who
    /// writes to it after this look gives it another time or etag.
    pub(crate) fn has_rested(&self, since_ns: i64, looked_at_ns: i64) -> bool {
        let tells_apart = self.mtime_ns != UNTOLD_NS || strong(self.etag.as_deref()).is_some();
        self.is_on_web() && tells_apart && since_ns <= looked_at_ns.saturating_sub(RACY_NS)
    }

    /// Whether a web host has it.
    pub(crate) fn is_on_web(&self) -> bool {
        is_on_web(&self.location)
    }

    /// The fingerprint of an extent that is known by its identity.
    pub fn fingerprint(&self, partition_values: &[Option<Arc<str>>]) -> Fingerprint {
        let builder = FingerprintBuilder::new("extent by identity 2")
            .field("location", plain_location(&self.location).as_bytes())
            .number("size", self.size);
        let builder = match self.deciding_etag() {
            Some(etag) => builder.field("etag", etag.as_bytes()),
            None => builder
                .field("mtime", &self.mtime_ns.to_le_bytes())
                .field("ctime", &self.ctime_ns.to_le_bytes())
                .number("inode", self.inode)
                .number("device", self.device)
                // Or one that does not decide alone.
                .optional("weak etag", self.etag.as_deref().map(str::as_bytes))
                .optional("version", self.version.as_deref().map(str::as_bytes)),
        };
        with_partitions(builder, partition_values).finish()
    }

    fn deciding_etag(&self) -> Option<&str> {
        deciding(&self.location, self.etag.as_deref())
    }
}

/// An etag that names content, whatever else is told of the file.
pub(crate) fn deciding<'a>(location: &str, etag: Option<&'a str>) -> Option<&'a str> {
    strong(etag).filter(|_| !is_on_web(location))
}

fn is_on_web(location: &str) -> bool {
    location.starts_with("http://") || location.starts_with("https://")
}

/// A weak etag (`W/".."`) may stay while bytes change.
pub(crate) fn strong(etag: Option<&str>) -> Option<&str> {
    etag.filter(|etag| !etag.starts_with("W/") && !etag.is_empty())
}

/// The fingerprint of an extent that is known by its content; `start` is 0 for a whole file.
///
/// The location counts, so that the extents of a table are all different even where their bytes are not; so do the
/// partition values, because they are part of the rows.
pub fn content_fingerprint(
    location: &str,
    start: u64,
    content: &[u8; 32],
    partition_values: &[Option<Arc<str>>],
) -> Fingerprint {
    let builder = FingerprintBuilder::new("extent by content")
        .field("location", plain_location(location).as_bytes())
        .number("start", start)
        .field("content", content);
    with_partitions(builder, partition_values).finish()
}

fn with_partitions(builder: FingerprintBuilder, values: &[Option<Arc<str>>]) -> FingerprintBuilder {
    values.iter().fold(builder, |builder, value| match value {
        Some(value) => builder.field("partition", value.as_bytes()),
        None => builder.field("null partition", &[]),
    })
}

/// What is remembered of a look at a file or at one range of it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Seen {
    pub(crate) identity: FileIdentity,
    /// The fingerprint names the content, so that a file that was only touched can keep it.
    pub(crate) by_content: bool,
    /// The range is a last record without an end; it goes when the file grows.
    pub(crate) tail: bool,
    /// No line end in the range is inside of a record.
    pub(crate) lines: bool,
    /// Since when a racy file of a web host looks like this, by our clock.
    pub(crate) since_ns: Option<i64>,
}

const SEEN_FORMAT: u8 = 1;
const BY_CONTENT: u8 = 1;
const TAIL: u8 = 2;
const ETAG: u8 = 4;
const VERSION: u8 = 8;
const LINES: u8 = 16;
const SINCE: u8 = 32;

impl Seen {
    /// Stable bytes for the metadata store; the location is kept beside them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let identity = &self.identity;
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let flags = flag(self.by_content, BY_CONTENT)
            | flag(self.tail, TAIL)
            | flag(self.lines, LINES)
            | flag(identity.etag.is_some(), ETAG)
            | flag(identity.version.is_some(), VERSION)
            | flag(self.since_ns.is_some(), SINCE);
        let mut bytes = vec![SEEN_FORMAT, flags];
        for number in
            [identity.size, identity.mtime_ns as u64, identity.ctime_ns as u64, identity.inode, identity.device]
        {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for text in [&identity.etag, &identity.version].into_iter().flatten() {
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
        if let Some(since_ns) = self.since_ns {
            bytes.extend_from_slice(&since_ns.to_le_bytes());
        }
        bytes
    }

    /// Reads [`encode`](Self::encode)'s bytes; `None` if they are not, in which case the file is simply looked at anew.
    pub(crate) fn decode(location: &Arc<str>, bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let [SEEN_FORMAT, flags] = *take::<2>(&mut rest)? else { return None };
        let mut number = || take::<8>(&mut rest).map(|bytes| u64::from_le_bytes(*bytes));
        let (size, mtime, ctime, inode, device) = (number()?, number()?, number()?, number()?, number()?);
        let mut text = |flag: u8| -> Option<Option<Arc<str>>> {
            if flags & flag == 0 {
                return Some(None);
            }
            let len = u32::from_le_bytes(*take::<4>(&mut rest)?) as usize;
            let text = std::str::from_utf8(rest.get(..len)?).ok()?;
            rest = &rest[len..];
            Some(Some(Arc::from(text)))
        };
        let (etag, version) = (text(ETAG)?, text(VERSION)?);
        let since_ns = match flags & SINCE {
            0 => None,
            _ => Some(i64::from_le_bytes(*take::<8>(&mut rest)?)),
        };
        let identity = FileIdentity {
            location: Arc::clone(location),
            size,
            mtime_ns: mtime as i64,
            ctime_ns: ctime as i64,
            inode,
            device,
            etag,
            version,
        };
        let has = |flag: u8| flags & flag != 0;
        rest.is_empty().then_some(Self {
            identity,
            by_content: has(BY_CONTENT),
            tail: has(TAIL),
            lines: has(LINES),
            since_ns,
        })
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, others) = rest.split_first_chunk::<N>()?;
    *rest = others;
    Some(first)
}

fn system_time_ns(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> FileIdentity {
        FileIdentity {
            location: Arc::from("file:///a"),
            size: 7,
            mtime_ns: 10 * RACY_NS,
            ctime_ns: 11 * RACY_NS,
            inode: 3,
            device: 4,
            etag: None,
            version: None,
        }
    }

    #[test]
    fn bytes_come_back() {
        let tagged = FileIdentity {
            etag: Some(Arc::from("\"e\u{e9}\"")),
            version: Some(Arc::from("v")),
            mtime_ns: -5,
            ..identity()
        };
        for identity in [identity(), tagged] {
            for (by_content, tail, lines, since_ns) in [
                (false, false, false, None),
                (true, false, true, Some(-7)),
                (true, true, false, None),
                (true, false, false, Some(i64::MAX)),
            ] {
                let seen = Seen { identity: identity.clone(), by_content, tail, lines, since_ns };
                let bytes = seen.encode();
                assert_eq!(Seen::decode(&identity.location, &bytes), Some(seen));
                for cut in 0..bytes.len() {
                    assert_eq!(Seen::decode(&identity.location, &bytes[..cut]), None, "cut at {cut}");
                }
            }
        }
    }

    #[test]
    fn a_fresh_file_is_racy_until_it_rested() {
        let identity = identity();
        assert!(identity.is_racy(identity.ctime_ns));
        assert!(identity.is_racy(identity.ctime_ns + RACY_NS - 1));
        assert!(!identity.is_racy(identity.ctime_ns + RACY_NS));
        assert!(identity.is_racy(identity.ctime_ns - 100 * RACY_NS), "from the future");
        let tagged = FileIdentity { etag: Some(Arc::from("\"e\"")), ..identity.clone() };
        assert!(!tagged.is_racy(tagged.ctime_ns), "an etag names the content");
        let weak = FileIdentity { etag: Some(Arc::from("W/\"e\"")), ..identity };
        assert!(weak.is_racy(weak.ctime_ns));
    }

    #[test]
    fn every_trace_counts() {
        let base = identity();
        let changed = [
            FileIdentity { size: 8, ..base.clone() },
            FileIdentity { mtime_ns: 1, ..base.clone() },
            FileIdentity { ctime_ns: 1, ..base.clone() },
            FileIdentity { inode: 1, ..base.clone() },
            // Another file system behind the same path may have given out the same inode at the same time.
            FileIdentity { device: 9, ..base.clone() },
            FileIdentity { etag: Some(Arc::from("\"e\"")), ..base.clone() },
            FileIdentity { version: Some(Arc::from("v")), ..base.clone() },
        ];
        for other in &changed {
            assert!(!base.is_unchanged(other), "{other:?}");
            assert_ne!(base.fingerprint(&[]), other.fingerprint(&[]), "{other:?}");
        }
    }

    #[test]
    fn a_strong_etag_decides_alone() {
        let listed = FileIdentity { etag: Some(Arc::from("\"e\"")), ..identity() };
        let asked = FileIdentity { mtime_ns: 0, version: Some(Arc::from("v")), ..listed.clone() };
        assert!(listed.is_unchanged(&asked));
        assert_eq!(listed.fingerprint(&[]), asked.fingerprint(&[]));
    }

    /// As nginx and Apache tell of a file: whole seconds, and an etag of size and time.
    fn on_web() -> FileIdentity {
        FileIdentity {
            location: Arc::from("http://host/a.csv"),
            mtime_ns: 10 * WEB_RACY_NS,
            ctime_ns: 0,
            inode: 0,
            device: 0,
            etag: Some(Arc::from("\"66f2a1b0-7\"")),
            ..identity()
        }
    }

    #[test]
    fn an_etag_of_a_web_host_excuses_no_young_file() {
        let (file, modified) = (on_web(), 10 * WEB_RACY_NS);
        for location in ["http://host/a.csv", "https://host/a.csv"] {
            let file = FileIdentity { location: Arc::from(location), ..file.clone() };
            assert!(file.is_racy(modified));
            assert!(file.is_racy(modified + WEB_RACY_NS - 1));
            assert!(!file.is_racy(modified + WEB_RACY_NS));
            assert!(file.is_racy(modified - WEB_RACY_NS), "from the future");
            let weak = FileIdentity { etag: Some(Arc::from("W/\"e\"")), ..file.clone() };
            assert!(weak.is_racy(modified) && !weak.is_racy(modified + WEB_RACY_NS));
        }
        for location in ["s3://bucket/a.csv", "gs://bucket/a.csv", "abfss://fs@acc.dfs.core.windows.net/a.csv"] {
            let file = FileIdentity { location: Arc::from(location), ..file.clone() };
            assert!(!file.is_racy(modified), "{location}: its etag names the content");
        }
        for location in ["s3://http/a.csv", "file:///http://a.csv"] {
            assert!(!FileIdentity { location: Arc::from(location), ..file.clone() }.is_on_web(), "{location}");
        }
    }

    #[test]
    fn a_file_without_a_time_is_racy_for_ever() {
        let file = FileIdentity { mtime_ns: UNTOLD_NS, ..on_web() };
        assert!(file.is_racy(i64::MAX), "its etag may be of anything");
        assert!(FileIdentity { etag: None, ..file }.is_racy(i64::MAX));
    }

    #[test]
    fn a_file_of_a_web_host_rests_while_it_looks_the_same() {
        let file = on_web();
        assert!(!file.has_rested(5, 5));
        assert!(!file.has_rested(5, 5 + RACY_NS - 1));
        assert!(file.has_rested(5, 5 + RACY_NS));
        let without_time = FileIdentity { mtime_ns: UNTOLD_NS, ..file.clone() };
        assert!(without_time.has_rested(5, 5 + RACY_NS), "another file has another etag");
        let without_etag = FileIdentity { etag: None, ..file };
        assert!(without_etag.has_rested(5, 5 + RACY_NS), "another file has another time");
        for etag in [None, Some(Arc::from("W/\"e\""))] {
            let nothing = FileIdentity { etag, ..without_time.clone() };
            assert!(!nothing.has_rested(5, i64::MAX), "nothing would tell another file apart");
        }
        assert!(!identity().has_rested(5, i64::MAX), "local files tell more");
    }

    #[test]
    fn every_trace_of_a_web_host_counts() {
        let base = on_web();
        let changed = [
            FileIdentity { size: 8, ..base.clone() },
            FileIdentity { mtime_ns: 1, ..base.clone() },
            FileIdentity { etag: Some(Arc::from("\"other\"")), ..base.clone() },
            FileIdentity { etag: None, ..base.clone() },
        ];
        for other in &changed {
            assert!(!base.is_unchanged(other), "{other:?}");
            assert_ne!(base.fingerprint(&[]), other.fingerprint(&[]), "{other:?}");
        }
        assert!(base.is_unchanged(&base));
    }

    #[test]
    fn partition_values_are_part_of_the_rows() {
        let one = [Some(Arc::from("1"))];
        let null = [None];
        assert_ne!(identity().fingerprint(&one), identity().fingerprint(&null));
        let by = |start, values: &[Option<Arc<str>>]| content_fingerprint("file:///a", start, &[0; 32], values);
        assert_ne!(by(0, &one), by(0, &null));
        assert_ne!(by(0, &one), by(1, &one));
    }
}
