//! [`Schedule`]: a cron pattern on the clock of a time zone.
//!
//! Keeps true   times are whole seconds. A pattern for one time of day has one time on each day that it names: one that the clock
//!              jumps over is at the end of the jump, one that comes twice is the first of both. A pattern with steps or lists goes
//!              on through a repeated hour.

use std::str::FromStr;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::errors::CronError;

use crate::{EngineError, ErrorKind, Result};

const MICROS: i64 = 1_000_000;

/// When something is to happen.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    cron: Cron,
    zone: Tz,
}

impl Schedule {
    /// Fails if it is no pattern, names no time at all, or there is no such zone.
    pub(crate) fn parse(pattern: &str, zone: &str) -> Result<Self> {
        let zone = parse_zone(zone)?;
        let bad = |detail: String| {
            EngineError::new(ErrorKind::Sql, format!("\"{pattern}\" is no schedule")).with_detail(detail).with_hint(
                "minute hour day month weekday, such as '0 6 * * MON-FRI', or @hourly, @daily, @weekly, @monthly",
            )
        };
        let cron = Cron::from_str(pattern).map_err(|error| bad(told(&error)))?;
        let schedule = Self { cron, zone };
        // From a leap day on, so that the rarest patterns are found.
        match schedule.next_after(951_782_400 * MICROS) {
            Some(_) => Ok(schedule),
            None => Err(bad("it names no time that ever comes".to_string())),
        }
    }

    /// The first time after one; `None` if there is none.
    pub(crate) fn next_after(&self, micros: i64) -> Option<i64> {
        let start = self.local(micros)?;
        let next = self.cron.find_next_occurrence(&start, false).ok()?;
        Some(next.timestamp().saturating_mul(MICROS))
    }

    /// The last time at or before one; `None` if there is none.
    pub(crate) fn last_at(&self, micros: i64) -> Option<i64> {
        let start = self.local(micros)?;
        let last = self.cron.find_previous_occurrence(&start, true).ok()?;
        Some(last.timestamp().saturating_mul(MICROS))
    }

    /// A moment on the zone's clock, cut to seconds.
    pub(crate) fn local(&self, micros: i64) -> Option<DateTime<Tz>> {
        local(micros, self.zone)
    }
}

/// A moment on a zone's clock, cut to seconds.
pub(crate) fn local(micros: i64, zone: Tz) -> Option<DateTime<Tz>> {
    DateTime::<Utc>::from_timestamp(micros.div_euclid(MICROS), 0).map(|time| time.with_timezone(&zone))
}

/// The zone of a name.
pub(crate) fn parse_zone(name: &str) -> Result<Tz> {
    Tz::from_str(name).map_err(|_| {
        let nearest = chrono_tz::TZ_VARIANTS
            .iter()
            .map(|zone| zone.name())
            .min_by_key(|known| strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase()));
        EngineError::new(ErrorKind::Sql, format!("there is no time zone \"{name}\""))
            .with_hint(format!("did you mean \"{}\"?", nearest.unwrap_or("UTC")))
    })
}

