//! [`Dear`]: programs whose rows take longer to keep than to compute again, or can not be kept.
//!
//! What was asked for often enough is kept, whatever that costs the statement that does; where its rows turn out to be too many, the
//! next ones do without.
//!
//! What a statement needs twice is computed once if its rows can be kept meanwhile. Whether they can shows while they are computed;
//! who found out tells the others, so that they do not try in vain. An error tells nobody: it may be that statement's own.

use std::time::Duration;

use moka::sync::Cache;
use nectarine_catalog::Fingerprint;

/// Programs that are remembered.
const PROGRAMS_MAX: u64 = 10_000;
/// How long: there may be more room later, or other rows.
const REMEMBERED: Duration = Duration::from_secs(600);

/// What is known of all programs.
#[derive(Clone, Debug)]
pub(crate) struct Dear(Cache<Fingerprint, u64>);

impl Default for Dear {
    fn default() -> Self {
        Self(Cache::builder().max_capacity(PROGRAMS_MAX).time_to_live(REMEMBERED).build())
    }
}

impl Dear {
    /// So many bytes were too few for its rows; `u64::MAX` if any would be.
    pub(crate) fn learn(&self, program: Fingerprint, entry_bytes_max: u64) {
        self.0.insert(program, entry_bytes_max);
    }

    /// Whether its rows were seen to be more than so many bytes.
    pub(crate) fn is_larger(&self, program: &Fingerprint, entry_bytes_max: u64) -> bool {
        self.0.get(program).is_some_and(|too_few| too_few != u64::MAX && entry_bytes_max <= too_few)
    }

    /// Whether its rows were seen to be too much for who may keep so many bytes.
    pub(crate) fn has(&self, program: &Fingerprint, entry_bytes_max: u64) -> bool {
        self.0.get(program).is_some_and(|too_few| entry_bytes_max <= too_few)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_keep_more_tries_again() {
        let (dear, program) = (Dear::default(), Fingerprint::of_bytes(b"program"));
        assert!(!dear.has(&program, 1));
        dear.learn(program, 1000);
        assert!(dear.has(&program, 1000) && dear.has(&program, 999) && !dear.has(&program, 1001));
        assert!(dear.is_larger(&program, 1000) && !dear.is_larger(&program, 1001));
        dear.learn(program, u64::MAX);
        assert!(dear.has(&program, u64::MAX) && !dear.is_larger(&program, 1000), "how many they are is not known");
    }
}
