//! [`InVain`]: where files can not be deleted, dropping entries frees nothing. Then it is tried seldom, and with one entry.
//!
//! A store without the right to delete would otherwise lose all its entries, one eviction after the other, for no room at all.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long nothing is dropped after it freed nothing; each time twice as long.
const PAUSE: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(3600);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct InVain {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    n_times: u32,
    until: Option<Instant>,
    /// The last time something was freed.
    has_freed: bool,
}

impl InVain {
    /// Dropping freed something, or nothing.
    pub(crate) fn learn(&self, has_freed: bool) {
        let mut state = self.state.lock();
        match has_freed {
            true => *state = State { has_freed, ..State::default() },
            false => {
                let pause = PAUSE.saturating_mul(2_u32.saturating_pow(state.n_times.min(16))).min(PAUSE_MAX);
                *state = State { n_times: state.n_times + 1, until: Some(Instant::now() + pause), has_freed };
            }
        }
    }

    /// Whether enough time has passed since it was in vain.
    pub(crate) fn is_worth_a_try(&self) -> bool {
        self.state.lock().until.is_none_or(|until| Instant::now() >= until)
    }

    /// Whether one entry should be tried before many, while there are so many bytes that could not be deleted.
    pub(crate) fn is_doubtful(&self, undeleted: u64) -> bool {
        let state = self.state.lock();
        state.n_times > 0 || undeleted > 0 && !state.has_freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_tried_now_and_then() {
        let in_vain = InVain::default();
        assert!(in_vain.is_worth_a_try() && !in_vain.is_doubtful(0));
        assert!(in_vain.is_doubtful(1), "another process may have tried");
        for _ in 0..100 {
            in_vain.learn(false);
        }
        assert!(!in_vain.is_worth_a_try() && in_vain.is_doubtful(0));
        let until = in_vain.state.lock().until.expect("a moment");
        assert!(until <= Instant::now() + PAUSE_MAX);
        in_vain.learn(true);
        assert!(in_vain.is_worth_a_try() && !in_vain.is_doubtful(1), "others may go");
    }
}
