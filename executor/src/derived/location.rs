//! Where a part is, as an entry names it.
//!
//! ```text
//!   1a/2b/0197c6a0-....arrow                       in the home; the folders are the first digits of the entry's key
//!   s3://bucket/results/1a/2b/0197c6a0-....arrow   elsewhere, whatever the settings say today
//! ```
//!
//! A name is a UUID of version 8: the time, a number, and in its last six bytes the process that wrote the part, so that what
//! a dead one left can be told from what a living one is about to publish. Older versions wrote UUIDs of version 7.
//!
//! Keeps true   what does not look like this is the location of nothing: it is neither read nor deleted.

use std::sync::atomic::{AtomicU32, Ordering};

use nectarine_catalog::Fingerprint;
use uuid::Uuid;

/// How the names of parts end.
const ENDING: &str = ".arrow";

/// A process, as the names of its parts tell it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Writer([u8; 6]);

impl Writer {
    /// The process of that name.
    pub fn of(process: &str) -> Self {
        let [a, b, c, d, e, f, ..] = *Fingerprint::of_bytes(process.as_bytes()).as_bytes();
        Self([a, b, c, d, e, f])
    }

    /// A process without a name.
    pub(super) fn unnamed() -> Self {
        Self::of(&Uuid::new_v4().to_string())
    }
}

/// A name that no one else uses.
pub(super) fn new_name(key: &Fingerprint, writer: Writer) -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    // The first six bytes of a version 7 are the time.
    let mut id = Uuid::now_v7().into_bytes();
    id[6] = 0x80 | number[0] & 0x0f;
    id[7] = number[1];
    id[8] = 0x80 | number[2] & 0x3f;
    id[9] = number[3];
    id[10..].copy_from_slice(&writer.0);
    let bytes = key.as_bytes();
    format!("{:02x}/{:02x}/{}{ENDING}", bytes[0], bytes[1], Uuid::from_bytes(id))
}

/// Who wrote the part at that location; `None` if an older version did.
pub(super) fn writer(location: &str) -> Option<Writer> {
    let (_, name) = split(location)?;
    let id = Uuid::try_parse(name.rsplit('/').next()?.strip_suffix(ENDING)?).ok()?;
    let [.., a, b, c, d, e, f] = id.into_bytes();
    (id.get_version_num() == 8).then_some(Writer([a, b, c, d, e, f]))
}

/// The place (`None` for the home) and the name within it.
pub(super) fn split(location: &str) -> Option<(Option<&str>, &str)> {
    // A name has two slashes; the third from the end is where the place ends.
    let (place, name) = match location.rmatch_indices('/').nth(2) {
        Some((slash, _)) => (Some(&location[..slash]), &location[slash + 1..]),
        None => (None, location),
    };
    let is_place = place.is_none_or(|place| place.contains("://"));
    (is_place && is_name(name)).then_some((place, name))
}

/// Whether a folder with that name is one of ours.
pub(super) fn is_folder(text: &str) -> bool {
    text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_name(name: &str) -> bool {
    let mut pieces = name.split('/');
    let (Some(first), Some(second), Some(file), None) = (pieces.next(), pieces.next(), pieces.next(), pieces.next())
    else {
        return false;
    };
    is_folder(first)
        && is_folder(second)
        && file.strip_suffix(ENDING).is_some_and(|stem| Uuid::try_parse(stem).is_ok_and(|id| id.to_string() == stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_nothing_else_is_one() {
        let me = Writer::of("me");
        let name = new_name(&Fingerprint::of_bytes(b"k"), me);
        assert_eq!(writer(&name), Some(me));
        assert_eq!(writer(&format!("s3://bucket/a/{name}")), Some(me));
        assert_ne!(Writer::of("you"), me);
        assert_eq!(writer("1a/2b/0197c6a0-0000-7000-8000-000000000000.arrow"), None, "an older version's");
        let names: std::collections::BTreeSet<_> =
            (0..100_000).map(|_| new_name(&Fingerprint::of_bytes(b"k"), me)).collect();
        assert_eq!(names.len(), 100_000);
        assert_eq!(split(&name), Some((None, name.as_str())));
        for place in ["s3://bucket/a/b", "s3://bucket", "file:///mnt/x"] {
            assert_eq!(split(&format!("{place}/{name}")), Some((Some(place), name.as_str())));
        }
        let foreign =
            ["", "x", "a/b/c", "../../x.arrow", "1a/2b/x.arrow", "/etc/passwd", "s3://bucket/1a/2b/x.parquet", "//"];
        for foreign in foreign {
            assert_eq!(split(foreign), None, "{foreign}");
        }
        assert_eq!(split(&format!("/{name}")), None);
        assert_eq!(split(&format!("../{name}")), None);
        assert_eq!(split(&format!("{name}x")), None);
    }
}
