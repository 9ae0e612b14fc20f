//! [`Health`]: whoever made us wait in vain is not asked again for a moment.
//!
//! Without it every statement would wait for a store that hangs, one after the other. A failure that comes at once costs
//! nothing and is no reason.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// A failure that took longer than this is worth avoiding.
const PROMPT: Duration = Duration::from_millis(500);
/// How long a store is left alone.
const REST: Duration = Duration::from_secs(10);

/// Whether a store is worth asking.
#[derive(Debug, Default)]
pub(super) struct Health {
    unwell_until: Mutex<Option<Instant>>,
}

impl Health {
    pub(super) fn is_well(&self) -> bool {
        self.unwell_until.lock().is_none_or(|until| Instant::now() >= until)
    }

    /// Something was asked for at `began`, and has been answered or not.
    pub(super) fn learn(&self, began: Instant, answered: bool) {
        match answered {
            true => *self.unwell_until.lock() = None,
            false if began.elapsed() >= PROMPT => *self.unwell_until.lock() = Some(Instant::now() + REST),
            false => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_in_vain_is_remembered_until_something_is_answered() {
        let health = Health::default();
        assert!(health.is_well());
        health.learn(Instant::now(), false);
        assert!(health.is_well(), "that took no time");
        let long_ago = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        health.learn(long_ago, false);
        assert!(!health.is_well());
        health.learn(long_ago, true);
        assert!(health.is_well());
    }
}
