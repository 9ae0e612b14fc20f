//! Where a part is, as an entry names it.
//!
//! ```text
//!   1a/2b/0197c6a0-....arrow                       in the home; the folders are the first digits of the entry's key
//!   s3://bucket/results/1a/2b/0197c6a0-....arrow   elsewhere, whatever the settings say today
//! ```
//!
//! Keeps true   what does not look like this is the location of nothing: it is neither read nor deleted.

use nectarine_catalog::Fingerprint;
use uuid::Uuid;

/// How the names of parts end.
const ENDING: &str = ".arrow";

/// A name that no one else uses.
pub(super) fn new_name(key: &Fingerprint) -> String {
    let bytes = key.as_bytes();
    format!("{:02x}/{:02x}/{}{ENDING}", bytes[0], bytes[1], Uuid::now_v7())
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

fn is_name(name: &str) -> bool {
    let is_folder = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
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
        let name = new_name(&Fingerprint::of_bytes(b"k"));
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
