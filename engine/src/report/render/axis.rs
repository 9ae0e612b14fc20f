//! Round numbers and times along an edge of a drawing.

use chrono::{DateTime, Datelike, Duration, TimeZone, Utc};

use super::cells::grouped;

/// About so many marks.
const MARKS: f64 = 5.0;

/// Round numbers that enclose a range, with their texts.
pub(super) fn numbers(least: f64, most: f64) -> Vec<(f64, String)> {
    let span = if most > least { most - least } else { most.abs().max(1.0) };
    let raw = span / MARKS;
    let power = 10_f64.powf(raw.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= raw).unwrap_or(10.0);
    let step = factor * power;
    if !step.is_finite() || step <= 0.0 {
        return vec![(least, short(least, 1.0))];
    }
    let (first, last) = ((least / step).floor(), (most / step).ceil());
    let n_marks = ((last - first) as usize).min(20);
    (0..=n_marks).map(|at| (first + at as f64) * step).map(|mark| (mark, short(mark, step))).collect()
}

/// `1500000` as `1.5M`; with as many digits as the step needs.
fn short(value: f64, step: f64) -> String {
    let units = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")];
    let (divisor, unit) = units.into_iter().find(|(bound, _)| value.abs() >= *bound).unwrap_or((1.0, ""));
    let divisor = if unit == "k" { 1e3 } else { divisor };
    let digits = (0..6).find(|digits| {
        let scaled = step / divisor * 10_f64.powi(*digits);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1e-9) || *digits == 5
    });
    let digits = usize::try_from(digits.unwrap_or(0)).unwrap_or(0);
    let text = format!("{:.digits$}", value / divisor);
    format!("{}{unit}", grouped(if text.trim_start_matches(['-', '0', '.']).is_empty() { "0" } else { &text }))
}

/// Round times within a range of microseconds, with their texts.
pub(super) fn times(from: i64, to: i64) -> Vec<(i64, String)> {
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;
    let seconds = (to - from) / 1_000_000;
    let Some(start) = DateTime::<Utc>::from_timestamp_micros(from) else { return vec![] };
    let Some(end) = DateTime::<Utc>::from_timestamp_micros(to) else { return vec![] };
    if seconds > 120 * DAY {
        let months = [1, 2, 3, 6, 12, 24, 60, 120, 600];
        let step: i32 =
            months.into_iter().find(|months| seconds / (30 * DAY) / i64::from(*months) <= 8).unwrap_or(1200);
        let format = if step < 12 { "%b %Y" } else { "%Y" };
        return months_between(start, end, step)
            .map(|time| (time.timestamp_micros(), time.format(format).to_string()))
            .collect();
    }
    let steps = [60, 300, 900, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY];
    let step = steps.into_iter().find(|step| seconds / step <= 7).unwrap_or(14 * DAY);
    let format = if step < DAY { "%-d %b %H:%M" } else { "%-d %b" };
    let first = start.timestamp().div_euclid(step) * step;
    let marks = (0..40).map(|at| first + at * step).take_while(|mark| *mark <= end.timestamp());
    let marks = marks.filter(|mark| *mark >= start.timestamp());
    let told = |mark: i64| DateTime::<Utc>::from_timestamp(mark, 0).map(|time| time.format(format).to_string());
    marks.filter_map(|mark| Some((mark * 1_000_000, told(mark)?))).collect()
}

fn months_between(start: DateTime<Utc>, end: DateTime<Utc>, step: i32) -> impl Iterator<Item = DateTime<Utc>> {
    let first = (start.year() * 12 + start.month0() as i32).div_euclid(step) * step;
    let months = (0..40).map(move |at| first + at * step);
    let time = |months: i32| {
        Utc.with_ymd_and_hms(months.div_euclid(12), months.rem_euclid(12).unsigned_abs() + 1, 1, 0, 0, 0).single()
    };
    let start = start - Duration::seconds(1);
    months.filter_map(time).skip_while(move |time| *time < start).take_while(move |time| *time <= end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_numbers() {
        let texts = |least, most| numbers(least, most).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(texts(0.0, 97.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(texts(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts(-5.0, 5.0), ["−6", "−4", "−2", "0", "2", "4", "6"]);
        assert_eq!(texts(0.0, 2_300_000.0), ["0", "500k", "1.0M", "1.5M", "2.0M", "2.5M"]);
        assert!(!numbers(0.0, 0.0).is_empty() && !numbers(f64::MAX, f64::MAX).is_empty());
    }

    #[test]
    fn round_times() {
        let at = |text: &str| DateTime::parse_from_rfc3339(text).expect("a time").timestamp_micros();
        let texts = |from, to| times(at(from), at(to)).into_iter().map(|(_, text)| text).collect::<Vec<_>>();
        assert_eq!(
            texts("2026-11-01T00:00:00Z", "2026-11-05T00:00:00Z"),
            ["1 Nov", "2 Nov", "3 Nov", "4 Nov", "5 Nov"]
        );
        assert_eq!(texts("2026-01-01T00:00:00Z", "2026-08-15T00:00:00Z").first().map(String::as_str), Some("Jan 2026"));
        assert!(texts("2026-01-01T00:00:00Z", "2046-01-01T00:00:00Z").len() <= 12);
        assert!(texts("2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z").len() <= 1);
    }
}
