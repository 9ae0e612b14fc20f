//! Times, sizes and counts the way people read them.

use std::time::Duration;

/// `0.42 ms`, `3.1 ms`, `312 ms`, `1.53 s`, `2 m 05 s`, `1 h 02 m`.
pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    let millis = seconds * 1e3;
    if millis < 0.995 {
        format!("{millis:.2} ms")
    } else if millis < 99.95 {
        format!("{millis:.1} ms")
    } else if millis < 999.5 {
        format!("{millis:.0} ms")
    } else if seconds < 59.995 {
        format!("{seconds:.2} s")
    } else {
        let whole = seconds.round() as u64;
        if whole < 3600 {
            format!("{} m {:02} s", whole / 60, whole % 60)
        } else {
            format!("{} h {:02} m", whole / 3600, whole % 3600 / 60)
        }
    }
}

/// `512 B`, `1.2 KB`, `34 MB`, `5.6 GB`.
pub(crate) fn bytes(n: u64) -> String {
    scaled(n, &["B", "KB", "MB", "GB", "TB", "PB"])
}

/// `999`, `1.2 K`, `34 M`.
pub(crate) fn count(n: u64) -> String {
    scaled(n, &["", "K", "M", "G", "T", "P"])
}

/// `1 row`, `12 rows`.
pub(crate) fn rows(n: u64) -> String {
    if n == 1 { "1 row".to_owned() } else { format!("{n} rows") }
}

fn scaled(n: u64, units: &[&str]) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    // 999.5 would print as 1000: the next unit is shorter.
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 9.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_well() {
        let shown = [420, 3_100, 312_000, 1_530_000, 125_000_000, 3_720_000_000]
            .map(|micros| duration(Duration::from_micros(micros)));
        assert_eq!(shown, ["0.42 ms", "3.1 ms", "312 ms", "1.53 s", "2 m 05 s", "1 h 02 m"]);
        assert_eq!(duration(Duration::from_micros(999_700)), "1.00 s");
    }

    #[test]
    fn sizes_and_counts_read_well() {
        assert_eq!([0, 512, 1_200, 34_000_000, 999_999].map(bytes), ["0 B", "512 B", "1.2 KB", "34 MB", "1.0 MB"]);
        assert_eq!([999, 1_234, 56_000].map(count), ["999", "1.2 K", "56 K"]);
        assert_eq!([0, 1, 2].map(rows), ["0 rows", "1 row", "2 rows"]);
    }
}
