//! [`DrivenClock`]: time that passes when a test says so.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};
use nectarine_engine::Clock;

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct DrivenClock(AtomicI64);

impl DrivenClock {
    /// At a moment, as RFC 3339 has it.
    pub fn at(time: &str) -> Arc<Self> {
        let clock = Arc::new(Self(AtomicI64::new(0)));
        clock.set(time);
        clock
    }

    /// Moves it.
    pub fn set(&self, time: &str) {
        let time = DateTime::parse_from_rfc3339(time).unwrap_or_else(|error| panic!("{time}: {error}"));
        self.0.store(time.timestamp_nanos_opt().expect("a time of our days"), Ordering::SeqCst);
    }

    /// Moves it on.
    pub fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000_000, Ordering::SeqCst);
    }

    /// What it shows.
    pub fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_nanos(self.0.load(Ordering::SeqCst))
    }
}

impl Clock for DrivenClock {
    fn now_ns(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}
