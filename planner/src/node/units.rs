//! Fingerprints, sizes and times as EXPLAIN shows them.

use nectarine_catalog::Fingerprint;

/// The first twelve digits of a fingerprint.
pub fn short(fingerprint: &Fingerprint) -> String {
    format!("{fingerprint:?}")
}

/// `12 B`, `3.1 KB`, `4.0 GB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["B", "KB", "MB", "GB", "TB", "PB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    // 1023.95 would print as 1024.0.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{value:.1} {}", UNITS[unit]),
    }
}

/// `870 us`, `12.3 ms`, `2.41 s`.
pub fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        // 999.95 ms and more would print as 1000.0 ms.
        1_000..999_950 => format!("{:.1} ms", us as f64 / 1e3),
        _ => format!("{:.2} s", us as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_short() {
        assert_eq!([size(0), size(1023), size(3_200), size(1 << 32)], ["0 B", "1023 B", "3.1 KB", "4.0 GB"]);
        assert_eq!(size(1024 * 1024 - 1), "1.0 MB");
        assert_eq!([time(7), time(12_300), time(999_999), time(2_410_000)], ["7 us", "12.3 ms", "1.00 s", "2.41 s"]);
    }
}
