//! How much may be recorded of what nobody has asked for yet.
//!
//! Recording takes processor time: copying, packing, checksums, writing. What somebody asked for is worth that; anything else
//! may take a small share of the time that computing it took so far, and is given up as soon as it takes more. Groups come at
//! the end of their computation, so little is wasted on those that are too many.

use std::time::Duration;

/// Recording so few bytes costs less than finding out.
const FREE_BYTES: u64 = 128 << 10;
/// Bytes that are recorded in a microsecond, about.
const RECORDED_BYTES_PER_US: u64 = 200;
/// The part of the time that recording may take.
const SHARE: u64 = 8;

/// Whether recording `bytes` is cheap beside what computing them took.
pub(super) fn can_afford(bytes: u64, elapsed: Duration) -> bool {
    let elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    bytes <= FREE_BYTES.saturating_add(elapsed_us.saturating_mul(RECORDED_BYTES_PER_US) / SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_free_and_much_has_to_take_its_time() {
        assert!(can_afford(FREE_BYTES, Duration::ZERO));
        assert!(!can_afford(1 << 20, Duration::from_millis(10)));
        assert!(can_afford(1 << 20, Duration::from_millis(100)));
        assert!(can_afford(1 << 40, Duration::MAX));
    }
}