/// In our words: the crate's names for its types are left out.
fn told(error: &CronError) -> String {
    match error {
        CronError::EmptyPattern => "it is empty".to_string(),
        CronError::InvalidDate | CronError::InvalidTime | CronError::TimeSearchLimitExceeded => {
            "it names no time that ever comes".to_string()
        }
        CronError::InvalidPattern(text) | CronError::IllegalCharacters(text) | CronError::ComponentError(text) => {
            let text = text.trim_end_matches('.').replace("CronPattern", "the pattern");
            let mut letters = text.chars();
            letters.next().map(|first| first.to_lowercase().collect::<String>() + letters.as_str()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times after one, on the zone's clock.
    fn times(pattern: &str, zone: &str, after: &str, n: usize) -> Vec<String> {
        let schedule = Schedule::parse(pattern, zone).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        let mut at = DateTime::parse_from_rfc3339(after).expect("a time").timestamp_micros();
        let mut found = vec![];
        for _ in 0..n {
            at = schedule.next_after(at).expect("a next time");
            assert_eq!(schedule.last_at(at), Some(at), "{pattern}: what comes next came last");
            found.push(schedule.local(at).expect("a time").to_rfc3339());
        }
        found
    }

    #[test]
    fn plain_times() {
        assert_eq!(
            times("0 6 * * *", "UTC", "2026-11-17T06:00:00Z", 2),
            ["2026-11-18T06:00:00+00:00", "2026-11-19T06:00:00+00:00"]
        );
        assert_eq!(
            times("0 6 * * *", "UTC", "2026-11-17T05:59:59.999999Z", 1),
            ["2026-11-17T06:00:00+00:00"],
            "a moment before"
        );
        assert_eq!(times("@monthly", "UTC", "2026-11-17T00:00:00Z", 1), ["2026-12-01T00:00:00+00:00"]);
        assert_eq!(times("*/15 * * * * *", "UTC", "2026-11-17T00:00:01Z", 1), ["2026-11-17T00:00:15+00:00"]);
    }

    /// The clock of Berlin jumps from 2:00 to 3:00 on 2026-03-29.
    #[test]
    fn a_time_that_is_jumped_over() {
        let berlin = "Europe/Berlin";
        assert_eq!(
            times("30 2 * * *", berlin, "2026-03-28T00:00:00Z", 3),
            ["2026-03-28T02:30:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"],
            "every day has its time"
        );
        assert_eq!(
            times("0 * * * *", berlin, "2026-03-28T23:30:00Z", 3),
            ["2026-03-29T01:00:00+01:00", "2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"],
            "hours that there are"
        );
    }

    /// And back from 3:00 to 2:00 on 2026-10-25.
    #[test]
    fn a_time_that_comes_twice() {
        let berlin = "Europe/Berlin";
        assert_eq!(
            times("30 2 * * *", berlin, "2026-10-24T00:00:00Z", 4),
            [
                "2026-10-24T02:30:00+02:00",
                "2026-10-25T02:30:00+02:00",
                "2026-10-26T02:30:00+01:00",
                "2026-10-27T02:30:00+01:00"
            ],
            "once"
        );
        assert_eq!(
            times("0 * * * *", berlin, "2026-10-24T23:30:00Z", 4),
            [
                "2026-10-25T02:00:00+02:00",
                "2026-10-25T02:00:00+01:00",
                "2026-10-25T03:00:00+01:00",
                "2026-10-25T04:00:00+01:00"
            ],
            "every hour that there is"
        );
    }

    #[test]
    fn leap_days() {
        assert_eq!(
            times("0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", 2),
            ["2028-02-29T00:00:00+00:00", "2032-02-29T00:00:00+00:00"]
        );
        assert_eq!(times("0 0 L * *", "UTC", "2028-02-01T00:00:00Z", 1), ["2028-02-29T00:00:00+00:00"]);
    }

    #[test]
    fn what_is_no_schedule() {
        for (pattern, expected) in [
            ("", "is no schedule"),
            ("every day", "is no schedule"),
            ("0 25 * * *", "is no schedule"),
            ("61 * * * *", "is no schedule"),
            ("* * *", "is no schedule"),
            ("0 0 30 2 *", "names no time"),
        ] {
            let error = Schedule::parse(pattern, "UTC").expect_err(pattern);
            let text = format!("{error} {}", error.detail().unwrap_or_default());
            assert!(text.contains(expected) && !text.contains("Cron"), "{pattern}: {text}");
        }
        let error = Schedule::parse("@daily", "Europe/Berln").expect_err("no zone");
        assert!(error.to_string().contains("Europe/Berln") && error.hint().is_some_and(|hint| hint.contains("Berlin")));
    }
}
