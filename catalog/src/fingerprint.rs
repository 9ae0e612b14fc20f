//! [`Fingerprint`]: a stable 256-bit name for bytes, extents and, later, programs.
//!
//! Guarantees   the same fields in the same order give the same fingerprint on every machine and in every build that
//!              shares `FORMAT`; fields are tagged and length-prefixed, so no two field lists run together.
//! Caveats      a fingerprint names what was fed to it, nothing else: whoever builds one decides what counts.

use std::fmt;

use chrono::{DateTime, Utc};

/// Raised when the meaning of any fingerprint changes, so that old ones never match new ones.
const FORMAT: u8 = 1;

/// A BLAKE3-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of raw content.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Wraps a digest that was computed or stored earlier.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Reads a stored digest; `None` unless it is 32 bytes long.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// Reads what [`fmt::Display`] writes; `None` unless it is 64 hexadecimal digits.
    pub fn parse(digits: &str) -> Option<Self> {
        let digits = digits.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok()?;
        }
        Some(Self(bytes))
    }

    /// A time that stands for it, where others compare nothing but names and times.
    pub fn as_time(&self) -> DateTime<Utc> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[..8]);
        // 2^62 ns is the year 2116: always a valid time.
        DateTime::from_timestamp_nanos(i64::from_le_bytes(bytes) & ((1 << 62) - 1))
    }

    /// The digest itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(6).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Builds a fingerprint from named fields.
pub struct FingerprintBuilder(blake3::Hasher);

impl FingerprintBuilder {
    /// Starts a fingerprint of one kind of thing; kinds never collide with each other.
    pub fn new(kind: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&[FORMAT]);
        Self(hasher).field("kind", kind.as_bytes())
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, tag: &str, value: &[u8]) -> Self {
        self.0.update(&(tag.len() as u64).to_le_bytes());
        self.0.update(tag.as_bytes());
        self.0.update(&(value.len() as u64).to_le_bytes());
        self.0.update(value);
        self
    }

    /// Adds a number.
    #[must_use]
    pub fn number(self, tag: &str, value: u64) -> Self {
        self.field(tag, &value.to_le_bytes())
    }

    /// Adds a field only if there is one; absence differs from every value.
    #[must_use]
    pub fn optional(self, tag: &str, value: Option<&[u8]>) -> Self {
        match value {
            Some(value) => self.field(tag, value),
            None => self,
        }
    }

    /// The finished fingerprint.
    pub fn finish(self) -> Fingerprint {
        Fingerprint(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_run_together() {
        let one = FingerprintBuilder::new("t").field("a", b"xy").field("b", b"z").finish();
        let two = FingerprintBuilder::new("t").field("a", b"x").field("b", b"yz").finish();
        assert_ne!(one, two);
    }

    #[test]
    fn digits_are_read_back() {
        let one = Fingerprint::of_bytes(b"x");
        let digits = one.to_string();
        assert_eq!(Fingerprint::parse(&digits), Some(one));
        for wrong in ["", &digits[1..], &digits.replace(&digits[..1], "g"), &"+0".repeat(32), &"é".repeat(32)] {
            assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn absence_is_not_emptiness() {
        let none = FingerprintBuilder::new("t").optional("a", None).finish();
        let empty = FingerprintBuilder::new("t").optional("a", Some(b"")).finish();
        assert_ne!(none, empty);
    }

    #[test]
    fn format_one_is_frozen() {
        let fingerprint = FingerprintBuilder::new("extent").field("location", b"file:///a").number("size", 7).finish();
        assert_eq!(fingerprint.to_string().len(), 64);
        assert_eq!(Fingerprint::from_slice(fingerprint.as_bytes()), Some(fingerprint));
    }
}
