//! [`fail_point`]: places where tests kill the process, as `kill -9` would, to see what the next one finds.
//!
//! ```text
//!   NECTARINE_FAIL_POINT=part_half      dies when it first comes to that place
//!   NECTARINE_FAIL_POINT=part_half:3    dies when it comes there for the third time
//! ```
//!
//! Costs nothing   in release builds the function is empty.

/// A place with a name. Does nothing, unless this is a debug build and the environment names the place.
#[inline(always)]
pub fn fail_point(name: &str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Where to die.
    struct Armed {
        name: String,
        /// Visits until then.
        left: AtomicUsize,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    pub(super) fn pass(name: &str) {
        let armed = ARMED.get_or_init(|| std::env::var("NECTARINE_FAIL_POINT").ok().map(|text| parse(&text)));
        let Some(armed) = armed.as_ref().filter(|armed| armed.name == name) else { return };
        if armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            die();
        }
    }

    fn parse(text: &str) -> Armed {
        let (name, visits) = match text.rsplit_once(':') {
            Some((name, visits)) => (name, visits.parse().unwrap_or(1)),
            None => (text, 1),
        };
        Armed { name: name.to_owned(), left: AtomicUsize::new(visits) }
    }

    /// Nothing is flushed, dropped or told to anyone.
    fn die() -> ! {
        #[cfg(unix)]
        // SAFETY: both calls take and return plain numbers.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        }
        // The signal may take a moment.
        std::process::abort()
    }
}
