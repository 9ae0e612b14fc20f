//! URLs of extents: paths and keys to URL text and back, without losing a byte.
//!
//! Guarantees   a `Url` made of the text prints the same text, so that a stored location and one that went through a
//!              `Url` are the same string.

use std::path::PathBuf;

use object_store::path::Path as ObjectPath;
use url::Url;

use crate::object_stores::store_url;
use crate::{CatalogError, Result};

/// Splits an extent's location into the store's URL and the key there, as object stores and DataFusion take them.
pub fn object_path(location: &str) -> Result<(Url, ObjectPath)> {
    let invalid = |detail: String| CatalogError::InvalidLocation { location: location.to_owned(), detail };
    let url = Url::parse(location).map_err(|error| invalid(error.to_string()))?;
    let path = ObjectPath::from_url_path(url.path()).map_err(|error| invalid(error.to_string()))?;
    Ok((store_url(&url)?, path))
}

/// The path of a `file:` location; `None` for a remote one.
pub(crate) fn local_path(location: &str) -> Option<PathBuf> {
    decode_percent(location.strip_prefix("file://")?).map(PathBuf::from)
}

/// Writes one component of a path for a URL.
pub(crate) fn encode_segment(segment: &str) -> String {
    let mut encoded = String::with_capacity(segment.len() + 8);
    push_encoded(&mut encoded, segment);
    encoded
}

/// Appends one component of a path, encoded.
pub(crate) fn push_encoded(out: &mut String, segment: &str) {
    // Most names need nothing; one pass that finds out is cheaper than a push per letter.
    if segment.bytes().all(is_plain) {
        out.push_str(segment);
        return;
    }
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in segment.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// What the URL standard leaves alone in a path; wildcards are encoded too, so that no literal key reads as a glob.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@|".contains(&byte)
}

/// Replaces each well-formed `%XX`; `None` if the result is not UTF-8.
pub(crate) fn decode_percent(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match percent_at(bytes, at) {
            Some(byte) => {
                decoded.push(byte);
                at += 3;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).ok()
}

fn percent_at(bytes: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = *bytes.get(at..at + 3)? else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_the_url() {
        for name in [
            "a b.csv",
            "x#1.csv",
            "100%.csv",
            "\u{e9}\u{1f351}.csv",
            "a?b[1]{2}*.csv",
            "q\"<>^`|\\.csv",
            "%41",
            "a+b&c=d",
        ] {
            let location = format!("file:///dir/{}", encode_segment(name));
            assert_eq!(local_path(&location).unwrap(), PathBuf::from("/dir").join(name));
            let (root, path) = object_path(&location).unwrap();
            assert_eq!(root.as_str(), "file:///");
            assert_eq!(path.as_ref(), format!("dir/{name}"));
            assert_eq!(Url::parse(&location).unwrap().as_str(), location, "the url crate leaves it alone");
        }
    }

    #[test]
    fn half_an_escape_is_a_letter() {
        assert_eq!(decode_percent("50%/a%2").as_deref(), Some("50%/a%2"));
        assert_eq!(decode_percent("%zz%41").as_deref(), Some("%zzA"));
        assert_eq!(decode_percent("%ff"), None);
    }
}
